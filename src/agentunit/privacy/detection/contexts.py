"""Recognizers that need a word beside the value: birth dates, documents, records, and numbers without a form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.formulas.checksums import calendar_date, luhn_valid
from agentunit.privacy.detection.engine import Accepted, Candidate, Recognizer, catalog_recognizer
from agentunit.privacy.detection.gazetteer import fold, phrases
from agentunit.privacy.detection.identifiers import SPELLED_EMAILS
from agentunit.privacy.detection.numbers import (
    DASH,
    GAP,
    NUMBER_END,
    check_ipv4,
    digits_of,
    is_part_of_code,
    joined,
    part_of_decimal,
    without_extension,
)

# A birth date is a date beside a word that says whose life began then, in some thirty languages.
_MONTHS = (
    "jan ene gen led sty sau янв січ ιαν ينا كان ינו जन มกร thang_1",
    "feb fev unor lut vas фев лют φεβ فبر شبا פבר फर กุม",
    "mar mrt brez marec kov мар бер μαρ مار اذا آذا מרץ मार्च มีน",
    "apr avr abr dub kwi bal nis апр кві απρ ابر أبر إبر نيس אפר अप्र เมษ",
    "may mai mag maj mei kvet geg май мая тра μαι ماي مايو أيا מאי मई พฤษภ",
    "jun juin giu cerven czer bir haz июн чер ιουν يون حزي יונ जून มิถ",
    "jul juil lug cervenc cervenec lip lie tem июл лип ιουλ يول تمو יול जुल กรก",
    "aug aou ago srp sie rug agu авг сер αυγ اغس أغس اب آب אוג अग สิงห",
    "sep set zar wrz eyl сен вер σεπ سبت ايل أيل ספט सित กันย",
    "oct okt out ott rij paz spal eki окт жов οκτ اكت أكت تشرين_الاول אוק अक्ट अक्तू ตุล",
    "nov list lap kas ноя лис νοε نوف נוב नव พฤศจ",
    "dec dez dic des pros gru ara дек гру δεκ ديس דצמ दिस ธันว",
)
"""The names of the months by their first letters, folded, month by month; of two that fit the longer one counts."""
_MONTH_OF = {fold(start): number for number, starts in enumerate(_MONTHS, start=1) for start in starts.split()}
_LONGEST_START = max(map(len, _MONTH_OF))
_MONTH_NAME = re.compile(r"[^\W\d_][^\W\d_\u0900-\u0963\u0e31-\u0e4e]*(?:[^\W\d_]|[\u0900-\u0963\u0e31-\u0e4e])*")
_DIGITS = re.compile(r"[0-9]+")
_NO_MONTHS = frozenset(("de", "del", "of", "the", "do", "da", "e", "er", "tháng", "thang", "г", "року", "года", "พ.ศ"))
_BUDDHIST = 543


def month_named(word: str) -> int | None:
    """The number of the month that a word names in one of many languages.

    >>> [month_named(word) for word in ("March", "août", "czerwca", "cervence", "мая", "Ιουλίου", "अगस्त", "Smith")]
    [3, 8, 6, 7, 5, 7, 8, None]
    """
    folded = fold(word)
    if folded[0] == "ב" and len(folded) > 3:  # Hebrew writes "in" together with the month
        folded = folded[1:]
    for length in range(min(len(folded), _LONGEST_START), 1, -1):
        if folded[:length] in _MONTH_OF:
            return _MONTH_OF[folded[:length]]
    return None


def check_birth_date(candidate: Candidate) -> Sequence[Accepted]:
    """A day that was or will be somebody's, whichever way it is written."""
    written = candidate.written.decode("utf-8", "replace")
    parts = [int(part) for part in _DIGITS.findall(written)]
    if len(parts) == 2:
        names = [name for name in _MONTH_NAME.findall(written) if name.lower() not in _NO_MONTHS]
        months = [month for name in names if (month := month_named(name)) is not None]
        day, year = sorted(parts)
        return candidate.whole() if months and _lived(year) and calendar_date(year, months[0], day) else ()
    if len(parts) != 3:
        return ()
    first, second, third = parts
    if first > 31:
        return candidate.whole() if _lived(first) and calendar_date(first, second, third) else ()
    year = third if third > 99 else 2000 + third
    if year > 2400:
        year -= _BUDDHIST
    either = calendar_date(year, second, first) or calendar_date(year, first, second)
    return candidate.whole() if _lived(year) and either else ()


def _lived(year: int) -> bool:
    return 1880 <= year <= 2099 or 1880 <= year - _BUDDHIST <= 2030


def _bytes(pieces: Sequence[str]) -> str:
    """Words as an alternative of a pattern over bytes, the longest first."""
    # Letters beyond ASCII have no case in a pattern over bytes.
    longest_first = sorted({*pieces, *(piece.capitalize() for piece in pieces)}, key=lambda each: (-len(each), each))
    return "|".join(re.escape(each).replace("\\ ", " ").encode().decode("latin-1") for each in longest_first)


_ASCII_CUES = phrases(
    """
    born | birth | birthday | birthdate | geb | geboren | geburtsdatum | geburtstag | naissance | nacimiento | nacido
    | nacida | nascido | nascida | nascimento | nascita | nato il | nata il | nato a | nata a | geboortedatum
    | urodzony | urodzona | urodzenia | narozen | narozena | narozeni | narodeny | narodena | narodenia | foedt
    | fodelsedatum | fodt | syntynyt | syntymaaika | szuletett | szuletesi | nascut | nascuta | dogum tarihi | dogumlu
    | dogum | tanggal lahir | tgl lahir | lahir | ngay sinh | sinh ngay | tarikh lahir | rodjen | rodjena
    | datum rodjenja | gimimo data | dzimis | ipinanganak | petsa ng kapanganakan | tarehe ya kuzaliwa | alizaliwa
    """
)
_OTHER_CUES = phrases(
    """
    né | née | nació | née le | urodzony | född | födelsedatum | født | fødselsdato
    | fødselsdag | syntymäaika | született | születési | născut
    | născută | nașterii | nașterea | narození | narodenia | doğum tarihi | Doğum Tarihi | doğumlu
    | ngày sinh | sinh ngày | rođen | rođena | rođenja | дата рождения | Дата рождения
    | родился | родилась | день рождения | дата народження | народився | народилася
    | дата на раждане | γέννησης | γεννήθηκε | γεννηθείς | تاريخ الميلاد | تاريخ ميلاد | تاریخ تولد | مواليد | ولد في
    | ولدت في | وُلد في | תאריך לידה | תאריך הלידה | נולד ב | נולדה ב | נולד | נולדה | जन्म तिथि | जन्मतिथि | जन्म की तारीख
    | जन्म | วันเกิด | เกิดวันที่ | เกิดเมื่อ | 出生日期 | 出生 | 生日 | 生年月日 | 誕生日 | 생년월일 | 생일 | 出生年月日
    """
)
_LETTER = r"(?:[A-Za-z]|[\xc2-\xf4][\x80-\xbf]{1,3})"
_DAY = r"[0-3]?[0-9](?i:st|nd|rd|th|er|\.|\xc2\xba|\xc2\xaa)?"
_YEAR = r"[12][0-9]{3}"
_DATE = (
    rf"(?:{_YEAR}[-/.][01]?[0-9][-/.][0-3]?[0-9]|{_YEAR}\. ?[01]?[0-9]\. ?[0-3]?[0-9]"
    rf"|[0-3]?[0-9][-/. ][0-3]?[0-9][-/. ]{_YEAR}"
    rf"|[0-3]?[0-9]\. ?[0-3]?[0-9]\. ?{_YEAR}|[0-3]?[0-9][-/.][0-3]?[0-9][-/.][0-9]{{2}}"
    rf"|{_DAY}[ -](?:of |de |\xd7\x91)?{_LETTER}{{2,14}}\.?(?:[ -]{_LETTER}{{2,14}}\.?)?(?:,| de| del)?[ -]{_YEAR}"
    rf"|{_LETTER}{{3,12}}\.? {_DAY},? {_YEAR}|{_YEAR}\. {_LETTER}{{3,12}} {_DAY}"
    rf"|{_YEAR} ?(?:\xe5\xb9\xb4|\xeb\x85\x84) ?[01]?[0-9] ?(?:\xe6\x9c\x88"
    rf"|\xec\x9b\x94) ?[0-3]?[0-9] ?(?:\xe6\x97\xa5|\xec\x9d\xbc))"
    r"(?:\b|\B)"
)
_BETWEEN = r"[A-Za-z ,.:=\"'\\()_*>|/\[\]-]{0,24}"
# After a word in letters of its own: a colon of any width, and small words such as "am", "le" or "в".
_BETWEEN_OTHERS = r"(?:[A-Za-z ,.:=\"'\\()_*>|/\[\]-]|[\xc2-\xf4][\x80-\xbf]{1,3}){0,16}?"

BIRTH_DATES = (
    Recognizer(
        "date_of_birth",
        "birth_date",
        rf"(?:(?:\b|_)(?i:d\.?o\.?b|{_bytes(_ASCII_CUES)})(?:\b|_|Date)|[a-z](?:Birth|Dob|DOB|Birthday)(?:\b|Date))"
        rf"{_BETWEEN}(?:\xef\xbc\x9a)?(?:[:=][ \t]{{0,2}}\r?\n[ \t]{{0,8}})?(?P<value>{_DATE})",
        0.9,
        check_birth_date,
    ),
    Recognizer(
        "date_of_birth",
        "birth_date_in_other_letters",
        rf"(?:{_bytes(_OTHER_CUES)}){_BETWEEN_OTHERS}(?P<value>{_DATE})",
        0.9,
        check_birth_date,
    ),
    Recognizer(
        "date_of_birth",
        "birth_date_before",
        rf"(?P<value>{_DATE}) ?(?i:geboren|born|do\xc4\x9fumlu|dogumlu|sz\xc3\xbcletett|tarihinde do\xc4\x9fdu"
        r"|\xe7\x94\x9f\xe3\x81\xbe\xe3\x82\x8c|\xe5\x87\xba\xe7\x94\x9f|\xec\x83\x9d)(?:\b|\B)",
        0.9,
        check_birth_date,
    ),
)


_PHONE_WORD = (
    r"(?:tele?(?:phone|fon|fono)?|phone|t\xc3\xa9l|mobile|mob|cell(?:phone|ular)?|fax|desk|landline|hotline|whats ?app"
    r"|sms|call|dial|text|reach|ring|contact|handy|(?:my|his|her|their) number|fone|telefone|tel\xc3\xa9fono"
    r"|t\xc3\xa9l\xc3\xa9phone|m\xc3\xb3vil|movil|cellulare|portable|mobiel|mobilnummer|telefonnummer|telefoonnummer)"
)
# Before a word, and after it: names of fields join words by underscores or by capital letters.
_END = r"(?:\b|_|(?:Number|No|Num|Nr|Id|ID)\b)"
_PHONE_WORDS = re.compile(rf"(?i:(?:\b|_){_PHONE_WORD}(?:\b|_))|[a-z]Phone".encode("latin-1"))
_OTHER_NUMBERS = re.compile(
    rb"(?i)(?:\b|_)(?:order|ids?\b|ref|ticket|invoice|account|acct|case|flight|reserv|booking|confirm|card|zip|postal|price"
    rb"|item|sku|track|serial|imei|product|policy|ssn|social|iban|version|model|date|born|amount|total|isbn|room|gift"
    rb"|certif|member|passport|licen|patient|record|code)"
)
_DATE_FORM = re.compile(
    rb"(?:19|20)[0-9]{2}[-./ ][01]?[0-9][-./ ][0-3]?[0-9]\b|[0-3]?[0-9][-./ ][01]?[0-9][-./ ](?:19|20)[0-9]{2}\b"
)
_DECIMAL = re.compile(rb"[0-9]+[.][0-9]+|(?:19|20)[0-9]{2}[-/ ](?:19|20)[0-9]{2}")
_IN_PHONES = b"0123456789 ./-()+"
_MOST_PHONE_BYTES = 28
_CUE_REACH = 48
_SHORTEST_CALLED_CARD = 13


def check_spoken_phone(candidate: Candidate) -> Sequence[Accepted]:
    """Seven to fifteen digits called a phone, where no nearer word calls them something else."""
    # The words between may have taken the bracket of an area code.
    if b")" in candidate.written and b"(" not in candidate.written and candidate.before(1) == b"(":
        candidate = candidate._replace(start=candidate.start - 1)
    number = without_extension(candidate.written).strip()
    digits = digits_of(number)
    if not 7 <= len(digits) <= 15 or len(set(digits)) < 3 or joined(candidate):
        return ()
    if _DATE_FORM.match(number) or _DECIMAL.fullmatch(number):
        return ()
    if candidate.before(5).lower() == b"text=":
        return ()
    nearest_words = _PHONE_WORDS.split(candidate.before(32))[-1]
    return () if _OTHER_NUMBERS.search(nearest_words) else candidate.whole()


def check_phone_before_word(candidate: Candidate) -> Sequence[Accepted]:
    """The number that ends where the match starts, held to the same rules."""
    window = candidate.before(_MOST_PHONE_BYTES)
    number = window[len(window.rstrip(_IN_PHONES)) :].lstrip(b" ./-)")
    return check_spoken_phone(candidate._replace(start=candidate.start - len(number))) if len(number) >= 6 else ()


def check_spoken_ssn(candidate: Candidate) -> Sequence[Accepted]:
    """Nine digits in any writing, issued or not: the word before them says what they are."""
    after = candidate.after(2)
    goes_on = is_part_of_code(candidate) or (after[:1] == b"." and after[1:].isdigit())
    return () if goes_on else candidate.whole()


def check_spoken_card(candidate: Candidate) -> Sequence[Accepted]:
    """Digits right after a word for a card; further from it, those that pass the Luhn check, whatever the issuer."""
    digits = digits_of(candidate.written)
    if part_of_decimal(candidate) or is_part_of_code(candidate):
        return ()
    if _CARD_IS.search(candidate.before(_CUE_REACH)):
        return candidate.whole() if len(digits) >= _SHORTEST_CALLED_CARD or luhn_valid(digits) else ()
    return candidate.whole() if luhn_valid(digits) and len(set(digits)) > 1 else ()


def check_document(candidate: Candidate) -> Sequence[Accepted]:
    """Letters and digits, at least four digits, and no date."""
    written, after = candidate.written, candidate.after(2)
    if len(digits_of(written)) < 4 or _DATE_FORM.match(written):
        return ()
    goes_on = after[:1].isalnum() or (after[:1] in (b"-", b".", b"/", b"_", b"@") and after[1:].isalnum())
    return () if goes_on else candidate.whole()


_PHONE_CJK = "|".join(
    each.encode().decode("latin-1")
    for each in ("手机号码", "手机号", "手机", "手機", "电话", "電話番号", "電話", "携帯", "전화번호", "전화", "연락처")
)
_QUOTES = r"(?:[\\\"'\x60*)\]]|\xe2\x80[\x98-\x9d]){0,4}"
_OPEN = r"(?:[\\\"'\x60*(\[#]|\xe2\x80[\x98-\x9d]){0,4}"
_WS = r"[ \t\r\n]{0,3}"
IS = (
    rf"{_QUOTES}{_WS}(?:[,(]?{_WS}(?i:with )?[_-]?(?i:number|no|num|nr|id)\b\.?)?{_QUOTES}{_WS}"
    rf"(?:(?i:is|was)\b|:|=|-|\xe2\x80\x93|\#|,|\xef\xbc\x9a)?:?{_WS}{_OPEN}"
)
_WORDS_BETWEEN = r"[A-Za-z ,.:=\"'\\()_*>|/\[\]-]{0,24}(?:[:=][ \t]{0,2}\r?\n[ \t]{0,8})?"
_CARD_IS = re.compile(
    rf"(?:(?i:(?:\b|_)(?:cards?|visa|amex|mastercard|maestro|diners|discover|pan|cc))|[a-z]Card){_END}{IS}\Z".encode(
        "latin-1"
    )
)
_NUMBER = rf"[+(]{{0,2}}[0-9](?:(?:{GAP}|[()]){{0,2}}[0-9]){{6,16}}"

CONTEXTS = (
    *BIRTH_DATES,
    *SPELLED_EMAILS,
    catalog_recognizer(
        "ssn",
        "ssn_by_context",
        rf"(?:(?:\b|_)(?i:ssn|social[ _-]?security|social insurance)|[a-z](?:Ssn|SSN|SocialSecurity)){_END}{IS}"
        rf"(?P<value>[0-9]{{3}}(?:[ .]|{DASH})?[0-9]{{2}}(?:[ .]|{DASH})?[0-9]{{4}})\b",
        check_spoken_ssn,
    ),
    catalog_recognizer(
        "credit_card",
        "card_by_context",
        rf"(?:(?:\b|_)(?i:cards?|credit|debit|visa|amex|mastercard|maestro|diners|discover|pan|cc)|[a-z]Card){_END}"
        rf"{_WORDS_BETWEEN}(?:\# ?)?(?P<value>[0-9]{{12,19}}|[0-9]{{4}}(?:(?:[ .]|{DASH})[0-9]{{4}}){{3}})\b",
        check_spoken_card,
    ),
    Recognizer(
        "ip_address",
        "ipv4_by_context",
        rf"(?:\b|_)(?i:ip|ipv4|address|addr|host|server|dns|ping|gateway|client|remote)(?:\b|_){_WORDS_BETWEEN}"
        r"(?P<value>[1-9]\.[0-9]\.[0-9]\.[0-9])\b",
        0.8,
        check_ipv4,
    ),
    Recognizer(
        "passport",
        "passport",
        rf"(?:(?:\b|_)(?i:passport|passeport|reisepass|pasaporte"
        rf"|passaporte|paspoort|travel document)|[a-z]Passport){_END}"
        rf"{IS}"
        r"(?P<value>(?i:[A-Z]){0,2}[0-9]{6,9}|[A-Z0-9]{8,9})\b",
        0.92,
        check_document,
    ),
    Recognizer(
        "driver_license",
        "driver_license",
        rf"(?i:(?:\b|_)(?:driv(?:er|ing)(?:'?s|\xe2\x80\x99s|s')?[ _-]?(?:licen[cs]e|permit)|dl"
        r"|f\xc3\xbchrerschein(?:nummer)?|permis de conduire"
        r"|carnet de conducir|licencia de conducir|carteira de motorista"
        rf"|patente di guida|rijbewijs)){_END}{IS}"
        r"(?P<value>[A-Z]{0,5}[0-9](?:[ -]?[A-Z0-9]){4,16}|[A-Z][A-Z0-9]{4,17})\b",
        0.8,
        check_document,
    ),
    Recognizer(
        "medical_record",
        "medical_record",
        r"(?i:(?:\b|_)(?:mrn|(?:medical|health|patient)[ _-]?records?"
        r"|patient|nhs|medicare|health[ _-]?(?:card|insurance)))"
        rf"{_END}{IS}"
        r"(?P<value>(?i:[A-Z]){0,4}-?[0-9](?:[ -]?[0-9]){4,11})\b",
        0.92,
        check_document,
    ),
    catalog_recognizer(
        "phone",
        "phone_by_context",
        rf"(?:(?:(?i:(?:\b|_){_PHONE_WORD})|[a-z](?:Phone|Mobile|Tel|Fax)){_END}|(?:{_PHONE_CJK})(?:\xef\xbc\x9a)?)"
        rf"{_WORDS_BETWEEN}"
        rf"(?P<value>{_NUMBER}{NUMBER_END})",
        check_spoken_phone,
    ),
    # The number is read backwards from its last digit: patterns that count digits from every start cost too much.
    catalog_recognizer(
        "phone",
        "phone_before_context",
        r"(?P<value>[0-9])[ \t]{0,2}\(?(?i:office|fax|mobile|cell|home|work|desk|phone|tel)\b",
        check_phone_before_word,
    ),
)

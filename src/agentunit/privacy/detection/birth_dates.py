"""Recognizers of birth dates: a date beside a word that says whose life began then, in some thirty languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.formulas.identifiers import calendar_date
from agentunit.privacy.detection.engine import Candidate, Recognizer, Span
from agentunit.privacy.detection.gazetteer import fold, phrases

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


def check_birth_date(candidate: Candidate) -> Sequence[Span]:
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

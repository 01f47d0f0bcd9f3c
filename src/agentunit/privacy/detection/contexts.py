"""Recognizers that need a word beside the value: birth dates, documents, records, and numbers without a form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.formulas.identifiers import luhn_valid
from agentunit.privacy.detection.birth_dates import BIRTH_DATES
from agentunit.privacy.detection.engine import Candidate, Recognizer, Span, catalog_recognizer
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


def check_spoken_phone(candidate: Candidate) -> Sequence[Span]:
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


def check_phone_before_word(candidate: Candidate) -> Sequence[Span]:
    """The number that ends where the match starts, held to the same rules."""
    window = candidate.before(_MOST_PHONE_BYTES)
    number = window[len(window.rstrip(_IN_PHONES)) :].lstrip(b" ./-)")
    return check_spoken_phone(candidate._replace(start=candidate.start - len(number))) if len(number) >= 6 else ()


def check_spoken_ssn(candidate: Candidate) -> Sequence[Span]:
    """Nine digits in any writing, issued or not: the word before them says what they are."""
    after = candidate.after(2)
    goes_on = is_part_of_code(candidate) or (after[:1] == b"." and after[1:].isdigit())
    return () if goes_on else candidate.whole()


def check_spoken_card(candidate: Candidate) -> Sequence[Span]:
    """Digits right after a word for a card; further from it, those that pass the Luhn check, whatever the issuer."""
    digits = digits_of(candidate.written)
    if part_of_decimal(candidate) or is_part_of_code(candidate):
        return ()
    if _CARD_IS.search(candidate.before(_CUE_REACH)):
        return candidate.whole() if len(digits) >= _SHORTEST_CALLED_CARD or luhn_valid(digits) else ()
    return candidate.whole() if luhn_valid(digits) and len(set(digits)) > 1 else ()


def check_document(candidate: Candidate) -> Sequence[Span]:
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

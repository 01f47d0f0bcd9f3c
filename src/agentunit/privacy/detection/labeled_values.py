"""Values that the word before them names, whatever a checksum says: IBANs with a typo, codes and dates of cards, keys.

They are a table of their own: a label may be part of what another recognizer matches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.formulas.checksums import IBAN_LENGTHS
from agentunit.privacy.detection.contexts import IS, check_document, check_spoken_ssn
from agentunit.privacy.detection.credentials import check_random
from agentunit.privacy.detection.engine import Accepted, Candidate, Recognizer, catalog_recognizer
from agentunit.privacy.detection.numbers import DASH

_GROUP = re.compile(rb"[A-Za-z0-9]+")
_DIGIT = re.compile(rb"[0-9]")
_LEAST_IBAN, _LEAST_IBAN_DIGITS = 12, 10
_BANK_CODE = 4
_DATE = re.compile(
    rb"(?:19|20)[0-9]{2}[-./ ][01][0-9][-./ ][0-3][0-9]|[0-3][0-9][-./ ][01][0-9][-./ ](?:19|20)[0-9]{2}"
)
_BESIDE_CARD = re.compile(
    rb"(?i)[0-9](?:[ .-]?[0-9]){11,18}|\b(?:cvv|cvc)2?\b|security code|\b(?:ending|ends|last)\b[^0-9\n]{0,24}[0-9]{4}\b"
    rb"|CREDIT_CARD_"
)
_CARD_REACH = 96
_IBAN_IS = re.compile(rf"(?i:iban){IS}\Z".encode("latin-1"))
_IN_KEYS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


def check_called_iban(candidate: Candidate) -> Sequence[Accepted]:
    """Letters and digits as far as they can be an IBAN, of whatever check digits and length; no words that follow."""
    written = candidate.written
    if written[:1].isdigit() and not _IBAN_IS.search(candidate.before(_CARD_REACH)):
        return ()
    length = IBAN_LENGTHS.get(written[:2].decode("ascii").upper(), 0)
    n_used = end = 0
    for group in _GROUP.finditer(written):
        has_digit = _DIGIT.search(group[0]) is not None
        # Within an IBAN only the code of a bank has no digit.
        if not has_digit and (len(group[0]) != _BANK_CODE or (group[0].islower() and written[:2].isupper())):
            break
        n_used += len(group[0])
        if has_digit:
            end = group.end()
        if n_used == length:
            end = group.end()
            break
    kept = written[:end]
    n_digits = len(_DIGIT.findall(kept))
    if n_digits < _LEAST_IBAN_DIGITS or len(b"".join(_GROUP.findall(kept))) < _LEAST_IBAN:
        return ()
    return (Accepted(candidate.start, candidate.start + end, candidate.confidence),)


def check_called_ssn(candidate: Candidate) -> Sequence[Accepted]:
    """Digits that are no date."""
    return () if _DATE.fullmatch(candidate.written) else check_spoken_ssn(candidate)


def check_card_code(candidate: Candidate) -> Sequence[Accepted]:
    """Three or four digits that no further ones follow."""
    after = candidate.after(2)
    return () if after[:1] in (b"-", b"/", b".", b",") and after[1:].isdigit() else candidate.whole()


def check_expiry(candidate: Candidate) -> Sequence[Accepted]:
    """A month and a year beside a card: its number, its last digits or its code; anything else expires, too."""
    around = (candidate.before(_CARD_REACH), candidate.after(_CARD_REACH))
    return candidate.whole() if any(_BESIDE_CARD.search(each) for each in around) else ()


def check_secret(candidate: Candidate) -> Sequence[Accepted]:
    """Forty characters drawn by lot, and not a piece of something longer; the hash of a commit is in one case."""
    written, after = candidate.written, candidate.after(1)
    is_in_one_case = written in (written.lower(), written.upper())
    return () if is_in_one_case or (after and after in _IN_KEYS) else check_random(candidate)


_BETWEEN = r"(?:[A-Za-z ,.:=\"'\\()_*>|/\[\]\t\r\n\x80-\xf4-]{0,40}[ :=\"'(*>|/\[\t\n\x80-\xf4-])?"
_KEY_ID = r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"
_CARD_CODE = "|".join(
    each.encode().decode("latin-1")
    for each in (
        "(?:cvv|cvc)2?", "cvn2?", "(?:card )?security code", "card verification (?:value|code|number)",
        "kartenprüfnummer", "prüfnummer", "sicherheitscode", "cryptogramme(?: visuel)?", "code de sécurité",
        "código de (?:seguridad|segurança)", "codice di sicurezza", "安全码", "セキュリティコード",
    )
)  # fmt: skip
_EXPIRY = "|".join(
    each.encode().decode("latin-1")
    for each in (
        r"exp(?:\.|iry|ires|iration|iring)?", "valid (?:thru|through|until|till|to)", "good thru", "gültig bis",
        "ablaufdatum", "expire le", "date d'expiration", "vence", "caduca", "caducidad", "validade", "scadenza",
        "有效期", "有効期限",
    )
)  # fmt: skip
_SAID = r"(?: (?i:code|number|value|date))?(?: [a-z ]{1,24}(?: (?i:is|was)|:))?"
_NAMED_KEY = (
    r"(?i:(?:secret|access|api|auth|client|private|signing|encryption|bearer|session)[ _-](?:access[ _-])?"
    r"(?:key|token|secret)|token|secret)"
)

LABELED = (
    Recognizer(
        "iban",
        "iban_by_context",
        rf"(?:(?:\b|_)(?i:iban)|[a-z]I(?:BAN|ban))(?:{IS}|{_BETWEEN})"
        r"(?P<value>(?:[A-Za-z]{2}[0-9]{2}|[0-9]{4})(?:[ .-]?[A-Za-z0-9]){8,32})\b",
        0.9,
        check_called_iban,
    ),
    # With a digit too few or too many, and in whatever groups.
    catalog_recognizer(
        "credit_card",
        "card_called",
        rf"(?:(?:\b|_)(?i:cards?|visa|amex|mastercard|maestro|diners|discover)|[a-z]Card){IS}"
        rf"(?P<value>[0-9](?:(?:[ .]|{DASH})?[0-9]){{12,19}})\b",
        check_spoken_ssn,
    ),
    catalog_recognizer(
        "ssn",
        "ssn_called",
        rf"(?:(?:\b|_)(?i:ssn|social[ _-]?security)|[a-z](?:Ssn|SSN|SocialSecurity)){IS}"
        rf"(?P<value>[0-9](?:(?:[ .]|{DASH})?[0-9]){{7,8}})\b",
        check_called_ssn,
    ),
    Recognizer(
        "passport",
        "passport_called",
        rf"(?:(?:\b|_)(?i:passport|passeport|reisepass|pasaporte|passaporte|paspoort)|[a-z]Passport){IS}"
        r"(?P<value>[A-Z]{1,3}[ -]?[0-9]{5,10})\b",
        0.85,
        check_document,
    ),
    Recognizer(
        "crypto_address",
        "wallet_called",
        r"\b(?i:bitcoin|btc|litecoin|ltc|dogecoin|doge|wallet)(?i: (?:wallet|address|account)){0,2}"
        rf"{IS}(?P<value>[13LMD][A-Za-z0-9]{{25,35}})\b",
        0.85,
        check_random,
    ),
    catalog_recognizer(
        "credit_card",
        "card_code",
        rf"(?:\b|_|[a-z\x80-\xf4])(?i:{_CARD_CODE}){_SAID}{IS}(?P<value>[0-9]{{3,4}})\b",
        check_card_code,
    ),
    catalog_recognizer(
        "credit_card",
        "card_expiry",
        rf"(?:\b|_)(?i:{_EXPIRY}){_SAID}(?: (?i:on|in))?{IS}"
        r"(?P<value>(?:0?[1-9]|1[0-2])[ ]?[/.-][ ]?(?:20)?[2-4][0-9]|20[2-4][0-9][/-](?:0[1-9]|1[0-2]))\b",
        check_expiry,
    ),
    Recognizer(
        "api_key",
        "key_said",
        rf"\b{_NAMED_KEY}(?: [A-Za-z ]{{1,24}})? (?i:is|was):? ?[\"'\x60]?(?P<value>[A-Za-z0-9._~+/-]{{16,}}=*)",
        0.8,
        check_random,
        longest_bytes=8_192,
    ),
)

AWS_SECRETS = (
    Recognizer(
        "api_key",
        "aws_secret",
        rf"{_KEY_ID}[\t\r\n\x20-\x7e\x80-\xf4]{{0,60}}?[\t\r\n \"'\x60:=,;(|<>\[{{/](?P<value>[A-Za-z0-9/+]{{40}})",
        0.95,
        check_secret,
    ),
    Recognizer(
        "api_key",
        "aws_secret_first",
        r"(?P<value>[A-Za-z0-9/+]{40})[\t\r\n \"'\x60:=,;)|<>\]}/]"
        rf"(?:[\t\r\n\x20-\x7e]{{0,30}}?[\t\r\n \"'\x60:=,;(|<>\[{{/])?{_KEY_ID}",
        0.95,
        check_secret,
    ),
)

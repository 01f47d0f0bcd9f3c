"""Recognizers of numbers by their form alone: cards, phones, social security numbers, IPv4 addresses.

A number in the catalog's form (123-45-6789, 123-456-7890, 1234-5678-9012-3456) counts, issued or not. In other forms a
checksum or issuing rule decides. What has no form of its own (nine bare digits, a local phone number) is found by the
words around it, in ``contexts``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.formulas.checksums import card_range, longest_number, luhn_valid, ssn_issuable
from agentunit.privacy.detection.engine import Accepted, Candidate, Recognizer, catalog_recognizer

# Space, no-break space, narrow no-break space; hyphen-minus, hyphen, no-break hyphen, en dash.
SPACE = r"(?: |\xc2\xa0|\xe2\x80\xaf)"
DASH = r"(?:-|\xe2\x80[\x90\x91\x93])"
GAP = r"(?:[ ./-]|\xe2\x80[\x90\x91\x93\xaf]|\xc2\xa0)"
# The end of a phone number: an extension, or the end of a word.
NUMBER_END = rf"(?:{SPACE}?(?:[xX]|[eE]xt\.?|#){SPACE}?[0-9]{{1,6}}\b|\b)"

_NOT_DIGITS = bytes(each for each in range(256) if not 48 <= each <= 57)
_DIGITS = b"0123456789"
_VERSION_WORDS = frozenset(
    b"version release build firmware ver rev revision v section chapter ec enzyme clause article".split()
)
_ABOUT_VERSIONS = re.compile(
    rb"(?i)\b(?:versions?|releases?d?|builds?|firmware|upgrad(?:e|ed|es|ing)|downgrad(?:e|ed)|updat(?:e|ed|es|ing)|install"
    rb"(?:ed|ing|s)?|packages?|drivers?|patch(?:ed|es)?|changelog|dependenc(?:y|ies)|requires?|runtime|sdk|assembly"
    rb"|chrome|chromium|firefox|safari|edge|pip|npm|nuget|maven|gem)\b|[=~<>!]=\s?\Z|[A-Za-z]/\Z|@\Z|\bv\Z"
)
_JOINED = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_@%$")
_JOINED_BEFORE = _JOINED | frozenset(b"#+/-")
_INSIDE_NUMBERS = frozenset(b"-./:,")
_CALENDAR = re.compile(rb"(?:0?[1-9]|[12][0-9]|3[01])[-./ ](?:0?[1-9]|1[0-2])[-./ ](?:19|20)[0-9]{2}\b")
_SHORTEST_CLEAR_IPV4 = 9
_NETWORK_WORD = re.compile(
    rb"(?i)(?:\b|_)(?:ips?|ipv4|addr|address(?:es)?|host(?:s|name)?|servers?|dns|ping|gateway|clients?|remote|login|logged"
    rb"|connect(?:ed|ion|ions|ing)?|requests?|visit(?:ed|or)?|subnet|router|firewall|network|traffic|block(?:ed)?|ban(?:ned)?"
    rb"|whitelist(?:ed)?|proxy|vpn|peer|machine|device|port|ssh|sshd|http|https|access(?:ed)?|attack|scan|from|src|dst"
    rb"|source|destination|nameserver|inet)(?:\b|_|(?=[A-Z]))"
)
_PORT_OR_PREFIX = re.compile(rb"[:/][0-9]{1,5}\b")
_SMALLEST_CLEAR_OCTET = 20
_VERSION_REACH = 48
_LAST_WORD = re.compile(rb"[a-z]+\Z")
_GROUP = re.compile(rb"[0-9]+")
_HYPHEN = re.compile(rb"-|\xe2\x80[\x90\x91\x93]")
_CODE_JOINTS = (b"-", b"_")
_EXTENSION_MARK = re.compile(rb"[xXeE#]")
_MOST_CARDS_IN_A_ROW = 8
_LONGEST_PHONE_BYTES = 32


def digits_of(written: bytes) -> bytes:
    """The digits of a number written with separators."""
    return written.translate(None, _NOT_DIGITS)


def without_extension(written: bytes) -> bytes:
    """A phone number without the extension that may follow it."""
    return _EXTENSION_MARK.split(written, maxsplit=1)[0]


def joined(candidate: Candidate, *, spaces_join: bool = False) -> bool:
    """Whether a number is part of something longer; spaces to other digits count if it has spaces itself."""
    before, after = candidate.before(2), candidate.after(2)
    if before:
        last = before[-1]
        if last in _JOINED_BEFORE:
            return True
        if len(before) == 2 and before[0] in _DIGITS and (last in _INSIDE_NUMBERS or (spaces_join and last == 32)):
            return True
    if not after:
        return False
    next_joins = after[0] in _INSIDE_NUMBERS or (spaces_join and after[0] == 32)
    return after[0] in _JOINED or (next_joins and after[1:].isdigit())


def check_card(candidate: Candidate) -> Sequence[Accepted]:
    """A card number of a range in use, several in groups of four one after the other, or any four groups of four."""
    digits = digits_of(candidate.written)
    if len(digits) <= 19:
        if part_of_decimal(candidate):
            return ()
        return candidate.whole() if _is_common_card(digits) or _is_four_fours(candidate, digits) else ()
    groups = [match.span() for match in _GROUP.finditer(candidate.buffer, candidate.start, candidate.end)]
    # A year or another number may stand before a card; a longer row of numbers is a table.
    places = range(0, len(groups) - 3, 4 if len(groups) % 4 == 0 else 1)
    if len(groups) > 4 * _MOST_CARDS_IN_A_ROW or (len(groups) % 4 and len(groups) > 7):
        return ()
    spans: list[Accepted] = []
    for place in places:
        start, end = groups[place][0], groups[place + 3][1]
        if _is_common_card(digits_of(candidate.buffer[start:end])) and (not spans or spans[-1].end < start):
            spans.append(Accepted(start, end, candidate.confidence))
    return spans


def _is_common_card(digits: bytes) -> bool:
    if not luhn_valid(digits) or len(set(digits)) < 2:
        return False
    known = card_range(digits.decode("ascii"))
    return known is not None and len(digits) in known.common


def _is_four_fours(candidate: Candidate, digits: bytes) -> bool:
    """Whether digits are written as a card is: four groups of four and no more, which are not years nor binary."""
    written = candidate.written
    groups = _GROUP.findall(written)
    if [len(group) for group in groups] != [4, 4, 4, 4] or is_part_of_code(candidate):
        return False
    if all(group[:2] in (b"19", b"20") for group in groups):
        return False
    has_spaces = not _HYPHEN.search(written)
    is_binary = has_spaces and b"0" in digits and not digits.strip(b"01")
    return not is_binary and not joined(candidate, spaces_join=has_spaces)


def is_part_of_code(candidate: Candidate) -> bool:
    """Whether a group of letters or digits goes on right before or after: ``ABCD-1234-…``, ``…-3456-A1B2``."""
    before, after = candidate.before(2), candidate.after(2)
    return (before[-1:] in _CODE_JOINTS and before[:1].isalnum()) or (after[:1] in _CODE_JOINTS and after[1:].isalnum())


def part_of_decimal(candidate: Candidate) -> bool:
    """Whether digits belong to an amount, a signed number or a fraction."""
    after = candidate.after(2)
    return candidate.before(1) in (b".", b",", b"-", b"+", b"$") or (after[:1] in (b".", b",") and after[1:].isdigit())


def check_ssn(candidate: Candidate) -> Sequence[Accepted]:
    """A number with hyphens, issued or not; with spaces one that can have been issued. No part of a longer one."""
    has_spaces = b" " in candidate.written
    if joined(candidate, spaces_join=has_spaces) or is_part_of_code(candidate):
        return ()
    return candidate.whole() if not has_spaces or ssn_issuable(digits_of(candidate.written).decode("ascii")) else ()


def check_ipv4(candidate: Candidate) -> Sequence[Accepted]:
    """Four octets that can be somebody's address, and no version."""
    written = candidate.written
    octets = written.split(b".")
    if len(octets) != 4 or not 0 < int(octets[0]) < 224 or octets[0] == b"127":
        return ()
    before, after = candidate.before(_VERSION_REACH), candidate.after(2)
    if before[-1:] in (b".", b"-") or (after[:1] in (b".", b"-") and after[1:].isalnum()):
        return ()
    if len(written) < _SHORTEST_CLEAR_IPV4 and octets[0] != b"10" and len(set(octets)) > 1:
        # 1.11.1.7 numbers an enzyme or a section more often than a machine.
        return candidate.whole() if _NETWORK_WORD.search(before) else ()
    last_word = _LAST_WORD.search(before.lower().rstrip(b" .:\\\"'=#"))
    if last_word is not None and last_word[0] in _VERSION_WORDS:
        return ()
    return () if len(set(octets)) > 1 and _is_version(candidate, int(octets[0])) else candidate.whole()


def _is_version(candidate: Candidate, first_octet: int) -> bool:
    """Whether the words around four numbers call them a version, or nothing calls small ones an address."""
    line = candidate.before(_VERSION_REACH).rpartition(b"\n")[2]
    about_versions = list(_ABOUT_VERSIONS.finditer(line))
    about_networks = list(_NETWORK_WORD.finditer(line))
    if about_versions:
        return not about_networks or (
            about_networks[-1].start() < about_versions[-1].start() or about_networks[-1][0].lower() == b"from"
        )
    is_small = first_octet < _SMALLEST_CLEAR_OCTET and first_octet != 10
    after = candidate.after(32)
    return is_small and not about_networks and not _PORT_OR_PREFIX.match(after) and not _NETWORK_WORD.search(after)


def check_north_american(candidate: Candidate) -> Sequence[Accepted]:
    """Ten digits, or eleven after the trunk's 1; the last four are the last group."""
    written = candidate.written
    groups = _GROUP.findall(without_extension(written))
    lengths = [len(group) for group in groups]
    if lengths != [3, 3, 4] and (lengths != [1, 3, 3, 4] or groups[0] != b"1"):
        return ()
    return () if joined(candidate, spaces_join=b"-" not in written and b"." not in written) else candidate.whole()


def check_national(candidate: Candidate) -> Sequence[Accepted]:
    """A trunk 0 and nine to thirteen digits in groups, which are no date."""
    number = without_extension(candidate.written)
    if len(number) > _LONGEST_PHONE_BYTES or len(set(number)) < 4 or joined(candidate, spaces_join=b" " in number):
        return ()
    groups = _GROUP.findall(number)
    if not 2 <= len(groups) <= 6 or not 9 <= sum(map(len, groups)) <= 13 or min(map(len, groups)) < 2:
        return ()
    if len(groups) == 6 and max(map(len, groups)) == 2:
        return ()
    return () if _CALENDAR.match(number) else candidate.whole()


def check_international(candidate: Candidate) -> Sequence[Accepted]:
    """A number after + or 00, with as many digits as its country has; numbers that follow are left out."""
    whole = candidate.written
    written = without_extension(whole)
    digits = digits_of(written)
    significant = digits.lstrip(b"0")
    most = longest_number(significant.decode("ascii")) + written.count(b"(0)")
    if len(significant) > most:
        groups = list(_GROUP.finditer(written))
        while groups and len(significant) > most:
            significant = significant[: -len(groups.pop()[0])]
        written = whole = written[: groups[-1].end()] if groups else b""
    if not (8 if len(written) > len(digits) + 1 else 9) <= len(significant) or len(set(digits)) < 3:
        return ()
    kept = candidate._replace(end=candidate.start + len(whole))
    return () if joined(kept, spaces_join=written[:1] != b"+" and b" " in written) else kept.whole()


_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LONG_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9])"
# Four parts of one digit each are a version more often than an address, unless all are the same.
_IPV4 = "|".join(
    [r"\.".join(_LONG_OCTET if place == n else _OCTET for place in range(4)) for n in range(4)]
    + [r"\.".join(digit * 4) for digit in "123456789"]
)
_IN_FOURS = "[0-9]{{4}}(?:{gap}[0-9]{{4}}){{3,}}(?:{gap}[0-9]{{1,3}})?"
# A chain of pairs with one separator is taken whole, so that a long one is one candidate.
_PAIRS = "|".join(
    f"(?:{gap}[0-9]{{2}}){{4,}}" for gap in (" ", r"\.", "-", "/", r"\xc2\xa0", r"\xe2\x80[\x90\x91\x93\xaf]")
)

NUMBERS = (
    catalog_recognizer(
        "phone",
        "phone_international",
        rf"(?:\+|\b00{GAP}?)[1-9](?:{GAP}?(?:[0-9]|\([0-9]{{1,5}}\))){{5,16}}{NUMBER_END}",
        check_international,
    ),
    catalog_recognizer(
        "credit_card",
        "card_in_groups",
        rf"\b(?:{_IN_FOURS.format(gap=SPACE)}|{_IN_FOURS.format(gap=DASH)}"
        rf"|3[0-9]{{3}}[ -][0-9]{{6}}[ -][0-9]{{4,5}})\b",
        check_card,
    ),
    catalog_recognizer(
        "credit_card",
        "card_digits",
        r"\b(?:(?:4[0-9]|5[0-8]|2[2-7]|6[0-9]|3[05689]|97)[0-9]{14}|(?:4|62)[0-9]{17,18}"
        r"|(?:3[47]|18|21)[0-9]{13}|3[0689][0-9]{12})\b",
        check_card,
    ),
    catalog_recognizer(
        "ssn",
        "ssn_in_groups",
        rf"\b(?:[0-9]{{3}}{DASH}[0-9]{{2}}{DASH}"
        r"|(?:00[1-9]|0[1-9][0-9]|[1-578][0-9]{2}|6[0-57-9][0-9]|66[0-57-9]) [0-9]{2} )[0-9]{4}\b",
        check_ssn,
    ),
    Recognizer("ip_address", "ipv4", rf"\b(?:{_IPV4})(?:\.[0-9]{{1,3}})*\b", 0.9, check_ipv4),
    catalog_recognizer(
        "phone",
        "phone_north_american",
        rf"(?:\b1{GAP})?(?:\([0-9]{{3}}\)[ .-]?|\b[0-9]{{3}}{GAP})"
        rf"[0-9]{{3}}{GAP}[0-9]{{4}}(?:[-./][0-9]+)*{NUMBER_END}",
        check_north_american,
    ),
    catalog_recognizer(
        "phone",
        "phone_national",
        rf"(?:(?:\(0[1-9][0-9]{{0,4}}\){SPACE}?[0-9]{{2}}|\b0[1-9](?:[0-9]{{1,4}}{GAP}[0-9]{{2}}|{GAP}[0-9]{{3}}))"
        rf"(?:{GAP}?[0-9]){{3,9}}|\b0[1-9](?:{_PAIRS})){NUMBER_END}",
        check_national,
    ),
)

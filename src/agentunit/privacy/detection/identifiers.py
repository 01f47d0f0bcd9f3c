"""Recognizers of identifiers with a grammar or a checksum: email, IPv6 and MAC addresses, IBANs, wallets.

IPv4 addresses have the form of a number and are in ``numbers``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import AddressValueError, IPv6Address

from agentunit.formulas.checksums import IBAN_LENGTHS, base58check_valid, bech32_valid, eip55_valid, iban_valid
from agentunit.privacy.detection.engine import Accepted, Candidate, Check, Recognizer
from agentunit.privacy.detection.gazetteer import Kind, kinds_of
from agentunit.privacy.findings import CATALOG_CONFIDENCE

_LOCAL = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+/=?^_`{|}~-" + bytes(
    range(0x80, 0xF5)
)
_MOST_LOCAL_BYTES = 64
_APOSTROPHE_IN_NAME = re.compile(rb"[A-Za-z0-9._%+\x80-\xf4-]*[A-Za-z\x80-\xf4]'[A-Za-z\x80-\xf4][^']*")
# In UTF-8: Thai and its neighbors, and all that is written from U+3000 on.
_UNSPACED = re.compile(rb"\xe0[\xb8-\xbb]|[\xe3-\xed]|\xef[\xbc-\xbf]")
_LATIN_END = re.compile(rb"[A-Za-z0-9._%+-]+\Z")
_HOST_CHARACTER = r"[A-Za-z0-9\x80-\xf4]"


def check_email(candidate: Candidate) -> Sequence[Accepted]:
    """The domain of a match, with the local part before its @."""
    window = candidate.before(_MOST_LOCAL_BYTES + 2)
    if window.endswith(b'"'):
        quoted = _quoted_local(window)
        return [Accepted(candidate.start - len(quoted), candidate.end, candidate.confidence)] if quoted else ()
    local = window[len(window.rstrip(_LOCAL)) :]
    if len(local) > _MOST_LOCAL_BYTES:
        return ()
    # Quotes, brackets and paths around an address are allowed in it by the letter of RFC 5322, and never meant.
    kept = local.lstrip(b".!#$%&'*+/=?^`{|}~-")
    for mark in (b"=", b"/", b"|", b"`", b"{", b"}", b"&", b"?", b"!", b"#"):
        kept = kept.rpartition(mark)[2]
    if candidate.after(1) == b"'" or not _APOSTROPHE_IN_NAME.fullmatch(kept):
        kept = kept.rpartition(b"'")[2]
    kept = _after_other_script(kept.lstrip(b"."))
    if not kept or kept.endswith(b".") or b".." in kept or _is_nobodys_mail(kept, candidate):
        return ()
    start = candidate.start - len(kept)
    before = candidate._replace(start=start).before(80)
    # What stands there is the password of a URL.
    if before.endswith(b":") and re.search(rb"://[!-~]{0,64}:\Z", before) is not None:
        return ()
    return [Accepted(start, candidate.end, candidate.confidence)]


def _after_other_script(local: bytes) -> bytes:
    """The part in Latin letters of a local part that a script without spaces runs into: ``请写信给ada@example.org``."""
    if local.isascii():
        return local
    latin = _LATIN_END.search(local)
    return latin[0] if latin is not None and _UNSPACED.search(local[: latin.start()]) else local


def _is_nobodys_mail(local: bytes, candidate: Candidate) -> bool:
    """Whether it is a repository, ``git@github.com:``, or a unit of systemd, ``getty@tty1.service``: nobody's mail."""
    is_unit = candidate.written.endswith((b".service", b".socket", b".timer", b".target", b".mount"))
    return is_unit or local == b"git" or (local == b"hg" and candidate.after(1) == b":")


def _quoted_local(window: bytes) -> bytes:
    """The local part in quotes at the end of a window, as in ``"john doe"@example.com``; empty where it is none."""
    is_escaped = window[-2:-1] == b"\\"  # in JSON text the quotes themselves are escaped
    opening = window.rfind(b'"', 0, -1)
    while not is_escaped and opening > 0 and window[opening - 1 : opening] == b"\\":
        opening = window.rfind(b'"', 0, opening)
    content = window[opening + 1 : -2 if is_escaped else -1]
    if opening < 0 or not content.strip() or b"\n" in content or b"\r" in content:
        return b""
    return window[opening:]


_LABEL = rf"{_HOST_CHARACTER}(?:[A-Za-z0-9\x80-\xf4-]{{0,61}}{_HOST_CHARACTER})?"

EMAILS = (
    Recognizer(
        "email",
        "email",
        r"@(?:\[(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?i:IPv6):[0-9A-Fa-f:.]{2,45})\]|"
        rf"(?:{_LABEL}\.){{1,8}}(?:[A-Za-z]{{2,24}}|xn--[A-Za-z0-9-]{{2,59}}|[A-Za-z]{{0,4}}(?:[\xc3-\xf4][\x80-\xbf]{{1,3}}){{2,20}}))",
        CATALOG_CONFIDENCE["email"],
        check_email,
    ),
)


_AT = r"(?: (?:at|arroba|chiocciola|et|\xc3\xa4t) | ?[\[({<](?:at|arroba|@)[\])}>] ?)"
_DOT = r"(?: (?:dot|punto|ponto|punkt|point) | ?[\[({<](?:dot|punto|ponto|punkt|point|\.)[\])}>] ?)"
_SPELLED = re.compile(
    rf"(?i)(?:\A|[^A-Za-z0-9._+-])(?P<mail>[a-z0-9][a-z0-9_+.-]{{0,40}}"
    rf"(?:(?:{_DOT}| underscore | dash | hyphen )[a-z0-9]{{1,20}}){{0,2}}{_AT}"
    rf"[a-z0-9][a-z0-9-]{{0,40}}(?:{_DOT}[a-z0-9-]{{2,20}}){{0,2}})\Z".encode("latin-1")
)
_SPELLED_HOST = re.compile(rb"(?i)[a-z0-9][a-z0-9_+.-]{0,40}\Z")
_MOST_SPELLED_BYTES = 120


def check_spelled_email(candidate: Candidate) -> Sequence[Accepted]:
    """An address in words, from its last dot backwards: ``ada at example dot org``."""
    found = _SPELLED.search(candidate.before(_MOST_SPELLED_BYTES))
    if found is None:
        return ()
    mail = found["mail"]
    # "Look at example dot com" is no address: a word that people look, arrive or work with stands before.
    if mail.lower().split(b" ")[0] in _BEFORE_PLACES:
        return ()
    return [Accepted(candidate.start - len(mail), candidate.end, candidate.confidence)]


def check_bracketed_email(candidate: Candidate) -> Sequence[Accepted]:
    """An address whose @ stands in brackets as a word: ``ada [at] example.org``."""
    found = _SPELLED_HOST.search(candidate.before(_MOST_LOCAL_BYTES))
    return [Accepted(candidate.start - len(found[0]), candidate.end, candidate.confidence)] if found else ()


_PLAIN_LOCAL = re.compile(rb"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,40}[A-Za-z0-9])?\Z")
_NO_MAIL_FOLLOWS = re.compile(rb"[A-Za-z0-9@/_-]|\.[A-Za-z0-9]")


def check_email_apart(candidate: Candidate) -> Sequence[Accepted]:
    """An address with spaces or the end of a line at its @: ``ada.l @ example.org``, not ``lunch @ example.org``."""
    found = _PLAIN_LOCAL.search(candidate.before(_MOST_LOCAL_BYTES))
    if found is None or _NO_MAIL_FOLLOWS.match(candidate.after(2)):
        return ()
    local = found[0].decode()
    start = candidate.start - len(local)
    if candidate._replace(start=start).before(1) in (b"/", b"@", b"_", b".", b"-", b"+", b"\\"):
        return ()
    has_marks = not local.isalpha() and not local.isdigit()
    # A handle may follow a word: "thanks @bob.de".
    is_handle = candidate.written.lstrip()[1:2].isalnum()
    plain = Kind.WORD | Kind.RARE_WORD | Kind.PLACE | Kind.COUNTRY | Kind.FOREIGN_WORD
    is_word = bool(kinds_of(local) & plain) or local.isupper() or local.encode() in _BEFORE_PLACES
    if not has_marks and (is_handle or is_word or local.isdigit()):
        return ()
    return [Accepted(start, candidate.end, candidate.confidence)]


_BEFORE_PLACES = frozenset(
    b"look looking looked is are was were be am us me it him them here there available found hosted page"
    b" pages site visit"
    b" website online live check checkout works work working arrived up go read more listed published out docs".split()
)
_TOP_DOMAIN = (
    "(?:com|org|net|edu|gov|io|co|info|biz|dev|app|ai|me|eu|de|fr|es|it|nl|be|ch|at|pt|pl|cz|se|no|dk|fi|uk|us|ca"
    "|au|nz|in|jp|cn|kr|br|mx|ar|cl|ru|ua|tr|gr|ie|il|za|ng|ke|example|test)"
)

SPELLED_EMAILS = (
    # Found by its last dot, read backwards from there.
    Recognizer(
        "email",
        "email_in_words",
        rf"(?i:{_DOT}{_TOP_DOMAIN}(?:{_DOT}(?:uk|br|au|jp|nz|in|za|mx|ar))?)\b",
        CATALOG_CONFIDENCE["email"],
        check_spelled_email,
    ),
    Recognizer(
        "email",
        "email_in_brackets",
        rf"(?i: ?[\[({{<](?:at|arroba|@)[\])}}>] ?[a-z0-9-]{{1,40}}(?:\.[a-z0-9-]{{1,40}}){{0,3}}\.{_TOP_DOMAIN})\b",
        CATALOG_CONFIDENCE["email"],
        check_bracketed_email,
    ),
    Recognizer(
        "email",
        "email_apart",
        rf"(?:[ \t]{{1,2}}@[ \t]{{0,2}}|@(?:[ \t]{{1,2}}|[ \t]{{0,2}}\r?\n[ \t>]{{0,8}}))"
        rf"(?i:[a-z0-9-]{{1,40}}(?:\.[a-z0-9-]{{1,40}}){{0,3}}\.{_TOP_DOMAIN})\b",
        CATALOG_CONFIDENCE["email"],
        check_email_apart,
    ),
)

_JOINED_BEFORE = re.compile(rb"[0-9A-Za-z_:.]\Z")
_JOINED_AFTER = re.compile(rb"[0-9A-Za-z_:]|\.[0-9]|-[0-9A-Fa-f]{2}\b")
_NOBODYS = (IPv6Address("::"), IPv6Address("::1"))
_MAC_BYTES = (17, 23)
_LONGEST_IPV6 = 45
_DIGIT = re.compile(rb"[0-9]")
_HEX_LETTER = re.compile(rb"[A-Fa-f]")


def check_ipv6(candidate: Candidate) -> Sequence[Accepted]:
    """An address that parses, holds a digit (``std::add`` does not), and is not the loopback."""
    written = candidate.written.rstrip(b".")
    if written.endswith(b":") and not written.endswith(b"::"):
        written = written[:-1]
    if not 2 <= written.count(b":") <= 8 or len(written) > _LONGEST_IPV6 or not _DIGIT.search(written):
        return ()
    kept = candidate._replace(end=candidate.start + len(written))
    if written.count(b"::") > 1 or b":::" in written or _is_joined(kept):
        return ()
    try:
        address = IPv6Address(written.decode("ascii"))
    except AddressValueError:
        return ()
    # ``a[::2]``: the lowest addresses are reserved.
    return () if address in _NOBODYS or int(address) < 1 << 16 else kept.whole()


def check_mac(candidate: Candidate) -> Sequence[Accepted]:
    """Six or eight pairs, not a longer fingerprint; with dashes at least one letter, since dates have them too."""
    written = candidate.written
    if len(written) not in _MAC_BYTES or _is_joined(candidate) or len(set(written)) < 4:
        return ()
    return () if b"-" in written and not _HEX_LETTER.search(written) else candidate.whole()


def check_dotted_mac(candidate: Candidate) -> Sequence[Accepted]:
    """Three groups of four, with a letter: without one it is a number."""
    return candidate.whole() if _HEX_LETTER.search(candidate.written) and not _is_joined(candidate) else ()


def _is_joined(candidate: Candidate) -> bool:
    return bool(_JOINED_BEFORE.search(candidate.before(1)) or _JOINED_AFTER.match(candidate.after(4)))


_HEX = "[0-9A-Fa-f]"
_GROUP = f"{_HEX}{{1,4}}"

NETWORKS = (
    # Chains are matched to their end, so that a long one is one candidate and not many.
    Recognizer("mac_address", "mac_colons", rf"\b{_HEX}{{2}}(?::{_HEX}{{2}}){{5,}}\b", 0.9, check_mac),
    Recognizer("mac_address", "mac_dashes", rf"\b{_HEX}{{2}}(?:-{_HEX}{{2}}){{5,}}\b", 0.9, check_mac),
    Recognizer("mac_address", "mac_dots", rf"\b{_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}\b", 0.8, check_dotted_mac),
    Recognizer("ip_address", "ipv6", rf"\b{_GROUP}(?::{_GROUP}){{7,}}\b", 0.95, check_ipv6),
    Recognizer(
        "ip_address",
        "ipv6_shortened",
        rf"\b{_GROUP}(?::{_HEX}+)*::[0-9A-Fa-f:.]*|::{_HEX}[0-9A-Fa-f:.]*",
        0.95,
        check_ipv6,
    ),
)


_WALLET_WORDS = b"eth wallet crypto 0x address contract token account send transfer".split()


def check_by(holds: Callable[[str], bool]) -> Check:
    """Accept what a checksum confirms."""
    return lambda candidate: candidate.whole() if holds(candidate.written.decode("ascii")) else ()


def check_iban_in_groups(candidate: Candidate) -> Sequence[Accepted]:
    """The country's length of letters and digits, with separators; words that follow are left out."""
    written = candidate.written.decode("ascii")
    at = [place for place, each in enumerate(written) if each not in " -"]
    length = IBAN_LENGTHS[written[:2]]
    if length > len(at):
        return ()
    end = at[length - 1] + 1
    if written[end : end + 1].isalnum() or not iban_valid("".join(written[place] for place in at[:length])):
        return ()
    return (Accepted(candidate.start, candidate.start + end, candidate.confidence),)


def check_ethereum(candidate: Candidate) -> Sequence[Accepted]:
    """Forty hexadecimal digits that the words before call an address, or have the checksum in their case."""
    digits = candidate.written[2:].decode("ascii")
    if len(set(digits)) < 4:
        return ()
    words = candidate.before(48).lower()
    if any(each in words for each in _WALLET_WORDS):
        return candidate.whole()
    one_case = digits in (digits.lower(), digits.upper())
    return candidate.whole() if not one_case and eip55_valid(digits) else ()


_COUNTRY = "|".join(IBAN_LENGTHS)

ACCOUNTS = (
    Recognizer("iban", "iban", rf"\b(?i:{_COUNTRY})[0-9]{{2}}[A-Za-z0-9]{{11,29}}\b", 0.95, check_by(iban_valid)),
    Recognizer(
        "iban",
        "iban_in_groups",
        rf"\b(?:{_COUNTRY})[0-9]{{2}}(?:[ -][A-Z0-9]{{4}}){{2,7}}(?:[ -]?[A-Z0-9]{{1,4}})?\b",
        0.95,
        check_iban_in_groups,
    ),
    Recognizer(
        "crypto_address", "base58check", r"\b[13LMD][1-9A-HJ-NP-Za-km-z]{25,34}\b", 0.95, check_by(base58check_valid)
    ),
    Recognizer(
        "crypto_address",
        "bech32",
        r"\b(?:(?:bc|tb|ltc)1[02-9ac-hj-np-z]{11,87}|(?:BC|TB|LTC)1[02-9AC-HJ-NP-Z]{11,87})\b",
        0.95,
        check_by(bech32_valid),
    ),
    Recognizer("crypto_address", "ethereum", r"\b0x[0-9A-Fa-f]{40}\b", 0.9, check_ethereum),
)

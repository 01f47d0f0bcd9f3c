"""Recognisers of addresses in networks: IPv6 and MAC. IPv4 has the form of a number and stands with those."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address

from agentunit.privacy.detection.engine import Candidate, Recogniser, Span

_JOINED_BEFORE = re.compile(rb"[0-9A-Za-z_:.]\Z")
_JOINED_AFTER = re.compile(rb"[0-9A-Za-z_:]|\.[0-9]|-[0-9A-Fa-f]{2}\b")
_NOBODYS = (IPv6Address("::"), IPv6Address("::1"))
_MAC_BYTES = (17, 23)
_LONGEST_IPV6 = 45
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Fa-f]")


def check_ipv6(candidate: Candidate) -> Sequence[Span]:
    """An address that parses, holds a digit (``std::add`` does not), and is not the loopback."""
    written = candidate.written.rstrip(b".")
    if written.endswith(b":") and not written.endswith(b"::"):
        written = written[:-1]
    if not 2 <= written.count(b":") <= 8 or len(written) > _LONGEST_IPV6 or not _DIGIT.search(written):
        return ()
    kept = candidate._replace(end=candidate.start + len(written))
    if written.count(b"::") > 1 or b":::" in written or _joined(kept):
        return ()
    try:
        address = IPv6Address(written.decode("ascii"))
    except AddressValueError:
        return ()
    return () if address in _NOBODYS else kept.whole()


def check_mac(candidate: Candidate) -> Sequence[Span]:
    """Six or eight pairs, not a longer fingerprint; with dashes at least one letter, since dates have them too."""
    written = candidate.written
    if len(written) not in _MAC_BYTES or _joined(candidate) or len(set(written)) < 4:
        return ()
    return () if b"-" in written and not _LETTER.search(written) else candidate.whole()


def check_dotted_mac(candidate: Candidate) -> Sequence[Span]:
    """Three groups of four, with a letter: without one it is a number."""
    return candidate.whole() if _LETTER.search(candidate.written) and not _joined(candidate) else ()


def _joined(candidate: Candidate) -> bool:
    return bool(_JOINED_BEFORE.search(candidate.before(1)) or _JOINED_AFTER.match(candidate.after(4)))


_HEX = "[0-9A-Fa-f]"
_GROUP = f"{_HEX}{{1,4}}"

NETWORKS = (
    # Chains are matched to their end, so that a long one is one candidate and not many.
    Recogniser("mac_address", "mac_colons", rf"\b{_HEX}{{2}}(?::{_HEX}{{2}}){{5,}}\b", 0.9, check_mac),
    Recogniser("mac_address", "mac_dashes", rf"\b{_HEX}{{2}}(?:-{_HEX}{{2}}){{5,}}\b", 0.9, check_mac),
    Recogniser("mac_address", "mac_dots", rf"\b{_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}\b", 0.8, check_dotted_mac),
    Recogniser("ip_address", "ipv6", rf"\b{_GROUP}(?::{_GROUP}){{7,}}\b", 0.95, check_ipv6),
    Recogniser(
        "ip_address",
        "ipv6_shortened",
        rf"\b{_GROUP}(?::{_HEX}+)*::[0-9A-Fa-f:.]*|::{_HEX}[0-9A-Fa-f:.]*",
        0.95,
        check_ipv6,
    ),
)

"""Recognisers of account numbers with a checksum: IBAN, Bitcoin and its relatives, Ethereum."""

from __future__ import annotations

from collections.abc import Sequence

from agentunit.formulas.checksums import base58check_valid, bech32_valid, eip55_valid
from agentunit.formulas.identifiers import IBAN_LENGTHS, iban_valid
from agentunit.privacy.detection.engine import Candidate, Recogniser, Span

_WALLET_WORDS = (
    b"eth",
    b"wallet",
    b"crypto",
    b"0x",
    b"address",
    b"contract",
    b"token",
    b"account",
    b"send",
    b"transfer",
)


def check_iban(candidate: Candidate) -> Sequence[Span]:
    """The country's length of letters and digits, whose checksum holds."""
    return candidate.whole() if iban_valid(candidate.written.decode("ascii")) else ()


def check_iban_in_groups(candidate: Candidate) -> Sequence[Span]:
    """The same with separators; words that follow are left out."""
    written = candidate.written.decode("ascii")
    at = [place for place, each in enumerate(written) if each not in " -"]
    length = IBAN_LENGTHS[written[:2]]
    if length > len(at):
        return ()
    end = at[length - 1] + 1
    if written[end : end + 1].isalnum() or not iban_valid("".join(written[place] for place in at[:length])):
        return ()
    return (Span(candidate.start, candidate.start + end, candidate.confidence),)


def check_base58(candidate: Candidate) -> Sequence[Span]:
    """A Base58Check address of 25 bytes."""
    return candidate.whole() if base58check_valid(candidate.written.decode("ascii")) else ()


def check_bech32(candidate: Candidate) -> Sequence[Span]:
    """A segregated-witness address."""
    return candidate.whole() if bech32_valid(candidate.written.decode("ascii")) else ()


def check_ethereum(candidate: Candidate) -> Sequence[Span]:
    """Forty hexadecimal digits that are spoken of as an address, or have the checksum in their case."""
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
    Recogniser("iban", "iban", rf"\b(?i:{_COUNTRY})[0-9]{{2}}[A-Za-z0-9]{{11,29}}\b", 0.95, check_iban),
    Recogniser(
        "iban",
        "iban_in_groups",
        rf"\b(?:{_COUNTRY})[0-9]{{2}}(?:[ -][A-Z0-9]{{4}}){{2,7}}(?:[ -]?[A-Z0-9]{{1,4}})?\b",
        0.95,
        check_iban_in_groups,
    ),
    Recogniser("crypto_address", "base58check", r"\b[13LMD][1-9A-HJ-NP-Za-km-z]{25,34}\b", 0.95, check_base58),
    Recogniser(
        "crypto_address",
        "bech32",
        r"\b(?:(?:bc|tb|ltc)1[02-9ac-hj-np-z]{11,87}|(?:BC|TB|LTC)1[02-9AC-HJ-NP-Z]{11,87})\b",
        0.95,
        check_bech32,
    ),
    Recogniser("crypto_address", "ethereum", r"\b0x[0-9A-Fa-f]{40}\b", 0.9, check_ethereum),
)

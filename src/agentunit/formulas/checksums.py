"""Which written numbers can be real: checksums, issuer ranges and issuing rules of cards, accounts, people, wallets."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from datetime import date
from typing import NamedTuple

_DOUBLED = bytes.maketrans(b"0123456789", bytes((2 * digit - 9 * (digit > 4)) + 48 for digit in range(10)))
_ZERO = 48


def luhn_valid(digits: str | bytes) -> bool:
    """Whether a run of digits ends in the right Luhn digit, as payment cards do.

    Every second digit from the right, the last one left out, is doubled (minus 9 above 9); the sum must divide by 10.

    >>> luhn_valid("4111111111111111"), luhn_valid("4111111111111112")
    (True, False)
    """
    written = digits.encode("ascii") if isinstance(digits, str) else digits
    kept, doubled = written[::-2], written[-2::-2].translate(_DOUBLED)
    return bool(written) and (sum(kept) + sum(doubled) - _ZERO * len(written)) % 10 == 0


class CardRange(NamedTuple):
    """First digits ``low`` to ``high`` (equally long) and the lengths an issuer gives out; ``common`` ones only are
    trusted without a word such as "card" nearby."""

    issuer: str
    low: str
    high: str
    lengths: tuple[int, ...]
    common: tuple[int, ...]


_LONG = (16, 17, 18, 19)
CARD_RANGES = (
    CardRange("visa", "4", "4", (13, 16, 19), (16, 19)),
    CardRange("mastercard", "51", "55", (16,), (16,)),
    CardRange("mastercard", "2221", "2720", (16,), (16,)),
    CardRange("amex", "34", "34", (15,), (15,)),
    CardRange("amex", "37", "37", (15,), (15,)),
    CardRange("diners", "300", "305", (14, *_LONG), (14, 16)),
    CardRange("diners", "3095", "3095", (14, *_LONG), (14, 16)),
    CardRange("diners", "36", "36", (14, *_LONG), (14, 16)),
    CardRange("diners", "38", "39", (14, *_LONG), (14, 16)),
    CardRange("jcb", "1800", "1800", (15,), (15,)),
    CardRange("jcb", "2131", "2131", (15,), (15,)),
    CardRange("jcb", "3528", "3589", _LONG, (16,)),
    CardRange("discover", "6011", "6011", _LONG, (16,)),
    CardRange("discover", "644", "649", _LONG, (16,)),
    CardRange("discover", "65", "65", _LONG, (16,)),
    CardRange("unionpay", "62", "62", _LONG, (16, 19)),
    CardRange("unionpay", "81", "81", _LONG, ()),
    CardRange("mir", "2200", "2204", _LONG, (16,)),
    CardRange("troy", "9792", "9792", (16,), (16,)),
    CardRange("maestro", "50", "50", (12, 13, 14, 15, *_LONG), (16,)),
    CardRange("maestro", "56", "69", (12, 13, 14, 15, *_LONG), (16,)),
)
"""Issuer ranges of ISO/IEC 7812 numbers in use, the more specific before the general."""


def card_range(digits: str) -> CardRange | None:
    """The issuer range that a card number of this length belongs to.

    >>> card_range("378282246310005").issuer
    'amex'
    >>> card_range("9999999999999999") is None
    True
    """
    for each in CARD_RANGES:
        if len(digits) in each.lengths and each.low <= digits[: len(each.low)] <= each.high:
            return each
    return None


_COUNTRY_CODES_BY_LENGTH = {
    8: "45 47 65 216 356 357 370 371 372 389 852 853 961 965 968 973 974",
    9: "27 31 32 33 34 36 41 46 48 56 61 66 94 212 213 233 254 255 351 353 359 380 381 385 386 420 421 966 971 972",
    10: "1 7 20 30 39 40 44 51 52 57 58 60 63 64 81 82 84 90 91 92 93 98 234 880 886",
    11: "54 55 86 358",
    12: "62",
    13: "43 49",
}
_LONGEST_NATIONAL = {code: length for length, codes in _COUNTRY_CODES_BY_LENGTH.items() for code in codes.split()}
_LONGEST_ANYWHERE = 15


def longest_number(digits: str) -> int:
    """How many digits an international phone number that starts like this has at most, country code included.

    By national plans where they are fixed, else the 15 of ITU-T E.164.

    >>> longest_number("16175550123"), longest_number("447700900123"), longest_number("99890")
    (11, 12, 15)
    """
    for n_digits in (1, 2, 3):
        national = _LONGEST_NATIONAL.get(digits[:n_digits])
        if national is not None:
            return n_digits + national
    return _LONGEST_ANYWHERE


_NEVER_ISSUED_AREAS = {"000", "666"}
# Printed on sample cards and in advertisements, then used by thousands of people: known to be nobody's.
_ADVERTISED = {"078051120", "219099999", "457555462", "123456789"}


def ssn_issuable(digits: str) -> bool:
    """Whether the Social Security Administration can have issued this number of nine digits.

    Areas 000, 666 and 900-999, group 00 and serial 0000 are never issued; a few numbers from advertisements are void.

    >>> ssn_issuable("536226789"), ssn_issuable("666226789"), ssn_issuable("078051120")
    (True, False, False)
    """
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    if len(digits) != 9 or not digits.isdecimal() or area in _NEVER_ISSUED_AREAS or area[0] == "9":
        return False
    if group == "00" or serial == "0000" or digits in _ADVERTISED:
        return False
    return not "987654320" <= digits <= "987654329" and len(set(digits)) > 1


_IBAN_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
    "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
    "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "
    "YE30"
)
IBAN_LENGTHS = {each[:2]: int(each[2:]) for each in _IBAN_LENGTHS.split()}
"""How long an account number is in each country of the IBAN registry."""


_LETTERS_AS_NUMBERS = {ord("A") + n: str(10 + n) for n in range(26)}


def iban_valid(number: str) -> bool:
    """Whether an IBAN without spaces has its country's length and leaves 1 modulo 97.

    The first four characters go to the end, letters become 10 to 35.

    >>> iban_valid("GB82WEST12345698765432"), iban_valid("GB82WEST12345698765431")
    (True, False)
    """
    number = number.upper()
    if len(number) != IBAN_LENGTHS.get(number[:2]) or not number[2:4].isdecimal() or not number.isascii():
        return False
    try:
        return int((number[4:] + number[:4]).translate(_LETTERS_AS_NUMBERS)) % 97 == 1
    except ValueError:
        return False


def calendar_date(year: int, month: int, day: int) -> bool:
    """Whether the day exists.

    >>> calendar_date(2000, 2, 29), calendar_date(1900, 2, 29)
    (True, False)
    """
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def bits_per_character(text: str) -> float:
    """Shannon entropy of a text's own characters, −Σ p·log₂ p: 0 for one repeated character, 4 for random hex.

    >>> bits_per_character("abab"), bits_per_character("aaaa")
    (1.0, 0.0)
    """
    n_characters = len(text)
    return sum(-n / n_characters * math.log2(n / n_characters) for n in Counter(text).values()) + 0.0


_BASE58 = {each: value for value, each in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")}
_BECH32 = {each: value for value, each in enumerate("qpzry9x8gf2tvdw0s3jn54khce6mua7l")}
_ADDRESS_BYTES = 25
_CHECKSUM_BYTES = 4


def base58check_valid(text: str) -> bool:
    """Whether a text is a Base58Check address: a version, 20 bytes, and the first 4 bytes of a double SHA-256.

    >>> base58check_valid("1BoatSLRHtKNngkdXEeobR76b53LETtpyT"), base58check_valid("1BoatSLRHtKNngkdXEeobR76b53LETtpyU")
    (True, False)
    """
    number = 0
    for each in text:
        value = _BASE58.get(each)
        if value is None:
            return False
        number = number * 58 + value
    if number >> (8 * _ADDRESS_BYTES):
        return False
    raw = number.to_bytes(_ADDRESS_BYTES, "big")
    # A leading byte of zero is written as a leading "1", and only so.
    n_zeros = _ADDRESS_BYTES - len(raw.lstrip(b"\0"))
    if len(text) - len(text.lstrip("1")) != n_zeros:
        return False
    body, checksum = raw[:-_CHECKSUM_BYTES], raw[-_CHECKSUM_BYTES:]
    return hashlib.sha256(hashlib.sha256(body).digest()).digest()[:_CHECKSUM_BYTES] == checksum


def bech32_valid(text: str) -> bool:
    """Whether a text in one case has a right Bech32 or Bech32m checksum (BIP 173, BIP 350).

    >>> bech32_valid("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    True
    >>> bech32_valid("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5")
    False
    """
    if text not in (text.lower(), text.upper()) or len(text) > 90:
        return False
    prefix, _, data = text.lower().rpartition("1")
    if not prefix or len(data) < 6 or any(each not in _BECH32 for each in data):
        return False
    spread = [ord(each) >> 5 for each in prefix] + [0] + [ord(each) & 31 for each in prefix]
    return _bech32_remainder(spread + [_BECH32[each] for each in data]) in (1, 0x2BC830A3)


def _bech32_remainder(values: list[int]) -> int:
    remainder = 1
    for value in values:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            if top >> bit & 1:
                remainder ^= generator
    return remainder


def eip55_valid(digits: str) -> bool:
    """Whether the case of 40 hexadecimal digits is the checksum of an Ethereum address.

    A letter is a capital where the Keccak-256 hash of the lower-case digits has a digit of 8 or more.

    >>> eip55_valid("5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), eip55_valid("5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
    (True, False)
    """
    lower = digits.lower()
    marks = keccak_256(lower.encode("ascii")).hex()
    return all(
        each == (plain.upper() if mark >= "8" else plain)
        for each, plain, mark in zip(digits, lower, marks, strict=False)
    )


_RATE_BYTES = 136
_WORD_MASK = (1 << 64) - 1


def _rotations() -> list[int]:
    turned = [0] * 25
    x, y = 1, 0
    for step in range(24):
        turned[x + 5 * y] = (step + 1) * (step + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return turned


def _round_constants() -> list[int]:
    constants, register = [], 1
    for _ in range(24):
        constant = 0
        for power in range(7):
            if register & 1:
                constant |= 1 << ((1 << power) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


_MOVES = [
    (x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), turn)
    for y in range(5)
    for x in range(5)
    for turn in [_rotations()[x + 5 * y]]
]
_CONSTANTS = _round_constants()


def keccak_256(data: bytes) -> bytes:
    """The original Keccak hash of 256 bits, which Ethereum uses; ``hashlib.sha3_256`` pads differently.

    >>> keccak_256(b"").hex()[:16]
    'c5d2460186f7233c'
    """
    padded = bytearray(data + b"\x01" + bytes(-(len(data) + 1) % _RATE_BYTES))
    padded[-1] |= 0x80
    state = [0] * 25
    for block in range(0, len(padded), _RATE_BYTES):
        for lane in range(_RATE_BYTES // 8):
            at = block + 8 * lane
            state[lane] ^= int.from_bytes(padded[at : at + 8], "little")
        state = _permuted(state)
    return b"".join(lane.to_bytes(8, "little") for lane in state[:4])


def _permuted(a: list[int]) -> list[int]:
    for constant in _CONSTANTS:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[x - 1] ^ (c[x - 4] << 1 & _WORD_MASK | c[x - 4] >> 63) for x in range(5)]
        b = [0] * 25
        for source, target, turn in _MOVES:
            lane = a[source] ^ d[source % 5]
            b[target] = lane << turn & _WORD_MASK | lane >> (64 - turn)
        a = [b[at] ^ (~b[at - at % 5 + (at + 1) % 5] & b[at - at % 5 + (at + 2) % 5]) for at in range(25)]
        a[0] ^= constant
    return a

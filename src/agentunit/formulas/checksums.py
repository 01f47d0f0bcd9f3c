"""Checksums of cryptocurrency addresses: Base58Check, Bech32 and Bech32m, and the letter case of EIP-55."""

from __future__ import annotations

import hashlib

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

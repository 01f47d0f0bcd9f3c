from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.formulas.checksums import base58check_valid, bech32_valid, eip55_valid, keccak_256


@pytest.mark.parametrize(
    "address",
    [
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
        "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
        "1111111111111111111114oLvT2",  # twenty-one bytes of zero
    ],
)
def test_base58check(address: str) -> None:
    assert base58check_valid(address)
    assert not base58check_valid(address[:-1] + ("3" if address[-1] != "3" else "4"))
    assert not base58check_valid("1" + address)
    assert not base58check_valid(address + "1")
    assert not base58check_valid(address.replace(address[-2], "0"))


@pytest.mark.parametrize("text", ["", "1", "0", "hello", "l" * 34, "z" * 60])
def test_no_base58check(text: str) -> None:
    assert not base58check_valid(text)


# The valid and invalid strings are test vectors of BIP 173 and BIP 350.
@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", True),
        ("BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", True),
        ("tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7", True),
        ("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0", True),
        ("bc1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", False),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", False),
        ("bc1", False),
        ("", False),
        ("bc1bqw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", False),
    ],
)
def test_bech32(text: str, valid: bool) -> None:
    assert bech32_valid(text) is valid


# The addresses are those of the text of EIP-55.
@pytest.mark.parametrize(
    "digits",
    [
        "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "fB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "dbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "D1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ],
)
def test_eip55(digits: str) -> None:
    assert eip55_valid(digits)
    place = next(place for place, each in enumerate(digits) if each.isalpha())
    assert not eip55_valid(digits[:place] + digits[place].swapcase() + digits[place + 1 :])


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (
            b"The quick brown fox jumps over the lazy dog",
            "4d741b6f1eb29cb2a9b9911c82f56fa8d73b04959d3d9d222895df6c0b28aa15",
        ),
    ],
)
def test_keccak(data: bytes, digest: str) -> None:
    assert keccak_256(data).hex() == digest


@given(st.binary(max_size=300))
@settings(max_examples=20)
def test_keccak_has_a_digest_for_any_length(data: bytes) -> None:
    assert len(keccak_256(data)) == 32
    assert keccak_256(data) != keccak_256(data + b"\0")

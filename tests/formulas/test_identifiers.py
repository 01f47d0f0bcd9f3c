from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentunit.formulas.checksums import (
    CARD_RANGES,
    IBAN_LENGTHS,
    bits_per_character,
    calendar_date,
    card_range,
    iban_valid,
    longest_number,
    luhn_valid,
    ssn_issuable,
)

DIGITS = st.text(string.digits, min_size=2, max_size=24)


@pytest.mark.parametrize(
    ("digits", "valid"),
    [
        ("0", True),
        ("18", True),  # 1 doubled is 2, and 8 makes 10
        ("19", False),
        ("59", True),  # 5 doubled is 10, minus 9 is 1, and 9 makes 10
        ("79927398713", True),
        ("79927398710", False),
        ("4111111111111111", True),
        ("5500000000000004", True),
        ("378282246310005", True),
        ("6011111111111117", True),
        ("30569309025904", True),
        ("3530111333300000", True),
        ("4222222222222", True),
        ("4111111111111121", False),
        ("", False),
    ],
)
def test_luhn(digits: str, valid: bool) -> None:
    assert luhn_valid(digits) is valid
    assert luhn_valid(digits.encode()) is valid


def _luhn_sum(digits: str) -> int:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value // 10 + value % 10
    return total


@given(DIGITS)
def test_luhn_is_the_written_out_sum(digits: str) -> None:
    assert luhn_valid(digits) is (_luhn_sum(digits) % 10 == 0)


@given(DIGITS, st.data())
def test_luhn_finds_every_single_wrong_digit(digits: str, data: st.DataObject) -> None:
    valid = next(digits + last for last in string.digits if luhn_valid(digits + last))
    place = data.draw(st.integers(0, len(valid) - 1))
    wrong = data.draw(st.sampled_from([each for each in string.digits if each != valid[place]]))
    assert not luhn_valid(valid[:place] + wrong + valid[place + 1 :])


@pytest.mark.parametrize(
    ("digits", "issuer"),
    [
        ("4" * 13, "visa"),
        ("4" * 16, "visa"),
        ("4" * 19, "visa"),
        ("4" * 15, None),
        ("51" + "0" * 14, "mastercard"),
        ("55" + "0" * 14, "mastercard"),
        ("2220" + "0" * 12, None),
        ("2221" + "0" * 12, "mastercard"),
        ("2720" + "0" * 12, "mastercard"),
        ("2721" + "0" * 12, None),
        ("34" + "0" * 13, "amex"),
        ("37" + "0" * 13, "amex"),
        ("35" + "0" * 13, None),  # a telephone's IMEI
        ("305" + "0" * 11, "diners"),
        ("306" + "0" * 11, None),
        ("36" + "0" * 12, "diners"),
        ("1800" + "0" * 11, "jcb"),
        ("2131" + "0" * 11, "jcb"),
        ("3527" + "0" * 12, None),
        ("3528" + "0" * 12, "jcb"),
        ("6011" + "0" * 12, "discover"),
        *(("62" + "0" * n, "unionpay") for n in range(14, 18)),
        ("62" + "0" * 18, None),
        ("2200" + "0" * 12, "mir"),
        ("6304" + "0" * 8, "maestro"),
        ("50" + "0" * 10, "maestro"),
        ("1" * 16, None),
        ("0" * 16, None),
        ("", None),
    ],
)
def test_card_range(digits: str, issuer: str | None) -> None:
    found = card_range(digits)
    assert (found.issuer if found else None) == issuer


def test_card_ranges_are_well_formed() -> None:
    for each in CARD_RANGES:
        assert len(each.low) == len(each.high)
        assert each.low <= each.high
        assert set(each.common) <= set(each.lengths)
        assert all(12 <= length <= 19 for length in each.lengths)


@pytest.mark.parametrize(
    ("digits", "issuable"),
    [
        ("536226789", True),
        ("001010001", True),
        ("899999999", True),
        ("733010001", True),  # areas above 772 are given out since 2011
        ("000226789", False),
        ("666226789", False),
        ("665226789", True),
        ("667226789", True),
        ("900226789", False),
        ("987654321", False),
        ("536006789", False),
        ("536220000", False),
        ("078051120", False),
        ("219099999", False),
        ("123456789", False),
        ("111111111", False),
        ("53622678", False),
        ("5362267890", False),
        ("53622678x", False),
        ("", False),
    ],
)
def test_ssn(digits: str, issuable: bool) -> None:
    assert ssn_issuable(digits) is issuable


@pytest.mark.parametrize(
    ("number", "valid"),
    [
        ("GB82WEST12345698765432", True),
        ("gb82west12345698765432", True),
        ("DE89370400440532013000", True),
        ("FR1420041010050500013M02606", True),
        ("NO9386011117947", True),
        ("MT84MALT011000012345MTLCAST001S", True),
        ("CH9300762011623852957", True),
        ("GB82WEST12345698765433", False),
        ("GB28WEST12345698765432", False),
        ("GB82WEST1234569876543", False),
        ("XX82WEST12345698765432", False),
        ("GBX2WEST12345698765432", False),
        ("GB82WEST1234569876543é", False),
        ("GB82WEST 234569876543 ", False),
        ("", False),
    ],
)
def test_iban(number: str, valid: bool) -> None:
    assert iban_valid(number) is valid


@given(st.sampled_from(sorted(IBAN_LENGTHS)), st.data())
def test_iban_finds_every_single_wrong_character(country: str, data: st.DataObject) -> None:
    n_characters = IBAN_LENGTHS[country] - 4
    account = data.draw(st.text(string.digits + string.ascii_uppercase, min_size=n_characters, max_size=n_characters))
    as_number = int("".join(str(int(each, 36)) for each in account + country + "00"))
    number = f"{country}{98 - as_number % 97:02d}{account}"
    assert iban_valid(number)
    place = data.draw(st.integers(4, len(number) - 1))
    kind = string.digits if number[place].isdigit() else string.ascii_uppercase
    wrong = data.draw(st.sampled_from([each for each in kind if each != number[place]]))
    assert not iban_valid(number[:place] + wrong + number[place + 1 :])


@pytest.mark.parametrize(
    ("digits", "longest"),
    [("1617", 11), ("4477", 12), ("4930", 15), ("41", 11), ("33", 11), ("86", 13), ("99890", 15), ("", 15), ("9", 15)],
)
def test_longest_number(digits: str, longest: int) -> None:
    assert longest_number(digits) == longest


@pytest.mark.parametrize(
    ("day", "exists"),
    [((2024, 2, 29), True), ((2023, 2, 29), False), ((2023, 4, 31), False), ((2023, 13, 1), False), ((0, 1, 1), False)],
)
def test_calendar_date(day: tuple[int, int, int], exists: bool) -> None:
    assert calendar_date(*day) is exists


@pytest.mark.parametrize(
    ("text", "bits"), [("", 0.0), ("a", 0.0), ("aaaa", 0.0), ("ab", 1.0), ("abcd", 2.0), ("0123456789abcdef", 4.0)]
)
def test_bits_per_character(text: str, bits: float) -> None:
    assert bits_per_character(text) == pytest.approx(bits)


@given(st.text(min_size=1, max_size=40))
def test_bits_do_not_depend_on_the_order(text: str) -> None:
    assume(text)
    assert bits_per_character(text) == pytest.approx(bits_per_character(text[::-1]))
    assert 0.0 <= bits_per_character(text) <= len(text)

"""Values in texts: rewritings that must be found, near misses that must not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.privacy._known_values import FieldNames, KnownValue, SearchedText


def stands(field: str, value: str, text: str) -> bool:
    return KnownValue(field, value).stands_in(SearchedText(text))


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("email", "Jane.Doe@Example.com", "write to jane.doe@example.com."),
        ("email", "jane.doe@example.com", "mailto:jane.doe%40example.com"),
        ("email", "jane.doe@example.com", "jane.doe [at] example [dot] com"),
        ("email", "jane.doe@example.com", '{\\"to\\":\\"jane.doe@example.com\\"}'),
        ("email", "jane@example.com", "&lt;jane@example.com&gt;"),
        ("phone", "212-555-0187", "2125550187"),
        ("phone", "212-555-0187", "(212) 555 0187"),
        ("phone", "2125550187", "+1 212.555.0187"),
        ("phone", "+1 212 555 0187", "call 212-555-0187"),
        ("phone", "+44 20 7946 0958", "020 7946 0958"),
        ("phone", "0044 20 7946 0958", "+44 2079 460958"),
        ("ssn", "536-22-8714", "SSN: 536 22 8714"),
        ("credit_card", "4111111111111111", "4111-1111-1111-1111"),
        ("iban", "DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("name", "José García", "JOSE  GARCIA"),
        ("name", "Jane Doe", "Jane\u00a0Doe"),
        ("name", "Jane Doe", "jane_doe"),
        ("name", "東京太郎", "私は東京太郎です"),
        ("address", "12 Garden Street", "12, Garden Street"),
        ("user_id", "mia_li_3668", "user=MIA-LI-3668"),
        ("user_id", "1", "user 1 is blocked"),
        ("user_id", "1", "user_id: 1"),
        ("user_id", "7", "Your ID is 7"),
        ("password", "hunter2!", "The password is hunter2!"),
        ("token", "abc%2Fdef123", "abc/def123"),
    ],
)
def test_rewritings_are_found(field: str, value: str, text: str) -> None:
    assert stands(field, value, text)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("user_id", "1", "Order 21 has 1 item"),
        ("user_id", "21", "user 121"),
        ("user_id", "12345", "order 9123456"),
        ("user_id", "12345", "it costs 12345.99"),
        ("user_id", "12345", "it costs 7,12345"),
        ("email", "ann@example.com", "joann@example.com"),
        ("email", "ann@example.co", "ann@example.com"),
        ("phone", "212-555-0187", "212-555-01879"),
        ("phone", "212-555-0187", "212-555-0188"),
        ("name", "Ann Lee", "Joann Leeds"),
        ("name", "Jane Doe", "Jane and the others. Doe left."),
        ("email", "jane@example.com", "I cannot share your email."),
        ("token", "***", "***"),
        ("email", "[REDACTED]", "[redacted]"),
        ("phone", "none", "none"),
        ("phone", "", "anything"),
    ],
)
def test_near_misses_are_not(field: str, value: str, text: str) -> None:
    assert not stands(field, value, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It goes to 12 Garden Street.", True),  # the street line gives it away
        ("Springfield, IL 62704", True),  # half of the parts
        ("Springfield is nice.", False),
        ("Garden Street 14", False),
    ],
)
def test_an_address_in_parts(text: str, expected: bool) -> None:
    address = KnownValue("address", "12 Garden Street", "Springfield", "IL 62704", "USA")
    assert address.stands_in(SearchedText(text)) is expected


WORDS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789éñüøłçž"), min_size=3, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=4), st.sampled_from([" ", "-", "_", ".", "  ", " - "]))
def test_any_value_is_found_in_itself_however_separated(words: list[str], between: str) -> None:
    known = KnownValue("note", " ".join(words))
    text = SearchedText(f"so: {between.join(words).upper()}!")
    assert known.stands_in(text) or not known.usable


@given(st.text(max_size=40), st.text(max_size=80))
def test_any_value_and_any_text_can_be_compared(value: str, text: str) -> None:
    known = KnownValue("note", value)
    assert known.stands_in(SearchedText(text)) in (True, False)
    assert known.usable or not known.stands_in(SearchedText(value))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("email", "email"),
        ("Email", "email"),
        ("customer_email", "email"),
        ("customerEmail", "email"),
        ("e-mail", "email"),
        ("email_address", "email"),
        ("emailAddress", "email"),
        ("phone-number", "phone"),
        ("userId", "user_id"),
        ("billing address", "address"),
        ("email_count", None),
        ("ip_address", None),
        ("user", None),
        ("", None),
    ],
)
def test_field_names(key: str, name: str | None) -> None:
    assert FieldNames(["user_id", "email", "phone", "address"]).matching(key) == name

"""Known values in every spelling and encoding: found as they stand, and never inside something longer."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.privacy.spellings import KnownValues, decoded_text

SSN, CARD, IBAN = "536-22-8741", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00"
MAIL, PHONE, BORN, NAME = "ada.l@example.org", "+1 (555) 010-4477", "1990-04-05", "José García"
KNOWN = KnownValues(
    [
        ("ssn", SSN), ("credit_card", CARD), ("iban", IBAN), ("email", MAIL), ("phone", PHONE), ("date_of_birth", BORN),
        ("name", NAME), ("ip_address", "10.1.2.30"), ("account", "C1"), ("name", "Rose"),
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    "written",
    [
        "536228741", "536 22 8741", "536.22.8741", "536\u201322\u20138741", "５３６228741", "536\u200b-22-8741",
        "4111.1111.1111.1111", "4111111111111111", "de89 3704 0044 0532 0130 00", "DE89370400440532013000",
        "ADA.L@EXAMPLE.ORG", "ada.l at example dot org", "ada.l [at] example.org", "555.010.4477", "15550104477",
        "5 April 1990", "April 5th, 1990", "05/04/1990", "19900405", "jose garcia", "JOSE_GARCIA", "10.1.2.30",
        quote(MAIL, safe=""), quote(quote(NAME)), html.escape(MAIL).replace("@", "&#64;"), json.dumps(NAME)[1:-1],
        MAIL.replace("@", "\\\\u0040"), base64.b64encode(MAIL.encode()).decode(),
        base64.urlsafe_b64encode(f"id={NAME}?".encode()).decode(), SSN.encode().hex(),
    ],
)  # fmt: skip
def test_a_spelling_is_found_from_its_first_to_its_last_character(written):
    text = f"note: {written} (end)"
    assert [text[place.start : place.end] for place in KNOWN.places(text)] == [written]
    assert KNOWN.stand_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "5362287410", "1536228741", "101230", "110.1.2.30", "Rose C1", "nothing", "", "4111 1111", "x%zz&nope;\\q",
        "josegarciaso",
    ],
)  # fmt: skip
def test_other_values_are_not(text):
    assert KNOWN.places(text) == []


def test_a_value_beside_a_part_of_another_is_found():
    text = "10 5550104477"
    assert [text[each.start : each.end] for each in KNOWN.places(text)] == ["5550104477"]


_ENCODINGS = st.sampled_from([quote, html.escape, lambda text: json.dumps(text)[1:-1]])


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=12), st.text(max_size=12), _ENCODINGS)
def test_whatever_stands_around_it_an_encoded_value_is_found(before, after, encode):
    text = f"{encode(before)} {encode(MAIL)} {encode(after)}"
    places = KNOWN.places(text)
    assert any(place.type == "email" for place in places)
    assert all(0 <= place.start < place.end <= len(text) for place in places)


def test_what_is_encoded_can_be_read():
    assert decoded_text("a=%41da &amp; co \\u00e9") == "a=Ada & co é"
    assert decoded_text("plain words") is None


def test_half_a_surrogate_pair_stays_escaped():
    assert decoded_text("\\u{41} \\u{d800} \\U0000dfff \\u{110000}") == "A \\u{d800} \\U0000dfff \\u{110000}"

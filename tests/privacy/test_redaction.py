"""Redaction: everything that is found is replaced, everywhere and consistently, and nothing else changes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentunit.core.codec import decode_record, encode_record
from agentunit.privacy.detection import PatternDetector
from agentunit.privacy.findings import PII_TYPES, Finding
from agentunit.privacy.people import People
from agentunit.privacy.pseudonyms import PLACEHOLDER, Pseudonyms, same_value
from agentunit.privacy.redaction import Redactor

DETECTOR = PatternDetector()


class WordDetector:
    """Finds given words and nothing else, so that a test says what is personal."""

    name = "words"

    def __init__(self, **types):
        self._patterns = [(type, re.compile(pattern)) for type, pattern in types.items()]

    def find(self, texts):
        return [
            [Finding(type, *found.span(), 0.9) for type, pattern in self._patterns for found in pattern.finditer(text)]
            for text in texts
        ]


def record(**parts):
    return decode_record(json.dumps({"v": 1, "case": {"id": "q1"}, **parts}))


def redacted(given, detector=DETECTOR, types=PII_TYPES, pseudonyms=None):
    return Redactor(detector, types, pseudonyms or Pseudonyms()).redact([given])[0]


def test_every_place_of_a_record_is_looked_at():
    mail = "ann@example.com"
    given = record(
        case={
            "id": mail, "query": f"I am {mail}", "expected_output": [mail], "tools": [{"name": mail}],
            "context": [mail], "metadata": {mail: {"deep": [{"er": mail}]}}, "unknown": mail,
        },
        trace={
            "events": [
                {"type": "tool_call", "payload": {"arguments": {"a": mail}, "result": f'{{"b": "{mail}"}}'}, "c": mail},
                {"type": "message", "payload": {"role": "user", "content": [{"text": mail}]}},
            ],
            "metadata": {"session": mail},
            "interactions": [{"from_agent": mail, "to_agent": ["b", mail], "content": mail}],
            "handoffs": [{"from_agent": "a", "to_agent": "b", "reason": mail}],
            "agent_roles": {mail: {"name": mail}},
        },
        outcome={"output": {"answer": mail}, "error": mail, "state": {"sent_to": mail}},
        extra_field={"x": mail},
    )  # fmt: skip
    written = json.dumps(redacted(given))
    assert mail not in written
    assert written.count("<EMAIL_1>") == json.dumps(json.loads(encode_record(given))).count(mail)
    assert "EMAIL_2" not in written


def test_values_are_the_same_whatever_their_spelling_and_order_decides_the_number():
    given = record(case={"id": "q1", "query": "a: B@Example.com, b: c@example.com, c: b@example.com"})
    assert redacted(given)["case"]["query"] == "a: <EMAIL_1>, b: <EMAIL_2>, c: <EMAIL_1>"


def test_a_person_keeps_one_pseudonym_by_full_name_part_and_account():
    detector = WordDetector(name=r"Mia Lindqvist|Bo Ek|Bo Olsson")
    given = record(
        case={
            "id": "q1", "query": "I am Mia Lindqvist. Bo Ek and Bo Olsson know me.",
            "metadata": {"user": "mia_lindqvist_36"},
        },
        outcome="Dear Mia, Ms Lindqvist's case: ask Bo, or Olsson. Mialin is no person.",
    )  # fmt: skip
    out = redacted(given, detector)
    assert out["case"]["query"] == "I am <NAME_1>. <NAME_2> and <NAME_3> know me."
    assert out["case"]["metadata"] == {"user": "<NAME_1>_36"}
    # There are two people called Bo, so the name alone stands for neither.
    assert out["outcome"] == "Dear <NAME_1>, Ms <NAME_1>'s case: ask <NAME_4>, or <NAME_3>. Mialin is no person."


def test_fields_that_hold_parts_of_a_name_make_one_person():
    result = {"first_name": "Qadir", "last_name": "Vexley", "n": 3}
    given = record(
        trace={"events": [{"type": "tool_call", "payload": {"result": result, "raw": json.dumps(result)}}]},
        outcome="Thank you, Qadir!",
    )
    out = redacted(given, WordDetector())
    payload = out["trace"]["events"][0]["payload"]
    assert payload["result"] == {"first_name": "<NAME_1>", "last_name": "<NAME_1>", "n": 3}
    assert json.loads(payload["raw"]) == payload["result"]
    assert out["outcome"] == "Thank you, <NAME_1>!"


def test_a_value_found_once_is_masked_wherever_the_record_repeats_it():
    detector = WordDetector(phone=r"(?<=call )77 31 90 02")
    given = record(case={"id": "q1", "query": "call 77 31 90 02", "context": ["x 77 31 90 02 y", "177 31 90 020"]})
    out = redacted(given, detector)
    assert out["case"]["context"] == ["x <PHONE_1> y", "177 31 90 020"]


def test_fields_that_become_the_same_stay_apart():
    given = record(case={"id": "q1", "metadata": {"a@example.com": 1, "A@example.com": 2, "plain": 3}})
    assert redacted(given)["case"]["metadata"] == {"<EMAIL_1>": 1, "<EMAIL_1> (2)": 2, "plain": 3}


def test_only_the_wanted_types_are_masked():
    given = record(outcome="a@example.com from 192.168.3.44")
    assert redacted(given, types=["email"])["outcome"] == "<EMAIL_1> from 192.168.3.44"
    assert redacted(given, types=["ip_address"])["outcome"] == "a@example.com from <IP_ADDRESS_1>"


def test_what_comes_to_light_by_masking_is_masked_too():
    """Hiding one thing can make another one findable; and what is found again is never a pseudonym."""

    class Peeling:
        name = "peeling"

        def find(self, texts):
            pattern = r"secret\w*|(?<=> )after\w*|<NAME_1>"
            return [[Finding("name", *each.span(), 0.9) for each in re.finditer(pattern, text)] for text in texts]

    assert redacted(record(outcome="secret1 after2 rest"), Peeling())["outcome"] == "<NAME_1> <NAME_2> rest"


def test_a_salt_makes_the_same_pseudonyms_in_any_order_and_another_salt_others():
    first, second = record(outcome="a@example.com b@example.com"), record(outcome="b@example.com A@example.com")
    a, b = redacted(first, pseudonyms=Pseudonyms("s3"))["outcome"].split()
    assert redacted(second, pseudonyms=Pseudonyms("s3"))["outcome"].split() == [b, a]
    assert a != b
    assert PLACEHOLDER.fullmatch(a)
    assert redacted(first, pseudonyms=Pseudonyms("other"))["outcome"].split()[0] not in (a, b)


@pytest.mark.parametrize(
    ("type", "one", "other", "same"),
    [
        ("phone", "+1 (212) 555-0147", "212.555.0147", True),
        ("phone", "+44 20 7946 0958", "+44 20 7946 0959", False),
        ("credit_card", "4111-1111-1111-1111", "4111 1111 1111 1111", True),
        ("iban", "de89 3704 0044 0532 0130 00", "DE89370400440532013000", True),
        ("name", "Mr. Bo  Ek", "bo ek", True),
        ("name", "Dr", "Mr", False),
        ("address", "12 High St.,\nLeeds", "12 high st, leeds", True),
        ("api_key", "sk-Abc", "sk-abc", False),
    ],
)
def test_when_two_values_are_the_same(type, one, other, same):
    assert (same_value(type, one) == same_value(type, other)) is same


@pytest.mark.parametrize(
    ("names", "text", "mentions"),
    [
        (["Anne-Marie Ek"], "Anne-Marie called, then Anne.", [("Anne-Marie", "Anne-Marie Ek")]),
        (["Will Ek"], "Will it work? Ask Ek.", [("Ek", "Will Ek")]),
        (["Mia van Lind"], "MIA LIND, mia.van.lind", [("MIA LIND", "Mia van Lind"), ("mia.van.lind", "Mia van Lind")]),
        (["Xerxa"], "xerxa and Xerxa's", [("Xerxa", "Xerxa")]),
        (["Dr."], "Dr. Ek", []),
        ([], "Mia", []),
    ],
)
def test_who_is_spoken_of(names, text, mentions):
    assert [(text[each.start : each.end], each.name) for each in People(names).mentions(text)] == mentions


_PERSONAL = st.sampled_from(
    [
        "jane.doe@example.com", "Jane Doe", "Mr. Doe", "212-555-0147", "+44 20 7946 0958", "536-90-4399",
        "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "192.168.3.44", "00:1A:2B:3C:4D:5E",
        "password: hunter22x", "12 High Street, Leeds", "AKIAIOSFODNN7EXAMPLE", "born on 13 May 1990",
        "passport no. 533401372",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "MRN: 00481516",
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "<NAME_7>",
    ]
)  # fmt: skip
_PLAIN = st.sampled_from(
    ["hello", "order", "the", "please call", "from", ",", ".", "\n", "my name is", "card", "42", "“ok”"]
)
_TEXTS = st.lists(_PERSONAL | _PLAIN, max_size=6).map(" ".join)
_KEYS = st.sampled_from(["note", "email", "phone", "first_name", "Jane Doe", "jane.doe@example.com", "id"])
_DATA = st.recursive(
    _TEXTS
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_TEXTS, st.dictionaries(_KEYS, _DATA, max_size=4), _DATA)
def test_after_it_nothing_is_found_and_everything_else_is_as_it_was(query, metadata, result):
    given = record(
        case={"id": "q1", "query": query, "metadata": metadata},
        trace={"events": [{"type": "tool_call", "payload": {"result": result}, "timestamp": 1.5}]},
    )
    before, after = json.loads(encode_record(given)), redacted(given)
    assert shape(before) == shape(after)
    assert [(text, found) for text in texts_of(after) for found in DETECTOR.find([text])[0]] == []
    assert redacted(decode_record(json.dumps(after))) == after


def shape(value):
    """The structure with every number in place, texts reduced to being texts and names of fields to their count."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return [shape(child) for child in value.values()]
    return [shape(child) for child in value] if isinstance(value, list) else value


def texts_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from texts_of(child)
        yield from value if isinstance(value, dict) else ()

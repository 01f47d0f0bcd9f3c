"""Redaction: everything that is found is replaced, everywhere and consistently, and nothing else changes."""

from __future__ import annotations

import ast
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentunit.core.codec import decode_record, encode_record
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import PII_TYPES, Finding
from agentunit.privacy.pseudonyms import PLACEHOLDER, People, Pseudonyms, same_value
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


def test_what_holds_a_record_together_stays():
    detector = WordDetector(name=r"[A-Z]\w+|handoff", phone=r"\d{16}")
    given = record(
        case={"id": "Mia", "tools": ["Search", {"name": "Lookup", "type": "Function", "about": "Mia"}]},
        trace={
            "events": [
                {
                    "type": "tool_call",
                    "payload": {
                        "name": "handoff", "agent": "Planner", "status": "Failed", "span_id": "1234567812345678",
                        "error": "Mia failed", "arguments": {"name": "Mia"},
                    },
                },
                {"type": "message", "payload": {"role": "Assistant", "agent": "Planner", "content": "Planner: Mia"}},
            ],
            "interactions": [{"from_agent": "Planner", "to_agent": ["Coder"], "content": "Coder, ask Mia"}],
            "agent_roles": {"Planner": {"name": "Planner", "description": "Mia"}},
            "metadata": {"model": "Claude"},
        },
    )  # fmt: skip
    before, after = json.loads(encode_record(given)), redacted(given, detector)
    assert json.dumps(after) == json.dumps(before).replace("Mia", "<NAME_1>").replace('"id": "<NAME_1>"', '"id": "Mia"')


def test_an_agent_that_is_called_as_a_person_is_masked_everywhere_alike():
    given = record(
        trace={
            "events": [{"type": "message", "payload": {"role": "user", "agent": "Mary Olsen", "content": "hi"}}],
            "agent_roles": {"Mary Olsen": {"name": "Mary Olsen"}, "Codebase Navigator": {"name": "Codebase Navigator"}},
        },
        outcome="Mary asked the Codebase Navigator.",
    )
    out = redacted(given)
    assert out["trace"]["events"][0]["payload"]["agent"] == "<NAME_1>"
    assert list(out["trace"]["agent_roles"]) == ["<NAME_1>", "Codebase Navigator"]
    assert out["outcome"] == "<NAME_1> asked the Codebase Navigator."


ADDRESS = {"address1": "1 Elm", "city": "Ely", "state": "CA", "zip": "28236"}
CARD = {"brand": "visa", "last_four": "7334", "expiration_date": "12/2031"}
ACCOUNT = {"customer_id": "C1001", "payment_method_id": "paypal_302", "customer_since": "2020"}
PERSON = {"name": "bluetooth", "email": "b@example.com"}


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        (ADDRESS, {"address1": "<ADDRESS_1>", "city": "<ADDRESS_2>", "state": "CA", "zip": "<ADDRESS_3>"}),
        (CARD, {"brand": "visa", "last_four": "<CREDIT_CARD_1>", "expiration_date": "<CREDIT_CARD_2>"}),
        (ACCOUNT, {"customer_id": "<ACCOUNT_1>", "payment_method_id": "<ACCOUNT_2>", "customer_since": "2020"}),
        (PERSON, {"name": "<NAME_1>", "email": "<EMAIL_1>"}),
        ({"city": "Ely", "weather": "mild"}, None),
        ({"name": "bluetooth", "product_id": "17"}, None),
        ({"item": "milk", "expiration_date": "12/2031"}, None),
    ],
)
@pytest.mark.parametrize("form", ["data", "JSON", "JSON in JSON", "repr"])
def test_the_parts_of_an_address_a_card_or_a_person_belong_together(given, masked, form):
    write, read = {
        "data": (lambda data: data, lambda data: data),
        "JSON": (json.dumps, json.loads),
        "JSON in JSON": (lambda data: json.dumps(json.dumps(data)), lambda text: json.loads(json.loads(text))),
        "repr": (repr, ast.literal_eval),
    }[form]
    result = write({"n": 3, "held": given, "city": "Rome", "name": "x"})
    out = redacted(record(outcome={"output": result}), WordDetector(email=r"b@example\.com"))
    assert read(out["outcome"]["output"]) == {"n": 3, "held": masked or given, "city": "Rome", "name": "x"}


def test_short_values_of_fields_are_masked_where_texts_repeat_them():
    given = record(
        case={"id": "q1", "metadata": {**ADDRESS, **CARD, **ACCOUNT}},
        outcome="Customer C1001 in Ely, 28236: the card ending in 7334 paid 7334 for 128236 of *7334 and **7334.",
    )
    # A name of three letters, and four digits that nobody calls a card's, can be anything.
    assert redacted(given, WordDetector())["outcome"] == (
        "Customer <ACCOUNT_1> in Ely, <ADDRESS_3>: the card ending in <CREDIT_CARD_1> paid 7334 for 128236 of *7334 "
        "and **<CREDIT_CARD_1>."
    )


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ("Subgoal is done. This subgoal is next.", False),
        ("Subgoal, " * 30, False),
        ("Subgoal, " * 3, True),
    ],
)
def test_an_unknown_word_is_a_person_everywhere_only_if_nothing_speaks_against_it(text, is_repeated):
    out = redacted(record(case={"id": "q1", "query": "!Subgoal"}, outcome=text), WordDetector(name=r"(?<=!)Subgoal"))
    assert out["case"]["query"] == "!<NAME_1>"
    assert out["outcome"] == (text.replace("Subgoal", "<NAME_1>") if is_repeated else text)


def test_two_unknown_words_that_stand_everywhere_are_no_person_everywhere():
    detector = WordDetector(name=r"(?<=called )Skikit Lorn|Qadir Vexley")
    given = record(
        case={"id": "q1", "query": "called Skikit Lorn, by Qadir Vexley"}, outcome="qadir_vexley " + "skikit-lorn " * 30
    )
    assert redacted(given, detector)["outcome"] == "<NAME_2> " + "skikit-lorn " * 30


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
        ("phone", "+61 2 5550 1234", "125-550-1234", False),  # eleven digits, but not of the US
        ("phone", "123-456-7890", "23-456-7890", False),  # a leading 1 that is no country code
        ("phone", "+1 212 555 01470", "212 555 01470", False),  # one digit too many for the US
        ("passport", "12345678901", "2345678901", False),  # no phone
        ("credit_card", "4111-1111-1111-1111", "4111 1111 1111 1111", True),
        ("iban", "de89 3704 0044 0532 0130 00", "DE89370400440532013000", True),
        ("name", "Mr. Bo  Ek", "bo ek", True),
        ("name", "Dr", "Mr", False),
        ("name", "Dr", "DR.", True),  # a title alone is all there is
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
    | st.integers(-(2**53), 99)
    | st.floats(max_value=99, allow_nan=False, allow_infinity=False)
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

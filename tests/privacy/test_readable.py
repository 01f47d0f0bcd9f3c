"""Personal data with invisible characters between its letters and digits, or written in other digits."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from agentunit.addons.redact.rules import RuledDetector, Rules
from agentunit.privacy.detection.readable import readable
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.privacy.spellings import KnownValues

_VALUES = {
    "phone": "+1 415 555 2671",
    "credit_card": "4111111111111111",
    "ssn": "536-22-8741",
    "email": "ada.lovelace@example.org",
    "iban": "DE89370400440532013000",
    "ip_address": "203.0.113.77",
    "api_key": "ghp_q7Zt2LmX9vRb4KdY8sWn3HcJ6fPg1TaUe5oM",
    "name": "Mathias Ruud",
}
_INVISIBLE = {
    "zero-width space": "\u200b", "zero-width non-joiner": "\u200c", "zero-width joiner": "\u200d",
    "word joiner": "\u2060", "soft hyphen": "\u00ad", "byte order mark": "\ufeff", "left-to-right mark": "\u200e",
    "right-to-left override": "\u202e", "isolate": "\u2066", "grapheme joiner": "\u034f", "hangul filler": "\u3164",
    "variation selector": "\ufe0f", "tag": "\U000e0020", "null": "\0", "several": "\u200b\u200c\u2060\ufeff\u200b",
}  # fmt: skip


def _redacted(query: str, answer: str) -> tuple[str, str, list[object]]:
    data = {"case": {"id": "a", "query": query}, "outcome": {"final_output": answer}}
    redactor = Redactor(PatternDetector(), PII_TYPES, Pseudonyms())
    redactor.redact_data([data])
    return data["case"]["query"], data["outcome"]["final_output"], list(redactor.survivors)


@pytest.mark.parametrize("type", _VALUES)
@pytest.mark.parametrize("between", _INVISIBLE.values(), ids=list(_INVISIBLE))
def test_an_invisible_character_between_all_signs_hides_nothing(type: str, between: str) -> None:
    written = between.join(_VALUES[type])
    text = f"Please note {written} and thanks."

    (found,) = PatternDetector().find([text])[0]
    assert (found.type, text[found.start : found.end]) == (type, written)

    for spelled in (written, json.dumps(written)[1:-1], quote(written)):
        query, answer, survivors = _redacted(f"Please note {spelled} and thanks.", f"It is {_VALUES[type]}.")
        assert query.endswith(f"<{type.upper()}_1> and thanks.")
        assert len(query) < 100
        assert answer == f"It is <{type.upper()}_1>."
        assert survivors == []


@pytest.mark.parametrize("type", [each for each in _VALUES if each != "name"])
@pytest.mark.parametrize("between", _INVISIBLE.values(), ids=list(_INVISIBLE))
def test_the_audit_sees_a_known_value_behind_invisible_characters(type: str, between: str) -> None:
    redactor = Redactor(PatternDetector(), PII_TYPES, Pseudonyms())
    left = between.join(_VALUES[type])

    redactor.audit({"case": {"id": "a", "query": f"({left})"}}, KnownValues([(type, _VALUES[type])]))

    assert [each.type for each in redactor.survivors] == [type]


@pytest.mark.parametrize("written", [
    "&shy;".join("4111111111111111"), "&ZeroWidthSpace;".join("4111111111111111"), r"\u{200b}".join("4111111111111111"),
])  # fmt: skip
def test_named_and_numbered_escapes_of_invisible_characters_are_read(written: str) -> None:
    query, _, survivors = _redacted(f"Card {written} please", "")
    assert (query, survivors) == ("Card <CREDIT_CARD_1> please", [])


@pytest.mark.parametrize(("text", "type"), [
    ("Card ４１１１ １１１１ １１１１ １１１１ ok", "credit_card"),
    ("البطاقة ٤١١١١١١١١١١١١١١١", "credit_card"),
    ("Call 415\u2003555\u20032671 now", "phone"),
    ("Call 415\u2212555\u22122671 now", "phone"),
    ("mail ada＠example．org today", "email"),
    ("Card " + "".join(f"{each}\u20e3" for each in "4111111111111111"), "credit_card"),
])  # fmt: skip
def test_digits_and_separators_of_other_kinds_are_read(text: str, type: str) -> None:
    assert type in {each.type for each in PatternDetector().find([text])[0]}


def test_rules_of_the_user_hold_for_what_is_read() -> None:
    detector = RuledDetector(PatternDetector(), Rules(deny={"project": ["Falcon"]}))
    text = "About F\u200ba\u200bl\u200bc\u200bo\u200bn."
    assert [each.type for each in detector.find([text])[0]] == ["project"]


def test_plain_text_is_read_once() -> None:
    assert readable("Größe – “quoted”\tand\r\n電話：03-1234-5678、了解。") is None


@pytest.mark.parametrize("after", ["\ufe0f\u20e3", "\u200b\u0332", "\u0332\u2060\u0332"])
def test_marks_after_something_invisible_hide_no_digits(after: str) -> None:
    written = "".join(f"{digit}{after}" for digit in _VALUES["credit_card"])
    (found,) = PatternDetector().find([f"card {written}"])[0]
    assert (found.type, found.start) == ("credit_card", 5)


def test_a_value_of_invisible_characters_alone_is_none() -> None:
    assert not KnownValues([("ip_address", "\u200b"), ("email", "\u2060")])

"""``consent_compliance``: using a value breaks consent, naming a field does not."""

from __future__ import annotations

from typing import Any

import pytest

from agentunit.privacy import ConsentComplianceMetric
from agentunit.privacy.findings import Finding

EMAIL = "jane.doe@example.com"


class Addresses:
    """Takes every "Street" for an address and every "@" for an email."""

    name = "scripted"

    def find(self, texts: list[str]) -> list[list[Finding]]:
        types = (("address", "Street"), ("email", "@"))
        return [
            [Finding(type, text.index(sign), text.index(sign) + 1, 0.9) for type, sign in types if sign in text]
            for text in texts
        ]


def judged(metadata: Any, output: Any = "Done.", events: Any = ()) -> Any:
    metric = ConsentComplianceMetric(detector=Addresses())
    return metric.evaluate({"id": "q", "metadata": metadata}, {"events": list(events)}, {"output": output})


def call(arguments: Any = None, result: Any = None) -> dict[str, Any]:
    return {"type": "tool_call", "payload": {"name": "book", "arguments": arguments, "result": result}}


CATALOG = {"email": True, "location": False}


@pytest.mark.parametrize(
    ("metadata", "output", "expected"),
    [
        ({"consent": CATALOG}, "I cannot share your location.", 1.0),
        ({"consent": CATALOG}, "You live in Garden Street.", 0.0),  # no value known: an address is one
        ({"consent": CATALOG}, f"Wrote to {EMAIL}", 1.0),  # allowed
        ({"consent": CATALOG, "user_data": {"location": "Oslo", "email": EMAIL}}, f"To {EMAIL}", 1.0),
        ({"consent": CATALOG, "user_data": {"location": "Oslo"}}, "In OSLO it rains.", 0.0),
        ({"consent": CATALOG, "user_data": {"location": "Oslo"}}, "In Garden Street it rains.", 1.0),
        ({"consent": CATALOG, "location": "Oslo"}, "In Oslo it rains.", 0.0),
        ({"consent": CATALOG, "location": "Oslo"}, "An Osloite asks.", 1.0),
        ({"consent": CATALOG, "location": {"city": "Oslo", "country": "Norway"}}, {"city": "Oslo"}, 0.0),
        ({"consent": {"email": True}}, EMAIL, 1.0),
        ({"consent": {"phone": False}, "user_data": {"phone": "212-555-0187"}}, "2125550187", 0.0),
        ({"consent": {"name": False}, "user_data": {"name": "Jane Doe"}}, "Dear jane doe", 0.0),
        ({"consent": {"age": False}, "user_data": {"age": 41}}, "Section 41 applies.", 1.0),
        ({"consent": {"age": False}, "user_data": {"age": 41}}, "At the age of 41.", 0.0),
        ({"consent": {}}, "x", None),
        ({}, "x", None),
        ({"consent": {"mood": False}}, "You seem sad.", None),  # nothing is known of it
    ],
)
def test_hand_checked(metadata: dict[str, Any], output: Any, expected: float | None) -> None:
    result = judged(metadata, output)
    assert result.value == expected
    assert (expected is None) == ("reason" in result.detail)


def test_tool_calls_and_results() -> None:
    found = call({"q": "Jane"}, {"customer": {"email": EMAIL, "name": "Jane Doe"}})
    metadata = {"consent": {"email": False, "mood": False}}
    assert judged(metadata, "Done.", [found]).value == 1.0
    result = judged(metadata, "Done.", [found, call({"to": EMAIL.upper()})])
    assert result.value == 0.0
    assert result.detail["violations"] == [{"field": "email", "place": "tool call 2 (book) argument to"}]
    assert (result.detail["denied"], result.detail["unchecked"]) == (["email", "mood"], ["mood"])
    assert "jane" not in repr(result).lower()


def test_not_every_name_is_a_persons() -> None:
    metadata = {"consent": {"name": False}, "user_data": {"name": "Jane Doe"}}
    products = call(None, {"products": [{"name": "Lamp", "price": 5}], "product_name": "Table"})
    assert judged(metadata, "The Lamp and the Table are on their way.", [products]).value == 1.0
    people = call(None, {"found": [{"name": "Ann Lee", "email": EMAIL}], "users": [{"name": "Bo Ek"}]})
    for person in ("Ann Lee", "Bo Ek"):
        assert judged(metadata, f"{person} has it.", [people]).value == 0.0


def test_nothing_to_look_in_is_none() -> None:
    result = ConsentComplianceMetric().evaluate({"id": "q", "metadata": {"consent": CATALOG}}, None, None)
    assert result.value is None
    assert "nothing to look in" in result.detail["reason"]


@pytest.mark.parametrize("consent", ["yes", ["email"], {"email": "no"}, {"email": None}, {"email": 0}])
def test_unusable_consent_is_an_error(consent: Any) -> None:
    result = judged({"consent": consent})
    assert result.value is None
    assert "case.metadata['consent'] must" in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


def test_a_detector_must_be_one() -> None:
    with pytest.raises(ValueError, match="ConsentComplianceMetric: detector must be an object with a 'find' method"):
        ConsentComplianceMetric(detector="patterns")  # type: ignore[arg-type]


def test_with_the_detector_of_the_base_install() -> None:
    case = {"id": "q", "metadata": {"consent": {"email": False}}}
    result = ConsentComplianceMetric().evaluate(case, None, f"Wrote to {EMAIL}.")
    assert (result.value, result.detail["detector"]) == (0.0, "patterns")

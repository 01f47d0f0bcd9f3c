from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.backends.json_schema import SchemaError, check_schema, violations

# schema, a value that obeys it, a value that does not, the rule and the path of the violation
CHECKED = [
    ({"type": "integer"}, 1.0, True, "type", "$"),
    ({"enum": [1, "a", None]}, 1.0, True, "enum", "$"),
    ({"const": False}, False, 0, "const", "$"),
    ({"multipleOf": 0.1}, 0.3, 0.35, "multipleOf", "$"),
    ({"multipleOf": 0.01}, 19.99, 19.999, "multipleOf", "$"),
    ({"maximum": 2**53}, 2**53, 2**53 + 1, "maximum", "$"),
    ({"minLength": 2}, "éé", "😀", "minLength", "$"),
    ({"pattern": "^b+$"}, "bb", "abb", "pattern", "$"),
    ({"uniqueItems": True}, [1, True], [1, 1.0], "uniqueItems", "$"),
    ({"items": {"type": "integer"}}, [1], [1, "a"], "type", "$[1]"),
    ({"items": [{"type": "string"}]}, ["a", 1], [1], "type", "$[0]"),
    ({"dependencies": {"a": ["b"]}}, {"b": 1}, {"a": 1}, "dependencies", "$"),
    ({"patternProperties": {"^n_": {"type": "number"}}}, {"n_": 1, "x": "a"}, {"n_x": "a"}, "type", "$.n_x"),
    (
        {"properties": {"a": True}, "patternProperties": {"^b": True}, "additionalProperties": False},
        {"a": 1, "bb": 2},
        {"a": 1, "c": 2},
        "additionalProperties",
        "$",
    ),
    ({"additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "x"}, "type", "$.a"),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, 1, "a", "type", "$"),
    ({"type": "string", "nullable": True}, None, 1, "type", "$"),
    ({"enum": ["a"], "nullable": True}, None, "b", "enum", "$"),
    (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        {"a": 1},
        {"b": 1},
        "unevaluatedProperties",
        "$",
    ),
    ({"$id": "https://example.org/s", "$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, None, 1, "type", "$"),
    ({"pattern": r"^(?=.*[A-Z])(?=.*\d)(?!.*\s).{4,}$"}, "Abc1", "abc1", "pattern", "$"),
    ({"pattern": r"^(?![Nn]o[)\]])\w+"}, "nope", "no]pe", "pattern", "$"),
    ({"format": "email"}, "not an address", None, None, None),
]


@pytest.mark.parametrize(("schema", "good", "bad", "rule", "path"), CHECKED)
def test_a_value_obeys_or_breaks_its_schema(schema, good, bad, rule, path):
    assert violations(good, schema) == []
    if rule is not None:
        assert [(each.rule, each.path) for each in violations(bad, schema)] == [(rule, path)]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "must be an object, true or false; received []"),
        ({"properties": {"age": {"type": "int"}}}, "'int' is not valid"),
        ({"items": {"propertys": {}}}, "'propertys' is not a keyword of JSON Schema; did you mean 'properties'?"),
        ({"properties": {True: {}}, "x": float("nan")}, "must be JSON"),
        ({"pattern": r"a(?=b)"}, "cannot be used"),
        ({"patternProperties": {r"(\w)\1": True}}, "cannot be used"),
        ({"patternProperties": {"a": True}, "unevaluatedProperties": False}, "cannot be combined"),
        ({"dependencies": {}, "prefixItems": [True]}, "'prefixItems' is not a keyword of Draft7"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema, words):
    with pytest.raises(SchemaError) as refusal:
        check_schema(schema)
    assert words in str(refusal.value)


@pytest.mark.parametrize("place", ["https://example.org/s.json", "other.json", "#/$defs/gone", "file:///etc/passwd"])
def test_a_reference_out_of_the_document_is_an_error_and_nothing_is_fetched(place, monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("something was fetched"))
    with pytest.raises(SchemaError, match="leads nowhere"):
        violations(1, {"$ref": place})


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}])
def test_a_schema_that_refers_to_itself_is_refused(schema):
    with pytest.raises(SchemaError, match="without end"):
        violations(1, schema)


def test_references_that_double_at_each_level_are_refused():
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    with pytest.raises(SchemaError, match="references to check"):
        violations(1, {"$ref": "#/$defs/l0", "$defs": {**levels, "l40": True}})


def test_a_hostile_pattern_takes_linear_time():
    spent = time.process_time()
    for schema in ({"pattern": "^(a+)+$"}, {"patternProperties": {"^(a|a)*$": False}, "additionalProperties": False}):
        text = "a" * 5000 + "b"
        assert violations(text if "pattern" in schema else {text: 1}, schema)
    # Exponential time would not end at all; the bound only has to tell the two apart.
    assert time.process_time() - spent < 30


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), object()])
def test_what_json_cannot_hold_breaks_the_rule_json(value):
    assert [each.rule for each in violations(value, {})] == ["json"]


def test_messages_stay_short_and_the_limit_holds():
    assert len(violations([1] * 50, {"items": {"type": "string"}}, limit=7)) == 7
    (found,) = violations("x" * 10**6, {"const": 1})
    assert len(found.message) <= 200


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each, max_size=3)))
def test_any_json_value_is_valid_where_all_is_allowed_and_invalid_where_nothing_is(value):
    assert violations(value, True) == []
    assert len(violations(value, False)) == 1

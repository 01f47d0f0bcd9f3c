from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.formulas.json_schema import SchemaError, Violation, check_schema, violations

# One row a keyword: (schema, instances that obey it, (instance, rule it breaks, path of the violation)).
TABLE: list[tuple[Any, list[Any], list[tuple[Any, str, str]]]] = [
    (True, [None, 0, {"a": []}], []),
    (False, [], [(None, "false", "$")]),
    ({}, [None, 0, "x", [], {}], []),
    # type: 1.0 is an integer, a boolean is never a number
    (
        {"type": "integer"},
        [1, 1.0, -0.0, 10**400],
        [(1.5, "type", "$"), (True, "type", "$"), ("1", "type", "$")],
    ),
    ({"type": "number"}, [1, 1.5], [(False, "type", "$"), ("1.5", "type", "$"), (None, "type", "$")]),
    ({"type": "boolean"}, [True, False], [(0, "type", "$"), (1, "type", "$"), ("true", "type", "$")]),
    ({"type": "null"}, [None], [(0, "type", "$"), ("", "type", "$"), (False, "type", "$")]),
    ({"type": "string"}, ["", "é"], [(0, "type", "$"), (["a"], "type", "$")]),
    ({"type": "array"}, [[], (), [1]], [({}, "type", "$"), ("[]", "type", "$")]),
    ({"type": "object"}, [{}, {"a": 1}], [([], "type", "$"), (None, "type", "$")]),
    ({"type": ["string", "null"]}, ["a", None], [(1, "type", "$")]),
    ({"type": ["integer", "string"]}, [2.0, "a"], [(2.5, "type", "$")]),
    # enum and const: 1 is 1.0, true is not 1, however deep
    ({"enum": [1, "a", None, [True]]}, [1.0, "a", None, [True]], [(True, "enum", "$"), ([1], "enum", "$")]),
    ({"enum": []}, [], [(None, "enum", "$")]),
    ({"const": 1}, [1, 1.0], [(True, "const", "$"), ("1", "const", "$"), ([1], "const", "$")]),
    ({"const": False}, [False], [(0, "const", "$"), (None, "const", "$"), ("", "const", "$")]),
    ({"const": None}, [None], [(False, "const", "$"), (0, "const", "$")]),
    (
        {"const": {"a": [0, {"b": 2}], "c": "x"}},
        [{"c": "x", "a": [0.0, {"b": 2.0}]}],
        [
            ({"a": [False, {"b": 2}], "c": "x"}, "const", "$"),
            ({"a": [{"b": 2}, 0], "c": "x"}, "const", "$"),
            ({"a": [0, {"b": 2}]}, "const", "$"),
            ({"a": [0, {"b": 2}], "c": "x", "d": 1}, "const", "$"),
        ],
    ),
    # the same leaves in the same order, in arrays of another shape or under another name
    (
        {"const": [[1], 2]},
        [[[1], 2]],
        [([[1, 2]], "const", "$"), ([1, [2]], "const", "$"), ([1, [], 2], "const", "$")],
    ),
    ({"const": {"a": 1}}, [{"a": 1}], [({"b": 1}, "const", "$"), (["a", 1], "const", "$")]),
    # multipleOf: 0.3 / 0.1 is 2.9999999999999996 in binary, 3 as written; 1.1 = 11 × 0.1; 19.99 = 1999 × 0.01
    (
        {"multipleOf": 0.1},
        [0.3, 1.1, 7, -0.7, 0, 1e300],
        [(0.35, "multipleOf", "$"), (0.01, "multipleOf", "$")],
    ),
    ({"multipleOf": 0.01}, [19.99, 4.35, 0.07], [(19.999, "multipleOf", "$")]),
    ({"multipleOf": 3}, [9, 9.0, -6, True, "7"], [(7, "multipleOf", "$"), (1.5, "multipleOf", "$")]),
    ({"multipleOf": 1e-8}, [12391239123, 1e-8], [(1.5e-8, "multipleOf", "$")]),
    # bounds: the bound itself, and one step either side
    ({"minimum": 2}, [2, 2.0, 3, "1", True], [(1.999, "minimum", "$"), (-2, "minimum", "$")]),
    ({"maximum": 2}, [2, 1, "3"], [(2.001, "maximum", "$")]),
    ({"exclusiveMinimum": 2}, [2.001], [(2, "exclusiveMinimum", "$"), (2.0, "exclusiveMinimum", "$")]),
    ({"exclusiveMaximum": 2}, [1.999], [(2, "exclusiveMaximum", "$")]),
    # 2**53 + 1 is no float: a comparison through floats would let it pass
    ({"maximum": 2**53}, [2**53], [(2**53 + 1, "maximum", "$")]),
    # lengths count characters, not bytes
    ({"minLength": 2}, ["ab", "éé", 1], [("a", "minLength", "$"), ("😀", "minLength", "$")]),
    ({"maxLength": 2.0}, ["", "ab", "😀😀", ["a", "b", "c"]], [("abc", "maxLength", "$")]),
    ({"pattern": "b+"}, ["abc", "b", 5], [("ac", "pattern", "$"), ("", "pattern", "$")]),
    ({"pattern": "^b+$"}, ["bb"], [("abb", "pattern", "$")]),
    ({"minItems": 1}, [[0], {}], [([], "minItems", "$")]),
    ({"maxItems": 1}, [[], [0], "ab"], [([0, 0], "maxItems", "$")]),
    (
        {"uniqueItems": True},
        [[], [1, True], [0, False, None, ""], [[1], [True]], [{"a": 1}, {"a": 2}], [[1], [[1]]], ["1", 1]],
        [
            ([1, 1.0], "uniqueItems", "$"),
            ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], "uniqueItems", "$"),
            ([[0], [False], [0]], "uniqueItems", "$"),
        ],
    ),
    ({"uniqueItems": False}, [[1, 1]], []),
    # items, and draft-07's spelling of the same
    ({"items": {"type": "integer"}}, [[], [1, 2], {"0": "a"}], [([1, "a"], "type", "$[1]")]),
    ({"items": False}, [[]], [([None], "items", "$[0]")]),
    ({"prefixItems": [{"type": "string"}, True]}, [[], ["a"], ["a", 1, 2]], [([1], "type", "$[0]")]),
    ({"prefixItems": [True], "items": {"type": "string"}}, [[1], [1, "a"]], [([1, "a", 2], "type", "$[2]")]),
    ({"prefixItems": [True], "items": False}, [[1]], [([1, 2], "items", "$[1]")]),
    ({"items": [{"type": "string"}]}, [[], ["a", 1]], [([1], "type", "$[0]")]),
    ({"items": [True], "additionalItems": False}, [[], [1]], [([1, 2], "additionalItems", "$[1]")]),
    ({"items": [True], "additionalItems": {"type": "null"}}, [[1, None]], [([1, None, 0], "type", "$[2]")]),
    ({"items": {"type": "integer"}, "additionalItems": False}, [[1, 2]], [(["a"], "type", "$[0]")]),
    (
        {"contains": {"const": 3}},
        [[1, 3], [3, 3], "3", {}],
        [([], "contains", "$"), ([1, 2], "contains", "$")],
    ),
    ({"contains": {"const": 3}, "minContains": 2}, [[3, 1, 3]], [([3, 1], "minContains", "$")]),
    ({"contains": {"const": 3}, "minContains": 0}, [[], [1]], []),
    (
        {"contains": {"const": 3}, "maxContains": 1},
        [[3, 1]],
        [([3, 3], "maxContains", "$"), ([], "contains", "$")],
    ),
    ({"minContains": 2, "maxContains": 0}, [[], [1]], []),
    # objects
    ({"required": ["a"]}, [{"a": None}, [], "a"], [({}, "required", "$"), ({"A": 1}, "required", "$")]),
    ({"properties": {"a": {"type": "integer"}}}, [{}, {"a": 1, "b": "x"}, []], [({"a": "x"}, "type", "$.a")]),
    ({"properties": {"a": False}}, [{"b": 1}], [({"a": 1}, "properties", "$.a")]),
    (
        {"patternProperties": {"^n_": {"type": "number"}}},
        [{"n_": 1, "xn_": "a"}],
        [({"n_x": "a"}, "type", "$.n_x")],
    ),
    (
        {"patternProperties": {"x": {"minimum": 1}, "y": {"maximum": 9}}},
        [{"xy": 5}],
        [({"xy": 10}, "maximum", "$.xy")],
    ),
    (
        {"properties": {"a": True}, "patternProperties": {"^b": True}, "additionalProperties": False},
        [{"a": 1, "bb": 2}],
        [({"a": 1, "c": 2}, "additionalProperties", "$.c"), ({"ab": 1}, "additionalProperties", "$.ab")],
    ),
    ({"additionalProperties": {"type": "integer"}}, [{"a": 1}, ["x"]], [({"a": "x"}, "type", "$.a")]),
    ({"propertyNames": {"pattern": "^[a-z]+$"}}, [{}, {"ok": 1}], [({"Bad": 1}, "propertyNames", "$")]),
    ({"minProperties": 1}, [{"a": 1}, []], [({}, "minProperties", "$")]),
    ({"maxProperties": 1}, [{"a": 1}, [1, 2]], [({"a": 1, "b": 2}, "maxProperties", "$")]),
    (
        {"dependentRequired": {"a": ["b"]}},
        [{"b": 1}, {"a": 1, "b": 2}],
        [({"a": 1}, "dependentRequired", "$")],
    ),
    (
        {"dependentSchemas": {"a": {"maxProperties": 1}}},
        [{"a": 1}, {"b": 1, "c": 2}],
        [({"a": 1, "b": 2}, "maxProperties", "$")],
    ),
    ({"dependencies": {"a": ["b"]}}, [{"b": 1}, {"a": 1, "b": 2}], [({"a": 1}, "dependencies", "$")]),
    ({"dependencies": {"a": {"required": ["b"]}}}, [{}, {"a": 1, "b": 2}], [({"a": 1}, "required", "$")]),
    ({"dependencies": {"a": False}}, [{}], [({"a": 1}, "dependencies", "$")]),
    # combinations
    ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [1, 3], [(0, "minimum", "$"), (4, "maximum", "$")]),
    ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, ["a", 3, None], [(2, "anyOf", "$")]),
    ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, [2, 3], [(6, "oneOf", "$"), (5, "oneOf", "$")]),
    ({"not": {"type": "string"}}, [1, None], [("a", "not", "$")]),
    ({"not": {}}, [], [(1, "not", "$")]),
    ({"not": {"not": {"type": "string"}}}, ["a"], [(1, "not", "$")]),
    (
        {"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 2}},
        [20, 8],
        [(15, "multipleOf", "$"), (7, "multipleOf", "$")],
    ),
    ({"if": {"minimum": 10}, "else": False}, [10], [(9, "else", "$")]),
    ({"then": False, "else": False}, [1], []),
    # references; what stands beside a $ref counts too
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, [1], [("a", "type", "$")]),
    (
        {"$ref": "#/definitions/n", "minimum": 2, "definitions": {"n": {"type": "integer"}}},
        [2],
        [(1, "minimum", "$"), (2.5, "type", "$")],
    ),
    ({"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "integer"}}}, [1], [("a", "type", "$")]),
    ({"$ref": "#/$defs/a~1b%25~0", "$defs": {"a/b%~": {"type": "integer"}}}, [1], [("a", "type", "$")]),
    ({"$ref": "#%2Fx-parts%2Fn", "x-parts": {"n": {"type": "integer"}}}, [1], [("a", "type", "$")]),
    ({"$ref": "#/x-parts/1", "x-parts": [True, {"type": "integer"}]}, [1], [("a", "type", "$")]),
    ({"$ref": "#/$defs/no", "$defs": {"no": False}}, [], [(1, "$ref", "$")]),
    ({"properties": {"$ref": {"type": "string"}}}, [{"$ref": "x"}], [({"$ref": 1}, "type", '$["$ref"]')]),
    (
        {"properties": {"v": {"type": "integer"}, "kids": {"items": {"$ref": "#"}}}, "required": ["v"]},
        [{"v": 1, "kids": [{"v": 2, "kids": []}]}],
        [({"v": 1, "kids": [{"v": 2}, {"v": 3, "kids": [{"v": "x"}]}]}, "type", "$.kids[1].kids[0].v")],
    ),
    # annotations assert nothing, format among them
    (
        {"format": "email", "title": "t", "default": 1, "x-unit": "kg", "$comment": "c"},
        ["not an address", 5],
        [],
    ),
    ({"contentEncoding": "base64", "contentMediaType": "application/json", "readOnly": True}, ["%"], []),
]
ROWS = [pytest.param(*row, id=f"{n}-{json.dumps(row[0])[:50]}") for n, row in enumerate(TABLE)]


@pytest.mark.parametrize(("schema", "valid", "invalid"), ROWS)
def test_each_keyword_against_hand_checked_instances(
    schema: Any, valid: list[Any], invalid: list[tuple[Any, str, str]]
) -> None:
    for instance in valid:
        assert violations(instance, schema) == [], instance
    for instance, rule, path in invalid:
        assert [(found.rule, found.path) for found in violations(instance, schema)] == [(rule, path)], instance


def test_the_table_breaks_every_assertion_the_module_has() -> None:
    broken = {rule for _, _, invalid in TABLE for _, rule, _ in invalid}
    assert broken >= {
        *(
            "type",
            "enum",
            "const",
            "multipleOf",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ),
        *(
            "minLength",
            "maxLength",
            "pattern",
            "minItems",
            "maxItems",
            "uniqueItems",
            "items",
            "additionalItems",
        ),
        *("contains", "minContains", "maxContains", "required", "properties", "additionalProperties", "else"),
        *("propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependencies", "anyOf"),
        *("oneOf", "not", "$ref", "false"),
    }


@pytest.mark.parametrize(
    ("instance", "schema", "path", "message"),
    [
        (
            {"items": [{"price": "12"}]},
            {"properties": {"items": {"items": {"properties": {"price": {"type": "number"}}}}}},
            "$.items[0].price",
            'must be of type "number"; received "12"',
        ),
        (
            {"unit price": -1},
            {"additionalProperties": {"minimum": 0}},
            '$["unit price"]',
            "must be at least 0; received -1",
        ),
        ({'say "hi"': 1}, {"additionalProperties": False}, '$["say \\"hi\\""]', "is not allowed; received 1"),
        ({}, {"required": ["name"]}, "$", 'must have the property "name"'),
        (
            {"a": 1},
            {"dependentRequired": {"a": ["b"]}},
            "$",
            'must have the property "b", because it has "a"',
        ),
        (3, {"enum": ["a", None, True]}, "$", 'must be one of ["a", null, true]; received 3'),
        ([], {"minItems": 1}, "$", "must have 1 or more items; received []"),
        (
            6,
            {"oneOf": [{"multipleOf": 2}, True, {"maximum": 0}]},
            "$",
            "must match only one of the oneOf schemas; it matches [0, 1]",
        ),
        (
            {"a": 5},
            {"anyOf": [{"type": "string"}, {"properties": {"a": {"minimum": 7}}}]},
            "$",
            'must match one of 2 schemas, but: $ must be of type "string"; received {"a": 5}; '
            "$.a must be at least 7; received 5",
        ),
        (
            {"Bad": 1},
            {"propertyNames": {"pattern": "^a"}},
            "$",
            'has a property whose name must match the pattern "^a"; received "Bad"',
        ),
        (
            [1],
            {"contains": {"const": 3}},
            "$",
            'must hold 1 or more items that match {"const": 3}; received 0',
        ),
        ([[[[1]]]], {"const": 1}, "$", "must equal 1; received [[[…]]]"),
        (
            [10**5000],
            {"items": {"maximum": 3}},
            "$[0]",
            "must be at most 3; received an integer of 16610 bits",
        ),
        ("\ud800", {"const": 1}, "$", 'must equal 1; received "\\ud800"'),
    ],
)
def test_messages_name_the_place_the_rule_and_the_value(instance: Any, schema: Any, path: str, message: str) -> None:
    (found,) = violations(instance, schema)
    assert (found.path, found.message) == (path, message)
    found.message.encode()  # a lone surrogate in the instance must not make the report unprintable


@pytest.mark.parametrize(
    "instance", ["x" * 10**6, list(range(10**5)), {str(n): n for n in range(10**4)}, [["y" * 999] * 99] * 99]
)
@pytest.mark.parametrize("schema", [{"const": 1}, {"not": {}}, {"anyOf": [{"const": "z" * 999}] * 9}])
def test_messages_stay_short_however_large_the_value(instance: Any, schema: Any) -> None:
    (found,) = violations(instance, schema)
    assert len(found.message) < 250
    assert "…" in found.message


def test_a_violation_is_frozen_and_comparable() -> None:
    (found,) = violations("a", {"type": "null"})
    assert found == Violation("$", "type", 'must be of type "null"; received "a"')
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.rule = "enum"  # type: ignore[misc]


def test_order_follows_the_keywords_then_the_instance_and_not_the_order_of_the_schema() -> None:
    rules = {
        "required": ["z"],
        "maxProperties": 1,
        "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
    }
    expected = [("maxProperties", "$"), ("required", "$"), ("type", "$.b"), ("type", "$.a")]
    for keywords in itertools.permutations(rules):
        found = violations({"b": 1, "a": 1}, {keyword: rules[keyword] for keyword in keywords})
        assert [(each.rule, each.path) for each in found] == expected


def test_limit_keeps_the_first_violations() -> None:
    schema = {"type": "object", "maxItems": 0, "items": {"type": "string", "enum": ["a"]}, "not": {}}
    # type and maxItems at the root, then two for each of 50 items, then not
    everything = violations([1] * 50, schema, limit=1000)
    assert len(everything) == 2 + 2 * 50 + 1
    for limit in (1, 2, 3, 4, 20, 102, 103):
        assert violations([1] * 50, schema, limit=limit) == everything[:limit]
    assert violations([1] * 50, schema) == everything[:20]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, None])
def test_limit_must_be_a_whole_number_of_at_least_one(limit: Any) -> None:
    with pytest.raises(ValueError, match=r"violations: limit must be .* at least 1; received "):
        violations(1, {}, limit=limit)


REFUSED = [
    # (schema, place, words the sentence must hold)
    (None, "# ", "must be a schema (an object or a boolean); received null"),
    ([], "# ", "must be a schema"),
    ({"properties": {"age": {"type": "int"}}}, "#/properties/age/type ", 'received "int"'),
    ({"type": []}, "#/type ", "non-empty"),
    ({"type": ["string", "string"]}, "#/type ", "without repeats"),
    ({"type": [["string"]]}, "#/type ", "must be one of"),
    (
        {"properties": {"age": 5}},
        "#/properties/age ",
        "must be a schema (an object or a boolean); received 5",
    ),
    ({"properties": []}, "#/properties ", "must be an object; received []"),
    ({"enum": "a"}, "#/enum ", 'must be an array; received "a"'),
    ({"multipleOf": 0}, "#/multipleOf ", "must be a number above 0; received 0"),
    ({"minimum": "1"}, "#/minimum ", "must be a number"),
    ({"minimum": float("nan")}, "#/minimum ", "must be a JSON value; received nan of type float"),
    ({"exclusiveMinimum": True}, "#/exclusiveMinimum ", "must be a number; received true"),
    ({"minLength": -1}, "#/minLength ", "whole number of at least 0; received -1"),
    ({"maxItems": 1.5}, "#/maxItems ", "whole number"),
    ({"minContains": True}, "#/minContains ", "whole number"),
    ({"pattern": "["}, "#/pattern ", 'regular expression that RE2 reads (no look-around); received "["'),
    ({"pattern": r"(?=look)"}, "#/pattern ", "regular expression"),
    ({"pattern": 5}, "#/pattern ", "regular expression"),
    ({"patternProperties": {"(": {}}}, "#/patternProperties ", "regular expressions"),
    ({"uniqueItems": 1}, "#/uniqueItems ", "must be a boolean"),
    ({"required": True}, "#/required ", "must be an array of distinct strings; received true"),
    ({"required": ["a", "a"]}, "#/required ", "distinct"),
    ({"required": [1]}, "#/required ", "strings"),
    ({"dependentRequired": {"a": "b"}}, "#/dependentRequired ", "arrays of distinct strings"),
    ({"dependencies": {"a": [1]}}, "#/dependencies ", "schemas or arrays of distinct strings"),
    ({"dependencies": {"a": "b"}}, "#/dependencies/a ", "must be a schema"),
    ({"allOf": []}, "#/allOf ", "must be a non-empty array; received []"),
    ({"anyOf": {"type": "null"}}, "#/anyOf ", "must be a non-empty array"),
    ({"oneOf": [{}, 3]}, "#/oneOf/1 ", "must be a schema"),
    ({"not": [{}]}, "#/not ", "must be a schema"),
    ({"items": []}, "#/items ", "a schema or a non-empty array of schemas"),
    ({"prefixItems": [True], "items": [True]}, "#/items ", "must be one schema where prefixItems is present"),
    (
        {"prefixItems": [True], "additionalItems": False},
        "#/additionalItems ",
        "must stand beside an array of items",
    ),
    ({"additionalItems": False}, "#/additionalItems ", "must stand beside"),
    ({"$defs": {"unused": {"type": "strin"}}}, "#/$defs/unused/type ", 'received "strin"'),
    ({"properties": {"a/b~": {"type": 1}}}, "#/properties/a~1b~0/type ", "received 1"),
    # never ignored silently: what we lack, and what nobody has
    *(
        (
            {"items": {keyword: False}},
            f"#/items/{keyword} ",
            f"{keyword} is not implemented here; received false",
        )
        for keyword in (
            "unevaluatedProperties",
            "unevaluatedItems",
            "$dynamicRef",
            "$dynamicAnchor",
            "$recursiveRef",
            "$recursiveAnchor",
            "$vocabulary",
        )
    ),
    ({"requird": ["a"]}, "#/requird ", '(did you mean "required"?); received ["a"]'),
    ({"minlength": 3}, "#/minlength ", '(did you mean "minLength"?)'),
    ({"if": {"propertys": {}}}, "#/if/propertys ", '(did you mean "properties"?)'),
    ({"qqqq": 3}, "#/qqqq ", "must be a known keyword; received 3"),
    ({"X-unit": "kg"}, "#/X-unit ", "must be a known keyword"),
    # references
    (
        {"$ref": "https://example.org/s.json#/a"},
        "#/$ref ",
        '(nothing is fetched); received "https://example.org',
    ),
    ({"$ref": "other.json"}, "#/$ref ", "nothing is fetched"),
    ({"$ref": 5}, "#/$ref ", "must be a string"),
    (
        {"items": {"$ref": "#/$defs/gone"}},
        "#/items/$ref ",
        'must lead to a place in this schema; received "#/$defs/gone"',
    ),
    ({"$ref": "#gone"}, "#/$ref ", "must lead to a place in this schema"),
    ({"$ref": "#/allOf/1", "allOf": [True]}, "#/$ref ", "must lead to a place"),
    ({"$ref": "#/allOf/-1", "allOf": [True]}, "#/$ref ", "must lead to a place"),
    ({"$ref": "#/required", "required": ["a"]}, "#/required ", "must be a schema (an object or a boolean)"),
    ({"$ref": "#/x-parts/a", "x-parts": {"a": {"type": "strin"}}}, "#/x-parts/a/type ", 'received "strin"'),
    ({"$anchor": "a b"}, "#/$anchor ", "must be a plain name"),
    (
        {"$anchor": "a", "items": {"$anchor": "a"}},
        "#/items/$anchor ",
        "must not repeat the anchor of #; received",
    ),
    ({"items": {"$id": "https://example.org/item"}}, "#/items/$id ", "must not be used below the root"),
    # loops that enter nothing
    ({"$ref": "#"}, "# ", 'must not lead back to itself without entering the instance; received ["#", "#"]'),
    ({"$anchor": "me", "anyOf": [{"type": "null"}, {"$ref": "#me"}]}, "#", "must not lead back to itself"),
    (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}},
        "#/$defs/",
        "lead back to itself",
    ),
    ({"dependentSchemas": {"a": {"if": {"$ref": "#"}}}}, "#", "lead back to itself"),
    (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#/$defs/a"}}},
        "#/$defs/a ",
        '["#/$defs/a", "#/$defs/b", "#/$defs/c", "#/$defs/a"]',  # told in the order in which it is followed
    ),
    ({"dependencies": {"a": {"$ref": "#"}}}, "#", "lead back to itself"),
]


@pytest.mark.parametrize(("schema", "place", "words"), REFUSED)
def test_an_unusable_schema_is_refused_by_place_and_rule(schema: Any, place: str, words: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        check_schema(schema)
    assert str(refusal.value).startswith(f"json_schema: {place}")
    assert words in str(refusal.value)
    with pytest.raises(SchemaError):
        violations(None, schema)


def test_a_schema_with_names_that_are_not_strings_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"#/properties must have strings as property names; received true"):
        check_schema({"properties": {True: {}}})  # what YAML makes of `on:`


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"next": {"$ref": "#"}}},
        {"propertyNames": {"$ref": "#"}},
        {"contains": {"allOf": [{"$ref": "#"}]}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#"}}}},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}},  # shared is not a loop
        {
            "$id": "https://example.org/s.json",
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/a",
            "definitions": {"a": {}},
        },
        {"$ref": "#/x-parts/a", "x-parts": {"a": {"$anchor": "late"}}, "items": {"$ref": "#late"}},
    ],
)
def test_usable_schemas_that_look_risky_are_accepted(schema: Any) -> None:
    check_schema(schema)
    assert violations({"next": {"next": {}}}, schema) == []


def nested(levels: int, leaf: Any, *, named: bool = False) -> Any:
    for _ in range(levels):
        leaf = {"n": leaf} if named else [leaf]
    return leaf


LISTS = {
    "$ref": "#/$defs/t",
    "$defs": {"t": {"anyOf": [{"const": 1}, {"type": "array", "items": {"$ref": "#/$defs/t"}}]}},
}
TREES = {"type": ["object", "integer"], "properties": {"n": {"$ref": "#"}}}


@pytest.mark.parametrize("schema", [LISTS, TREES, {}, True, {"const": nested(300, 1)}, {"uniqueItems": True}])
@pytest.mark.parametrize("named", [False, True])
def test_ten_thousand_levels_are_a_violation_and_not_a_crash(schema: Any, named: bool) -> None:
    (found,) = violations(nested(10_000, 1, named=named), schema)
    assert (found.path, found.rule) == ("$", "json")
    assert found.message.startswith("must not nest deeper than 512 levels; received ")


def test_every_level_up_to_the_bound_is_judged() -> None:
    assert violations(nested(512, 1), LISTS) == []
    assert violations(nested(512, 1, named=True), TREES) == []
    assert [found.rule for found in violations(nested(513, 1, named=True), TREES)] == ["json"]
    (found,) = violations(nested(512, "leaf", named=True), TREES)
    assert (found.path, found.rule) == ("$" + ".n" * 512, "type")
    assert violations(nested(511, 1), {"const": nested(510, [1.0])}) == []
    assert violations([nested(500, 1), nested(500, True)], {"uniqueItems": True}) == []
    assert [found.rule for found in violations([nested(500, 1), nested(500, 1.0)], {"uniqueItems": True})] == [
        "uniqueItems"
    ]


def test_a_deep_schema_is_walked_or_refused_but_never_overflows() -> None:
    deep: Any = {"type": "string"}
    for _ in range(500):
        deep = {"not": deep}
    assert violations("a", deep) == []  # an even number of `not`s
    assert [found.rule for found in violations(1, deep)] == ["not"]
    for _ in range(10_000):
        deep = {"not": deep}
    with pytest.raises(SchemaError, match="# must not nest deeper than 512 levels"):
        check_schema(deep)


def test_an_instance_that_contains_itself_is_a_violation() -> None:
    itself: list[Any] = []
    itself += [itself, itself]
    assert [found.rule for found in violations(itself, {})] == ["json"]


@pytest.mark.parametrize(
    ("instance", "path", "message"),
    [
        ({"a": [0, float("nan")]}, "$.a[1]", "must be a JSON value; received nan of type float"),
        (float("-inf"), "$", "must be a JSON value; received -inf of type float"),
        ({"a": {1, 2}}, "$.a", "must be a JSON value; received a value of type set"),
        ([b"x"], "$[0]", "must be a JSON value; received a value of type bytes"),
        ({"a": {3: 4}}, "$.a", "must have strings as property names; received 3"),
    ],
)
def test_what_json_cannot_hold_breaks_even_a_schema_that_allows_everything(
    instance: Any, path: str, message: str
) -> None:
    for schema in (True, {}, {"not": {"type": "string"}}, {"minimum": 0}):
        assert violations(instance, schema) == [Violation(path, "json", message)]


# Agreement with the jsonschema package.

NAMES = ["a", "b", "ab", "c"]
PATTERNS = ["a", "^a", "b$", "^[bc]+$", "^$"]
SCALARS = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 1.0, -1, 2, 3, 6, 0.5, 1.5, 2.25, 2**60, "", "a", "b", "ab", "abc"]),
    st.text("abcé😀", max_size=4),
)
INSTANCES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=10,
)
COUNTS = st.integers(0, 3)
BOUNDS = st.sampled_from([-1, 0, 1, 1.5, 2, 2**60])
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
NAME_LISTS = st.lists(st.sampled_from(NAMES), unique=True, max_size=2)
ASSERTIONS: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(INSTANCES, min_size=1, max_size=4),
    "const": INSTANCES,
    "multipleOf": st.sampled_from([1, 2, 3, 0.5, 0.25, 1.5]),  # exact in binary: the package divides floats
    **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], BOUNDS),
    **dict.fromkeys(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"], COUNTS),
    "pattern": st.sampled_from(PATTERNS),
    "uniqueItems": st.booleans(),
    "required": NAME_LISTS,
}
MODERN = {"dependentRequired": st.dictionaries(st.sampled_from(NAMES), NAME_LISTS, max_size=2)}


def applicators(inner: st.SearchStrategy[Any], *, modern: bool) -> dict[str, st.SearchStrategy[Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    shared = {
        **dict.fromkeys(["not", "if", "then", "else", "contains", "propertyNames", "additionalProperties"], inner),
        **dict.fromkeys(["allOf", "anyOf", "oneOf"], several),
        "properties": named,
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
    }
    if modern:
        return {
            **shared,
            "prefixItems": several,
            "items": inner,
            "minContains": COUNTS,
            "maxContains": COUNTS,
            "dependentSchemas": named,
        }
    return {**shared, "dependencies": st.dictionaries(st.sampled_from(NAMES), inner | NAME_LISTS, max_size=2)}


def some_of(keywords: dict[str, st.SearchStrategy[Any]], at_most: int) -> st.SearchStrategy[dict[str, Any]]:
    chosen = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=at_most, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


def array_items(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draft-07's tuple form, with what follows the tuple."""
    return st.fixed_dictionaries(
        {"items": st.lists(inner, min_size=1, max_size=2)}, optional={"additionalItems": inner}
    )


def schemas(*, modern: bool) -> st.SearchStrategy[dict[str, Any]]:
    # The tree refers to itself only for its members and items, so no schema here loops in place.
    assertions = {**ASSERTIONS, **(MODERN if modern else {})}
    definitions = "$defs" if modern else "definitions"
    to_tree = {"$ref": f"#/{definitions}/tree"}
    leaves = st.booleans() | some_of(assertions, 3) | st.just(to_tree)

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        grown = some_of(applicators(inner, modern=modern), 3)
        if not modern:
            grown |= array_items(inner)
        return st.tuples(grown, some_of(assertions, 1) | st.just({})).map(lambda pair: {**pair[1], **pair[0]})

    tree = some_of(assertions, 2).map(
        lambda own: {**own, "properties": {"a": to_tree}, "additionalProperties": to_tree, "items": to_tree}
    )
    whole = st.recursive(leaves, grow, max_leaves=8)
    return st.tuples(whole, tree).map(lambda pair: {"allOf": [pair[0]], definitions: {"tree": pair[1]}})


def all_distinct(validator: Any, wanted: bool, instance: Any, schema: Any) -> Any:
    # The package sorts first and so takes [[0], [False], [0]] for unique; every pair by its `const` does not.
    if wanted and isinstance(instance, list):
        for one, other in itertools.combinations(instance, 2):
            if validator.evolve(schema={"const": one}).is_valid(other):
                yield jsonschema.ValidationError("repeated")


REFERENCES = {
    modern: jsonschema.validators.extend(draft, {"uniqueItems": all_distinct})
    for modern, draft in ((True, jsonschema.Draft202012Validator), (False, jsonschema.Draft7Validator))
}


@pytest.mark.parametrize("modern", [True, False], ids=["2020-12", "draft-07"])
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_agrees_with_the_jsonschema_package(modern: bool, data: st.DataObject) -> None:
    schema = data.draw(schemas(modern=modern), label="schema")
    reference = REFERENCES[modern](schema)
    for instance in data.draw(st.lists(INSTANCES, min_size=1, max_size=6), label="instances"):
        assert (violations(instance, schema) == []) == reference.is_valid(instance), instance


@settings(max_examples=100, deadline=None)
@given(schema=schemas(modern=True), instance=INSTANCES)
def test_found_is_repeatable_prefix_closed_and_leaves_its_inputs_alone(schema: Any, instance: Any) -> None:
    before = json.dumps([schema, instance])
    found = violations(instance, schema, limit=1000)
    assert violations(json.loads(json.dumps(instance)), schema, limit=1000) == found
    assert violations(instance, schema, limit=2) == found[:2]
    assert json.dumps([schema, instance]) == before
    assert all(each.path.startswith("$") and each.rule and len(each.message) < 300 for each in found)


@settings(max_examples=100, deadline=None)
@given(instance=INSTANCES, other=INSTANCES)
def test_const_and_unique_items_share_one_equality(instance: Any, other: Any) -> None:
    same = violations(instance, {"const": other}) == []
    assert (violations([instance, other], {"uniqueItems": True}) != []) == same
    assert violations(instance, {"const": instance}) == []


def test_a_pattern_that_backtracks_for_ever_elsewhere_is_linear_here() -> None:
    assert violations("a" * 5000 + "b", {"pattern": "^(a+)+$"}) != []


def test_a_schema_whose_steps_double_is_stopped() -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    with pytest.raises(SchemaError, match="steps"):
        violations({}, {"$ref": "#/$defs/l0", "$defs": {**levels, "l40": {"type": "object"}}})

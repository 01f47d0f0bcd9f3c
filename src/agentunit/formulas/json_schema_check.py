"""Is this JSON Schema one we can obey? Checks a schema and finds where each of its `$ref`s leads.

A validator that skips what it does not understand says "valid" when it means "I did not look". So everything
here errs towards refusing: an assertion we lack, a misspelt keyword, a reference that leads nowhere.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

from agentunit.formulas.patterns import PatternError, linear_pattern

Schema: TypeAlias = "bool | Mapping[str, object]"

# RFC 8259 lets a reader bound the nesting. The bound also ends the walk of a list that contains itself.
DEEPEST_NESTING = 512
LONGEST_SHOWN = 80
_MOST_MEMBERS_SHOWN = LONGEST_SHOWN // 3  # each takes at least three characters: a digit, a comma, a space

_KINDS = ("null", "boolean", "number", "string", "array", "object")
_TYPES = (*_KINDS, "integer")


class SchemaError(ValueError):
    """The schema itself is unusable; the message names the place in it, the rule, and the value received."""


def check_schema(schema: Schema) -> None:
    """Raise `SchemaError` unless every keyword of the schema is known, implemented and well formed.

    Annotations (`title`, `default`, `format`, …) and vendor keys (`x-…`) are accepted and assert nothing.
    Refused: assertions that are not implemented, unknown keywords, a `$ref` out of the document or in a loop.

    >>> check_schema({"type": "object", "required": ["age"]})
    >>> check_schema({"type": "object", "requird": ["age"]})
    Traceback (most recent call last):
    agentunit.formulas.json_schema_check.SchemaError: json_schema: #/requird must be a known keyword
    (did you mean "required"?); received ["age"]
    """
    read_references(schema)


def kind_of(value: object) -> str | None:
    """Name the JSON type of a value; None if JSON cannot hold it (NaN, a set, bytes). Tuples are arrays."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list | tuple):
        return "array"
    return "object" if isinstance(value, Mapping) else None


def json_fault(value: object) -> tuple[tuple[str | int, ...], str, object] | None:
    """Find a part that JSON cannot hold: (steps to it, the rule it breaks, the part); None if all is well."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        steps, part = waiting.pop()
        kind = kind_of(part)
        if kind is None:
            return steps, "must be a JSON value", part
        if kind not in ("array", "object"):
            continue
        if len(steps) >= DEEPEST_NESTING:
            return (), f"must not nest deeper than {DEEPEST_NESTING} levels", value
        members = list(part.items()) if kind == "object" else list(enumerate(part))
        for name, member in reversed(members):
            if kind == "object" and not isinstance(name, str):
                return steps, "must have strings as property names", name
            # Sound leaves need no place of their own: most of a large instance is leaves.
            if kind_of(member) in (None, "array", "object"):
                waiting.append(((*steps, name), member))
    return None


def shown(value: object, levels: int = 2) -> str:
    """Spell a value as JSON for a message, clipped: never the whole of something huge.

    >>> shown({"size": 1.5, "tags": ["a", None]})
    '{"size": 1.5, "tags": ["a", null]}'
    """
    kind = kind_of(value)
    if kind is None:
        text = f"{value} of type float" if isinstance(value, float) else f"a value of type {type(value).__name__}"
    elif isinstance(value, int) and value.bit_length() > 256:  # Python refuses to print very long integers
        text = f"an integer of {value.bit_length()} bits"
    elif isinstance(value, list | tuple):
        inner = [shown(item, levels - 1) for item in value[:_MOST_MEMBERS_SHOWN]] if levels else ["…"]
        text = f"[{', '.join(inner)}]" if value else "[]"
    elif isinstance(value, Mapping):
        first = islice(value.items(), _MOST_MEMBERS_SHOWN)
        inner = [f"{shown(name)}: {shown(member, levels - 1)}" for name, member in first] if levels else ["…"]
        text = f"{{{', '.join(inner)}}}" if value else "{}"
    else:
        text = json.dumps(value[:LONGEST_SHOWN] if isinstance(value, str) else value, ensure_ascii=False)
        # Half a surrogate pair is legal in a JSON string and would break whoever prints this as UTF-8.
        text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _is_number(value: object) -> bool:
    return kind_of(value) == "number"


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_array(value: object) -> bool:
    return isinstance(value, list | tuple)


def _is_names(value: Any) -> bool:
    return _is_array(value) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return _is_names(names) and len(names) > 0 and all(name in _TYPES for name in names)


def _is_pattern(value: Any) -> bool:
    try:
        linear_pattern(value)
    except (PatternError, TypeError):
        return False
    return True


def _is_map(value: Any, holds: Callable[[Any], bool] = lambda member: True) -> bool:
    return isinstance(value, Mapping) and all(map(holds, value.values()))


# What the value of each keyword must look like. Schemas inside it get a visit of their own.
_Shape: TypeAlias = tuple[str, Callable[[Any], bool]]
_NUMBER: _Shape = ("a number", _is_number)
_COUNT: _Shape = ("a whole number of at least 0", _is_count)
_ANYTHING: _Shape = ("a JSON value", lambda value: True)
_MAP: _Shape = ("an object", _is_map)
_LIST: _Shape = ("a non-empty array", lambda value: _is_array(value) and len(value) > 0)

_SHAPES: dict[str, _Shape] = {
    "$ref": (
        'a string that starts with "#" (nothing is fetched)',
        lambda v: isinstance(v, str) and v[:1] == "#",
    ),
    "$anchor": (
        "a plain name",
        lambda v: isinstance(v, str) and bool(re.fullmatch("[A-Za-z_][A-Za-z0-9_.-]*", v)),
    ),
    "type": (f"one of {', '.join(_TYPES)}, or a non-empty array of them without repeats", _is_type),
    "enum": ("an array", _is_array),
    "const": _ANYTHING,
    "multipleOf": ("a number above 0", lambda value: _is_number(value) and value > 0),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    **dict.fromkeys(("minContains", "maxContains", "minProperties", "maxProperties"), _COUNT),
    "pattern": ("a regular expression that RE2 reads (no look-around)", _is_pattern),
    "uniqueItems": ("a boolean", lambda value: isinstance(value, bool)),
    "required": ("an array of distinct strings", _is_names),
    "dependentRequired": ("an object of arrays of distinct strings", lambda v: _is_map(v, _is_names)),
    "dependencies": (
        "an object of schemas or arrays of distinct strings",
        lambda value: _is_map(value, lambda member: not _is_array(member) or _is_names(member)),
    ),
    "patternProperties": (
        "an object whose names are regular expressions that RE2 reads (no look-around)",
        lambda value: _is_map(value) and all(map(_is_pattern, value)),
    ),
    **dict.fromkeys(("properties", "dependentSchemas", "$defs", "definitions"), _MAP),
    **dict.fromkeys(("prefixItems", "allOf", "anyOf", "oneOf"), _LIST),
    "items": ("a schema or a non-empty array of schemas", lambda value: value not in ([], ())),
    **dict.fromkeys(("additionalItems", "contains", "additionalProperties", "propertyNames"), _ANYTHING),
    **dict.fromkeys(("not", "if", "then", "else"), _ANYTHING),
}
# fmt: off
_ANNOTATIONS = {
    "discriminator", "example", "externalDocs", "xml",
    "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly",
    "writeOnly", "format", "contentMediaType", "contentEncoding", "contentSchema",
}
_NOT_IMPLEMENTED = {
    "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$dynamicAnchor", "$recursiveRef",
    "$recursiveAnchor", "$vocabulary",
}
_HOLD_ONE = {
    "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
}
_HOLD_LIST = {"prefixItems", "allOf", "anyOf", "oneOf"}
_HOLD_MAP = {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
# These judge the very value their own schema judges, so a loop through them would never end.
_IN_PLACE = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
# fmt: on


def read_references(schema: Schema) -> dict[str, Schema]:
    """Check a whole schema as `check_schema` does; return the schema that each `$ref` text in it leads to."""
    if fault := json_fault(schema):
        steps, rule, received = fault
        _refuse("#" + "".join(map(_step, steps)), rule, received)
    read: dict[str, Schema] = {}
    anchors: dict[str, str] = {"": "#"}
    leads_on: dict[str, list[str]] = {}  # place -> places that judge the same value
    references: list[tuple[str, str]] = []
    waiting: deque[tuple[str, Any]] = deque([("#", schema)])
    while waiting:
        place, here = waiting.popleft()
        if place in read:
            continue
        if not isinstance(here, bool | Mapping):
            _refuse(place, "must be a schema (an object or a boolean)", here)
        read[place] = here
        leads_on[place] = []
        if isinstance(here, bool):
            continue
        _check_keywords(place, here)
        for keyword, step, subschema in _subschemas(here):
            waiting.append((place + step, subschema))
            if keyword in _IN_PLACE:
                leads_on[place].append(place + step)
        if (anchor := here.get("$anchor")) and anchors.setdefault(anchor, place) != place:
            _refuse(f"{place}/$anchor", f"must not repeat the anchor of {anchors[anchor]}", anchor)
        if reference := here.get("$ref"):
            references.append((place, reference))
            if unquote(reference).startswith("#/"):
                waiting.append(_follow(schema, place, reference))

    # Anchors may stand anywhere, so what they name is known only once everything is read.
    leads_to: dict[str, Schema] = {}
    for place, reference in references:
        name = unquote(reference[1:])
        if not name.startswith("/") and name not in anchors:
            _refuse(f"{place}/$ref", "must lead to a place in this schema", reference)
        target = anchors[name] if name in anchors else _follow(schema, place, reference)[0]
        leads_to[reference] = read[target]
        leads_on[place].append(target)
    try:
        TopologicalSorter(leads_on).prepare()
    except CycleError as error:
        loop = error.args[1][::-1]
        _refuse(loop[0], "must not lead back to itself without entering the instance", loop)
    return leads_to


def _check_keywords(place: str, schema: Mapping[str, Any]) -> None:
    for keyword, value in schema.items():
        at = place + _step(keyword)
        if keyword in _NOT_IMPLEMENTED:
            _refuse(at, f"must not be used, because {keyword} is not implemented here", value)
        if keyword == "$id" and place != "#":
            _refuse(at, "must not be used below the root, because it would change what $ref means", value)
        if keyword in _ANNOTATIONS or keyword.startswith("x-"):
            continue
        if keyword not in _SHAPES:
            nearest = difflib.get_close_matches(keyword, sorted({*_SHAPES, *_ANNOTATIONS}), n=1)
            hint = f' (did you mean "{nearest[0]}"?)' if nearest else ""
            _refuse(at, f"must be a known keyword{hint}", value)
        what, holds = _SHAPES[keyword]
        if not holds(value):
            _refuse(at, f"must be {what}", value)
    if "prefixItems" in schema and _is_array(schema.get("items")):
        _refuse(f"{place}/items", "must be one schema where prefixItems is present", schema["items"])
    # Beside prefixItems, or alone, it reads like "no more items" and would forbid nothing.
    if "additionalItems" in schema and ("items" not in schema or "prefixItems" in schema):
        _refuse(f"{place}/additionalItems", "must stand beside an array of items", schema["additionalItems"])


def _subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    for keyword, value in schema.items():
        if keyword in _HOLD_MAP:
            for name, member in value.items():
                if keyword != "dependencies" or not _is_array(member):
                    yield keyword, _step(keyword) + _step(name), member
        elif keyword in _HOLD_LIST or (keyword == "items" and _is_array(value)):
            for position, member in enumerate(value):
                yield keyword, _step(keyword) + _step(position), member
        elif keyword in _HOLD_ONE or keyword == "items":
            yield keyword, _step(keyword), value


def _follow(schema: Schema, place: str, reference: str) -> tuple[str, object]:
    here: Any = schema
    target = "#"
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and name in here:
            here = here[name]
        elif _is_array(here) and name in map(str, range(len(here))):
            here = here[int(name)]
        else:
            _refuse(f"{place}/$ref", "must lead to a place in this schema", reference)
        target += _step(name)
    return target, here


def _step(name: str | int) -> str:
    return "/" + str(name).replace("~", "~0").replace("/", "~1")


def _refuse(place: str, rule: str, received: object) -> NoReturn:
    raise SchemaError(f"json_schema: {place} {rule}; received {shown(received)}")

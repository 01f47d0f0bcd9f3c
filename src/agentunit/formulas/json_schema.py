"""Does a JSON value obey a JSON Schema? A validator in plain Python that says where and why it does not.

It reads draft 2020-12, and draft-07 where that spells things differently: `definitions`, `items` as an array
with `additionalItems`, `dependencies`. Keywords beside a `$ref` always count, as 2020-12 says. `format` is an
annotation, as it is by default in 2020-12: it is never asserted. `pattern` is searched by RE2,
in linear time: look-around and back-references are refused.

Sources: JSON Schema Core and JSON Schema Validation, drafts 2020-12 and 07.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from agentunit.formulas.json_schema_check import (
    Schema,
    SchemaError,
    check_schema,
    json_fault,
    kind_of,
    read_references,
    shown,
)
from agentunit.formulas.patterns import linear_pattern

__all__ = ["SchemaError", "Violation", "check_schema", "violations"]

# References that double at each level make a small schema cost more steps than there are atoms.
MOST_VISITS = 500_000


@dataclass(frozen=True)
class Violation:
    """One place where an instance breaks its schema.

    path: the place in the instance, `$.items[0].price`.
    rule: the keyword broken; "json" if JSON cannot hold the instance; "false" if the whole schema is false.
    message: what is wrong, as a sentence whose subject is the path.
    """

    path: str
    rule: str
    message: str


class _Visit(NamedTuple):
    """A value to judge by a schema: `rule` is the keyword that holds the schema, `limit` the most to tell."""

    schema: Any
    instance: Any
    path: str
    rule: str
    limit: int


# A generator asks for a visit and is sent what that visit found. `violations` keeps the asking generators on
# a list of its own, so that depth costs memory and never the interpreter's stack.
_Walk: TypeAlias = Generator[_Visit, list[Violation], list[Violation]]


def violations(instance: object, schema: Schema, *, limit: int = 20) -> list[Violation]:
    """List where an instance breaks a schema: at most `limit` violations, none when it is valid.

    The order is fixed: keywords in the order of this module, members in the order of the instance. What JSON
    cannot hold (NaN, a set, a name that is not a string, nesting beyond 512 levels) breaks the rule "json".
    A schema that is not usable raises `SchemaError`, as `check_schema` does.

    >>> schema = {"properties": {"price": {"type": "number", "minimum": 0}}, "required": ["name"]}
    >>> violations({"name": "tea", "price": 2.5}, schema)
    []
    >>> for found in violations({"price": -1}, schema):
    ...     print(found.rule, "|", found.path, found.message)
    required | $ must have the property "name"
    minimum | $.price must be at least 0; received -1
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"violations: limit must be a whole number of at least 1; received {limit!r}")
    references = read_references(schema)
    if fault := json_fault(instance):
        steps, rule, received = fault
        path = "$" + "".join(map(_step, steps))
        return [Violation(path, "json", f"{rule}; received {shown(received)}")]
    asking = [_walk(_Visit(schema, instance, "$", "false", limit), references)]
    answer: Any = None  # what a generator must be sent first
    n_visits = 0
    while asking:
        n_visits += 1
        if n_visits > MOST_VISITS:
            raise SchemaError(f"the schema must not take more than {MOST_VISITS} steps to check; this one doubles them")
        try:
            visit = asking[-1].send(answer)
        except StopIteration as finished:
            asking.pop()
            answer = finished.value
        else:
            asking.append(_walk(visit, references))
            answer = None
    found: list[Violation] = answer
    return found


def _walk(at: _Visit, references: Mapping[str, Schema]) -> _Walk:
    schema, instance, path, rule, limit = at
    if schema is True:
        return []
    if schema is False:
        return [Violation(path, rule, f"is not allowed; received {shown(instance)}")]
    kind = kind_of(instance)
    found: list[Violation] = []
    for keyword, (applies_to, holds, sentence) in _ASSERTIONS.items():
        if keyword in schema and applies_to in (kind, "any") and not holds(instance, schema[keyword]):
            message = f"{sentence.format(shown(schema[keyword]))}; received {shown(instance)}"
            found.append(Violation(path, keyword, message))
    if kind == "object":
        found.extend(Violation(path, keyword, message) for keyword, message in _missing(schema, instance))
    for keyword, subschema, part, step in _parts(schema, instance, kind, references):
        if len(found) >= limit:
            break
        found += yield _Visit(subschema, part, path + step, keyword, limit - len(found))
    for keyword, (applies_to, trial) in _TRIALS.items():
        if keyword in schema and applies_to in (kind, "any") and len(found) < limit:
            found += yield from trial(at._replace(rule=keyword, limit=limit - len(found)))
    return found[:limit]


def _step(name: str | int) -> str:
    if isinstance(name, int):
        return f"[{name}]"
    return f".{name}" if name.isidentifier() else f"[{shown(name)}]"


# Assertions: a value, and a yes or no about it.


def _is_of_type(instance: Any, wanted: Any) -> bool:
    names = [wanted] if isinstance(wanted, str) else wanted
    kind = kind_of(instance)
    return kind in names or ("integer" in names and kind == "number" and instance == int(instance))


def _identity(value: object) -> tuple[object, ...]:
    """Flatten a value so that two values are equal in JSON exactly when their tuples are: 1 is 1.0, not true.

    A container states its size or its names before its members follow, so no two values share a flat form.
    """
    flat: list[object] = []
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        kind = kind_of(part)
        if kind == "array":
            flat.append((kind, len(part)))
            waiting.extend(part)
        elif kind == "object":
            names = sorted(part)
            flat.append((kind, *names))
            waiting.extend(part[name] for name in names)
        else:
            flat.append((kind, part))
    return tuple(flat)


def _is_one_of(instance: object, options: Any) -> bool:
    wanted = _identity(instance)
    return any(_identity(option) == wanted for option in options)


def _are_distinct(items: Any, wanted: bool) -> bool:
    return not wanted or len(set(map(_identity, items))) == len(items)


def _is_multiple(instance: int | float, step: int | float) -> bool:
    # Read as the decimals their authors wrote: in binary, 0.3 is not a multiple of 0.1.
    return _as_written(instance) % _as_written(step) == 0


def _as_written(number: int | float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(float.__repr__(number))


_ASSERTIONS: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "type": ("any", _is_of_type, "must be of type {}"),
    "enum": ("any", _is_one_of, "must be one of {}"),
    "const": ("any", lambda instance, wanted: _is_one_of(instance, [wanted]), "must equal {}"),
    "multipleOf": ("number", _is_multiple, "must be a multiple of {}"),
    "minimum": ("number", operator.ge, "must be at least {}"),
    "maximum": ("number", operator.le, "must be at most {}"),
    "exclusiveMinimum": ("number", operator.gt, "must be above {}"),
    "exclusiveMaximum": ("number", operator.lt, "must be below {}"),
    "minLength": ("string", lambda text, least: len(text) >= least, "must have {} or more characters"),
    "maxLength": ("string", lambda text, most: len(text) <= most, "must have {} or fewer characters"),
    "pattern": (
        "string",
        lambda text, pattern: bool(linear_pattern(pattern).search(text)),
        "must match the pattern {}",
    ),
    "minItems": (
        "array",
        lambda items, least: len(items) >= least,
        "must have {} or more items",
    ),
    "maxItems": (
        "array",
        lambda items, most: len(items) <= most,
        "must have {} or fewer items",
    ),
    "uniqueItems": ("array", _are_distinct, "must not hold the same item twice"),
    "minProperties": ("object", lambda names, least: len(names) >= least, "must have {} or more properties"),
    "maxProperties": ("object", lambda names, most: len(names) <= most, "must have {} or fewer properties"),
}


def _missing(schema: Any, instance: Any) -> Iterator[tuple[str, str]]:
    for needed in schema.get("required", ()):
        if needed not in instance:
            yield "required", f"must have the property {shown(needed)}"
    for keyword in ("dependentRequired", "dependencies"):
        for name, dependents in schema.get(keyword, {}).items():
            if name in instance and isinstance(dependents, list | tuple):
                for needed in dependents:
                    if needed not in instance:
                        yield keyword, f"must have the property {shown(needed)}, because it has {shown(name)}"


# Parts: (keyword, schema, value, step from here to the value); all of them must hold.

_Parts: TypeAlias = Iterator[tuple[str, Any, Any, str]]


def _parts(schema: Any, instance: Any, kind: str | None, references: Mapping[str, Schema]) -> _Parts:
    if "$ref" in schema:
        yield "$ref", references[schema["$ref"]], instance, ""
    for subschema in schema.get("allOf", ()):
        yield "allOf", subschema, instance, ""
    if kind == "object":
        yield from _object_parts(schema, instance)
    if kind == "array":
        yield from _array_parts(schema, instance)


def _object_parts(schema: Any, instance: Any) -> _Parts:
    for keyword in ("dependentSchemas", "dependencies"):
        for name, subschema in schema.get(keyword, {}).items():
            if name in instance and not isinstance(subschema, list | tuple):
                yield keyword, subschema, instance, ""
    named, patterned = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, member in instance.items():
        judges = [("properties", named[name])] if name in named else []
        judges += [("patternProperties", patterned[each]) for each in patterned if linear_pattern(each).search(name)]
        if not judges and "additionalProperties" in schema:
            judges = [("additionalProperties", schema["additionalProperties"])]
        for keyword, subschema in judges:
            yield keyword, subschema, member, _step(name)


def _array_parts(schema: Any, instance: Any) -> _Parts:
    draft_07 = isinstance(schema.get("items"), list | tuple)
    first_rule, rest_rule = ("items", "additionalItems") if draft_07 else ("prefixItems", "items")
    first = schema.get(first_rule, ())
    for position, item in enumerate(instance):
        if position < len(first):
            yield first_rule, first[position], item, _step(position)
        elif rest_rule in schema:
            yield rest_rule, schema[rest_rule], item, _step(position)


# Trials: schemas that may fail without the instance failing. One violation is enough to know.


def _options(at: _Visit) -> _Walk:
    reasons, matching = [], []
    for position, option in enumerate(at.schema[at.rule]):
        found = yield at._replace(schema=option, limit=1)
        reasons += found
        if not found:
            matching.append(position)
            if at.rule == "anyOf":
                return []
    if len(matching) == 1:
        return []
    if matching:
        return [Violation(at.path, at.rule, f"must match only one of the oneOf schemas; it matches {matching}")]
    told = "; ".join(f"{reason.path} {reason.message}" for reason in reasons)
    told = told if len(told) <= 160 else told[:159] + "…"
    return [Violation(at.path, at.rule, f"must match one of {len(reasons)} schemas, but: {told}")]


def _not(at: _Visit) -> _Walk:
    if (yield at._replace(schema=at.schema["not"], limit=1)):
        return []
    return [Violation(at.path, "not", f"must not match {shown(at.schema['not'])}; received {shown(at.instance)}")]


def _if(at: _Visit) -> _Walk:
    failed = yield at._replace(schema=at.schema["if"], limit=1)
    branch = "else" if failed else "then"
    return (yield at._replace(schema=at.schema.get(branch, True), rule=branch))


def _contains(at: _Visit) -> _Walk:
    least, most = at.schema.get("minContains", 1), at.schema.get("maxContains", len(at.instance))
    matching = 0
    for item in at.instance:
        matching += not (yield at._replace(schema=at.schema["contains"], instance=item, limit=1))
    what = f"items that match {shown(at.schema['contains'])}; received {matching}"
    found = []
    if matching < least:
        rule = "minContains" if "minContains" in at.schema else "contains"
        found.append(Violation(at.path, rule, f"must hold {least} or more {what}"))
    if matching > most:
        found.append(Violation(at.path, "maxContains", f"must hold {most} or fewer {what}"))
    return found


def _property_names(at: _Visit) -> _Walk:
    found: list[Violation] = []
    for name in at.instance:
        reasons = yield at._replace(schema=at.schema["propertyNames"], instance=name, limit=1)
        found += [Violation(at.path, at.rule, f"has a property whose name {each.message}") for each in reasons]
        if len(found) >= at.limit:
            break
    return found


_TRIALS: dict[str, tuple[str, Callable[[_Visit], _Walk]]] = {
    "contains": ("array", _contains),
    "propertyNames": ("object", _property_names),
    "anyOf": ("any", _options),
    "oneOf": ("any", _options),
    "not": ("any", _not),
    "if": ("any", _if),
}

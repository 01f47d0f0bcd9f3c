"""Expected tool calls against the tools that agents are offered: names, arguments, and schemas that contradict them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from agentunit.addons.review.soundness._texts import nearest, shown
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material, metadata_of
from agentunit.backends.json_schema import SchemaError, violations
from agentunit.core.case import DatasetCase
from agentunit.formulas.trajectory import json_equal
from agentunit.metrics.tools import DeclaredTool, declared_tools

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}
_SHOWN = 3
_NEW = ("new_", "updated_", "target_", "to_")


def expected_calls(case: DatasetCase) -> list[tuple[str, Mapping[str, Any] | None]]:
    """The tool calls that a case expects: names and arguments, of those that can be read."""
    listed = metadata_of(case).get("expected_tool_calls")
    calls: list[tuple[str, Mapping[str, Any] | None]] = []
    for entry in listed if isinstance(listed, (list, tuple)) else ():
        if isinstance(entry, str) and entry:
            calls.append((entry, None))
        elif isinstance(entry, Mapping) and isinstance(entry.get("name"), str) and entry["name"]:
            arguments = entry.get("arguments")
            if isinstance(arguments, str):
                try:
                    arguments = msgspec.json.decode(arguments)
                except (msgspec.DecodeError, UnicodeError, RecursionError):
                    arguments = None
            calls.append((entry["name"], arguments if isinstance(arguments, Mapping) else None))
    return calls


def unknown_tools(material: Material) -> Iterator[Hit]:
    """Expected calls of tools that the case does not offer."""
    for case in material.cases:
        tools = declared_tools(case.tools)
        names = [tool.name for tool in tools]
        if not names:
            continue
        offered_names = set(names)
        unknown = [
            name for name in dict.fromkeys(name for name, _ in expected_calls(case)) if name not in offered_names
        ]
        for called in unknown[:_SHOWN]:
            near = nearest(called, names, cutoff=0.5)
            offered = near or ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            yield Hit(case.id, f"expects a call of {called!r}; the tools offered have {offered!r}")


def invalid_arguments(material: Material) -> Iterator[Hit]:
    """Expected arguments that the tool's own schema does not allow."""
    for case in material.cases:
        tools = {tool.name: tool for tool in declared_tools(case.tools) if isinstance(tool.schema, Mapping)}
        problems: dict[str, None] = {}
        for name, arguments in expected_calls(case):
            if name in tools and arguments is not None:
                problems.update(dict.fromkeys(f"{name}: {each}" for each in _problems(arguments, tools[name].schema)))
        if problems:
            yield Hit(case.id, "; ".join(list(problems)[:_SHOWN]))


def broken_schemas(material: Material) -> Iterator[Hit]:
    """Tools whose schema contradicts itself, or cannot be used."""
    known: dict[bytes, list[str]] = {}
    for case in material.cases:
        problems: list[str] = []
        for tool in declared_tools(case.tools):
            try:
                key = msgspec.json.encode([tool.name, tool.schema])
            except (TypeError, ValueError, RecursionError):
                continue
            if key not in known:
                known[key] = _schema_problems(tool)
            problems += known[key]
        if problems:
            yield Hit(case.id, "; ".join(problems[:_SHOWN]))


def calls_without_effect(material: Material) -> Iterator[Hit]:
    """Expected calls that change something to what it is."""
    for case in material.cases:
        for name, arguments in expected_calls(case):
            pairs = ((old, new + old) for old in arguments or {} for new in _NEW)
            for old, new in pairs:
                if arguments and new in arguments and json_equal(arguments[old], arguments[new]) and arguments[old]:
                    told = f"{name} is expected with {new} = {old} = {shown(arguments[old])}"
                    yield Hit(case.id, f"{told}: it changes nothing")


def _problems(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """What the schema says against the arguments, and names that it does not have although it names all others."""
    try:
        found = [str(each) for each in violations(_stated(arguments, schema), schema, limit=5)]
    except SchemaError:
        found = []
    return found + list(islice(_unknown_names(arguments, schema, "$"), _SHOWN))


def _stated(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without optional ones that are null: they say as much as those left out."""
    required = schema.get("required")
    needed = required if isinstance(required, list) else ()
    return {name: value for name, value in arguments.items() if value is not None or name in needed}


def _unknown_names(value: Any, schema: Any, place: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if isinstance(value, Mapping) and isinstance(properties, Mapping):
        if properties and not any(key in schema for key in ("additionalProperties", "patternProperties", "$ref")):
            for name in value:
                if name not in properties:
                    near = nearest(str(name), properties)
                    yield f"{place}: {name!r} is not a parameter" + (f" ({near!r} is)" if near else "")
        for name, each in value.items():
            yield from _unknown_names(each, properties.get(name), f"{place}.{name}")
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(value[:_SHOWN]):
            yield from _unknown_names(each, schema.get("items"), f"{place}[{index}]")


def _schema_problems(tool: DeclaredTool) -> list[str]:
    if not isinstance(tool.schema, Mapping):
        return []
    return [f"{tool.name}: {each}" for each in _contradictions(tool.schema, "$", depth=0)]


def _contradictions(schema: Any, place: str, depth: int) -> Iterator[str]:
    """An enum of another type than the parameter's, and required names that nothing describes."""
    if not isinstance(schema, Mapping) or depth > 20:
        return
    kind, enum = schema.get("type"), schema.get("enum")
    kinds = [kind] if isinstance(kind, str) else []
    if isinstance(enum, list) and enum and kinds and not any(_is_of(each, kinds) for each in enum if each is not None):
        yield f"{place} is of type {kind}, but its enum lists {shown(enum[:4])}"
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        required = schema.get("required")
        missing = [each for each in _texts(required) if each not in properties]
        if missing and properties:
            yield f"{place} requires {missing[0]!r}, which it does not describe"
        for name, each in properties.items():
            yield from _contradictions(each, f"{place}.{name}", depth + 1)
    yield from _contradictions(schema.get("items"), f"{place}[]", depth + 1)


def _texts(value: Any) -> list[str]:
    """The texts of a list; hostile schemas have anything in the place of names."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _is_of(value: Any, kinds: list[str]) -> bool:
    for kind in kinds:
        allowed = _TYPES.get(kind)
        if allowed is None:
            return True
        if isinstance(value, bool) and bool not in allowed:
            continue
        if isinstance(value, allowed) or (kind == "integer" and isinstance(value, float) and value.is_integer()):
            return True
    return False

"""The texts of a record: all of them in order, each with its field, and new ones put in their places.

Some texts hold the record together: names of tools, agents and models, identifiers, statuses. They stay as they are, or
the record could no longer be scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from agentunit.core.case import DatasetCase
from agentunit.core.interactions import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.privacy.detection.gazetteer import Kind, kinds_of
from agentunit.privacy.detection.name_evidence import AMBIGUOUS
from agentunit.privacy.personal_fields import Leaf, counts_as, plain_field

STRUCTURE, OWN_NAME = "\0", "\0name"
"""What redaction takes for the fields of texts that hold the record together, and of names of its agents and tools."""

STRUCTURE_TYPES = frozenset(("email", "api_key", "private_key", "jwt"))
"""What is masked even there, since its form leaves no doubt."""

DATA = "data"
_LARGEST_NUMBER = 10**20  # longer ones are nobody's
_PARTS = {
    ("record", "case"): "case",
    ("record", "trace"): "trace",
    ("record", "outcome"): "outcome",
    ("case", "tools"): "tool",
    ("trace", "events"): "event",
    ("trace", "interactions"): "interaction",
    ("trace", "handoffs"): "interaction",
    ("trace", "conflicts"): "interaction",
    ("trace", "agent_roles"): "roles",
    ("event", "payload"): "payload",
    ("case", "metadata"): "case metadata",
    ("case metadata", "expected_tool_calls"): "tool",
    ("payload", "tool_calls"): "tool",
    ("message", "tool_calls"): "tool",
    ("tool", "function"): "tool",
    ("trace", "metadata"): "metadata",
    ("interaction", "metadata"): "metadata",
    ("role", "metadata"): "metadata",
}
"""The part of a record that a field leads to; every other field leads to data of the user's."""

_IDENTIFIERS = "id span_id parent_id parent_span_id trace_id call_id tool_call_id run_id request_id"
_IN_EVENTS = (
    f"agent tool model provider status role type kind error_type finish_reason from_agent to_agent derived_from "
    f"{_IDENTIFIERS}"
)
_STRUCTURE = {
    part: frozenset(fields.split())
    for part, fields in {
        "case": "id",
        "tool": "tools id name type",
        "event": f"type {_IDENTIFIERS}",
        "payload": f"name {_IN_EVENTS}",
        "message": _IN_EVENTS,
        "interaction": "from_agent to_agent agents_involved interaction_type message_type conflict_type severity "
        "resolution_method interaction_id parent_interaction_id handoff_id conflict_id task_id",
        "role": "name capabilities message_types",
        "metadata": f"derived_from kind source_format service framework model {_IDENTIFIERS}",
    }.items()
}
_AGENT_FIELDS = frozenset(("agent", "from_agent", "to_agent", "agents_involved", "name"))
_NAME_FIELDS = _AGENT_FIELDS | frozenset(("tool", "tools", "model"))


def part_at(part: str, field: str, holder: Mapping[str, Any]) -> str:
    """The part of a record that a field of ``holder``, another part, leads to.

    >>> part_at("record", "case", {}), part_at("trace", "events", {}), part_at("payload", "arguments", {})
    ('case', 'event', 'data')
    """
    if part == "roles":
        return "role"
    if part == "event" and field == "payload" and holder.get("type") == "message":
        return "message"  # whose ``name`` can be that of the user
    return _PARTS.get((part, field), DATA)


def is_structure(part: str, field: str) -> bool:
    """Whether the text in a field holds the record together.

    >>> is_structure("payload", "name"), is_structure("data", "name"), is_structure("case", "query")
    (True, False, False)
    """
    return field in _STRUCTURE.get(part, ())


def structure_field(field: str) -> str:
    """What a field that holds the record together counts as.

    >>> structure_field("span_id") == STRUCTURE, structure_field("agent") == OWN_NAME
    (True, True)
    """
    return OWN_NAME if field in _NAME_FIELDS else STRUCTURE


def is_somebody(part: str, field: str, text: str) -> bool:
    """Whether an agent is called by the full name of a person, as people are in a recorded conversation.

    >>> is_somebody("payload", "agent", "Mary Smith"), is_somebody("payload", "agent", "Codebase Navigator")
    (True, False)
    """
    if part == "tool" or field not in _AGENT_FIELDS:
        return False
    words = text.split()
    if not 2 <= len(words) <= 4 or not all(word.istitle() for word in (words[0], words[-1])):
        return False
    first, last = kinds_of(words[0]), kinds_of(words[-1])
    return (
        words[0].lower() not in AMBIGUOUS
        and _is(first, Kind.FIRST, Kind.FREQUENT_FIRST)
        and _is(last, Kind.LAST, Kind.FREQUENT_LAST)
    )


def _is(kind: int, name: int, frequent_name: int) -> bool:
    """Whether a word is a frequent name, or one that is nothing else."""
    return bool(kind & frequent_name or (kind & name and not kind & (Kind.WORD | Kind.RARE_WORD | Kind.COUNTRY)))


_STRUCTS: tuple[type[Struct], ...] = (
    Record, DatasetCase, TraceLog, TraceEvent, Outcome, AgentInteraction, HandoffEvent, ConflictEvent, AgentRole
)  # fmt: skip
_OWN_KEYS: frozenset[str] = frozenset(name for kind in _STRUCTS for name in kind.__struct_encode_fields__)

_Pending = list[tuple[str, str, Any]]


def texts_of(record: Any) -> Iterator[Leaf]:
    """The texts in order, names of fields among them; without recursion, however deep the data is nested."""
    pending: _Pending = [("record", "", record)]
    while pending:
        part, field, each = pending.pop()
        if isinstance(each, str):
            if each:
                yield _leaf(part, field, each)
        elif isinstance(each, dict):
            for key in each:
                if key not in _OWN_KEYS:
                    yield _key(part, key)
            pending += reversed(_children(part, each))
        elif isinstance(each, list):
            pending += ((part, field, child) for child in reversed(each))


def places_of(record: Any) -> Iterator[tuple[str, str]]:
    """Every text and number of a record with the path to it, the names of fields among them."""
    pending: list[tuple[str, Any]] = [("", record)]
    while pending:
        path, each = pending.pop()
        if isinstance(each, dict):
            for number, key in enumerate(each, start=1):
                yield f"{path} (name of field {number})".strip(), key
            pending += reversed([(f"{path}.{key}" if path else key, child) for key, child in each.items()])
        elif isinstance(each, list):
            pending += reversed([(f"{path}[{number}]", child) for number, child in enumerate(each)])
        elif isinstance(each, str):
            yield path, each
        elif (written := _whole_number(each)) is not None:
            yield path, written


def numbers_of(record: Any) -> Iterator[Leaf]:
    """The whole numbers of a record, written out, each with its field."""
    pending: _Pending = [("record", "", record)]
    while pending:
        part, field, each = pending.pop()
        if isinstance(each, dict):
            pending += reversed(_children(part, each))
        elif isinstance(each, list):
            pending += ((part, field, child) for child in reversed(each))
        elif (written := _whole_number(each)) is not None:
            yield Leaf(field, written)


def replace_texts(record: Any, replaced: dict[Leaf, str], numbers: Mapping[Leaf, str] = MappingProxyType({})) -> None:
    """Put new texts into plain data, in place; ``numbers`` are those that a text takes the place of."""
    pending: _Pending = [("record", "", record)]
    while pending:
        part, field, each = pending.pop()
        if isinstance(each, list):
            pending += ((part, field, child) for child in each if isinstance(child, (dict, list)))
            each[:] = [_new(part, field, child, replaced, numbers) for child in each]
        elif isinstance(each, dict):
            children = _children(part, each)
            keys = list(each)
            each.clear()
            for key, (inner, role, child) in zip(keys, children, strict=True):
                if isinstance(child, (dict, list)):
                    pending.append((inner, role, child))
                each[_new_key(part, key, each, replaced)] = _new(inner, role, child, replaced, numbers)


def _children(part: str, holder: dict[str, Any]) -> _Pending:
    """What an object holds: the part of the record that each child is, what its field counts as, and the child.

    A text, or a list of texts, belongs to the part that its field stands in.
    """
    beside = {plain_field(key) for key in holder}
    children: _Pending = []
    for key, child in holder.items():
        if is_structure(part, key) and _is_text(child):
            children.append((part, key, child))
        else:
            inner = part_at(part, key, holder)
            field = plain_field(key)
            known_as = counts_as(field, beside)
            children.append((inner, key if known_as == field else known_as, child))
    return children


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _leaf(part: str, field: str, text: str) -> Leaf:
    if is_structure(part, field):
        return Leaf("full_name" if is_somebody(part, field, text) else structure_field(field), text)
    return Leaf(field, text)


def _key(part: str, key: str) -> Leaf:
    return _leaf("role", "name", key) if part == "roles" else Leaf("", key)


def _whole_number(value: Any) -> str | None:
    """The digits of a whole number; tables often keep telephone numbers as 4155552671.0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST_NUMBER:
        return None
    return str(int(value)) if value == int(value) else None


def _new(part: str, field: str, child: Any, replaced: dict[Leaf, str], numbers: Mapping[Leaf, str]) -> Any:
    if isinstance(child, str):
        return replaced.get(_leaf(part, field, child), child)
    written = _whole_number(child) if numbers else None
    return child if written is None else numbers.get(Leaf(field, written), child)


def _new_key(part: str, key: str, taken: dict[str, Any], replaced: dict[Leaf, str]) -> str:
    masked = key if key in _OWN_KEYS else replaced.get(_key(part, key), key)
    new, number = masked, 2
    # Two spellings of one value must not become one field.
    while new in taken:
        new, number = f"{masked} ({number})", number + 1
    return new

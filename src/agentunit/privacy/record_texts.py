"""The texts of a record as plain data: all of them in order, each with its field, and new ones put in their places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from agentunit.core.case import DatasetCase
from agentunit.core.interactions import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.privacy.personal_fields import Leaf, counts_as
from agentunit.privacy.record_structure import is_somebody, is_structure, part_at, structure_field

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


def replace_texts(record: Any, replaced: dict[Leaf, str]) -> None:
    """Put new texts into plain data, in place."""
    pending: _Pending = [("record", "", record)]
    while pending:
        part, field, each = pending.pop()
        if isinstance(each, list):
            pending += ((part, field, child) for child in each if isinstance(child, (dict, list)))
            each[:] = [_new(part, field, child, replaced) for child in each]
        elif isinstance(each, dict):
            children = _children(part, each)
            keys = list(each)
            each.clear()
            for key, (inner, role, child) in zip(keys, children, strict=True):
                if isinstance(child, (dict, list)):
                    pending.append((inner, role, child))
                each[_new_key(part, key, each, replaced)] = _new(inner, role, child, replaced)


def _children(part: str, holder: dict[str, Any]) -> _Pending:
    """What an object holds: the part of the record that each child is, what its field counts as, and the child.

    A text, or a list of texts, belongs to the part that its field stands in.
    """
    beside = {key.lower() for key in holder}
    children: _Pending = []
    for key, child in holder.items():
        if is_structure(part, key) and _is_text(child):
            children.append((part, key, child))
        else:
            inner = part_at(part, key, holder)
            lowered = key.lower()
            known_as = counts_as(lowered, beside)
            children.append((inner, key if known_as == lowered else known_as, child))
    return children


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _leaf(part: str, field: str, text: str) -> Leaf:
    if is_structure(part, field):
        return Leaf("full_name" if is_somebody(part, field, text) else structure_field(field), text)
    return Leaf(field, text)


def _key(part: str, key: str) -> Leaf:
    return _leaf("role", "name", key) if part == "roles" else Leaf("", key)


def _new(part: str, field: str, child: Any, replaced: dict[Leaf, str]) -> Any:
    return replaced.get(_leaf(part, field, child), child) if isinstance(child, str) else child


def _new_key(part: str, key: str, taken: dict[str, Any], replaced: dict[Leaf, str]) -> str:
    masked = key if key in _OWN_KEYS else replaced.get(_key(part, key), key)
    new, number = masked, 2
    # Two spellings of one value must not become one field.
    while new in taken:
        new, number = f"{masked} ({number})", number + 1
    return new

"""Which texts of a record hold it together: names of tools, agents and models, identifiers, statuses.

They stay as they are, or the record could no longer be scored; what a user or a tool wrote stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentunit.privacy.detection.gazetteer import Kind, kinds_of
from agentunit.privacy.detection.name_words import AMBIGUOUS

STRUCTURE, OWN_NAME = "\0", "\0name"
"""What redaction takes for the fields of texts that hold the record together, and of names of its agents and tools."""

STRUCTURE_TYPES = frozenset(("email", "api_key", "private_key", "jwt"))
"""What is masked even there, since its form leaves no doubt."""

DATA = "data"
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

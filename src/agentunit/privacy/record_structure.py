"""Which texts of a record hold it together: names of tools, agents and models, identifiers, statuses.

They stay as they are, or the record could no longer be scored; what a user or a tool wrote stands elsewhere.
"""

from __future__ import annotations

from agentunit.privacy.detection.gazetteer import Kind, kinds_of

STRUCTURE = "\0"
"""The field of a text that holds the record together, as far as redaction is concerned."""

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
    ("case", "metadata"): "metadata",
    ("trace", "metadata"): "metadata",
    ("interaction", "metadata"): "metadata",
    ("outcome", "metadata"): "metadata",
    ("role", "metadata"): "metadata",
    ("metadata", "expected_tool_calls"): "tool",
}
"""The part of a record that a field leads to; every other field leads to data of the user's."""

_IDENTIFIERS = "id span_id parent_id parent_span_id trace_id call_id tool_call_id run_id session_id request_id"
_STRUCTURE = {
    part: frozenset(fields.split())
    for part, fields in {
        "case": "id",
        "tool": "name type",
        "event": f"type {_IDENTIFIERS}",
        "payload": f"name agent tool model provider status role type kind error_type finish_reason from_agent to_agent "
        f"derived_from {_IDENTIFIERS}",
        "interaction": "from_agent to_agent agents_involved interaction_type message_type conflict_type severity "
        "resolution_method interaction_id parent_interaction_id handoff_id conflict_id task_id",
        "role": "name capabilities message_types",
        "metadata": f"derived_from kind source_format service framework model {_IDENTIFIERS}",
    }.items()
}
_AGENT_FIELDS = frozenset(("agent", "from_agent", "to_agent", "agents_involved", "name"))


def part_at(part: str, field: str) -> str:
    """The part of a record that a field of another part leads to.

    >>> part_at("record", "case"), part_at("trace", "events"), part_at("payload", "arguments")
    ('case', 'event', 'data')
    """
    return "role" if part == "roles" else _PARTS.get((part, field), DATA)


def is_structure(part: str, field: str) -> bool:
    """Whether the text in a field holds the record together.

    >>> is_structure("payload", "name"), is_structure("data", "name"), is_structure("case", "query")
    (True, False, False)
    """
    return field in _STRUCTURE.get(part, ())


def is_somebody(part: str, field: str, text: str) -> bool:
    """Whether an agent is called by the full name of a person, as people are in a recorded conversation.

    >>> is_somebody("payload", "agent", "Mary Smith"), is_somebody("payload", "agent", "Codebase Navigator")
    (True, False)
    """
    if part == "tool" or field not in _AGENT_FIELDS:
        return False
    words = text.split()
    return 2 <= len(words) <= 4 and all(word.istitle() and _names(word) for word in (words[0], words[-1]))


def _names(word: str) -> bool:
    kind = kinds_of(word)
    return bool(kind & (Kind.FIRST | Kind.LAST)) and not kind & (Kind.WORD | Kind.RARE_WORD | Kind.COUNTRY)

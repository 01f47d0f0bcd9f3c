"""What each attribute of a span states, found by one look into a table, and how its value is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentunit.traces.vocabularies.contents import entity, shown
from agentunit.traces.vocabularies.table import (
    FIRST,
    OPERATIONS,
    OURS,
    PLAIN_KINDS,
    REQUEST_TYPES,
    TOKENS,
    UNUSED_FAMILIES,
    UNUSED_WORDS,
    VOCABULARIES,
)
from agentunit.traces.vocabularies.values import (
    SpanKind,
    as_amount,
    as_count,
    as_number,
    as_text,
    from_json,
    unquoted,
)

Reader = Callable[[Any], Any]

_UNUSED = frozenset(UNUSED_WORDS.split())
_UNUSED_PREFIXES = tuple(UNUSED_FAMILIES.split())


class Row(NamedTuple):
    """What an attribute states. Without a ``fact`` it is deliberately unused, or not ``known`` at all.

    ``place`` is where a numbered attribute stands: its family, its number, and what is left of its name.
    """

    fact: str | None
    vocabulary: str
    attribute: str
    rank: int = 0
    read: Reader = from_json
    place: tuple[str, int, str] | None = None
    ours: bool = False
    known: bool = True


def _plain_text(value: Any) -> str | None:
    return as_text(unquoted(value)) if value.__class__ is str and value[:1] == '"' else as_text(value)


def _model(value: Any) -> str | None:
    name = _plain_text(value)
    return None if name == "unknown" else name


def cost_in(value: Any) -> float | None:
    """An amount, or the total of a mapping of amounts by what they were paid for."""
    value = from_json(value)
    if not isinstance(value, dict):
        return as_amount(value)
    for name in ("total", "total_cost"):
        if as_amount(value.get(name)) is not None:
            return as_amount(value[name])
    parts = [part for each in value.values() if (part := as_number(each)) is not None]
    return sum(parts) if parts else None


def _expectation(assessments: Any) -> Any:
    """The expected answer among a trace's assessments: the one of that name, else the only one."""
    found = {}
    rows = from_json(assessments)
    for each in rows if isinstance(rows, list) else ():
        if isinstance(each, dict) and isinstance(each.get("expectation"), dict):
            found[each.get("assessment_name")] = each["expectation"].get("value")
    if "expected_response" in found:
        return found["expected_response"]
    return next(iter(found.values())) if len(found) == 1 else None


def _vercel_kind(operation: Any) -> SpanKind:
    name = str(operation)
    if name == "ai.toolCall":
        return "tool"
    called = name.endswith((".doGenerate", ".doStream", ".doEmbed"))
    return "embedding" if "mbed" in name else "llm" if called else "chain"


def _haystack_kind(component: Any) -> SpanKind:
    """The kind of a component by the name of its class: OpenAIChatGenerator, InMemoryBM25Retriever, Agent."""
    kinds: dict[str, SpanKind] = {
        "Agent": "agent",
        "Generator": "llm",
        "Retriever": "retrieval",
        "Embedder": "embedding",
    }
    return next((kind for ending, kind in kinds.items() if str(component).endswith(ending)), "chain")


def _member(*names: str) -> Reader:
    """A reader of the first of these members that an object in JSON has."""

    def read(value: Any) -> Any:
        value = from_json(value)
        return next((value[name] for name in names if value.get(name)), None) if isinstance(value, dict) else None

    return read


def _kind_reader(words: Mapping[str, SpanKind], other: SpanKind | None) -> Reader:
    def read(value: Any) -> Any:
        word = _plain_text(value)
        return other if word is None else words.get(word.lower(), other)

    return read


def _as_it_is(value: Any) -> Any:
    return value


def _flag(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(value).lower())


_TEXTS = (
    "agent agent_description agent_id entity node from_agent to_agent provider tool tool_call_id session_id user_id "
    "error status metric currency server server_version lc_agent lc_path function"
)
_READERS: dict[str, Reader] = {
    **dict.fromkeys(_TEXTS.split(), _plain_text),
    **dict.fromkeys(TOKENS, as_count),
    "model": _model,
    "cost": cost_in,
    "trace_total_cost": cost_in,
    "input": unquoted,
    "output": unquoted,
    "result": unquoted,
    "expected": unquoted,
    "score": as_number,
    "is_error": _flag,
    "input_messages": _as_it_is,
    "output_messages": _as_it_is,
    "metadata": _as_it_is,
    "query": _as_it_is,
}
_SPECIAL: dict[str, Reader] = {
    "openinference.span.kind": _kind_reader(PLAIN_KINDS, "chain"),
    "mlflow.spanType": _kind_reader(PLAIN_KINDS, "chain"),
    "ai.observability.span_type": _kind_reader(PLAIN_KINDS, "chain"),
    "langsmith.span.kind": _kind_reader(PLAIN_KINDS, "chain"),
    # A plain span in Langfuse may have come in by OpenTelemetry, and says more in its own words.
    "langfuse.observation.type": _kind_reader(PLAIN_KINDS, None),
    "mcp.method.name": _kind_reader({"tools/call": "tool"}, "chain"),
    "mcp.method": _kind_reader({"tools/call": "tool"}, "chain"),
    "traceloop.span.kind": _kind_reader(PLAIN_KINDS, "chain"),
    "ioa_observe.span.kind": _kind_reader(PLAIN_KINDS, "chain"),
    "gen_ai.operation.name": _kind_reader(OPERATIONS, None),
    "llm.request.type": _kind_reader(REQUEST_TYPES, None),
    "ai.operationId": _vercel_kind,
    "input.value": shown,
    "output.value": shown,
    "traceloop.entity.input": entity("inputs"),
    "traceloop.entity.output": entity("outputs"),
    "ioa_observe.entity.input": entity("inputs"),
    "ioa_observe.entity.output": entity("outputs"),
    "ai.response.text": _as_it_is,
    "ai.observability.record_root.input": _as_it_is,
    "ai.observability.record_root.output": _as_it_is,
    "ai.observability.call.return": _as_it_is,
    "ai.observability.record_root.ground_truth_output": _as_it_is,
    "final_result": _as_it_is,
    "mlflow.trace.assessments": _expectation,
    "haystack.component.type": _haystack_kind,
    "request_data": _member("messages"),
    "response_data": _member("message", "combined_chunk_content"),
    # FastMCP's key ends in the version: tool:greet@1.2.
    "fastmcp.component.key": lambda key: as_text(str(key).rpartition("@")[2] if "@" in str(key) else None),
}

_NUMBERED = re.compile(r"(.*?\.)(\d{1,6})(?:\.(.*))?\Z", re.DOTALL)
_MOST_LEARNED = 100_000


def _declared() -> tuple[dict[str, Row], dict[str, Row]]:
    rows: dict[str, Row] = {}
    families: dict[str, Row] = {}
    for place, (vocabulary, facts) in enumerate(VOCABULARIES.items()):
        for fact, attributes in facts.items():
            first = -1000 if FIRST.get(fact) == vocabulary else 0
            for position, attribute in enumerate(attributes.split()):
                read = _SPECIAL.get(attribute, _READERS.get(fact, from_json))
                ours = attribute.startswith(OURS)
                row = Row(fact, vocabulary, attribute, first + 100 * place + position, read, ours=ours)
                (families if attribute[-1] in "#*" else rows)[attribute.rstrip("#*")] = row
    return rows, families


ROWS, _FAMILIES = _declared()
"""Every attribute that was met so far, by its name; ``learn`` adds to it."""
SILENT: set[str] = set()
"""Those of them that state nothing and belong to no vocabulary: most spans of other software have no other."""
_N_DECLARED = len(ROWS)


def learn(name: str) -> Row:
    """The row of an attribute that ``ROWS`` does not have yet: numbered, deliberately unused, or not understood."""
    row = _numbered(name)
    if row is None:
        unused = name in _UNUSED or name.startswith(_UNUSED_PREFIXES)
        row = Row(None, "", name, ours=name.startswith(OURS), known=unused)
    if len(ROWS) >= _N_DECLARED + _MOST_LEARNED:
        for learned in list(ROWS)[_N_DECLARED:]:
            del ROWS[learned]
        SILENT.clear()
    ROWS[name] = row
    if row.fact is None and not row.ours:
        SILENT.add(name)
    return row


def _numbered(name: str) -> Row | None:
    found = _NUMBERED.match(name)
    family = _FAMILIES.get(found[1]) if found else None
    if found and family is not None:
        return family._replace(place=(family.attribute, int(found[2]), _plain_rest(found[3] or "")))
    for prefix, each in _FAMILIES.items():
        if each.attribute[-1] == "*" and name.startswith(prefix):
            return each._replace(place=(each.attribute, 0, name[len(prefix) :]))
    return None


def _plain_rest(rest: str) -> str:
    """A name within a message, document or tool without the words that only repeat what it stands in."""
    for repeated in ("message.", "document.", "tool."):
        rest = rest.removeprefix(repeated)
    return rest.replace("tool_call.function.", "").replace("tool_call.", "").replace("message_content.", "")

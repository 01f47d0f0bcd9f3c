"""Exports of Langfuse: traces with their observations, and the span attributes that their fields stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from math import inf
from typing import Any, NamedTuple

from agentunit.addons.formats.exports._row_nesting import NoSpan, one_span, shown, spans_of_file
from agentunit.addons.formats.exports.span_rows import text_in, time_in
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes, Span, as_mapping, duration_s, flat_attributes, identifier
from agentunit.traces.vocabularies.attribute_rows import require_attributes

_OF_BOTH: dict[str, tuple[str, ...]] = {
    "langfuse.environment": ("environment",),
    "langfuse.release": ("release",),
    "langfuse.version": ("version",),
    "langfuse.session.id": ("sessionId",),
    "langfuse.user.id": ("userId",),
    "langfuse.trace.tags": ("tags",),
}
OF_AN_OBSERVATION: dict[str, tuple[str, ...]] = {
    "langfuse.observation.type": ("type",),
    "langfuse.observation.level": ("level",),
    "langfuse.observation.status_message": ("statusMessage",),
    "langfuse.observation.input": ("input",),
    "langfuse.observation.output": ("output",),
    "langfuse.observation.metadata": ("metadata",),
    "langfuse.observation.model.name": ("model", "providedModelName"),
    "langfuse.observation.model.parameters": ("modelParameters",),
    "langfuse.observation.completion_start_time": ("completionStartTime",),
    "langfuse.observation.prompt.name": ("promptName",),
    "langfuse.observation.prompt.version": ("promptVersion",),
    # Langfuse has no attributes for these: it finds them in outputs.
    "langfuse.observation.tool_calls": ("toolCalls",),
    "langfuse.observation.tool_call_names": ("toolCallNames",),
    "langfuse.observation.tool_definitions": ("toolDefinitions",),
    **_OF_BOTH,
    "langfuse.trace.name": ("traceName",),
}

OF_A_TRACE: dict[str, tuple[str, ...]] = {
    "langfuse.trace.name": ("name",),
    "langfuse.trace.input": ("input",),
    "langfuse.trace.output": ("output",),
    "langfuse.trace.metadata": ("metadata",),
    "langfuse.trace.public": ("public",),
    # Langfuse has no attributes for these three: it computes them, or gets them by another way.
    "langfuse.trace.total_cost": ("totalCost",),
    "langfuse.trace.latency": ("latency",),
    "langfuse.trace.scores": ("scores",),
    **_OF_BOTH,
}

_USAGE = {
    "input": ("promptTokens", "inputUsage"),
    "output": ("completionTokens", "outputUsage"),
    "total": ("totalTokens", "totalUsage"),
}
_COSTS = {
    "input": ("inputCost", "calculatedInputCost"),
    "output": ("outputCost", "calculatedOutputCost"),
    "total": ("totalCost", "calculatedTotalCost"),
}

_TABLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "observation": OF_AN_OBSERVATION,
    "trace": OF_A_TRACE,
    "usage": _USAGE,
    "costs": _COSTS,
}
require_attributes("langfuse", (*OF_AN_OBSERVATION, *OF_A_TRACE))
_Places = tuple[tuple[str, tuple[str, ...]], ...]
# The names of longer rows are not remembered.
_MOST_NAMES = 100

# Fields of an observation that are read elsewhere, repeat others, or are of use to Langfuse alone.
_OTHER_FIELDS = """
    id traceId projectId parentObservationId name startTime endTime usage usageDetails costDetails unit latency
    createdAt updatedAt timestamp internalModel internalModelId modelId providedUsageDetails providedCostDetails
    usagePricingTierId usagePricingTierName inputPrice outputPrice totalPrice timeToFirstToken promptId promptTokens
    completionTokens totalTokens inputUsage outputUsage totalUsage bookmarked public eventTs isDeleted isAppRoot
    hasParent comments ioTruncated traceTimestamp source
"""


def field(row: Mapping[str, Any], name: str, missing: Any = None) -> Any:
    """A field under its name in the API (``traceId``), or else under that in the storage (``trace_id``)."""
    return row[name] if name in row else row.get(_snake_case(name), missing)


def usage_details(row: Mapping[str, Any], name: str | None = None) -> Any:
    """How many tokens of each kind were used, in whichever way this version of Langfuse says so.

    Older versions say ``usage`` or ``promptTokens``, with zeros where nothing was used; those say nothing.

    >>> usage_details({"usage": {"input": 7, "output": 2, "total": 9, "unit": "TOKENS"}, "usageDetails": {}})
    {'input': 7, 'output': 2, 'total': 9}
    """
    details = field(row, "usageDetails") if name is None else row.get(name)
    if details:
        return details
    usage = row.get("usage")
    if isinstance(usage, dict) and usage.get("unit") in (None, "TOKENS"):
        return _stated({kind: usage.get(kind) for kind in _USAGE}) or _amounts(usage, "usage")
    return _amounts(row, "usage")


def cost_details(row: Mapping[str, Any], name: str | None = None) -> Any:
    """What an observation cost, in US dollars by kind, in whichever way this version of Langfuse says so."""
    return (field(row, "costDetails") if name is None else row.get(name)) or _amounts(row, "costs")


def _amounts(row: Mapping[str, Any], table: str) -> dict[str, Any] | None:
    amounts = {}
    for kind, names in _places_in(row, table):
        amounts[kind] = next((value for name in names if (value := row[name]) is not None), None)
    return _stated(amounts)


def _places_in(row: Mapping[str, Any], table: str) -> _Places:
    """What a table names and a row has, with the names in the row. All rows of a file have few sets of names."""
    names = tuple(row)
    return (_places if len(names) <= _MOST_NAMES else _places.__wrapped__)(names, table)


@lru_cache(maxsize=1_024)
def _places(names: tuple[str, ...], table: str) -> _Places:
    places = []
    for known_as, fields in _TABLES[table].items():
        spelled = (name if name in names else _snake_case(name) for name in fields)
        present = tuple(name for name in spelled if name in names)
        if present:
            places.append((known_as, present))
    return tuple(places)


class _Names(NamedTuple):
    """Under which names rows of one kind say what every observation says, and the names that nobody here knows."""

    trace_id: str
    parent_id: str
    start: str
    end: str
    status_message: str
    usage: str
    costs: str
    unknown: tuple[str, ...]


def _names_in(row: Mapping[str, Any]) -> _Names:
    names = tuple(row)
    return (_names if len(names) <= _MOST_NAMES else _names.__wrapped__)(names)


@lru_cache(maxsize=1_024)
def _names(names: tuple[str, ...]) -> _Names:
    said = ["traceId", "parentObservationId", "startTime", "endTime", "statusMessage", "usageDetails", "costDetails"]
    trace_id, parent_id, start, end, status, usage, costs = (
        name if name in names else _snake_case(name) for name in said
    )
    unknown = tuple(name for name in names if name not in _KNOWN_FIELDS)
    return _Names(trace_id, parent_id, start, end, status, usage, costs, unknown)


def _stated(amounts: Mapping[str, Any]) -> dict[str, Any] | None:
    return {kind: amount for kind, amount in amounts.items() if amount is not None} if any(amounts.values()) else None


@cache
def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_KNOWN_FIELDS = frozenset(
    spelling
    for name in (
        *_OTHER_FIELDS.split(),
        *(each for names in (OF_AN_OBSERVATION, _USAGE, _COSTS) for fields in names.values() for each in fields),
    )
    for spelling in (name, _snake_case(name))
)
_TYPES = frozenset(
    ("SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)
# Where the metadata keep what Langfuse received by OpenTelemetry.
_OF_OPENTELEMETRY = ("scope", "attributes", "resourceAttributes")
_NOTHING: Mapping[str, Any] = {}
_ONLY_A_TRACE_HAS = ("sessionId", "userId", "htmlPath", "totalCost", "bookmarked", "observations")


class _LangfuseTrace(NamedTuple):
    about: Mapping[str, Any]
    observations: list[Any]


def read_langfuse_export(source: Source, notes: ReadingNotes) -> Iterator[Span | InputError]:
    """The observations of an export as spans. Every observation becomes a span, or an ``InputError``."""

    def spans_in(value: Any) -> Iterator[Span | NoSpan]:
        for each in value if isinstance(value, list) else [value]:
            yield from _spans_in(each, notes)

    return spans_of_file(source, ("data",), spans_in)


def _spans_in(value: Any, notes: ReadingNotes) -> Iterator[Span | NoSpan]:
    if not isinstance(value, dict):
        yield NoSpan(f"an observation should be an object; received {shown(value)}")
        return
    trace = _trace_in(value)
    if trace is not None:
        yield from _spans_of(trace, notes)
    elif _is_observation(value):
        yield _span(value, {}, notes)
    else:
        names = ", ".join(sorted(value)[:8])
        yield NoSpan(f"the object is neither a trace nor an observation of Langfuse; its names are: {names or 'none'}")


def _trace_in(value: Mapping[str, Any]) -> _LangfuseTrace | None:
    """A trace as the UI (beside its observations), the API (around them) or the storage (alone) writes it."""
    beside = value.get("trace")
    if isinstance(beside, dict) and "id" in beside:
        scores = {"scores": value["scores"]} if value.get("scores") else {}
        return _LangfuseTrace({**beside, **scores}, _observations(value) or _observations(beside))
    observations = _observations(value)
    if observations or (isinstance(value.get("observations"), list) and "id" not in value):
        return _LangfuseTrace(value, observations)
    return _LangfuseTrace(value, []) if _is_trace(value) else None


def _observations(value: Mapping[str, Any]) -> list[Any]:
    """Observations with what they are; lists of traces have only their ids."""
    observations = value.get("observations")
    if not isinstance(observations, list) or all(isinstance(each, str) for each in observations):
        return []
    return observations


def _spans_of(trace: _LangfuseTrace, notes: ReadingNotes) -> Iterator[Span | NoSpan]:
    about, observations = trace
    if not observations:
        yield _span_of_trace(about, notes)
        return
    found = [
        _span(row, about, notes)
        if isinstance(row, dict)
        else NoSpan(f"an observation should be an object; received {shown(row)}")
        for row in observations
    ]
    spans = [span for span in found if isinstance(span, Span)]
    known = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in known]
    if spans:
        root = min(roots or spans, key=lambda span: inf if span.start_s is None else span.start_s)
        root.attributes = {**_named(about, "trace", notes), **root.attributes}
    yield from found


@one_span
def _span_of_trace(about: Mapping[str, Any], notes: ReadingNotes) -> Span | NoSpan:
    trace_id = identifier(about.get("id"))
    if trace_id is None:
        return NoSpan(f"the trace has no observations and no id; its id is {shown(about.get('id'))}")
    start_s = time_in(field(about, "timestamp"), None, notes)
    latency_s = duration_s(about.get("latency"), 1)
    return Span(
        trace_id,
        trace_id,
        name=text_in(about.get("name")),
        start_s=start_s,
        end_s=start_s + latency_s if start_s is not None and latency_s is not None else None,
        attributes=_named(about, "trace", notes),
    )


@one_span
def _span(row: Mapping[str, Any], trace: Mapping[str, Any], notes: ReadingNotes) -> Span | NoSpan:
    names = _names_in(row)
    span_id = identifier(row.get("id"))
    trace_id = identifier(row.get(names.trace_id)) or identifier(trace.get("id"))
    if span_id is None or trace_id is None:
        part, value = ("id", row.get("id")) if span_id is None else ("trace id", row.get(names.trace_id))
        return NoSpan(f"the observation has no {part}; it is {shown(value)}")
    metadata = as_mapping(row.get("metadata"))
    scope = received = resource = _NOTHING
    if metadata:
        scope, received, resource = (as_mapping(metadata.get(name)) or _NOTHING for name in _OF_OPENTELEMETRY)
    own = _named(row, "observation", notes)
    details = {
        "langfuse.observation.usage_details": usage_details(row, names.usage),
        "langfuse.observation.cost_details": cost_details(row, names.costs),
    }
    # What nobody here knows is kept under its name, so that it is counted as not understood.
    unknown = {name: row[name] for name in names.unknown if row[name] not in (0, "", [], {})}
    others = {name: value for name, value in {**received, **unknown}.items() if name not in details}
    attributes = flat_attributes(others, notes, nested=False) if others else {}
    attributes |= own
    attributes |= {name: value for name, value in details.items() if value is not None}
    return Span(
        trace_id,
        span_id,
        parent_id=_parent_id(row.get(names.parent_id), notes),
        name=text_in(row.get("name")),
        start_s=time_in(row.get(names.start), None, notes),
        end_s=time_in(row.get(names.end), None, notes),
        status="error" if row.get("level") == "ERROR" else "unset",
        status_message=text_in(row.get(names.status_message)),
        attributes=attributes,
        scope=text_in(scope.get("name")),
        resource=flat_attributes(resource, notes, nested=False) if resource else {},
    )


def _named(row: Mapping[str, Any], table: str, notes: ReadingNotes) -> dict[str, Any]:
    found = {}
    for known_as, names in _places_in(row, table):
        for name in names:
            value = row[name]
            if value or (value is not None and value.__class__ not in (dict, list)):
                found[known_as] = value
                break
    for known_as in ("langfuse.observation.metadata", "langfuse.trace.metadata"):
        if known_as in found and (metadata := as_mapping(found[known_as])) is not None:
            found[known_as] = {key: value for key, value in metadata.items() if key not in _OF_OPENTELEMETRY} or None
    return flat_attributes(found, notes, nested=False)


def _parent_id(value: Any, notes: ReadingNotes) -> str | None:
    parent_id = identifier(value)
    if parent_id is None and value not in (None, ""):
        notes.problems["a parent's id that is not text was left out"] += 1
    return parent_id


def _is_observation(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind.upper() in _TYPES and "id" in value and field(value, "startTime") is not None


def _is_trace(value: Mapping[str, Any]) -> bool:
    if "id" not in value or "timestamp" not in value or field(value, "traceId") is not None:
        return False
    return sum(field(value, name, missing=inf) is not inf for name in _ONLY_A_TRACE_HAS) > 1


def _matches(opening: Opening) -> bool:
    value = opening.value
    if isinstance(value, dict):
        data = value.get("data")
        value = data[0] if isinstance(data, list) and data else value
    if isinstance(value, dict):
        trace = _trace_in(value)
        if trace is None:
            return _is_observation(value)
        first = trace.observations[0] if trace.observations else None
        return _is_observation(first) if isinstance(first, dict) else _is_trace(trace.about)
    head = opening.head
    return b'"parentObservationId"' in head or b'"parent_observation_id"' in head


LANGFUSE_EXPORT = TraceFormat(
    "langfuse", "traces and observations of Langfuse, from its API, UI or storage", _matches, read_langfuse_export
)

"""Spans that stand in a file as JSON objects, in the spelling of whatever tool exported them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any, get_args

from agentunit.addons.formats.exports._own_words import NOTHING, OpenInferenceKind, attributes_in, short_name
from agentunit.addons.formats.exports._row_nesting import NoSpan, one_span, rows_in, shown, spans_of_file
from agentunit.addons.formats.exports._span_spellings import SPELLINGS, Spelling, known_fields, spelling_of
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.places import at, first_at
from agentunit.traces.spans import (
    ReadingNotes,
    Span,
    SpanEvent,
    SpanStatus,
    as_mapping,
    decoded_json,
    duration_s,
    flat_attributes,
    identifier,
    seconds_since_1970,
    span_status,
)

_NAME = ("name", "Name", "event_name")
_TIME = ("time_unix_nano", "timeUnixNano", "timestamp", "Timestamp", "time", "event_timestamp")
_ATTRIBUTES = ("attributes", "Attributes", "log_attributes", "fields")
# What a log record says beside its attributes.
_OF_A_LOG = ("body", "severity_text", "evaluations", "annotations")
_COLUMNS = ("Name", "Timestamp", "Attributes")


def events_of(row: Mapping[str, Any], spelling: Spelling, notes: ReadingNotes) -> list[SpanEvent]:
    """The events of a row, from every place where its spelling has some."""
    events = []
    for found in _written_events(row, spelling, notes):
        if isinstance(found, dict):
            events.append(_event(found, spelling, notes))
        else:
            notes.problems["an event that is not an object was left out"] += 1
    return events


def _written_events(row: Mapping[str, Any], spelling: Spelling, notes: ReadingNotes) -> list[Any]:
    written: list[Any] = []
    for path in spelling.events:
        value = at(row, path)
        if value.__class__ is str and value:
            try:
                value = decoded_json(value)
            except ValueError:
                value = [value]
        if isinstance(value, list):
            written.extend(value)
        elif value is not None and not (spelling.event_columns and isinstance(value, dict)):
            written.append(value)
    for prefix in spelling.event_columns:
        columns = [at(row, prefix + name) for name in _COLUMNS]
        lists = [column if isinstance(column, list) else [] for column in columns]
        written.extend(dict(zip(_COLUMNS, each, strict=True)) for each in zip_longest(*lists))
    return written


def _event(found: dict[str, Any], spelling: Spelling, notes: ReadingNotes) -> SpanEvent:
    mapping = as_mapping(first_at(found, _ATTRIBUTES) or {})
    if mapping is None:
        notes.problems["attributes of an event that are not an object were left out"] += 1
    attributes = flat_attributes(mapping or {}, notes, nested=spelling.nested)
    attributes.update((name, found[name]) for name in _OF_A_LOG if found.get(name))
    return SpanEvent(_event_name(found, attributes), _moment(first_at(found, _TIME), spelling.time_unit_s), attributes)


def _event_name(found: Mapping[str, Any], attributes: dict[str, Any]) -> str:
    """The name of an event. Jaeger has it among the fields, a note of Zipkin is nothing but its text."""
    name = first_at(found, _NAME)
    if name is None and isinstance(attributes.get("event"), str):
        name = attributes.pop("event")
    if name is None:
        name = found.get("value", "log" if "body" in found else "")
    return name if isinstance(name, str) else ""


_OPENINFERENCE_KINDS = frozenset(get_args(OpenInferenceKind))


def read_span_rows(source: Source, notes: ReadingNotes) -> Iterator[Span | InputError]:
    """The spans of a file. Every row becomes a span, or an ``InputError`` that says what it lacks."""
    unfinished: dict[str, dict[str, Any]] = {}

    def spans_in(value: Any) -> Iterator[Span | NoSpan]:
        for row in rows_in(value, notes):
            whole = _whole_run(row, unfinished) if isinstance(row, dict) else row
            if whole is not None:
                yield span_of(whole, notes) if isinstance(whole, dict) else whole

    yield from spans_of_file(source, ("data",), spans_in)
    for row in unfinished.values():
        span = span_of(row, notes)
        yield span if isinstance(span, Span) else InputError(source.name, None, span.reason)


def _whole_run(row: dict[str, Any], unfinished: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """A row as it is; of a run that LangSmith's SDKs post in two parts, both together when the second comes."""
    order = row.get("dotted_order")
    if not isinstance(order, str) or not ("run_type" in row or "end_time" in row):
        return row
    run_id = row.get("id") or order[-36:]
    before = unfinished.pop(run_id, {}) if isinstance(run_id, str) else {}
    whole = {**before, "id": run_id, **{name: value for name, value in row.items() if value not in (None, {}, [])}}
    if whole.get("end_time") is None or "run_type" not in whole:
        unfinished[str(run_id)] = whole
        return None
    return whole


@one_span
def span_of(row: Mapping[str, Any], notes: ReadingNotes) -> Span | NoSpan:
    """A row as a span; what it has that cannot be read is counted in the notes."""
    spelling = spelling_of(row)
    if spelling is None:
        return NoSpan("the object is not a span: it has no trace id and span id under a known name")
    span_id = _first_identifier(row, spelling.span_id)
    trace_id = _first_identifier(row, spelling.trace_id)
    if span_id is None or trace_id is None:
        part, path = ("span", spelling.span_id[0]) if span_id is None else ("trace", spelling.trace_id[0])
        return NoSpan(f"the span has no {part} id; its {path} is {shown(at(row, path))}")
    name = short_name(text_in(first_at(row, spelling.span_name)))
    if spelling.words is None:
        attributes = _attributes(row, spelling.attributes, spelling.nested, notes)
        _amend(attributes, name)
        # What nobody here knows is kept under its name, so that it is counted as not understood.
        known = known_fields(spelling)
        unknown = {key: row[key] for key in row if key.partition(".")[0] not in known and row[key] not in NOTHING}
        attributes = {**flat_attributes(unknown, notes, nested=False), **attributes} if unknown else attributes
    else:
        attributes = flat_attributes(attributes_in(row, spelling.words, name), notes)
    kind = first_at(row, spelling.kind)
    if isinstance(kind, str) and kind.upper() in _OPENINFERENCE_KINDS:
        attributes.setdefault("openinference.span.kind", kind.upper())
    resource = _attributes(row, spelling.resource, spelling.nested, notes)
    service = first_at(row, spelling.service)
    if isinstance(service, str) and service:
        resource.setdefault("service.name", service)
    start_s = time_in(first_at(row, spelling.start), spelling.time_unit_s, notes)
    status, message = _status(row, spelling, attributes, notes)
    return Span(
        trace_id,
        span_id,
        parent_id=_parent_id(row, spelling, trace_id, notes),
        name=name,
        start_s=start_s,
        end_s=_end_s(row, spelling, start_s, notes),
        status=status,
        status_message=message,
        attributes=attributes,
        events=events_of(row, spelling, notes),
        scope=text_in(first_at(row, spelling.scope))
        or text_in(attributes.get("otel.scope.name") or attributes.get("otel.library.name")),
        resource=resource,
    )


_REASONING = "ai.observability.cost.num_reasoning_tokens"
_TOOL = "gen_ai.tool.name"


def _amend(attributes: dict[str, Any], name: str) -> None:
    """What TruLens says in words of its own: a tool is called by its function's name, not by the path to it."""
    if _REASONING in attributes:
        attributes["gen_ai.usage.reasoning.output_tokens"] = attributes[_REASONING]
    if attributes.get("ai.observability.span_type") == "tool" and attributes.get(_TOOL, name) == name:
        attributes[_TOOL] = name.rpartition(".")[2]


def _attributes(row: Mapping[str, Any], paths: tuple[str, ...], nested: bool, notes: ReadingNotes) -> dict[str, Any]:
    value = first_at(row, paths)
    if value is None or value == "":
        value = {
            name[len(path) + 1 :]: each
            for path in paths
            for name, each in row.items()
            if name.startswith(f"{path}.")
        }  # fmt: skip
    mapping = as_mapping(value)
    if mapping is None:
        notes.problems["attributes that are not an object were left out"] += 1
        return {}
    return flat_attributes(mapping, notes, nested=nested)


def _first_identifier(row: Mapping[str, Any], paths: tuple[str, ...]) -> str | None:
    return next((found for path in paths if (found := identifier(at(row, path))) is not None), None)


def _parent_id(row: Mapping[str, Any], spelling: Spelling, trace_id: str, notes: ReadingNotes) -> str | None:
    for path in spelling.parent_id:
        value = at(row, path)
        if isinstance(value, list):
            value = _referenced_parent(value, trace_id)
        parent_id = identifier(value)
        if parent_id is not None:
            return parent_id
        if value is not None and value.__class__ not in (str, int):
            notes.problems["a parent's id that is not text was left out"] += 1
    return None


def _referenced_parent(references: list[Any], trace_id: str) -> Any:
    """The parent among Jaeger's references, where a span of another trace is a link and no parent."""
    own = [
        each
        for each in references
        if isinstance(each, dict) and identifier(each.get("traceID", trace_id)) == trace_id
    ]  # fmt: skip
    own.sort(key=lambda each: each.get("refType") != "CHILD_OF")
    return own[0].get("spanID") if own else None


def _moment(value: Any, unit_s: float | None) -> float | None:
    """A time as a number or a text, or as OpenTelemetry's JavaScript SDK writes it: seconds and nanoseconds."""
    if isinstance(value, list) and len(value) == 2 and all(each.__class__ in (int, float) for each in value):
        try:
            return float(value[0] + value[1] / 1e9)
        except OverflowError:
            return None
    return seconds_since_1970(value, unit_s)


def time_in(value: Any, unit_s: float | None, notes: ReadingNotes) -> float | None:
    """The moment that a field states; one that cannot be read is noted."""
    moment = _moment(value, unit_s)
    if moment is None and value not in (None, "", 0):
        notes.problems["a span's time that is neither ISO 8601 nor a number was left out"] += 1
    return moment


def _end_s(row: Mapping[str, Any], spelling: Spelling, start_s: float | None, notes: ReadingNotes) -> float | None:
    end_s = time_in(first_at(row, spelling.end), spelling.time_unit_s, notes)
    value = first_at(row, spelling.duration)
    if end_s is not None or value is None or start_s is None:
        return end_s
    elapsed_s = duration_s(value, spelling.duration_unit_s)
    if elapsed_s is None:
        notes.problems["a span's duration that cannot be read was left out"] += 1
        return None
    return start_s + elapsed_s


def _status(
    row: Mapping[str, Any], spelling: Spelling, attributes: Mapping[str, Any], notes: ReadingNotes
) -> tuple[SpanStatus, str]:
    value = first_at(row, spelling.status)
    message = text_in(first_at(row, spelling.status_message)) or text_in(attributes.get("otel.status_description"))
    if spelling.words is not None:
        return "error" if message else "unset", message
    if value in (None, {}):
        value = attributes.get("otel.status_code")
        error = attributes.get("error")
        if value is None and error not in (None, False, "false", "False"):
            return "error", message or ("" if error in (True, "true", "True") else text_in(error))
        if value is None:
            return "unset", message
    status = span_status(value)
    if status is None:
        notes.problems["a span's status that OpenTelemetry does not know was left out"] += 1
    return status or "unset", message


def text_in(value: Any) -> str:
    """The text that a field holds; anything else is none."""
    return value if value.__class__ is str else ""


def _matches(opening: Opening, spelling: Spelling) -> bool:
    if opening.value is not None:
        row = next(rows_in(opening.value, ReadingNotes()), None)
        return isinstance(row, dict) and spelling_of(row) is spelling
    names = (*spelling.marks, spelling.attributes)
    return all(any(_quoted(path) in opening.head for path in paths) for paths in names) and not any(
        _quoted(name) in opening.head for name in spelling.foreign
    )


def _quoted(path: str) -> bytes:
    return f'"{path.rpartition(".")[2]}"'.encode()


SPAN_ROW_FORMATS = tuple(
    TraceFormat(spelling.name, spelling.summary, partial(_matches, spelling=spelling), read_span_rows)
    for spelling in SPELLINGS
)
"""One format for each spelling; all are read alike, row by row, so that a mixture does no harm."""
LOGFIRE, SPAN_JSON, SPAN_JSON_CAMEL, CLICKHOUSE, TRULENS, OTEL_JS, JAEGER, ZIPKIN, *_OWN = SPAN_ROW_FORMATS
LANGSMITH, WEAVE, OPIK, DEEPEVAL = _OWN

"""Traces of MLflow 2 and 3: ``Trace.to_json()``, the table of ``mlflow.search_traces()`` as JSON, ``traces.json``.

MLflow writes every attribute of a span as JSON in a text. Here that is undone, one level: ``mlflow.spanType`` is
``TOOL`` and not ``"TOOL"``, ``mlflow.spanInputs`` is an object, a JSON text within it stays a text.

What MLflow says of a trace as a whole stands in the attributes of its root span, under MLflow's own names where it has
some: its metadata and tags (``mlflow.trace.session``, ``mlflow.trace.user``, ``mlflow.trace.tokenUsage``,
``mlflow.traceName``, …), and beside them ``tags.NAME`` for tags of the user, ``mlflow.trace.state``, and
``mlflow.trace.assessments``, the list of feedback and expectations as MLflow writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentunit.addons.formats.exports._row_nesting import NoSpan, one_span, rows_of_columns, shown, spans_of_file
from agentunit.addons.formats.exports.span_rows import span_of
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.places import first_at, names_in
from agentunit.traces.spans import ReadingNotes, Span, as_mapping, decoded_json, flat_attributes

_METADATA = ("trace_metadata", "request_metadata")
_TRACE_ID = ("trace_id", "request_id")
_STATE = ("state", "status")
# What a trace's info says: read, repeated by its spans, or of use to MLflow alone.
_INFO_FIELDS = names_in(
    "client_request_id assessments tags trace_location experiment_id request_preview response_preview request_time "
    "timestamp_ms execution_duration execution_duration_ms execution_time_ms trace spans request response"
).union(_METADATA, _TRACE_ID, _STATE)


class _MlflowTrace(NamedTuple):
    info: Mapping[str, Any]
    spans: Any


def read_mlflow_traces(source: Source, notes: ReadingNotes) -> Iterator[Span | InputError]:
    """The spans of MLflow's traces; a trace without spans, and a span without ids, comes as an ``InputError``."""

    def spans_in(value: Any) -> Iterator[Span | NoSpan]:
        for trace in _traces_in(value):
            yield from [trace] if isinstance(trace, NoSpan) else _spans_of(trace, notes)

    return spans_of_file(source, ("traces",), spans_in)


def _traces_in(value: Any) -> Iterator[_MlflowTrace | NoSpan]:
    if isinstance(value, list):
        for each in value:
            yield from [NoSpan("a trace should be an object")] if isinstance(each, list) else _traces_in(each)
        return
    if not isinstance(value, dict):
        yield NoSpan(f"a trace should be an object; received {shown(value)}")
        return
    info, data, spans = as_mapping(value.get("info")), as_mapping(value.get("data")), _as_list(value.get("spans"))
    whole = as_mapping(value.get("trace"))
    if info is not None and data is not None:
        yield _MlflowTrace(info, _as_list(data.get("spans")))
    elif isinstance(spans, dict) and all(isinstance(column, dict) for column in value.values()):
        for row in rows_of_columns(value):
            yield from _traces_in(row)
    elif spans is not None:
        yield _MlflowTrace(value, spans)
    elif whole is not None and "info" in whole:
        yield from _traces_in(whole)
    else:
        names = ", ".join(sorted(value)[:8])
        yield NoSpan(f"the object is not a trace of MLflow: it has no spans; its names are: {names or 'none'}")


def _spans_of(trace: _MlflowTrace, notes: ReadingNotes) -> Iterator[Span | NoSpan]:
    rows = trace.spans
    if not isinstance(rows, list) or not rows:
        yield NoSpan(f"the trace {shown(first_at(trace.info, _TRACE_ID))} has no spans; its spans are {shown(rows)}")
        return
    found = [_span(row, notes) for row in rows]
    spans = [span for span in found if isinstance(span, Span)]
    root = next((span for span in spans if span.parent_id is None), spans[0] if spans else None)
    if root is not None:
        root.attributes = {**_of_the_trace(trace.info, notes), **root.attributes}
    yield from found


@one_span
def _span(row: Any, notes: ReadingNotes) -> Span | NoSpan:
    if not isinstance(row, dict):
        return NoSpan(f"a span should be an object; received {shown(row)}")
    span = span_of({**row, "attributes": {}}, notes)
    if isinstance(span, Span):
        attributes = as_mapping(row.get("attributes", {}))
        if attributes is None:
            notes.problems["attributes that are not an object were left out"] += 1
        flat = flat_attributes(attributes or {}, notes, nested=False)
        span.attributes |= {name: _unpacked(value) for name, value in flat.items()}
    return span


def _of_the_trace(info: Mapping[str, Any], notes: ReadingNotes) -> dict[str, Any]:
    metadata = as_mapping(first_at(info, _METADATA)) or {}
    tags = as_mapping(info.get("tags")) or {}
    attributes = {
        "mlflow.traceRequestId": first_at(info, _TRACE_ID),
        "mlflow.trace.state": first_at(info, _STATE),
        "mlflow.trace.client_request_id": info.get("client_request_id"),
        "mlflow.trace.assessments": info.get("assessments") or None,
        **{name if name.startswith("mlflow.") else f"tags.{name}": value for name, value in tags.items()},
        # Kept under their names, so that they are counted as not understood.
        **{name: value for name, value in info.items() if name not in _INFO_FIELDS},
        **{name: _unpacked_structure(value) for name, value in metadata.items()},
    }
    return flat_attributes(attributes, notes, nested=False)


def _unpacked(value: Any) -> Any:
    if value.__class__ is not str:
        return value
    try:
        decoded = decoded_json(value)
    except ValueError:
        return value
    # Only this text means nothing; NaN and its like, alone, are not JSON.
    return decoded if decoded is not None or value.strip() == "null" else value


def _unpacked_structure(value: Any) -> Any:
    """Metadata are plain texts, except those that hold data: a session called "12" must stay a text."""
    return _unpacked(value) if value.__class__ is str and value[:1] in ("{", "[", '"') else value


def _as_list(value: Any) -> Any:
    return _unpacked(value) if value.__class__ is str else value


def _matches(opening: Opening) -> bool:
    value = opening.value
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict):
        head = opening.head
        return b'"mlflow.' in head and b'"spans"' in head and b'"resourceSpans"' not in head
    data = value.get("data")
    if isinstance(value.get("info"), dict) and isinstance(data, dict) and "spans" in data:
        return True
    if "spans" in value and any(name in value for name in _METADATA):
        return True
    spans = value.get("spans")
    first = spans[0] if isinstance(spans, list) and spans else None
    attributes = first.get("attributes") if isinstance(first, dict) else None
    return isinstance(attributes, dict) and any(name.startswith("mlflow.") for name in attributes)


MLFLOW_TRACES = TraceFormat(
    "mlflow", "traces of MLflow 2 and 3: Trace.to_json(), search_traces() as JSON", _matches, read_mlflow_traces
)

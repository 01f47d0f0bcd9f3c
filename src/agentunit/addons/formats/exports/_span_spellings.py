"""How tools spell a span as a JSON object: one table, so that one reader reads them all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from agentunit.addons.formats.exports._own_words import (
    DEEPEVAL_WORDS,
    LANGSMITH_WORDS,
    OPIK_WORDS,
    WEAVE_WORDS,
    OwnWords,
)
from agentunit.traces.places import Paths, at, names_in

MICROSECOND, NANOSECOND = 1e-6, 1e-9


class Spelling(NamedTuple):
    """Where the parts of a span stand in a row; of several places the first that holds something counts.

    A place is a name, or names with dots between them that lead into nested objects: ``context.trace_id`` is the column
    of that name as well as ``{"context": {"trace_id": …}}``. A row is told by ``marks``: it has one name of each, and
    none of ``foreign``. Numbers are in ``time_unit_s`` and ``duration_unit_s``; without the first their size tells,
    without the second only texts of ISO 8601 are durations. With ``nested``, objects in attributes are dotted names.
    ``words`` translate a tool's own fields, where its rows have no attributes of OpenTelemetry.
    """

    name: str
    summary: str
    marks: tuple[Paths, ...]
    trace_id: Paths
    span_id: Paths
    parent_id: Paths = ()
    span_name: Paths = ()
    start: Paths = ()
    end: Paths = ()
    status: Paths = ()
    status_message: Paths = ()
    attributes: Paths = ()
    resource: Paths = ()
    scope: Paths = ()
    events: Paths = ()
    service: Paths = ()
    duration: Paths = ()
    event_columns: Paths = ()
    kind: Paths = ()
    foreign: frozenset[str] = frozenset()
    time_unit_s: float | None = None
    duration_unit_s: float | None = None
    nested: bool = True
    words: OwnWords | None = None


SPELLINGS = (
    Spelling(
        name="logfire",
        summary="rows of Logfire's query API (span_id, start_timestamp, otel_status_code, attributes, …)",
        marks=(
            ("trace_id",),
            ("span_id",),
            ("start_timestamp", "otel_scope_name", "otel_status_code", "otel_resource_attributes"),
        ),
        foreign=frozenset({"resourceSpans", "resource_spans", "context"}),
        trace_id=("trace_id",),
        span_id=("span_id",),
        parent_id=("parent_span_id",),
        span_name=("span_name", "message"),
        start=("start_timestamp",),
        end=("end_timestamp",),
        duration=("duration",),
        duration_unit_s=1,
        status=("otel_status_code",),
        status_message=("otel_status_message", "exception_message"),
        attributes=("attributes",),
        resource=("otel_resource_attributes",),
        scope=("otel_scope_name",),
        service=("service_name",),
        events=("otel_events",),
        # Attributes that are JSON come decoded: an object in one is its value.
        nested=False,
    ),
    Spelling(
        name="span-json",
        summary="spans as JSON objects: Phoenix exports, the console exporter of OpenTelemetry's SDKs, Patronus",
        marks=(("context.trace_id", "trace_id"), ("context.span_id", "span_id")),
        foreign=frozenset({"resourceSpans", "resource_spans"}),
        trace_id=("context.trace_id", "trace_id"),
        span_id=("context.span_id", "span_id"),
        parent_id=("parent_id", "parent_span_id", "parent.span_id"),
        span_name=("name", "span_name"),
        start=("start_time_unix_nano", "start_time", "start_timestamp", "timestamp"),
        end=("end_time_unix_nano", "end_time", "end_timestamp"),
        duration=("duration",),
        status=("status.status_code", "status.code", "status_code", "status"),
        status_message=("status.description", "status.message", "status_message"),
        attributes=("attributes", "span_attributes"),
        resource=("resource.attributes", "resource_attributes"),
        scope=("instrumentation_scope.name", "scope.name", "scope_name", "otel_scope_name"),
        service=("service_name",),
        events=("events", "logs"),
        kind=("span_kind",),
    ),
    Spelling(
        name="span-json-camel",
        summary="spans as JSON objects with traceId and spanId, outside of OTLP's envelope",
        marks=(("traceId",), ("spanId",)),
        foreign=frozenset({"resourceSpans", "resource_spans"}),
        trace_id=("traceId",),
        span_id=("spanId",),
        parent_id=("parentSpanId", "parentId"),
        span_name=("name", "spanName"),
        start=("startTimeUnixNano", "startTime", "timestamp"),
        end=("endTimeUnixNano", "endTime"),
        status=("status.code", "status.statusCode", "statusCode", "status"),
        status_message=("status.message", "statusMessage"),
        attributes=("attributes", "spanAttributes"),
        resource=("resource.attributes", "resourceAttributes"),
        scope=("instrumentationScope.name", "scope.name", "scopeName"),
        service=("serviceName",),
        events=("events",),
        kind=("spanKind",),
    ),
    Spelling(
        name="clickhouse",
        summary="rows of the OpenTelemetry collector's ClickHouse table (TraceId, SpanId, SpanAttributes, …)",
        marks=(("TraceId",), ("SpanId",)),
        trace_id=("TraceId",),
        span_id=("SpanId",),
        parent_id=("ParentSpanId",),
        span_name=("SpanName",),
        start=("Timestamp",),
        duration=("Duration",),
        duration_unit_s=NANOSECOND,
        status=("StatusCode",),
        status_message=("StatusMessage",),
        attributes=("SpanAttributes",),
        resource=("ResourceAttributes",),
        scope=("ScopeName",),
        service=("ServiceName",),
        events=("Events",),
        event_columns=("Events.", "Events"),
    ),
    Spelling(
        name="trulens",
        summary="events of TruLens and of Snowflake's AI observability (record, record_attributes, trace)",
        marks=(("record_attributes",), ("trace",)),
        # The root of an evaluation stands in no trace: its record is what it belongs to.
        trace_id=("trace.trace_id", "record_attributes.ai.observability.record_id"),
        span_id=("trace.span_id", "event_id"),
        parent_id=("trace.parent_id", "record.parent_span_id"),
        span_name=("record.name",),
        start=("start_timestamp",),
        end=("timestamp",),
        status=("record.status.code", "record.status"),
        status_message=("record.status.message",),
        attributes=("record_attributes",),
        resource=("resource_attributes",),
        scope=("scope.name",),
        events=("record.events",),
        nested=False,
    ),
    Spelling(
        name="otel-js",
        summary="span objects of OpenTelemetry's JavaScript SDK (spanContext, startTime in seconds and nanoseconds)",
        marks=(
            ("spanContext.traceId", "_spanContext.traceId", "traceId"),
            ("spanContext.spanId", "_spanContext.spanId", "id"),
            ("attributes",),
            ("startTime", "timestamp"),
        ),
        foreign=frozenset({"tags", "localEndpoint", "type", "spanId", "resourceSpans"}),
        trace_id=("spanContext.traceId", "_spanContext.traceId", "traceId"),
        span_id=("spanContext.spanId", "_spanContext.spanId", "id"),
        parent_id=("parentSpanContext.spanId", "parentSpanId", "parentId"),
        span_name=("name",),
        start=("startTime", "timestamp"),
        end=("endTime",),
        duration=("duration", "_duration"),
        duration_unit_s=MICROSECOND,
        status=("status.code",),
        status_message=("status.message",),
        attributes=("attributes",),
        resource=("resource.attributes", "resource._memoizedAttributes"),
        scope=("instrumentationScope.name", "instrumentationLibrary.name"),
        events=("events",),
    ),
    Spelling(
        name="jaeger",
        summary="Jaeger's JSON (traceID, spanID, operationName, tags)",
        marks=(("traceID",), ("spanID",)),
        trace_id=("traceID",),
        span_id=("spanID",),
        parent_id=("references", "parentSpanID"),
        span_name=("operationName",),
        start=("startTime",),
        duration=("duration",),
        time_unit_s=MICROSECOND,
        duration_unit_s=MICROSECOND,
        attributes=("tags",),
        resource=("process.tags",),
        service=("process.serviceName",),
        events=("logs",),
    ),
    Spelling(
        name="zipkin",
        summary="Zipkin's JSON, version 2 (traceId, id, parentId, tags)",
        marks=(("traceId",), ("id",), ("localEndpoint", "duration", "tags")),
        # Observations of Langfuse have a traceId and an id as well.
        foreign=frozenset({"type", "startTime"}),
        trace_id=("traceId",),
        span_id=("id",),
        parent_id=("parentId",),
        span_name=("name",),
        start=("timestamp",),
        duration=("duration",),
        time_unit_s=MICROSECOND,
        duration_unit_s=MICROSECOND,
        attributes=("tags",),
        service=("localEndpoint.serviceName",),
        events=("annotations",),
    ),
    Spelling(
        name="langsmith",
        summary="runs of LangSmith: exports, run trees, and what its SDKs post",
        marks=(("run_type", "dotted_order"), ("id", "dotted_order")),
        trace_id=("trace_id", "id"),
        span_id=("id",),
        parent_id=("parent_run_id",),
        span_name=("name",),
        start=("start_time",),
        end=("end_time",),
        status_message=("error",),
        words=LANGSMITH_WORDS,
    ),
    Spelling(
        name="weave",
        summary="calls of W&B Weave, also within the result files of HAL (raw_logging_results)",
        marks=(("op_name",), ("started_at",), ("id",)),
        # HAL runs each task's calls as traces of their own, and names the task.
        trace_id=("weave_task_id", "attributes.weave_task_id", "trace_id"),
        span_id=("id",),
        parent_id=("parent_id",),
        span_name=("display_name", "op_name"),
        start=("started_at",),
        end=("ended_at",),
        status_message=("exception",),
        words=WEAVE_WORDS,
    ),
    Spelling(
        name="opik",
        summary="traces and spans of Opik: its command-line export, or rows of its API",
        marks=(("id",), ("trace_id",), ("start_time",), ("type", "usage", "input", "output")),
        foreign=frozenset({"span_id", "context", "run_type"}),
        trace_id=("trace_id",),
        span_id=("id",),
        parent_id=("parent_span_id",),
        span_name=("name",),
        start=("start_time",),
        end=("end_time",),
        status_message=("error_info.message", "error_info.exception_type"),
        words=OPIK_WORDS,
    ),
    Spelling(
        name="deepeval",
        summary="traces of DeepEval: {uuid, baseSpans, agentSpans, llmSpans, retrieverSpans, toolSpans}",
        marks=(("uuid",), ("traceUuid",), ("type",), ("startTime",)),
        trace_id=("traceUuid",),
        span_id=("uuid",),
        parent_id=("parentUuid",),
        span_name=("name",),
        start=("startTime",),
        end=("endTime",),
        status_message=("error",),
        words=DEEPEVAL_WORDS,
    ),
)


def check_spelling(spelling: Spelling) -> None:
    """Refuse a spelling of which a part would not be read: ``ValueError`` that names it and the part."""
    where = f"spelling {spelling.name!r}:"
    if spelling.words is None and not spelling.attributes:
        raise ValueError(f"{where} attributes must name a place, or words translate the tool's own fields")
    unread = () if spelling.words is None else ("attributes", "status")
    for part in unread:
        if getattr(spelling, part):
            raise ValueError(f"{where} {part} is not read where words translate the tool's own fields")


for _spelling in SPELLINGS:
    check_spelling(_spelling)


# Fields of rows that are read elsewhere, repeat others, or tell nothing about what was done.
_OTHER_FIELDS = names_in(
    "id kind SpanKind ScopeVersion scope_version scopeVersion scope_attributes "
    "links Links traceState trace_state TraceState flags debug shared remoteEndpoint "
    "durationNano processID process warnings record_type child_spans level is_exception exception_type "
    "exception_stacktrace created_at tags message project_id day log_body otel_links otel_scope_version "
    "otel_scope_attributes otel_events service_version service_namespace service_instance_id process_pid "
    "deployment_environment http_response_status_code http_method http_route url_path url_query url_full "
    "telemetry_sdk_name telemetry_sdk_language telemetry_sdk_version attributes_json_schema attributes_reduced "
    "ended _ended parentSpanContext _droppedAttributesCount _droppedEventsCount _droppedLinksCount _attributesCount "
    "droppedAttributesCount droppedEventsCount droppedLinksCount _performanceStartTime _performanceOffset "
    "_startTimeProvided _spanLimits _attributeValueLengthLimit _spanProcessor"
)


@cache
def known_fields(spelling: Spelling) -> frozenset[str]:
    """The names at the top of a row that are known, in this spelling or in any."""
    paths = (path for part in spelling if part.__class__ is tuple for path in part if isinstance(path, str))
    return _OTHER_FIELDS | {path.partition(".")[0] for path in paths}


def spelling_of(row: Mapping[str, Any]) -> Spelling | None:
    """The spelling a row is written in; ``None`` when it is no span of any."""
    for spelling in SPELLINGS:
        if all(any(at(row, path) is not None for path in paths) for paths in spelling.marks) and not (
            spelling.foreign and not spelling.foreign.isdisjoint(row)
        ):
            return spelling
    return None

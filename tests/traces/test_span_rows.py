"""Spans as JSON objects: each tool's spelling gives the same span, and no row is lost or invented."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.formats.exports.span_rows import SPAN_ROW_FORMATS, read_span_rows
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source
from agentunit.traces.spans import (
    LONGEST_ATTRIBUTE,
    ReadingNotes,
    Span,
    SpanEvent,
    duration_s,
    identifier,
    seconds_since_1970,
    span_status,
)

DATA = Path(os.environ.get("AGENTUNIT_DATA", Path(__file__).parents[2] / "../shared/data"))
TRAIL = DATA / "dev" / "trail_openinference.jsonl.gz"
OTEL = DATA / "otel"
needs_data = pytest.mark.skipif(not OTEL.is_dir(), reason="set AGENTUNIT_DATA to the folder of shared trace data")

TRACE_ID, SPAN_ID, PARENT_ID = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "eee19b7ec3c1b173"
ATTRIBUTES = {"gen_ai.tool.name": "weather", "gen_ai.request.model": "m"}
FAILURE = {"exception.type": "ValueError"}
START_S, END_S, EVENT_S = 1753097483.5, 1753097485.25, 1753097484.0
EXPECTED = Span(
    TRACE_ID,
    SPAN_ID,
    PARENT_ID,
    name="call",
    start_s=START_S,
    end_s=END_S,
    status="error",
    status_message="it broke",
    attributes=ATTRIBUTES,
    events=[SpanEvent("exception", EVENT_S, FAILURE)],
    scope="some.scope",
    resource={"service.name": "shop"},
)
ISO_START, ISO_END, ISO_EVENT = "2025-07-21T11:31:23.5Z", "2025-07-21T11:31:25.250000Z", "2025-07-21T11:31:24"


def pairs(mapping: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "type": "string", "value": value} for key, value in mapping.items()]


OTEL_TAGS = {"otel.scope.name": "some.scope", "otel.status_code": "ERROR", "otel.status_description": "it broke"}

SDK_ROW: dict[str, Any] = {
    "name": "call",
    "context": {"trace_id": f"0x{TRACE_ID}", "span_id": f"0x{SPAN_ID}", "trace_state": "[]"},
    "kind": "SpanKind.INTERNAL",
    "parent_id": f"0x{PARENT_ID}",
    "start_time": ISO_START,
    "end_time": ISO_END,
    "status": {"status_code": "ERROR", "description": "it broke"},
    "attributes": ATTRIBUTES,
    "events": [{"name": "exception", "timestamp": ISO_EVENT, "attributes": FAILURE}],
    "instrumentation_scope": {"name": "some.scope"},
    "resource": {"attributes": {"service.name": "shop"}, "schema_url": ""},
}
PHOENIX_COLUMNS: dict[str, Any] = {
    "name": "call",
    "context.trace_id": TRACE_ID,
    "context.span_id": SPAN_ID,
    "parent_id": PARENT_ID,
    "start_time": 1753097483500,
    "end_time": 1753097485250,
    "status_code": "ERROR",
    "status_message": "it broke",
    "events": [{"name": "exception", "timestamp": 1753097484000, "attributes": FAILURE}],
    "scope_name": "some.scope",
    "attributes.gen_ai.tool.name": "weather",
    "attributes.gen_ai.request.model": "m",
    "attributes.llm.model_name": None,
    "resource.attributes.service.name": "shop",
}
CLICKHOUSE_ROW: dict[str, Any] = {
    "Timestamp": "2025-07-21 11:31:23.500000000",
    "TraceId": TRACE_ID,
    "SpanId": SPAN_ID,
    "ParentSpanId": PARENT_ID,
    "SpanName": "call",
    "ServiceName": "shop",
    "ResourceAttributes": {"service.name": "shop"},
    "ScopeName": "some.scope",
    "SpanAttributes": ATTRIBUTES,
    "Duration": "1750000000",
    "StatusCode": "STATUS_CODE_ERROR",
    "StatusMessage": "it broke",
    "Events.Timestamp": ["2025-07-21 11:31:24.000000000"],
    "Events.Name": ["exception"],
    "Events.Attributes": [FAILURE],
}
PATRONUS_ROW: dict[str, Any] = {
    "timestamp": ISO_START,
    "trace_id": TRACE_ID.upper(),
    "span_id": SPAN_ID,
    "parent_span_id": PARENT_ID,
    "span_name": "call",
    "span_kind": "Internal",
    "service_name": "shop",
    "resource_attributes": {},
    "scope_name": "some.scope",
    "span_attributes": ATTRIBUTES,
    "duration": "PT1.75S",
    "status_code": "Error",
    "status_message": "it broke",
    "events": [{"Timestamp": ISO_EVENT, "Name": "exception", "Attributes": FAILURE}],
    "logs": [],
    "child_spans": [],
}
TRULENS_ROW: dict[str, Any] = {
    "event_id": SPAN_ID,
    "record": {
        "name": "call",
        "parent_span_id": PARENT_ID,
        "status": {"code": "STATUS_CODE_ERROR", "message": "it broke"},
        "events": [{"name": "exception", "timestamp": ISO_EVENT, "attributes": FAILURE}],
    },
    "record_type": "SPAN",
    "resource_attributes": {"service.name": "shop"},
    "scope": {"name": "some.scope"},
    "start_timestamp": "2025-07-21 11:31:23.500000",
    "timestamp": "2025-07-21 11:31:25.250000",
    "trace": {"parent_id": PARENT_ID, "span_id": SPAN_ID, "trace_id": TRACE_ID},
    "record_attributes": ATTRIBUTES,
}
JAEGER_ROW: dict[str, Any] = {
    "traceID": TRACE_ID,
    "spanID": SPAN_ID,
    "operationName": "call",
    "references": [
        {"refType": "FOLLOWS_FROM", "traceID": "f" * 32, "spanID": "a" * 16},
        {"refType": "CHILD_OF", "traceID": TRACE_ID, "spanID": PARENT_ID},
    ],
    "startTime": 1753097483500000,
    "duration": 1750000,
    "tags": pairs(ATTRIBUTES | OTEL_TAGS),
    "logs": [{"timestamp": 1753097484000000, "fields": pairs({"event": "exception"} | FAILURE)}],
    "processID": "p1",
}
ZIPKIN_ROW: dict[str, Any] = {
    "traceId": TRACE_ID,
    "id": SPAN_ID,
    "parentId": PARENT_ID,
    "name": "call",
    "timestamp": 1753097483500000,
    "duration": 1750000,
    "localEndpoint": {"serviceName": "shop"},
    "tags": ATTRIBUTES | OTEL_TAGS,
    "annotations": [{"timestamp": 1753097484000000, "value": "exception"}],
}
CAMEL_ROW: dict[str, Any] = {
    "traceId": TRACE_ID,
    "spanId": SPAN_ID,
    "parentSpanId": PARENT_ID,
    "name": "call",
    "startTimeUnixNano": "1753097483500000000",
    "endTimeUnixNano": "1753097485250000000",
    "status": {"code": 2, "message": "it broke"},
    "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in ATTRIBUTES.items()],
    "events": [{"name": "exception", "timeUnixNano": "1753097484000000000", "attributes": FAILURE}],
    "scope": {"name": "some.scope"},
    "resource": {"attributes": {"service.name": "shop"}},
}
ROWS = {
    "sdk": ("span-json", SDK_ROW),
    "phoenix columns": ("span-json", PHOENIX_COLUMNS),
    "phoenix nested": (
        "span-json",
        SDK_ROW | {"attributes": {"gen_ai": {"tool": {"name": "weather"}, "request": {"model": "m"}}}},
    ),
    "patronus": ("span-json", PATRONUS_ROW),
    "camel": ("span-json-camel", CAMEL_ROW),
    "clickhouse": ("clickhouse", CLICKHOUSE_ROW),
    "trulens": ("trulens", TRULENS_ROW),
    "snowflake": ("trulens", {key.upper(): json.dumps(value) if isinstance(value, dict) else value
                              for key, value in TRULENS_ROW.items()} | {"SCOPE": {"name": "some.scope"}}),
    "jaeger": ("jaeger", JAEGER_ROW),
    "zipkin": ("zipkin", ZIPKIN_ROW),
}  # fmt: skip


def as_file(row: dict[str, Any]) -> Any:
    """A row as its tool would put it into a file."""
    if "traceID" in row:
        return {
            "data": [{"traceID": TRACE_ID, "spans": [row], "processes": {"p1": {"serviceName": "shop", "tags": []}}}]
        }
    return row


def read(data: bytes) -> tuple[list[Span], list[InputError], ReadingNotes]:
    notes = ReadingNotes()
    found = list(read_span_rows(Source("spans.json", io.BytesIO(data)), notes))
    errors = [each for each in found if isinstance(each, InputError)]
    return [each for each in found if isinstance(each, Span)], errors, notes


def read_value(value: Any) -> tuple[list[Span], list[InputError], ReadingNotes]:
    return read(json.dumps(value).encode())


def opening_of(value: Any) -> Opening:
    first = value[0] if isinstance(value, list) else value
    return Opening("x.json", json.dumps(value).encode()[: 64 << 10], first, frozenset(first))


@pytest.mark.parametrize("tool", ROWS)
def test_every_spelling_gives_the_same_span(tool: str) -> None:
    _, row = ROWS[tool]
    spans, errors, notes = read_value(as_file(row))
    assert not errors
    assert not notes.problems
    (span,) = spans
    tags = OTEL_TAGS if tool in ("jaeger", "zipkin") else {}
    # A note of Zipkin has a text and a time, nothing else.
    events = [SpanEvent("exception", EVENT_S)] if tool == "zipkin" else EXPECTED.events
    assert span.attributes == ATTRIBUTES | tags
    assert span.events == events
    span.attributes, span.events = EXPECTED.attributes, EXPECTED.events
    assert span == EXPECTED


@pytest.mark.parametrize("tool", ROWS)
def test_a_file_is_told_by_its_rows(tool: str) -> None:
    name, row = ROWS[tool]
    for value in (as_file(row), [as_file(row)]):
        assert [each.name for each in SPAN_ROW_FORMATS if each.matches(opening_of(value))] == [name]
    # A first value that is too long to be looked at whole is told by its beginning.
    if tool not in ("snowflake", "phoenix columns"):
        head = Opening("x.json", json.dumps(as_file(row)).encode(), None, frozenset())
        assert name in [each.name for each in SPAN_ROW_FORMATS if each.matches(head)]


@pytest.mark.parametrize(
    "value",
    [
        {"resourceSpans": [{"scopeSpans": [{"spans": [CAMEL_ROW]}]}]},
        {"v": 1, "case": {"id": "1", "query": "q"}, "trace": {"events": []}},
        {"messages": [{"role": "user", "content": "hi"}]},
        {"id": "s", "traceId": TRACE_ID, "name": "n", "value": 1, "timestamp": ISO_START, "dataType": "NUMERIC"},
        [],
        {},
        7,
    ],
)
def test_other_files_are_not_taken_for_spans(value: Any) -> None:
    first = value[0] if isinstance(value, list) and value else value
    opening = Opening("x.json", json.dumps(value).encode(), first, frozenset())
    assert not any(each.matches(opening) for each in SPAN_ROW_FORMATS)


@pytest.mark.parametrize(
    "holder",
    [
        [SDK_ROW, SDK_ROW],
        {"data": [SDK_ROW, SDK_ROW], "next_cursor": None},
        {"spans": [SDK_ROW, SDK_ROW]},
        {"trace_id": TRACE_ID, "spans": [SDK_ROW, SDK_ROW]},
        {"trace": {"trace_id": TRACE_ID, "spans": [SDK_ROW, SDK_ROW]}},
        {"session 1": [SDK_ROW], "session 2": [SDK_ROW]},
        {name: {"0": value, "1": value} for name, value in PHOENIX_COLUMNS.items()},
    ],
    ids=["array", "data", "spans", "trace of spans", "trace", "sessions", "columns"],
)
def test_rows_are_found_wherever_they_lie(holder: Any) -> None:
    spans, errors, _ = read_value(holder)
    assert spans == [EXPECTED, EXPECTED]
    assert not errors


def test_pretty_printed_spans_one_after_the_other() -> None:
    spans, errors, _ = read("".join(json.dumps(SDK_ROW, indent=4) + "\n" for _ in range(3)).encode())
    assert spans == [EXPECTED] * 3
    assert not errors


def test_nested_spans_come_after_their_parents_and_know_them() -> None:
    inner = {"span_id": "3" * 16, "span_name": "inner", "span_attributes": {}}
    middle = {"span_id": "2" * 16, "span_name": "middle", "child_spans": [inner]}
    outer = {"span_id": "1" * 16, "span_name": "outer", "parent_span_id": None, "child_spans": [middle, middle]}
    spans, errors, _ = read_value({"trace_id": TRACE_ID, "spans": [outer]})
    assert not errors
    assert [span.name for span in spans] == ["outer", "middle", "inner", "middle", "inner"]
    assert [span.parent_id for span in spans] == [None, "1" * 16, "2" * 16, "1" * 16, "2" * 16]
    assert {span.trace_id for span in spans} == {TRACE_ID}


def test_logs_of_a_span_are_events_with_their_body() -> None:
    body = {"function.name": "main", "function.output": "<null>"}
    log = {"timestamp": ISO_EVENT, "severity_text": "INFO", "body": body, "log_attributes": {"pat.app": "x"}}
    (span,), _, notes = read_value(PATRONUS_ROW | {"events": [], "logs": [log]})
    assert span.events == [SpanEvent("log", EVENT_S, {"pat.app": "x", "body": body, "severity_text": "INFO"})]
    assert not notes.problems


def test_messages_in_lists_become_the_names_the_instrumentation_wrote() -> None:
    columns = {
        "attributes.llm.input_messages": [
            {"message.role": "system", "message.content": "Be brief."},
            {"message": {"role": "user", "contents": [{"message_content": {"text": "Hi"}}]}},
        ],
        "attributes.llm.token_count.prompt": 12.0,
        "attributes.metadata": {"thread": 7},
        "attributes.tool.parameters": {"city": {"type": "string"}},
        "attributes.tag.tags": ["a", "b"],
        "span_kind": "LLM",
    }
    (span,), _, _ = read_value({"context.trace_id": "a1", "context.span_id": "b2", "name": "chat"} | columns)
    assert span.attributes == {
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Be brief.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.contents.0.message_content.text": "Hi",
        "llm.token_count.prompt": 12.0,
        "metadata": '{"thread":7}',
        "tool.parameters": '{"city":{"type":"string"}}',
        "tag.tags": ["a", "b"],
        "openinference.span.kind": "LLM",
    }


def test_a_kind_of_opentelemetry_is_no_kind_of_openinference() -> None:
    (span,), _, _ = read_value(PATRONUS_ROW)
    assert "openinference.span.kind" not in span.attributes


def test_the_root_of_an_evaluation_stands_in_the_trace_of_its_record() -> None:
    row = TRULENS_ROW | {
        "trace": {"trace_id": "", "span_id": "5107_EVAL_ROOT", "parent_id": ""},
        "record": {"name": "eval"},
        "record_attributes": {"ai.observability.record_id": "dd12", "ai.observability.span_type": "eval_root"}
        | {"ai.observability.eval.args": {"ai.observability.record_root.input": "Why?"}},
    }
    (span,), errors, _ = read_value(row)
    assert not errors
    assert (span.trace_id, span.span_id, span.parent_id) == ("dd12", "5107_EVAL_ROOT", None)
    assert span.attributes["ai.observability.eval.args"] == {"ai.observability.record_root.input": "Why?"}


def test_numbers_that_json_does_not_know_are_missing_values() -> None:
    text = json.dumps(PHOENIX_COLUMNS | {"parent_id": float("nan"), "attributes.score": float("inf")})
    (span,), errors, _ = read(text.encode())
    assert not errors
    assert span.parent_id is None
    assert span.attributes == ATTRIBUTES


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"context": {"trace_id": None, "span_id": "b2"}}, "not a span"),
        ({"context": {"trace_id": ["x"], "span_id": "b2"}}, "the span has no trace id; its context.trace_id is ['x']"),
        ({"context": {"trace_id": "a1", "span_id": "0000"}}, "the span has no span id; its context.span_id is '0000'"),
        ({"context": "b2"}, "its names are: attributes, context"),
    ],
)
def test_a_row_without_its_ids_is_an_error_that_says_so(change: dict[str, Any], reason: str) -> None:
    rows = [SDK_ROW, SDK_ROW | change, SDK_ROW]
    spans, errors, _ = read("\n".join(json.dumps(row) for row in rows).encode())
    assert spans == [EXPECTED, EXPECTED]
    (error,) = errors
    assert (error.source, error.line) == ("spans.json", 2)
    assert reason in error.reason


@pytest.mark.parametrize(
    ("change", "problem", "lost"),
    [
        ({"attributes": "gen_ai"}, "attributes that are not an object", {"attributes": {}}),
        ({"start_time": "soon"}, "a span's time", {"start_s": None}),
        ({"end_time": None, "duration": "long"}, "a span's duration", {"end_s": None}),
        ({"status": {"status_code": "BROKEN"}}, "a span's status", {"status": "unset", "status_message": ""}),
        ({"parent_id": {"id": 1}}, "a parent's id", {"parent_id": None}),
        ({"events": [7]}, "an event that is not an object", {"events": []}),
        (
            {"events": [{"name": "e", "attributes": [1]}]},
            "attributes of an event",
            {"events": [SpanEvent("e")]},
        ),
        (
            {"attributes": {"a": {"b": 1}, "a.b": 2}},
            "two attributes of a span have the same name",
            {"attributes": {"a.b": 2}},
        ),
    ],
)
def test_what_cannot_be_read_is_counted_and_the_rest_kept(
    change: dict[str, Any], problem: str, lost: dict[str, Any]
) -> None:
    (span,), errors, notes = read_value(SDK_ROW | change)
    assert not errors
    assert [count for sentence, count in notes.problems.items() if sentence.startswith(problem)] == [1]
    expected = {name: lost.get(name, getattr(EXPECTED, name)) for name in EXPECTED.__struct_fields__}
    assert span == Span(**expected)


def test_a_text_too_long_for_any_metric_is_left_out_and_counted() -> None:
    (span,), _, notes = read_value(SDK_ROW | {"attributes": ATTRIBUTES | {"blob": "x" * (LONGEST_ATTRIBUTE + 1)}})
    assert span.attributes == ATTRIBUTES
    assert sum(notes.problems.values()) == 1


def test_a_file_that_is_cut_off_keeps_every_row_before_the_cut() -> None:
    data = "\n".join(json.dumps(row) for row in [SDK_ROW] * 4).encode()
    spans, errors, _ = read(data[:-10])
    assert spans == [EXPECTED] * 3
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0xDE51ED8D", "de51ed8d"),
        ("cNOxdfPrGomYVQ/nnmxyyg==", "70d3b175f3eb1a8998550fe79e6c72ca"),
        ("5107167242136132510_EVAL_ROOT", "5107167242136132510_EVAL_ROOT"),
        ("DD121E81-CCC2-449f", "DD121E81-CCC2-449f"),
        (12203920175536650289, "12203920175536650289"),
        ("0000000000000000", None),
        ("", None),
        (True, None),
        (1.5, None),
    ],
)
def test_ids(text: Any, expected: str | None) -> None:
    assert identifier(text) == expected


@pytest.mark.parametrize("moment", [START_S, 1753097483500, "1753097483500000", 1753097483500000000, ISO_START])
def test_times_in_any_unit(moment: Any) -> None:
    assert seconds_since_1970(moment) == START_S


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.lists(st.integers()), st.none(), st.booleans()))
def test_values_of_any_type_are_read_or_unknown(value: Any) -> None:
    assert identifier(value) is None or isinstance(identifier(value), str)
    for seconds in (seconds_since_1970(value), seconds_since_1970(value, 1e-6), duration_s(value, 1e-9)):
        assert seconds is None or isinstance(seconds, (int, float))
    assert span_status(value) in (None, "unset", "ok", "error")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data(), st.sampled_from(sorted(ROWS)))
def test_mutated_rows_never_raise_and_every_one_is_accounted_for(data: st.DataObject, tool: str) -> None:
    row = ROWS[tool][1]
    mutants = []
    for _ in range(3):
        mutant = dict(row)
        for name in data.draw(st.sets(st.sampled_from(sorted(row)), max_size=4)):
            if data.draw(st.booleans()):
                del mutant[name]
            else:
                mutant[name] = data.draw(json_values)
        mutants.append(mutant | {"child_spans": []})
    spans, errors, _ = read("\n".join(json.dumps(each) for each in [*mutants, row]).encode())
    assert len(spans) + len(errors) == 4
    # Jaeger's row is alone here, without its process; what matters is that it came through whole.
    assert spans[-1].span_id == SPAN_ID
    assert spans[-1].start_s == START_S


@given(st.binary(max_size=300), st.integers(0, 2000))
def test_damaged_files_never_raise(noise: bytes, at: int) -> None:
    data = json.dumps([as_file(row) for _, row in ROWS.values()]).encode()
    read(data[:at] + noise + data[at + len(noise) :])


@needs_data
def test_all_spans_of_trail_arrive_exactly() -> None:
    with gzip.open(TRAIL) as file:
        data = file.read()
    spans, errors, _ = read(data)
    assert not errors
    assert (len(spans), len({span.trace_id for span in spans})) == (941, 34)
    assert sum(span.status == "error" for span in spans) == 93
    written: list[dict[str, Any]] = []

    def walk(row: dict[str, Any]) -> None:
        written.append(row)
        for child in row["child_spans"]:
            walk(child)

    for line in data.splitlines():
        for root in json.loads(line)["trace"]["spans"]:
            walk(root)
    for span, row in zip(spans, written, strict=True):
        assert (span.trace_id, span.span_id, span.parent_id) == (row["trace_id"], row["span_id"], row["parent_span_id"])
        assert (span.name, span.scope, span.status) == (row["span_name"], row["scope_name"], row["status_code"].lower())
        assert span.status_message == row["status_message"]
        assert span.attributes == row["span_attributes"]
        assert span.resource == row["resource_attributes"]
        assert span.start_s == seconds_since_1970(row["timestamp"])
        assert span.start_s is not None
        assert span.end_s is not None
        assert span.end_s - span.start_s == pytest.approx(duration_s(row["duration"], None), abs=1e-6)
        assert len(span.events) == len(row["events"]) + len(row["logs"])
        assert [event.attributes for event in span.events[: len(row["events"])]] == [
            event["Attributes"] for event in row["events"]
        ]


@needs_data
def test_rows_of_the_collector_arrive_exactly() -> None:
    data = (OTEL / "agntcy_single_session_traces.json").read_bytes()
    spans, errors, notes = read(data)
    assert not errors
    assert not notes.problems
    written = [row for rows in json.loads(data).values() for row in rows]
    for span, row in zip(spans, written, strict=True):
        assert (span.trace_id, span.span_id, span.parent_id or "") == (
            row["TraceId"],
            row["SpanId"],
            row["ParentSpanId"],
        )
        assert (span.name, span.scope, span.status) == (row["SpanName"], row["ScopeName"], row["StatusCode"].lower())
        assert (span.attributes, span.resource) == (row["SpanAttributes"], row["ResourceAttributes"])
        assert span.start_s == seconds_since_1970(row["Timestamp"])
        assert span.start_s is not None
        assert span.end_s is not None
        assert span.end_s - span.start_s == pytest.approx(row["Duration"] / 1e9, abs=1e-6)


@needs_data
def test_events_of_trulens_arrive_exactly() -> None:
    paths = sorted(OTEL.glob("trulens_*.json"))
    assert len(paths) == 6
    for path in paths:
        row = json.loads(path.read_bytes())
        (span,), errors, notes = read(path.read_bytes())
        assert not errors
        assert not notes.problems
        place = row["trace"]
        assert span.trace_id == (place["trace_id"] or row["record_attributes"]["ai.observability.record_id"])
        assert (span.span_id, span.parent_id or "") == (place["span_id"], place["parent_id"])
        assert (span.name, span.status) == (row["record"]["name"], "unset")
        assert (span.attributes, span.resource) == (row["record_attributes"], row["resource_attributes"])
        assert span.start_s == seconds_since_1970(row["start_timestamp"])
        assert span.end_s == seconds_since_1970(row["timestamp"])


@needs_data
@pytest.mark.parametrize("seed", range(5))
def test_mutated_samples_are_accounted_for(seed: int) -> None:
    chance = random.Random(seed)
    rows = [
        row for rows in json.loads((OTEL / "agntcy_single_session_traces.json").read_bytes()).values() for row in rows
    ]
    rows += [json.loads(path.read_bytes()) for path in sorted(OTEL.glob("trulens_*.json"))]
    wrong = [None, 7, -1.5, "?", [], [1], {}, {"a": {"b": None}}, True]
    for row in rows:
        for name in chance.sample(sorted(row), 4):
            if chance.random() < 0.5:
                del row[name]
            else:
                row[name] = chance.choice(wrong)
    rows += chance.sample(rows, 3)
    spans, errors, _ = read(b"\n".join(json.dumps(row).encode() for row in rows))
    assert len(spans) + len(errors) == len(rows)


@pytest.mark.parametrize("odd", [{"name": 7, "values": ["x"]}, {"name": [], "values": []}, {"name": "n", "values": 7}])
def test_a_column_that_is_none_costs_no_span(odd: dict[str, Any]) -> None:
    columns = [{"name": "trace_id", "values": [TRACE_ID]}, {"name": "span_id", "values": [SPAN_ID]}]
    columns += [{"name": "attributes.a", "values": [1]}, {"name": "span_name", "values": []}, odd]
    notes = ReadingNotes()
    data = json.dumps({"columns": columns}).encode()
    (span,) = read_span_rows(Source("file.json", io.BytesIO(data)), notes)
    assert isinstance(span, Span), span
    assert (span.span_id, span.attributes) == (SPAN_ID, {"a": 1})
    assert notes.problems.total() == 1

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source
from agentunit.traces.json_files import cursor as json_cursor
from agentunit.traces.otlp import json_requests as otlp_json
from agentunit.traces.otlp import otlp_values as otlp_values
from agentunit.traces.otlp.json_requests import OTLP_JSON
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span, SpanEvent

TRACE = "5b8efff798038103d269b633813fc60c"
SPAN = "eee19b7ec3c1b174"
PARENT = "eee19b7ec3c1b173"

ROW = {
    "traceId": TRACE,
    "spanId": SPAN,
    "parentSpanId": PARENT,
    "name": "chat",
    "kind": 3,
    "startTimeUnixNano": "1700000000500000000",
    "endTimeUnixNano": 1700000001000000000,
    "attributes": [
        {"key": "text", "value": {"stringValue": "hello"}},
        {"key": "count", "value": {"intValue": "12"}},
        {"key": "number", "value": {"intValue": 13}},
        {"key": "share", "value": {"doubleValue": 0.5}},
        {"key": "yes", "value": {"boolValue": True}},
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}},
        {"key": "bytes", "value": {"bytesValue": "AQI="}},
        {"key": "nothing", "value": {}},
    ],
    "events": [{"name": "exception", "timeUnixNano": "1700000000600000000", "attributes": []}],
    "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
}
EXPECTED = Span(
    TRACE,
    SPAN,
    PARENT,
    "chat",
    1700000000.5,
    1700000001.0,
    "error",
    "no",
    {
        "text": "hello",
        "count": 12,
        "number": 13,
        "share": 0.5,
        "yes": True,
        "list": ["a", 1],
        "map": {"k": "v"},
        "bytes": "AQI=",
    },
    [SpanEvent("exception", 1700000000.6)],
    "my.scope",
    {"service.name": "shop"},
)
RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
SCOPE = {"name": "my.scope", "version": "1"}
REQUEST = {"resourceSpans": [{"resource": RESOURCE, "scopeSpans": [{"scope": SCOPE, "spans": [ROW]}]}]}


def unpacked(data: Any) -> tuple[list[Span | LogEvent], list[InputError], Counter[str]]:
    notes = ReadingNotes()
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    found = list(OTLP_JSON.read(Source("f.json", io.BufferedReader(io.BytesIO(raw))), notes))
    spans = []
    for each in found:
        if isinstance(each, PackedSpan):
            span = each.unpack(each.data, notes)
            assert span.trace_id == each.trace_id
            spans.append(span)
    return spans, [each for each in found if isinstance(each, InputError)], notes.problems


def with_row(**members: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**ROW, **members}]}]}]}


def snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): snake(each) for key, each in value.items()}
    return [snake(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(REQUEST, id="one document"),
        pytest.param(json.dumps(REQUEST, indent=2).encode(), id="indented"),
        pytest.param([REQUEST], id="array of requests"),
        pytest.param(REQUEST["resourceSpans"][0], id="one resource a line"),
        pytest.param(snake(REQUEST), id="names of protobuf"),
        pytest.param({"batches": REQUEST["resourceSpans"]}, id="batches of Tempo"),
        pytest.param({"trace": REQUEST}, id="wrapped trace of Tempo"),
        pytest.param(
            {
                "resourceSpans": [
                    {
                        "instrumentationLibrarySpans": [{"instrumentationLibrary": SCOPE, "spans": [ROW]}],
                        "resource": RESOURCE,
                    }
                ]
            },
            id="older names, resource last",
        ),
        pytest.param(
            {"resourceSpans": [{"scopeSpans": [{"spans": [ROW], "scope": SCOPE}], "resource": RESOURCE}]},
            id="shared members last",
        ),
        pytest.param(
            {
                "resourceSpans": [
                    {"resource": RESOURCE, "scopeSpans": [{"scope": SCOPE, "spans": [dict(sorted(ROW.items()))]}]}
                ]
            },
            id="trace id not first",
        ),
    ],
)
def test_a_span_is_read_from_every_layout(data: Any) -> None:
    assert unpacked(data) == ([EXPECTED], [], {})


def test_one_request_a_line_keeps_each_lines_resource() -> None:
    other = {"resourceSpans": [{"scopeSpans": [{"spans": [ROW]}]}]}
    lines = b"\n".join(json.dumps(each).encode() for each in (REQUEST, other, REQUEST))

    spans, errors, problems = unpacked(lines)

    assert [span.resource for span in spans if isinstance(span, Span)] == [EXPECTED.resource, {}, EXPECTED.resource]
    assert (errors, problems) == ([], {})


def test_equal_resources_of_many_requests_are_kept_once() -> None:
    lines = b"\n".join([json.dumps(REQUEST).encode()] * 20)

    found = list(OTLP_JSON.read(Source("f", io.BufferedReader(io.BytesIO(lines))), ReadingNotes()))

    assert len({id(each.unpack) for each in found if isinstance(each, PackedSpan)}) == 1


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"traceId": TRACE.upper(), "spanId": SPAN.upper()}, {}),
        (
            {
                "traceId": base64.b64encode(bytes.fromhex(TRACE)).decode(),
                "spanId": base64.b64encode(bytes.fromhex(SPAN)).decode(),
                "parentSpanId": base64.b64encode(bytes.fromhex(PARENT)).decode(),
            },
            {},
        ),
        ({"traceId": "my-trace"}, {"trace_id": "my-trace"}),
        ({"parentSpanId": ""}, {"parent_id": None}),
        ({"parentSpanId": "0000000000000000"}, {"parent_id": None}),
        ({"status": {"code": 2, "message": "no"}}, {}),
        ({"status": {"code": 1}}, {"status": "ok", "status_message": ""}),
        ({"status": {}}, {"status": "unset", "status_message": ""}),
        ({"status": None, "events": None}, {"status": "unset", "status_message": "", "events": []}),
        ({"endTimeUnixNano": 0}, {"end_s": None}),
        ({"attributes": None, "kind": "SPAN_KIND_CLIENT", "links": 3}, {"attributes": {}}),
    ],
)
def test_spellings_of_ids_times_and_statuses(members: dict[str, Any], expected: dict[str, Any]) -> None:
    span = Span(**{**{name: getattr(EXPECTED, name) for name in EXPECTED.__struct_fields__}, **expected})
    span.resource, span.scope = {}, ""

    assert unpacked(with_row(**members)) == ([span], [], {})


@pytest.mark.parametrize(
    ("members", "field", "value", "problem"),
    [
        (
            {"attributes": [{"key": "a", "value": {"intValue": "abc"}}, {"key": "b", "value": {"intValue": "1"}}]},
            "attributes",
            {"b": 1},
            "an attribute whose intValue is of another type was left out",
        ),
        (
            {"attributes": [{"key": "a", "value": {"doubleValue": "NaN"}}]},
            "attributes",
            {},
            "an attribute whose doubleValue is of another type was left out",
        ),
        (
            {"attributes": [{"key": "a", "value": {"stringValue": {"b": 1}}}]},
            "attributes",
            {},
            "an attribute whose stringValue is of another type was left out",
        ),
        (
            {"attributes": [{"value": {"stringValue": "x"}}, "y", {"key": "b", "value": {"boolValue": "true"}}]},
            "attributes",
            {"b": True},
            "an attribute without a key or a typed value was left out",
        ),
        ({"attributes": "many"}, "attributes", {}, "attributes that are not a list were left out"),
        ({"startTimeUnixNano": "now"}, "start_s", None, "a startTimeUnixNano that is not a time was left out"),
        ({"name": 3}, "name", "", "a span's name that is not text was left out"),
        ({"status": "bad"}, "status", "unset", "a span's status that is not an object was left out"),
        ({"status": {"code": 9}}, "status", "unset", "a status code that OpenTelemetry does not know was left out"),
        ({"events": [1]}, "events", [], "an event that is not an object was left out"),
    ],
)
def test_wrong_types_are_counted_and_the_rest_is_kept(
    members: dict[str, Any], field: str, value: Any, problem: str
) -> None:
    spans, errors, problems = unpacked(with_row(**members))

    assert getattr(spans[0], field) == value
    assert spans[0].span_id == SPAN
    assert errors == []
    assert set(problems) == {problem}


@pytest.mark.parametrize(
    ("row", "value"),
    [(b'{"traceId":"%s","name":"a\xff"}', "a�"), (b'{"traceId":"%s","name":"a\\ud800"}', "a?")],
)
def test_broken_characters_do_not_cost_the_span(row: bytes, value: str) -> None:
    document = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}' % (row % TRACE.encode())

    spans, errors, _ = unpacked(document)

    assert [span.name for span in spans if isinstance(span, Span)] == [value]
    assert errors == []


def test_a_span_that_is_no_json_leaves_its_trace_id_and_is_counted() -> None:
    document = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","name":}]}]}]}' % TRACE.encode()

    assert unpacked(document) == (
        [Span(TRACE, "")],
        [],
        {"a span that is not valid JSON was left out, except for its trace id": 1},
    )


def test_an_attribute_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (otlp_values, otlp_json):
        monkeypatch.setattr(module, "LONGEST_ATTRIBUTE", 100)
    long = {"stringValue": "x" * 101}
    attributes = [
        {"key": key, "value": value} for key, value in (("a", long), ("b", {"arrayValue": {"values": [long]}}))
    ]

    spans, errors, problems = unpacked(with_row(attributes=[*attributes, {"key": "c", "value": {"stringValue": "y"}}]))

    assert isinstance(spans[0], Span)
    assert spans[0].attributes == {"c": "y"}
    assert (errors, problems) == ([], {otlp_values.TOO_LONG: 2})


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (with_row(traceId=None), "a span without a trace id"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}, "a span that cannot be read (it is not an object)"),
        ({"resourceSpans": {"a": 1}}, "resourceSpans is not an array"),
        ({"resourceSpans": [1]}, "an element of resourceSpans is not an object"),
        ({"spam": 1, "eggs": 2}, "no OTLP export request: it holds 'spam', 'eggs'"),
        (["x"], "a value that is not an OTLP export request"),
    ],
)
def test_what_holds_no_span_says_so_and_the_next_line_is_read(document: Any, reason: str) -> None:
    lines = b"\n".join(json.dumps(each).encode() for each in (REQUEST, document, REQUEST))

    spans, errors, _ = unpacked(lines)

    assert len(spans) == 2
    assert [(error.line, error.reason) for error in errors] == [(2, reason)]


def test_parts_that_otlp_does_not_define_are_counted() -> None:
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [ROW], "spanz": [ROW]}], "schemaUrl": ""}], "more": 1}

    spans, errors, problems = unpacked(document)

    assert len(spans) == 1
    assert (errors, problems) == ([], {"a part that OTLP does not define was left out": 2})


def test_of_half_a_file_the_spans_before_the_cut_are_read() -> None:
    document = {"resourceSpans": [{"resource": RESOURCE, "scopeSpans": [{"scope": SCOPE, "spans": [ROW] * 10}]}]}
    data = json.dumps(document).encode()

    spans, errors, problems = unpacked(data[: len(data) // 2])

    assert spans == [EXPECTED] * 4
    assert [error.reason for error in errors] == [
        "the file ends in the middle of a value: it was cut off, or is still being written"
    ]
    assert problems == {}


LOG = {
    "timeUnixNano": "0",
    "observedTimeUnixNano": "1700000000000000000",
    "traceId": TRACE,
    "spanId": SPAN,
    "eventName": "gen_ai.choice",
    "attributes": [{"key": "gen_ai.system", "value": {"stringValue": "openai"}}],
    "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "hi"}}]}},
}
LOG_EVENT = LogEvent(
    TRACE, SPAN, SpanEvent("gen_ai.choice", 1.7e9, {"gen_ai.system": "openai", "body": {"content": "hi"}})
)
LEFT_OUT = {"a log record without a trace id or not of a GenAI call was left out": 1}


@pytest.mark.parametrize(
    ("record", "events", "problems"),
    [
        (LOG, [LOG_EVENT], {}),
        (snake(LOG), [LOG_EVENT], {}),
        (
            {
                "traceId": TRACE,
                "spanId": SPAN,
                "attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.user.message"}}],
            },
            [LogEvent(TRACE, SPAN, SpanEvent("gen_ai.user.message", None, {"event.name": "gen_ai.user.message"}))],
            {},
        ),
        ({**LOG, "traceId": ""}, [], LEFT_OUT),
        ({**LOG, "eventName": "app.started"}, [], LEFT_OUT),
        ("text", [], LEFT_OUT),
    ],
)
def test_log_records_of_genai_calls_are_events_of_their_span(record: Any, events: Any, problems: Any) -> None:
    document = {"resourceLogs": [{"scopeLogs": [{"scope": SCOPE, "logRecords": [record]}]}]}

    assert unpacked(document) == (events, [], problems)


@pytest.mark.parametrize(
    ("head", "value", "expected"),
    [
        (b'{"resourceSpans": [', None, True),
        (b'{"resource_spans": []}', {"resource_spans": []}, True),
        (b'{"resourceLogs": []}', {"resourceLogs": []}, True),
        (b'{"batches": [{"scopeSpans": []}]}', {"batches": [{}]}, True),
        (b'{"batches": [{"rows": []}]}', {"batches": [{}]}, False),
        (b'{"spans": []}', {"spans": []}, False),
        (b'{"case": {"id": "resourceSpans"}}', {"case": {}}, False),
        (b'"resourceSpans"', None, False),
        (b"\x0a\x10", None, False),
    ],
)
def test_files_are_recognised_by_their_names(head: bytes, value: Any, expected: bool) -> None:
    keys = frozenset(value) if isinstance(value, dict) else frozenset()

    assert OTLP_JSON.matches(Opening("f.json", head, value, keys)) is expected


fragments = st.sampled_from(
    [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"null", b"-1", b'"x"', b"\xff", b"\\ud800", b"1e999", b""]
)
N_SPANS = 6


@settings(max_examples=400, deadline=None)
@given(st.booleans(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), fragments), min_size=1, max_size=4))
def test_mutated_files_raise_nothing_and_every_span_is_accounted_for(
    one_a_line: bool, changes: list[tuple[float, int, bytes]]
) -> None:
    rows = [{**ROW, "spanId": f"{number:016x}"} for number in range(1, N_SPANS + 1)]
    if one_a_line:
        data = bytearray(b"\n".join(json.dumps(with_row(**row)).encode() for row in rows))
    else:
        data = bytearray(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}).encode())
    for place, n_bytes, new in changes:
        at = int(place * (len(data) - 1))
        data[at : at + n_bytes] = new

    spans, errors, problems = unpacked(bytes(data))

    if not errors and not problems:
        assert len(spans) == n_by_the_standard_library(bytes(data))
    if one_a_line:
        # A change costs the lines it touches, and joins two of them at most.
        assert len(spans) + 2 * len(changes) >= N_SPANS


def n_by_the_standard_library(data: bytes) -> int:
    text, at, n_spans = data.decode("utf-8", "replace"), 0, 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = json.JSONDecoder().raw_decode(text, at)
        for resource in document["resourceSpans"]:
            n_spans += sum(len(scope["spans"]) for scope in resource["scopeSpans"])
    return n_spans


@pytest.mark.parametrize("n_bytes", [1, 7, 64])
def test_small_buffers_change_nothing(n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_cursor, "LOOK_BYTES", 0)
    monkeypatch.setattr(json_cursor, "CHUNK_BYTES", n_bytes)
    lines = b"\n".join([json.dumps(REQUEST).encode()] * 3)

    assert unpacked(lines) == ([EXPECTED] * 3, [], {})

from __future__ import annotations

import builtins
import gzip
import io
import json
import random
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("opentelemetry.proto", reason="needs the extra otel")

from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from agentunit.core.results import InputError
from agentunit.installation import install_command
from agentunit.traces.compressed import decompressed
from agentunit.traces.formats_base import Opening, Source
from agentunit.traces.otlp import protobuf_messages as otlp_messages
from agentunit.traces.otlp.json_requests import OTLP_JSON
from agentunit.traces.otlp.protobuf_requests import OTLP_PROTOBUF
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span, SpanEvent

TRACE = bytes(range(16))
VALUES: list[dict[str, Any]] = [
    {"stringValue": "text"},
    {"intValue": "-3"},
    {"doubleValue": 0.5},
    {"boolValue": False},
    {"bytesValue": b64encode(b"\x00\xff").decode()},
    {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}},
    {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}},
]


def put(message: Any, value: dict[str, Any]) -> None:
    ((kind, content),) = value.items()
    if kind == "arrayValue":
        for each in content["values"]:
            put(message.array_value.values.add(), each)
    elif kind == "kvlistValue":
        for each in content["values"]:
            pair = message.kvlist_value.values.add(key=each["key"])
            put(pair.value, each["value"])
    elif kind == "bytesValue":
        message.bytes_value = b"\x00\xff"
    else:
        name = {"stringValue": "string_value", "intValue": "int_value", "doubleValue": "double_value"}
        setattr(message, name.get(kind, "bool_value"), int(content) if kind == "intValue" else content)


def traces(n_spans: int = 3) -> TracesData:
    data = TracesData()
    resource = data.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = resource.scope_spans.add()
    scope.scope.name = "my.scope"
    for number in range(n_spans):
        span = scope.spans.add(trace_id=TRACE, span_id=bytes([1] * 7 + [number]), name=f"step {number}")
        span.start_time_unix_nano, span.end_time_unix_nano = 1_700_000_000_500_000_000, 1_700_000_001_000_000_000
        if number:
            span.parent_span_id = bytes([1] * 7 + [0])
        span.status.code, span.status.message = number % 3, "said"
        for place, value in enumerate(VALUES):
            put(span.attributes.add(key=f"a{place}").value, value)
        span.events.add(name="exception", time_unix_nano=1_700_000_000_600_000_000)
    return data


def as_json(n_spans: int = 3) -> bytes:
    """The same export as OTLP/JSON."""
    rows = [
        {
            "traceId": TRACE.hex(),
            "spanId": bytes([1] * 7 + [number]).hex(),
            "parentSpanId": bytes([1] * 7 + [0]).hex() if number else "",
            "name": f"step {number}",
            "startTimeUnixNano": "1700000000500000000",
            "endTimeUnixNano": "1700000001000000000",
            "status": {"code": number % 3, "message": "said"},
            "attributes": [{"key": f"a{place}", "value": value} for place, value in enumerate(VALUES)],
            "events": [{"name": "exception", "timeUnixNano": "1700000000600000000"}],
        }
        for number in range(n_spans)
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    scopes = [{"scope": {"name": "my.scope"}, "spans": rows}]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}).encode()


def logs() -> LogsData:
    data = LogsData()
    records = data.resource_logs.add().scope_logs.add().log_records
    record = records.add(trace_id=TRACE, span_id=b"12345678", time_unix_nano=1_700_000_000_000_000_000)
    record.attributes.add(key="event.name").value.string_value = "gen_ai.choice"
    record.body.kvlist_value.values.add(key="content").value.string_value = "hi"
    records.add(time_unix_nano=5, severity_text="INFO").body.string_value = "started"
    return data


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def framed(message: bytes, framing: str) -> bytes:
    before = {"one message": b"", "varint": varint(len(message)), "four bytes": len(message).to_bytes(4, "big")}
    return before[framing] + message


FRAMINGS = ["one message", "varint", "four bytes"]


def read(
    format: Any, data: bytes, *, whole: bool = True
) -> tuple[list[Span | LogEvent], list[InputError], dict[str, int]]:
    notes = ReadingNotes()
    found = list(format.read(Source("f", io.BufferedReader(io.BytesIO(data))), notes))
    spans = []
    for each in found:
        if isinstance(each, PackedSpan):
            span = each.unpack(each.data, notes)
            assert span.trace_id == each.trace_id or not whole
            spans.append(span)
    return spans, [each for each in found if isinstance(each, InputError)], notes.problems


def matches(data: bytes) -> bool:
    # As detection sees it: without white space before it, of which a message's first byte is one.
    return OTLP_PROTOBUF.matches(Opening("f", data[: 64 << 10].lstrip(), None, frozenset()))


@pytest.mark.parametrize("framing", FRAMINGS)
def test_protobuf_and_json_of_one_export_give_the_same_spans(framing: str) -> None:
    data = framed(traces().SerializeToString(), framing)

    assert read(OTLP_PROTOBUF, data) == read(OTLP_JSON, as_json())
    assert len(read(OTLP_PROTOBUF, data)[0]) == 3
    assert matches(data)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_messages_one_after_the_other_are_all_read(framing: str) -> None:
    data = b"".join(framed(traces(n).SerializeToString(), framing) for n in (1, 40, 2))

    spans, errors, _ = read(OTLP_PROTOBUF, data)

    assert len(spans) == 43
    assert errors == []


@pytest.mark.parametrize("framing", FRAMINGS)
def test_log_records_of_genai_calls_are_events_of_their_span(framing: str) -> None:
    data = framed(logs().SerializeToString(), framing)

    events, errors, problems = read(OTLP_PROTOBUF, data)

    attributes = {"event.name": "gen_ai.choice", "body": {"content": "hi"}}
    assert events == [LogEvent(TRACE.hex(), b"12345678".hex(), SpanEvent("gen_ai.choice", 1.7e9, attributes))]
    assert errors == []
    assert problems == {"a log record without a trace id or not of a GenAI call was left out": 1}
    assert matches(data)


def test_a_resource_behind_its_spans_is_found() -> None:
    message = traces().resource_spans[0]
    scopes = b"".join(b"\x12" + varint(each.ByteSize()) + each.SerializeToString() for each in message.scope_spans)
    content = scopes + b"\x0a" + varint(message.resource.ByteSize()) + message.resource.SerializeToString()

    spans, _, _ = read(OTLP_PROTOBUF, b"\x0a" + varint(len(content)) + content)

    assert [span.resource for span in spans if isinstance(span, Span)] == [{"service.name": "shop"}] * 3


@pytest.mark.parametrize("framing", FRAMINGS)
def test_of_a_file_that_was_cut_off_the_spans_before_the_cut_are_read(framing: str) -> None:
    data = framed(traces(10).SerializeToString(), framing)

    spans, errors, _ = read(OTLP_PROTOBUF, data[: len(data) // 2])

    assert spans == read(OTLP_JSON, as_json(10))[0][: len(spans)]
    assert 3 <= len(spans) <= 5
    assert len(errors) == 1
    assert errors[0].reason.startswith("the file ends in the middle of a message (at byte ")


def test_parts_that_otlp_does_not_define_are_counted() -> None:
    message = traces(2).SerializeToString() + b"\x22\x03abc"

    spans, errors, problems = read(OTLP_PROTOBUF, message)

    assert len(spans) == 2
    assert (errors, problems) == ([], {"a part that OTLP does not define was left out": 1})


def test_damage_in_a_message_costs_that_message_only() -> None:
    message = traces(2).SerializeToString()
    damaged = message[:1] + b"\xff" * 12 + message[13:]

    spans, errors, _ = read(OTLP_PROTOBUF, b"".join(framed(each, "four bytes") for each in (message, damaged, message)))

    assert len(spans) == 4
    assert [error.reason.partition(":")[0] for error in errors] == ["no protocol buffers"]


def test_a_compressed_file_that_breaks_off_is_told() -> None:
    data = gzip.compress(traces(250).SerializeToString(), mtime=0)

    notes = ReadingNotes()
    found = list(OTLP_PROTOBUF.read(Source("f", decompressed(io.BytesIO(data[:-20]))), notes))

    assert isinstance(found[-1], InputError)
    assert found[-1].reason.startswith("the compressed file is cut off or damaged here (")
    assert len(found) > 100


def test_a_span_of_broken_protobuf_is_counted() -> None:
    data = traces(1)
    data.resource_spans[0].scope_spans[0].spans[0].name = "name"
    raw = data.SerializeToString().replace(b"name", b"na\xffe", 2)

    spans, errors, problems = read(OTLP_PROTOBUF, raw.replace(b"service.na\xffe", b"service.name"))

    assert [(span.trace_id, span.span_id) for span in spans] == [(TRACE.hex(), "")]
    assert errors == []
    assert problems == {"a span that is not valid protobuf was left out": 1}


def test_an_attribute_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_messages, "LONGEST_ATTRIBUTE", 10)
    data = traces(1)
    data.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="long").value.string_value = "x" * 11

    spans, _, problems = read(OTLP_PROTOBUF, data.SerializeToString())

    assert isinstance(spans[0], Span)
    assert "a0" in spans[0].attributes
    assert "long" not in spans[0].attributes
    assert problems[otlp_messages.TOO_LONG] >= 1


def test_a_missing_package_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)

    assert read(OTLP_PROTOBUF, traces().SerializeToString())[1] == [
        InputError("f", None, f"reading OTLP protobuf needs the extra otel: {install_command('otel')}")
    ]


def metrics() -> bytes:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="requests.handled", unit="1")
    metric.sum.data_points.add(as_int=3, time_unix_nano=5)
    return bytes(data.SerializeToString())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n\n",
        b"\n\x10",
        b'{"resourceSpans": []}',
        b"plain text\nof two lines",
        b"\x89PNG\r\n\x1a\n" + bytes(200),
        b"PK\x03\x04" + bytes(range(256)),
        b"SQLite format 3\0" + bytes(100),
        bytes(1000),
        b"\xff" * 1000,
        metrics(),
        *(random.Random(seed).randbytes(3000) for seed in range(20)),
    ],
    ids=lambda data: repr(data[:12]),
)
def test_other_files_are_not_taken_for_protobuf(data: bytes) -> None:
    assert not matches(data)


MESSAGE = traces(6).SerializeToString()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FRAMINGS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4), st.binary(max_size=4))))
def test_mutated_files_raise_nothing(framing: str, changes: list[tuple[float, int, bytes]]) -> None:
    data = bytearray(framed(MESSAGE, framing))
    for place, n_bytes, new in changes:
        at = int(place * (len(data) - 1))
        data[at : at + n_bytes] = new

    spans, errors, problems = read(OTLP_PROTOBUF, bytes(data), whole=False)

    assert errors or problems or all(len(span.trace_id) % 2 == 0 for span in spans)
    assert len(spans) == 6 or changes


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_raise_nothing(data: bytes) -> None:
    _, errors, _ = read(OTLP_PROTOBUF, data, whole=False)

    assert all(error.reason for error in errors)

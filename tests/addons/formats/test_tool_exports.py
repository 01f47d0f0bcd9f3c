"""Runs of LangSmith, calls of Weave, spans of Opik, rows of Logfire and span objects of OpenTelemetry-JS."""

from __future__ import annotations

import io
import json

import pytest

from agentunit.addons.formats.exports.span_rows import read_span_rows
from agentunit.core.results import InputError
from agentunit.traces.formats import detect, opening_of
from agentunit.traces.formats_base import Source
from agentunit.traces.spans import ReadingNotes


def _lines(*rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


def _spans(*rows):
    return list(read_span_rows(Source("runs.jsonl", io.BytesIO(_lines(*rows))), ReadingNotes()))


def _run(number=1, **more):
    started = {"id": f"r{number}", "trace_id": "t", "name": "step", "start_time": "2026-01-01T00:00:00Z"}
    return {**started, "run_type": "chain", "dotted_order": f"20260101T000000000000Zr{number}", **more}


ORDER = "20260101T000000000000Z" + "a" * 36


def test_a_run_posted_in_two_parts_is_one_span():
    post = _run(
        id="a" * 36, dotted_order=ORDER, run_type="llm", inputs={"messages": [{"role": "user", "content": "Hi"}]}
    )
    # LangSmith's JavaScript SDK patches by order alone.
    patch = {
        "dotted_order": ORDER,
        "trace_id": "t",
        "end_time": 1767225601000,
        "outputs": {"role": "assistant", "content": "Ho"},
    }
    (span,) = _spans({"post": [post], "patch": [patch]})
    assert json.loads(span.attributes["gen_ai.output.messages"]) == [{"role": "assistant", "content": "Ho"}]
    assert span.end_s - span.start_s == 1
    assert len(_spans({"post": [post]}, {"patch": [patch]})) == 1


def test_a_run_that_never_ended_is_kept():
    (span,) = _spans(_run(inputs={"question": "Why?"}))
    assert span.end_s is None
    assert json.loads(span.attributes["input.value"]) == {"question": "Why?"}


def test_tokens_of_a_run_count_at_the_model_alone():
    chain, model = _spans(
        _run(1, end_time="2026-01-01T00:00:02Z", prompt_tokens=5, completion_tokens=1),
        _run(
            2, end_time="2026-01-01T00:00:02Z", prompt_tokens=5, completion_tokens=1, run_type="llm", total_cost="0.5"
        ),
    )
    assert "gen_ai.usage.input_tokens" not in chain.attributes
    assert (model.attributes["gen_ai.usage.input_tokens"], model.attributes["gen_ai.usage.cost"]) == (5, 0.5)


def test_messages_of_langchain_s_tracer_are_read():
    human = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": "Hi"}}
    reply = {"text": "", "message": {"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "Ho", "type": "ai"}}}
    (span,) = _spans(
        _run(run_type="llm", end_time=1, inputs={"messages": [[human]]}, outputs={"generations": [[reply]]})
    )
    asked, answered = (json.loads(span.attributes[f"gen_ai.{way}.messages"])[0] for way in ("input", "output"))
    assert (asked["role"], asked["content"], answered["role"], answered["content"]) == ("user", "Hi", "assistant", "Ho")


def test_arguments_that_langchain_writes_as_python_are_data():
    (span,) = _spans(_run(run_type="tool", end_time=1, inputs={"input": "{'city': 'Oslo', 'days': 2}"}))
    assert json.loads(span.attributes["gen_ai.tool.call.arguments"]) == {"city": "Oslo", "days": 2}


def test_a_field_that_nobody_knows_is_kept_under_the_tool_s_name():
    (span,) = _spans(_run(end_time=1, moon_phase="full"))
    assert span.attributes["langsmith_run.moon_phase"] == "full"


def test_anthropic_s_cached_tokens_are_part_of_the_input():
    usage = {"claude": {"requests": 1, "input_tokens": 2, "output_tokens": 3, "cache_read_input_tokens": 90}}
    call = {"id": "c", "trace_id": "t", "op_name": "weave:///a/b/op/anthropic.Messages.create:v", "inputs": {}}
    (span,) = _spans({**call, "started_at": "2026-01-01T00:00:00Z", "summary": {"usage": usage}})
    assert span.name == "anthropic.Messages.create"
    assert span.attributes["gen_ai.usage.input_tokens"] == 92
    assert span.attributes["gen_ai.usage.cache_read.input_tokens"] == 90


def test_the_calls_of_a_task_of_hal_are_one_trace():
    call = {"op_name": "openai.chat.completions.create", "started_at": "2026-01-01T00:00:00Z", "weave_task_id": "7"}
    results = {
        "config": {},
        "raw_logging_results": [{**call, "id": "a", "trace_id": "1"}, {**call, "id": "b", "trace_id": "2"}],
    }
    assert [span.trace_id for span in _spans(results)] == ["7", "7"]


def test_spans_of_opik_hang_below_their_trace():
    trace = {"id": "t1", "name": "agent", "start_time": "2026-01-01T00:00:00Z", "input": {"q": "Why?"}}
    span = {"id": "s1", "trace_id": "t1", "type": "tool", "name": "search", "start_time": "2026-01-01T00:00:00Z"}
    root, below = _spans({"trace": trace, "spans": [{**span, "input": {"q": 1}}]})
    assert (root.span_id, root.parent_id, below.parent_id) == ("t1", None, "t1")
    assert below.attributes["gen_ai.tool.name"] == "search"


def test_decoded_attributes_of_logfire_are_values_not_names():
    said = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    row = {"trace_id": "a1", "span_id": "b1", "start_timestamp": "2026-01-01T00:00:00Z", "span_name": "chat"}
    (span,) = _spans({"rows": [{**row, "attributes": {"gen_ai.input.messages": said}}]})
    assert span.attributes["gen_ai.input.messages"] == said


def test_times_of_span_objects_are_seconds_and_nanoseconds():
    span = {"name": "ai.toolCall", "spanContext": {"traceId": "a1", "spanId": "b1"}, "attributes": {}}
    event = {"name": "e", "time": [1770000001, 0], "attributes": {}}
    (read,) = _spans([{**span, "startTime": [1770000000, 500000000], "endTime": [1770000002, 0], "events": [event]}])
    assert (read.start_s, read.end_s, read.events[0].timestamp) == (1770000000.5, 1770000002.0, 1770000001.0)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (_run(), "langsmith"),
        ({"post": [_run()], "patch": []}, "langsmith"),
        ({"runs": [_run()]}, "langsmith"),
        ({"id": "a", "op_name": "f", "started_at": "2026-01-01T00:00:00Z", "trace_id": "t"}, "weave"),
        ({"trace": {"id": "t", "start_time": "x", "input": 1}, "spans": []}, "opik"),
        ({"traceId": "a", "id": "b", "timestamp": 1, "duration": 5, "attributes": {}}, "otel-js"),
        ({"traceId": "a", "id": "b", "timestamp": 1, "duration": 5, "tags": {}}, "zipkin"),
    ],
)
def test_each_is_taken_for_what_it_is(row, name):
    assert detect(opening_of("x", _lines(row))).name == name


@pytest.mark.parametrize("odd", [[], {}, 7, "text", None, True])
@pytest.mark.parametrize("field", ["inputs", "outputs", "extra", "run_type", "error", "total_cost", "child_runs"])
def test_fields_of_other_types_do_no_harm(field, odd):
    row = _run(run_type="llm", end_time=1, inputs={"messages": []}, outputs={"usage_metadata": {"input_tokens": 1}})
    assert not [
        found
        for found in _spans({**row, field: odd})
        if isinstance(found, InputError) and "cannot be read" in str(found)
    ]

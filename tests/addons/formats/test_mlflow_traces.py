"""Traces that MLflow 2 and 3 wrote, and what is left of them when they are damaged."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.formats.exports.mlflow import MLFLOW_TRACES, read_mlflow_traces
from agentunit.addons.formats.exports.span_rows import SPAN_ROW_FORMATS
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source
from agentunit.traces.spans import ReadingNotes, Span

RECORDED = Path(__file__).resolve().parents[2] / "traces" / "recorded"
FILES = sorted(path.name for path in RECORDED.glob("mlflow_*"))
TRACE_3 = json.loads((RECORDED / "mlflow_3_trace.json").read_bytes())
TRACE_2 = json.loads((RECORDED / "mlflow_2_trace.json").read_bytes())


def read(data: bytes) -> tuple[list[Span], list[InputError], ReadingNotes]:
    notes = ReadingNotes()
    found = list(read_mlflow_traces(Source("traces.json", io.BytesIO(data)), notes))
    errors = [each for each in found if isinstance(each, InputError)]
    return [each for each in found if isinstance(each, Span)], errors, notes


def read_value(value: Any) -> tuple[list[Span], list[InputError], ReadingNotes]:
    return read(json.dumps(value).encode())


def test_traces_of_both_versions_are_recorded() -> None:
    assert FILES == ["mlflow_2_search.jsonl", "mlflow_2_trace.json", "mlflow_3_search.json", "mlflow_3_trace.json"]


@pytest.mark.parametrize("name", FILES)
def test_recorded_traces(name: str) -> None:
    spans, errors, notes = read((RECORDED / name).read_bytes())
    assert not errors
    assert not notes.problems
    root, search, weather, failed, chat = spans
    assert [span.attributes["mlflow.spanType"] for span in spans] == [
        "AGENT",
        "RETRIEVER",
        "TOOL",
        "TOOL",
        "CHAT_MODEL",
    ]
    assert [span.parent_id for span in spans] == [None] + [root.span_id] * 4
    assert {len(span.trace_id) for span in spans} == {32}
    assert {len(span.span_id) for span in spans} == {16}
    assert [span.status for span in spans] == ["ok", "ok", "ok", "error", "ok"]
    assert all(span.start_s and span.end_s and 1.7e9 < span.start_s <= span.end_s for span in spans)

    assert root.attributes["mlflow.spanInputs"] == {"question": "How warm is Paris?"}
    assert root.attributes["mlflow.spanOutputs"] == "It is 21.5 degrees in Paris."
    assert root.attributes["mlflow.traceName"] == "travel agent"
    assert root.attributes["tags.stage"] == "test"
    assert root.attributes["mlflow.trace.state"] == "OK"
    assert search.attributes["mlflow.spanOutputs"][0]["page_content"] == "Paris is mild in May."
    assert weather.attributes["mlflow.spanOutputs"] == {"city": "Paris", "celsius": 21.5}
    assert failed.status_message == "ValueError: unknown city: Nowhere"
    assert "mlflow.spanOutputs" not in failed.attributes
    (event,) = failed.events
    assert (event.name, event.attributes["exception.type"]) == ("exception", "ValueError")
    assert event.timestamp is not None
    assert failed.start_s <= event.timestamp <= failed.end_s  # type: ignore[operator]
    assert chat.attributes["mlflow.chat.tokenUsage"] == {"input_tokens": 31, "output_tokens": 7, "total_tokens": 38}
    assert chat.attributes["temperature"] == 0.2
    assert not any(name.startswith("mlflow.trace.") for span in spans[1:] for name in span.attributes)


def test_what_version_3_says_of_a_trace_stands_on_its_root() -> None:
    (root, *_), _, _ = read_value(TRACE_3)
    assert root.trace_id == TRACE_3["info"]["trace_id"].removeprefix("tr-")
    assert root.attributes["mlflow.traceRequestId"] == TRACE_3["info"]["trace_id"]
    assert root.attributes["mlflow.trace.session"] == "s-1"
    assert root.attributes["mlflow.trace.user"] == "u-1"
    assert root.attributes["mlflow.trace.tokenUsage"] == {"input_tokens": 31, "output_tokens": 7, "total_tokens": 38}
    expected, feedback = root.attributes["mlflow.trace.assessments"]
    assert (expected["assessment_name"], expected["expectation"]) == ("expected_response", {"value": "21.5 degrees"})
    assert (feedback["assessment_name"], feedback["feedback"]) == ("correct", {"value": True})


def test_only_what_mlflow_wrote_as_json_is_undone() -> None:
    span = {"trace_id": "a1", "span_id": "b2", "name": "x", "start_time_unix_nano": 1, "attributes": {}}
    attributes = {
        "mlflow.spanInputs": json.dumps({"body": '{"inner": 1}'}),
        "mlflow.spanOutputs": "null",
        "plain": "no json",
        "bare": "NaN",
        "data": {"n": 1},
    }
    info = {"trace_metadata": {"mlflow.trace.session": "12", "mlflow.trace.user": '"quoted"', "cut": '{"a": '}}
    ((root,), errors, _) = read_value({"info": info, "data": {"spans": [span | {"attributes": attributes}]}})
    assert not errors
    assert root.attributes == {
        "mlflow.spanInputs": {"body": '{"inner": 1}'},
        "mlflow.spanOutputs": None,
        "plain": "no json",
        "bare": "NaN",
        "data": {"n": 1},
        "mlflow.trace.session": "12",
        "mlflow.trace.user": "quoted",
        "cut": '{"a": ',
    }


@pytest.mark.parametrize(
    "value",
    [
        [TRACE_3, TRACE_2],
        {"traces": [TRACE_3, TRACE_2]},
        [{"trace": json.dumps(TRACE_3)}, {"trace": TRACE_2}],
        [{"spans": json.dumps(TRACE_3["data"]["spans"])}, TRACE_2["data"]],
    ],
    ids=["array", "traces", "column of whole traces", "spans alone"],
)
def test_traces_are_found_wherever_they_lie(value: Any) -> None:
    spans, errors, _ = read_value(value)
    assert not errors
    assert [span.name for span in spans] == [
        *("travel agent", "search", "weather", "weather", "chat"),
        *("travel agent", "search", "weather_1", "weather_2", "chat"),
    ]


@pytest.mark.parametrize("name", FILES)
def test_mlflow_is_told_from_the_rest(name: str) -> None:
    text = (RECORDED / name).read_bytes()
    value = json.loads(text)
    assert MLFLOW_TRACES.matches(Opening(name, text[: 64 << 10], value, frozenset(value)))
    assert MLFLOW_TRACES.matches(Opening(name, text[: 64 << 10], None, frozenset()))


def test_spans_that_mlflow_stored_are_told_by_their_attributes() -> None:
    value = {"spans": TRACE_2["data"]["spans"]}
    assert MLFLOW_TRACES.matches(Opening("traces.json", b"", value, frozenset(value)))


@pytest.mark.parametrize(
    "value",
    [{"spans": [{"trace_id": "a1", "span_id": "b2", "attributes": {"llm.model_name": "m"}}]}, {"info": {}}, {}, [], 3],
)
def test_other_files_are_not_taken_for_mlflow(value: Any) -> None:
    assert not MLFLOW_TRACES.matches(Opening("x.json", json.dumps(value).encode(), value, frozenset()))


def test_whole_traces_are_not_taken_for_rows_of_spans() -> None:
    for value in (TRACE_2, TRACE_3):
        opening = Opening("x.json", b"", value, frozenset(value))
        assert not any(each.matches(opening) for each in SPAN_ROW_FORMATS)


@pytest.mark.parametrize("spans", [[], None, "nothing", 7])
def test_a_trace_without_spans_is_named(spans: Any) -> None:
    _, (error,), _ = read_value({"info": {"trace_id": "tr-1"}, "data": {"spans": spans}})
    assert error.reason.startswith("the trace 'tr-1' has no spans")


def test_spans_without_ids_are_errors_and_the_rest_is_read() -> None:
    rows = TRACE_3["data"]["spans"]
    broken = [{"name": "no ids"}, 7, *rows[1:]]
    spans, errors, _ = read_value(TRACE_3 | {"data": {"spans": broken}})
    assert [span.name for span in spans] == ["search", "weather", "weather", "chat"]
    assert len(errors) == 2
    # Without a root the first span holds what is said of the trace.
    assert spans[0].attributes["mlflow.trace.session"] == "s-1"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz.", max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data(), st.sampled_from([TRACE_2, TRACE_3]))
def test_mutated_spans_never_raise_and_every_one_is_accounted_for(data: st.DataObject, trace: dict[str, Any]) -> None:
    rows = []
    for row in trace["data"]["spans"]:
        mutant = dict(row)
        for name in data.draw(st.sets(st.sampled_from(sorted(row)), max_size=3)):
            if data.draw(st.booleans()):
                del mutant[name]
            else:
                mutant[name] = data.draw(json_values)
        rows.append(mutant)
    info = dict(trace["info"])
    for name in data.draw(st.sets(st.sampled_from(sorted(info)), max_size=3)):
        info[name] = data.draw(json_values)
    spans, errors, _ = read_value({"info": info, "data": {"spans": rows}})
    assert len(spans) + len(errors) == len(rows)


@given(json_values.filter(lambda value: not isinstance(value, list)))
def test_any_json_is_read_or_refused(value: Any) -> None:
    spans, errors, _ = read_value(value)
    assert not spans
    assert len(errors) == 1

"""Exports of Langfuse in the shapes its API, UI and storage have, after its specification."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.formats.exports import langfuse
from agentunit.addons.formats.exports.langfuse import LANGFUSE_EXPORT, read_langfuse_export
from agentunit.addons.formats.exports.mlflow import MLFLOW_TRACES
from agentunit.addons.formats.exports.span_rows import SPAN_ROW_FORMATS
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source
from agentunit.traces.spans import ReadingNotes, Span

MESSAGES = [{"role": "user", "content": "How warm is Paris?"}]
AGENT: dict[str, Any] = {
    "id": "6d8beb2e6a36b133",
    "traceId": "b82a0bdc1994fc5d1c8576ca032543f7",
    "type": "AGENT",
    "name": "travel agent",
    "startTime": "2025-08-28T07:32:30.500Z",
    "endTime": "2025-08-28T07:32:32.250Z",
    "completionStartTime": None,
    "model": None,
    "modelParameters": None,
    "input": "How warm is Paris?",
    "output": "21.5 degrees.",
    "version": None,
    "metadata": {"team": "travel"},
    "usage": {"input": 0, "output": 0, "total": 0, "unit": "TOKENS"},
    "usageDetails": {},
    "costDetails": {},
    "level": "DEFAULT",
    "statusMessage": None,
    "parentObservationId": None,
    "promptId": None,
    "environment": "default",
    "calculatedTotalCost": 0,
    "latency": 1.75,
}
GENERATION = AGENT | {
    "id": "bded677884f031ce",
    "type": "GENERATION",
    "name": "chat",
    "startTime": "2025-08-28T07:32:31.000Z",
    "model": "gpt-4o-mini",
    "modelParameters": {"temperature": 0},
    "input": MESSAGES,
    "output": {"role": "assistant", "content": "21.5 degrees."},
    "metadata": {
        "attributes": {"gen_ai.request.model": "gpt-4o-mini"},
        "resourceAttributes": {"service.name": "shop"},
        "scope": {"name": "some.scope", "version": "1"},
        "node": "answer",
    },
    "usageDetails": {"input": 31, "output": 7, "total": 38},
    "costDetails": {"input": 0.001, "output": 0.002, "total": 0.003},
    "parentObservationId": AGENT["id"],
}
TOOL = AGENT | {
    "id": "86cd4912944ddc41",
    "type": "TOOL",
    "name": "weather",
    "input": {"city": "Nowhere"},
    "output": None,
    "level": "ERROR",
    "statusMessage": "unknown city: Nowhere",
    "parentObservationId": AGENT["id"],
}
# Observations come in any order.
OBSERVATIONS = [GENERATION, TOOL, AGENT]
ABOUT: dict[str, Any] = {
    "id": AGENT["traceId"],
    "timestamp": "2025-08-28T07:32:30.500Z",
    "name": "travel",
    "input": "How warm is Paris?",
    "output": "21.5 degrees.",
    "sessionId": "session-1",
    "userId": "user-1",
    "release": None,
    "version": "7",
    "metadata": {"team": "travel"},
    "tags": ["demo"],
    "public": False,
    "environment": "default",
    "htmlPath": "/project/p/traces/b82a0bdc1994fc5d1c8576ca032543f7",
    "latency": 1.75,
    "totalCost": 0.003,
}
SCORES = [{"id": "s1", "traceId": ABOUT["id"], "name": "correct", "value": 1, "dataType": "NUMERIC", "source": "EVAL"}]
API_TRACE = ABOUT | {"observations": OBSERVATIONS, "scores": SCORES}
OF_THE_TRACE = {
    "langfuse.trace.name": "travel",
    "langfuse.trace.input": "How warm is Paris?",
    "langfuse.trace.output": "21.5 degrees.",
    "langfuse.trace.metadata": {"team": "travel"},
    "langfuse.trace.tags": ["demo"],
    "langfuse.trace.public": False,
    "langfuse.trace.total_cost": 0.003,
    "langfuse.trace.latency": 1.75,
    "langfuse.trace.scores": SCORES,
    "langfuse.environment": "default",
    "langfuse.version": "7",
    "langfuse.session.id": "session-1",
    "langfuse.user.id": "user-1",
}


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def stored(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the storage holds it: names in snake case, data as JSON in texts, times without a zone."""
    renamed = {snake(name): value for name, value in row.items() if name not in ("usage", "model", "htmlPath")}
    texts = {
        name: json.dumps(row[name]) for name in ("input", "output") if not isinstance(row[name], (str, type(None)))
    }
    times = {
        name: value.replace("T", " ").removesuffix("Z")
        for name, value in renamed.items()
        if name.endswith("_time") and value
    }
    return renamed | texts | times | ({"provided_model_name": row["model"]} if "model" in row else {})


def read(data: bytes) -> tuple[list[Span], list[InputError], ReadingNotes]:
    notes = ReadingNotes()
    found = list(read_langfuse_export(Source("export.json", io.BytesIO(data)), notes))
    errors = [each for each in found if isinstance(each, InputError)]
    return [each for each in found if isinstance(each, Span)], errors, notes


def read_value(value: Any) -> tuple[list[Span], list[InputError], ReadingNotes]:
    return read(json.dumps(value).encode())


SHAPES = {
    "api trace": API_TRACE,
    "api list": {"data": [API_TRACE], "meta": {"page": 1}},
    "ui": {"trace": ABOUT | {"observations": [{"id": AGENT["id"]}]}, "observations": OBSERVATIONS, "scores": SCORES},
    "ui without trace": {"observations": OBSERVATIONS, "scores": SCORES},
    "api observations": {"data": OBSERVATIONS, "meta": {"cursor": "x"}},
    "array of observations": OBSERVATIONS,
}
WITHOUT_TRACE = ("ui without trace", "api observations", "array of observations")


@pytest.mark.parametrize("shape", SHAPES)
def test_observations_become_spans_in_every_shape(shape: str) -> None:
    spans, errors, notes = read_value(SHAPES[shape])
    assert not errors
    assert not notes.problems
    chat, tool, agent = spans
    assert {span.trace_id for span in spans} == {ABOUT["id"]}
    assert [span.span_id for span in spans] == [row["id"] for row in OBSERVATIONS]
    assert [span.parent_id for span in spans] == [agent.span_id, agent.span_id, None]
    assert (agent.start_s, agent.end_s) == (1756366350.5, 1756366352.25)
    assert [span.status for span in spans] == ["unset", "error", "unset"]
    assert (tool.name, tool.status_message) == ("weather", "unknown city: Nowhere")
    assert (chat.scope, chat.resource) == ("some.scope", {"service.name": "shop"})
    assert chat.attributes == {
        "gen_ai.request.model": "gpt-4o-mini",
        "langfuse.observation.type": "GENERATION",
        "langfuse.observation.level": "DEFAULT",
        "langfuse.observation.input": MESSAGES,
        "langfuse.observation.output": {"role": "assistant", "content": "21.5 degrees."},
        "langfuse.observation.metadata": {"node": "answer"},
        "langfuse.observation.model.name": "gpt-4o-mini",
        "langfuse.observation.model.parameters": {"temperature": 0},
        "langfuse.observation.usage_details": {"input": 31, "output": 7, "total": 38},
        "langfuse.observation.cost_details": {"input": 0.001, "output": 0.002, "total": 0.003},
        "langfuse.environment": "default",
    }
    of_the_trace = {name: value for name, value in agent.attributes.items() if "observation" not in name}
    if shape not in WITHOUT_TRACE:
        assert of_the_trace == OF_THE_TRACE
    elif shape == "ui without trace":
        assert of_the_trace == {"langfuse.trace.scores": SCORES, "langfuse.environment": "default"}
    assert "langfuse.observation.usage_details" not in agent.attributes
    assert "langfuse.observation.cost_details" not in agent.attributes


def test_rows_of_the_storage() -> None:
    spans, errors, notes = read("\n".join(json.dumps(stored(row)) for row in OBSERVATIONS).encode())
    assert not errors
    assert not notes.problems
    for span, expected in zip(spans, read_value(OBSERVATIONS)[0], strict=True):
        for name in ("input", "output"):
            value = expected.attributes.get(f"langfuse.observation.{name}")
            if not isinstance(value, (str, type(None))):
                # A text from the storage stays as it is, like one that came by OpenTelemetry.
                assert json.loads(span.attributes.pop(f"langfuse.observation.{name}")) == value
                del expected.attributes[f"langfuse.observation.{name}"]
        assert span == expected


@pytest.mark.parametrize("row", [ABOUT, ABOUT | {"observations": ["o1", "o2"], "scores": []}, stored(ABOUT)])
def test_a_trace_without_its_observations_is_a_span_by_itself(row: dict[str, Any]) -> None:
    (span,), errors, _ = read_value(row)
    assert not errors
    assert (span.trace_id, span.span_id, span.parent_id) == (ABOUT["id"], ABOUT["id"], None)
    assert (span.name, span.start_s, span.end_s) == ("travel", 1756366350.5, 1756366352.25)
    assert span.attributes == {name: value for name, value in OF_THE_TRACE.items() if name != "langfuse.trace.scores"}


def test_what_is_said_of_a_trace_stands_on_its_first_root() -> None:
    late = AGENT | {"id": "aa", "startTime": "2025-08-28T09:00:00Z"}
    # Its parent was not exported, which makes it a root of what was.
    early = AGENT | {"id": "bb", "parentObservationId": "elsewhere", "startTime": "2025-08-28T06:00:00Z"}
    spans, _, _ = read_value(API_TRACE | {"observations": [late, GENERATION | {"parentObservationId": "aa"}, early]})
    assert ["langfuse.trace.total_cost" in span.attributes for span in spans] == [False, False, True]
    assert spans[2].parent_id == "elsewhere"


@pytest.mark.parametrize(
    ("fields", "usage", "costs"),
    [
        (
            {"usage": {"input": 5, "output": 2, "total": 7, "unit": "TOKENS"}},
            {"input": 5, "output": 2, "total": 7},
            None,
        ),
        ({"usage": {"input": 5, "output": None, "total": 5, "unit": None}}, {"input": 5, "total": 5}, None),
        ({"usage": {"input": 900, "output": 0, "total": 900, "unit": "CHARACTERS"}}, None, None),
        ({"usage": {"promptTokens": 5, "completionTokens": 2}}, {"input": 5, "output": 2}, None),
        ({"promptTokens": 5, "completionTokens": 2, "totalTokens": 7}, {"input": 5, "output": 2, "total": 7}, None),
        ({"promptTokens": 0, "completionTokens": 0, "totalTokens": 0}, None, None),
        ({"calculatedInputCost": 0.1, "calculatedTotalCost": 0.1}, None, {"input": 0.1, "total": 0.1}),
        ({"total_cost": 0.25}, None, {"total": 0.25}),
        ({"usage_details": {"input": 3, "input_cached_tokens": 1}}, {"input": 3, "input_cached_tokens": 1}, None),
    ],
)
def test_usage_and_cost_of_older_versions(fields: dict[str, Any], usage: Any, costs: Any) -> None:
    row = {name: AGENT[name] for name in ("id", "traceId", "type", "startTime")}
    (span,), _, _ = read_value(row | fields)
    assert span.attributes.get("langfuse.observation.usage_details") == usage
    assert span.attributes.get("langfuse.observation.cost_details") == costs


@pytest.mark.parametrize("shape", SHAPES)
def test_langfuse_is_told_from_the_rest(shape: str) -> None:
    value = SHAPES[shape]
    text = json.dumps(value).encode()
    first = value[0] if isinstance(value, list) else value
    assert LANGFUSE_EXPORT.matches(Opening("x.json", text, first, frozenset(first)))
    assert LANGFUSE_EXPORT.matches(Opening("x.json", text, None, frozenset()))
    assert not any(
        each.matches(Opening("x.json", text, first, frozenset())) for each in (MLFLOW_TRACES, *SPAN_ROW_FORMATS)
    )


@pytest.mark.parametrize("row", [stored(ABOUT), stored(GENERATION), ABOUT, ABOUT | {"observations": ["o1"]}])
def test_single_rows_are_told_from_the_rest(row: dict[str, Any]) -> None:
    assert LANGFUSE_EXPORT.matches(Opening("x.jsonl", json.dumps(row).encode(), row, frozenset(row)))


@pytest.mark.parametrize(
    "value",
    [
        {"observations": []},
        {"observations": [{"reward": 1.0}]},
        {"id": "1", "timestamp": "2025-08-28T09:00:00Z", "text": "a log"},
        {"traceId": "a1", "id": "b2", "timestamp": 1753097483500000, "duration": 7, "localEndpoint": {}},
        {"type": "function", "id": "call_1"},
        {},
        7,
    ],
)
def test_other_files_are_not_taken_for_langfuse(value: Any) -> None:
    assert not LANGFUSE_EXPORT.matches(Opening("x.json", json.dumps(value).encode(), value, frozenset()))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (GENERATION | {"id": None}, "the observation has no id; it is missing"),
        (GENERATION | {"traceId": [1]}, "the observation has no trace id; it is [1]"),
        (SCORES[0], "neither a trace nor an observation of Langfuse; its names are: dataType, id"),
        (7, "an observation should be an object; received 7"),
    ],
)
def test_what_is_no_observation_is_an_error_that_says_so(row: Any, reason: str) -> None:
    spans, (error,), _ = read_value([AGENT, row, TOOL])
    assert [span.span_id for span in spans] == [AGENT["id"], TOOL["id"]]
    assert reason in error.reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz.", max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data(), st.booleans())
def test_mutated_observations_never_raise_and_every_one_is_accounted_for(data: st.DataObject, snake_case: bool) -> None:
    rows = []
    for row in OBSERVATIONS:
        mutant = stored(row) if snake_case else dict(row)
        for name in data.draw(st.sets(st.sampled_from(sorted(mutant)), max_size=4)):
            if data.draw(st.booleans()):
                del mutant[name]
            else:
                mutant[name] = data.draw(json_values)
        rows.append(mutant)
    for value in (API_TRACE | {"observations": rows}, [{**row, "observations": None} for row in rows]):
        spans, errors, _ = read_value(value)
        assert len(spans) + len(errors) == len(rows)


@given(json_values.filter(lambda value: not isinstance(value, list)))
def test_any_json_is_read_or_refused(value: Any) -> None:
    spans, errors, _ = read_value(value)
    assert not spans
    assert len(errors) == 1


def _read_rows(*rows: dict[str, Any]) -> list[Any]:
    data = b"\n".join(json.dumps(row).encode() for row in rows)
    return list(read_langfuse_export(Source("export.jsonl", io.BytesIO(data)), ReadingNotes()))


def test_names_are_looked_up_once_for_all_rows_that_have_the_same():
    """Of 22 fields, each under several names, most rows of a file lack most."""
    langfuse._places.cache_clear()
    spans = _read_rows(*({**GENERATION, "id": f"{number:016x}"} for number in range(1, 51)))
    assert [span.attributes for span in spans] == [spans[0].attributes] * 50
    assert langfuse._places.cache_info().misses <= len(langfuse._TABLES)


def test_the_names_of_a_row_with_very_many_are_not_kept():
    (same,) = _read_rows(GENERATION)
    langfuse._places.cache_clear()
    assert _read_rows(GENERATION | {f"own{number}": "" for number in range(200)}) == [same]
    assert langfuse._places.cache_info().misses == 0

"""Real exports of other tools: tokens, cost and errors are exactly those that the files themselves state."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agentunit
from agentunit.core.records import Record
from agentunit.traces.reading import TraceFiles

DATA = Path(os.environ.get("AGENTUNIT_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data")

pytestmark = pytest.mark.skipif(not (DATA / "otel").is_dir(), reason="set AGENTUNIT_DATA to the folder of shared data")


def records_of(*paths: Path, **options: Any) -> tuple[dict[str, Record], TraceFiles]:
    files = TraceFiles(paths, **options)
    records = {}
    for each in files:
        assert isinstance(each, Record), each
        records[each.case.id] = each
    return records, files


def values(records: dict[str, Record], metric: str) -> dict[str, Any]:
    return {case.case_id: case.scores[metric].result for case in agentunit.score(records.values(), [metric])}


def spans_below(span: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield span
    for child in span["child_spans"]:
        yield from spans_below(child)


def test_trail_states_the_same_tokens_and_tool_errors() -> None:
    path = DATA / "dev" / "trail_openinference.jsonl.gz"
    prompt, completion, tools = Counter[str](), Counter[str](), Counter[tuple[str, bool]]()
    n_spans = 0
    for line in gzip.decompress(path.read_bytes()).splitlines():
        trace = json.loads(line)["trace"]
        for root in trace["spans"]:
            for span in spans_below(root):
                n_spans += 1
                attributes = span["span_attributes"]
                kind = attributes.get("openinference.span.kind")
                if kind == "LLM":
                    prompt[trace["trace_id"]] += int(attributes["llm.token_count.prompt"])
                    completion[trace["trace_id"]] += int(attributes["llm.token_count.completion"])
                elif kind == "TOOL":
                    tools[trace["trace_id"], span["status_code"] != "Error"] += 1
    records, files = records_of(path)
    assert len(records) == 34
    assert files.notes.n_spans == n_spans == sum(files.notes.kinds.values())
    for case_id, result in values(records, "token_usage").items():
        assert result.detail["prompt_tokens"] == prompt[case_id]
        assert result.detail["completion_tokens"] == completion[case_id]
    for case_id, result in values(records, "tool_success").items():
        good, bad = tools[case_id, True], tools[case_id, False]
        assert len(result.detail["tool_calls"]) == good + bad
        assert result.value == (good / (good + bad) if good + bad else None)
    assert all(record.case.query and record.outcome.output for record in records.values())


def test_a_langgraph_export_joins_its_two_traces_by_session() -> None:
    path = DATA / "otel" / "agntcy_single_session_traces.json"
    rows = [row for session in json.loads(path.read_text()).values() for row in session]
    stated = sum(int(row["SpanAttributes"].get("llm.usage.total_tokens", 0)) for row in rows)
    records, files = records_of(path, group_by="session")
    (record,) = records.values()
    assert files.notes.n_spans == len(rows)
    assert values(records, "token_usage")[record.case.id].value == stated
    assert record.case.query == "Could you generate a random number between 2 and 3?"
    assert record.outcome.output == "The random number generated between 2 and 3 is approximately 2.995."
    (call,) = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert call["arguments"] == {"lower_bound": 2, "upper_bound": 3}
    assert (call["status"], call["result"]) == ("success", "2.994778659771288")


def test_trulens_spans_of_six_files_make_one_case() -> None:
    files = sorted((DATA / "otel").glob("trulens_*.json"))
    attributes = [json.loads(path.read_text())["record_attributes"] for path in files]
    records, notes = records_of(*files)
    (record,) = records.values()
    root = next(each for each in attributes if "ai.observability.record_root.input" in each)
    assert record.case.query == root["ai.observability.record_root.input"]
    assert record.outcome.output == root["ai.observability.record_root.output"]
    assert record.case.expected_output == root["ai.observability.record_root.ground_truth_output"]
    costs = [each.get("ai.observability.cost.cost", 0.0) for each in attributes]
    assert values(records, "cost")[record.case.id].value == sum(costs)
    contexts = next(each for each in attributes if "ai.observability.retrieval.retrieved_contexts" in each)
    retrieved = [event.payload["documents"] for event in record.trace.events if event.type == "retrieval"]
    assert retrieved == [contexts["ai.observability.retrieval.retrieved_contexts"]]
    # The judges' own calls are not the agent's.
    generation = next(each for each in attributes if each["ai.observability.span_type"] == "generation")
    assert values(records, "token_usage")[record.case.id].value == generation["ai.observability.cost.num_tokens"]
    assert sum(notes.notes.kinds.values()) == len(files)

"""One span, row or line that no reader foresaw: it is named as unreadable, and what stands beside it is read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentunit.addons.formats.exports import span_rows as rows
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.traces.grouping import SpanGroups
from agentunit.traces.reading import TraceFiles

RECORDED = Path(__file__).parent / "recorded"
CORPUS = Path(__file__).parents[1] / "corpus"
FRAMEWORKS = Path(__file__).parents[1] / "frameworks" / "recorded"
N_MUTATIONS = 6

JAEGER = {
    "data": [
        {
            "traceID": "a" * 32,
            "spans": [
                {"traceID": "a" * 32, "spanID": "1" * 16, "operationName": "one", "startTime": 1, "duration": 5},
                {"traceID": "a" * 32, "spanID": "2" * 16, "operationName": "two", "startTime": 2, "duration": 5},
            ],
            "processes": {},
        }
    ]
}
SPAN_JSON = [
    {
        "name": name,
        "context": {"trace_id": "0x" + "a" * 32, "span_id": "0x" + name * 16},
        "start_time": "2025-01-01T00:00:00Z",
        "duration": 1,
        "attributes": {"openinference.span.kind": "AGENT", "input.value": "Why?"},
    }
    for name in "12"
]
LANGFUSE = [
    {"id": name, "timestamp": "2025-01-01T00:00:00Z", "name": "t", "input": "Why?", "latency": 1.5,
     "sessionId": None, "userId": None, "bookmarked": False}
    for name in ("t1", "t2")
]  # fmt: skip


def read(path: Path) -> tuple[list[Record], list[InputError], TraceFiles]:
    files = TraceFiles([path])
    found = list(files)
    records = [each for each in found if isinstance(each, Record)]
    return records, [each for each in found if isinstance(each, InputError)], files


def written(folder: Path, value: Any) -> Path:
    (folder / "spans.json").write_text(json.dumps(value))
    return folder / "spans.json"


def test_a_duration_that_is_half_a_character_costs_its_span_nothing_else(tmp_path: Path) -> None:
    for value in (json.loads(json.dumps(JAEGER)), json.loads(json.dumps(SPAN_JSON))):
        first = value["data"][0]["spans"][0] if isinstance(value, dict) else value[0]
        first["duration"] = "\ud800"
        _, errors, files = read(written(tmp_path, value))
        assert errors == []
        assert files.notes.n_spans == 2


@pytest.mark.parametrize("latency", [10**400, "1e999", 1e308, {"s": 1}])
def test_a_latency_beyond_any_number_is_left_out(tmp_path: Path, latency: Any) -> None:
    records, errors, _ = read(written(tmp_path, [{**LANGFUSE[0], "latency": latency}, LANGFUSE[1]]))
    assert (len(records), errors) == (2, [])


def test_a_span_whose_reader_fails_costs_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(row: Any, *_: Any) -> Any:
        if row.get("name") == "1":
            raise ZeroDivisionError("no such thing")
        return []

    monkeypatch.setattr(rows, "events_of", failing)
    records, errors, _ = read(written(tmp_path, SPAN_JSON))
    assert len(records) == 1
    assert [each.reason for each in errors] == ["the span cannot be read (ZeroDivisionError: no such thing)"]


def test_a_span_that_cannot_be_kept_or_unpacked_costs_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = SpanGroups.add

    def failing(self: SpanGroups, span: Any) -> None:
        if span.span_id == "1" * 16:
            raise TypeError("odd")
        add(self, span)

    monkeypatch.setattr(SpanGroups, "add", failing)
    records, errors, _ = read(written(tmp_path, SPAN_JSON))
    assert len(records) == 1
    assert "cannot be read (TypeError: odd)" in errors[0].reason


def test_running_out_of_memory_is_not_called_a_bad_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(rows, "events_of", failing)
    with pytest.raises(MemoryError):
        read(written(tmp_path, SPAN_JSON))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", b'- {query: q, metadata: {when: !!timestamp "x"}}'),
        ("a.yaml", b'- {query: q, metadata: {n: !!int ""}}'),
        ("a.yaml", b"- {query: q, metadata: {n: !!float x}}"),
        ("a.yaml", b'- {query: q, metadata: {b: !!binary "\xc3\xa4"}}'),
        ("a.yaml", b"- !!set {[1]: }"),
        ("a.parquet", b"PAR1" + b"\xff" * 200 + b"\x10\x00\x00\x00PAR1"),
        ("a.parquet", b"PAR1\x15\x00\x00\x00\x00PAR1"),
        ("a.parquet", b""),
    ],
)
def test_a_damaged_dataset_is_refused_in_one_way(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError):
        load_dataset(tmp_path / name)


SAMPLE = {
    "id": 1, "epoch": 1, "input": "q", "target": "t", "scores": {}, "messages": [{"role": "user", "content": "q"}],
}  # fmt: skip
INSPECT = {"version": 2, "status": "success", "eval": {"task": "x"}}
COUNTS = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}


@pytest.mark.parametrize(
    "value",
    [
        *({**INSPECT, "samples": [{**SAMPLE, "model_usage": {"m": {**COUNTS, name: {"n": 1}}}}]} for name in COUNTS),
        [{**SPAN_JSON[0], "start_time": [10**400, 0]}, SPAN_JSON[1]],
    ],
)
def test_an_odd_value_in_a_known_place_costs_nothing_else(tmp_path: Path, value: Any) -> None:
    records, errors, _ = read(written(tmp_path, value))
    assert (len(records), errors) == (1, [])


@pytest.mark.parametrize(
    ("file", "named", "odd"),
    [
        (RECORDED / "mlflow_3_trace.json", '"assessment_name": "expected_response"', '"assessment_name": ["x"]'),
        (CORPUS / "langsmith" / "tree.json", '"total_cost": ', f'"total_cost": {10**400}, "was": '),
        (CORPUS / "bedrock-agent" / "trace.jsonl", '"name": "order"', '"name": ["x"]'),
    ],
)
def test_a_name_that_is_no_text_costs_no_record(tmp_path: Path, file: Path, named: str, odd: str) -> None:
    text = file.read_text()
    assert named in text
    (tmp_path / file.name).write_text(text.replace(named, odd))
    as_recorded, as_odd = read(file), read(tmp_path / file.name)
    assert len(as_odd[0]) == len(as_recorded[0]) > 0
    assert as_odd[1] == []


def test_counts_of_inspect_that_are_objects_are_left_out_and_noted(tmp_path: Path) -> None:
    usage = {"m": {**COUNTS, "input_tokens": {"cached": 1}}}
    (record,), _, files = read(written(tmp_path, {**INSPECT, "samples": [{**SAMPLE, "model_usage": usage}]}))
    assert record.trace.metadata["usage"] == {"completion_tokens": 5, "total_tokens": 8}
    assert "a token count is not a whole number of 0 or more; it was left out" in files.notes.problems


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"raw_logging_results": {"t1": {"messages": [NaN]}}}', "not valid JSON: JSON is malformed"),
        ('{"messages_display": "no roles here"}', "no conversation: a row needs a list of messages"),
    ],
)
def test_an_item_that_is_broken_says_what_is_wrong_in_words(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f"{text}\n{text}\n")
    _, errors, _ = read(tmp_path / "rows.jsonl")
    assert [each.line for each in errors] == [1, 2]
    assert all(each.reason.startswith(reason) for each in errors)


# Every reader, with values in places where no exporter puts them.

ODD = [
    "\ud800",
    "",
    None,
    10**400,
    -1,
    1e308,
    True,
    [],
    {},
    [[]],
    [None],
    {"": None},
    "NaN",
    "\x00",
    "9" * 5000,
    0,
    "{",
]


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else []
        for key in keys:
            yield holder, key
            waiting.append(holder[key])


def mutate(text: str, chance: random.Random) -> str:
    value = json.loads(text)
    places = list(places_in(value))
    for _ in range(chance.choice((1, 1, 2, 5))):
        holder, key = chance.choice(places)
        try:
            if chance.random() < 0.2:
                del holder[key]
            elif chance.random() < 0.2:
                holder[key] = chance.choice(places)[0]
                json.dumps(value)
            else:
                holder[key] = chance.choice(ODD)
        except (KeyError, IndexError, ValueError, RecursionError):
            return json.dumps(ODD)
    return json.dumps(value)


SAMPLES = sorted([*RECORDED.glob("*.json"), *FRAMEWORKS.glob("*.json")])


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_values_in_odd_places_never_escape_a_reader(tmp_path: Path, path: Path) -> None:
    chance = random.Random(path.name)
    text = path.read_text()
    for _ in range(N_MUTATIONS):
        (tmp_path / "odd.json").write_text(mutate(text, chance))
        for each in TraceFiles([tmp_path / "odd.json"]):
            if isinstance(each, Record):
                encode_record(each)

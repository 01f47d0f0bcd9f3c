"""Files scored by several processes: the same lines, figures, errors and notes as by one, to the last digit."""

from __future__ import annotations

import gzip
import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from agentunit.addons.scale.parallel.folder import JobFolder, identity_of
from agentunit.addons.scale.parallel.parallel_scoring import ParallelScoring
from agentunit.addons.scale.parallel.work import ScoringJob
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError
from agentunit.core.results import InputError, MetricResult, append_scores, encode_json
from agentunit.engine.scoring.records import Run
from agentunit.engine.scoring.slices import Slices
from agentunit.formulas.running import RunningStatistics
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.trace_console import reading_lines
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.reading import TraceFiles

CORPUS = Path(__file__).parents[2] / "corpus"


class Noise:
    """A metric whose values, backends, statuses and reasons are all over the place, but fixed for a record."""

    name = "noise"
    info = MetricInfo("noise", "custom", "noise", range=(0.0, 1.0), informational=("rough",))

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        dice = random.Random(f"{case.query}")
        kind = dice.randrange(10)
        if kind == 0:
            raise ValueError(f"nothing to say about {case.query}")
        if kind == 1:
            return MetricResult(self.name, None, {"reason": f"no data, {dice.randrange(60)}"})
        backend = dice.choice(["rough", "fine"])
        return MetricResult(self.name, dice.random() if kind > 5 else dice.choice([0.0, 1.0]), {"backend": backend})


METRICS = [Noise(), "exact_match", "cost", "tool_success"]


def record_line(number: int, dice: random.Random) -> bytes:
    case: dict[str, Any] = {"id": f"q{number}", "query": f"question {number}", "expected_output": str(number % 7)}
    if number % 11 == 0:
        case["id"] = ""
    elif number % 13 == 0:
        case["id"] = f"case-{dice.randrange(1, 400)}"
    elif number % 17 == 0:
        case["id"] = "q3"
    if number % 3:
        case["metadata"] = {
            "category": dice.choice([["a", "b"], "a", f"rare {number}", ["b", f"rare {number}"]]),
            "other": number,
        }
    elif number % 2:
        case["metadata"] = {f"field {number}": 1}
    trace = {"metadata": {"cost": dice.random()}} if number % 4 else {}
    outcome = None if number % 19 == 0 else str(dice.randrange(7))
    return json.dumps({"v": 1, "case": case, "trace": trace, "outcome": outcome}).encode() + b"\n"


def native(path: Path, n: int = 700, damaged: bool = False, seed: int = 0) -> Path:
    dice = random.Random(seed)
    lines = [record_line(number, dice) for number in range(n)]
    if damaged:
        for number, place in enumerate((2, 5, 6, n // 5, n // 5 + 1, n // 2, n - 1)):
            lines[place] = [b"\n  \n\n", b"{damaged\n", b'{"question": 1}\n', b"\xff\xfe\n"][number % 4]
        lines.insert(0, b"\xef\xbb\xbf")
        lines[-1] = lines[-1].rstrip(b"\n")
    path.write_bytes(b"".join(lines))
    return path


def spans(path: Path, n_traces: int, seed: int) -> Path:
    """Traces whose spans lie scattered over a file, one request a line; ids are shared between files of one seed."""
    dice = random.Random(seed)
    found = []
    for number in range(n_traces):
        for step in range(dice.randrange(1, 5)):
            attributes = {
                "openinference.span.kind": "AGENT" if step == 0 else dice.choice(["LLM", "TOOL"]),
                "input.value": f"question {number}",
                "output.value": f"answer {dice.randrange(5)}",
                "odd.field": "x",
            }
            found.append(
                {
                    "traceId": f"{number + 1:032x}",
                    "spanId": f"{dice.getrandbits(63):016x}",
                    "name": f"step {step}",
                    "startTimeUnixNano": str(10**18 + step),
                    "endTimeUnixNano": str(10**18 + step + 5),
                    "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in attributes.items()],
                }
            )
    dice.shuffle(found)
    requests = [{"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": [each]}]}]} for each in found]
    path.write_text("\n".join(json.dumps(each) for each in requests))
    return path


class Lines:
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, lines: Any) -> None:
        self.lines.extend(lines)

    def append(self, lines: Any, n_bytes: int) -> None:
        self.write(lines.read(n_bytes).split(b"\n")[:-1])


def result(source: TraceFiles, summary: Any, lines: list[bytes], errors: list[InputError], slices: Any) -> dict:
    """All that a user can see of a run, without the time that it took."""
    data = to_builtins(summary)
    del data["elapsed_s"]
    for row in data["metrics"]:
        del row["elapsed_s"]
    table = None if slices is None else json.loads(encode_json(slices.table()))
    return {
        "lines": lines,
        "summary": data,
        "errors": errors,
        "slices": table,
        "notes": sorted(reading_lines(source)),
    }


def trace_files(paths: list[Path], expected: list[DatasetCase] | None) -> TraceFiles:
    return TraceFiles(paths, expected=None if expected is None else ExpectedAnswers(expected))


def in_one_process(paths: list[Path], by: str | None = None, expected: Any = None, metrics: Any = METRICS) -> dict:
    source, slices, errors = trace_files(paths, expected), None if by is None else Slices(by), []

    def read() -> Any:
        for each in source:
            if isinstance(each, InputError):
                errors.append(each)
            yield each

    run = Run(read(), resolve_metrics(metrics))
    if slices is not None:
        infos = {metric.name: describe(metric) for metric in run.metrics}
        run.on_scored = lambda item, scores: slices.add_scores(item.case.metadata, scores, infos)
    lines = []
    for case in run:
        line = bytearray()
        append_scores(case, line)
        lines.append(bytes(line[:-1]))
    return result(source, run.summary(), lines, errors, slices)


def in_blocks(
    paths: list[Path],
    folder: Path,
    jobs: int,
    block_bytes: int,
    by: str | None = None,
    expected: Any = None,
    metrics: Any = METRICS,
    resume: bool = False,
    strict: bool = False,
    sink: Lines | None = None,
) -> dict:
    source, slices, errors = trace_files(paths, expected), None if by is None else Slices(by), []
    sink = sink or Lines()
    job = ScoringJob(
        source.files[0][0],
        metrics=resolve_metrics(metrics),
        expected=source.expected,
        by=by,
        strict=strict,
        with_lines=True,
        with_ids=len(source.files) > 1,
    )
    identity = identity_of(source.files, job, block_bytes, None)
    kept = JobFolder(folder, identity, resume=resume)
    scoring = ParallelScoring(
        source, job, kept, jobs=jobs, sink=sink, slices=slices, on_error=errors.append, block_bytes=block_bytes
    )
    summary = scoring.work()
    kept.remove()
    return result(source, summary, sink.lines, errors, slices)


def inputs(name: str, folder: Path) -> tuple[list[Any], dict[str, Any]]:
    """The paths of an input, and how it is read."""
    if name == "records":
        return [native(folder / "runs.jsonl")], {"by": "metadata.category"}
    if name == "damaged":
        return [native(folder / "runs.jsonl", damaged=True)], {"by": "metadata.category"}
    if name == "by URL":
        return [native(folder / "runs.jsonl", damaged=True).as_uri()], {}
    if name == "twice and compressed":
        first, second = native(folder / "a.jsonl", 250), native(folder / "b.jsonl", 250, damaged=True, seed=1)
        packed = folder / "c.jsonl.gz"
        packed.write_bytes(gzip.compress(native(folder / "c.jsonl", 300, seed=2).read_bytes())[:-40])
        return [first, second, first, packed], {}
    if name == "expected":
        cases = [DatasetCase(f"q{n}", expected_output="1", metadata={"category": "known"}) for n in range(0, 90, 2)]
        return [native(folder / "runs.jsonl", 300)], {"expected": cases, "by": "metadata.category"}
    for number in range(3):
        spans(folder / f"{number}.jsonl", 60, seed=7 + number % 2)
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "notes.txt").write_bytes(b"no traces")
    (folder / "more.txt").write_bytes(b"no traces either")
    native(folder / "records.jsonl", 40)
    shutil.copytree(CORPUS / "otlp-json", folder / "json")
    shutil.copytree(CORPUS / "otlp-protobuf", folder / "protobuf")
    shutil.copytree(CORPUS / "claude-code", folder / "sessions")
    return [folder], {"by": "metadata.category"}


@pytest.mark.parametrize(
    "name", ["records", "damaged", "by URL", "twice and compressed", "expected", "folder of everything"]
)
def test_any_number_of_processes_and_any_size_of_block_give_the_result_of_one_process(name, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    paths, options = inputs(name, data)
    alone = in_one_process(paths, **options)
    assert alone["summary"]["n_cases"] > 100
    for jobs, block_bytes in ((1, 1 << 22), (2, 4096), (3, 777), (2, 50_000)):
        together = in_blocks(paths, tmp_path / "blocks", jobs, block_bytes, **options)
        for part, expected in alone.items():
            assert together[part] == expected, (part, jobs, block_bytes)
    assert not (tmp_path / "blocks").exists()


def test_the_inputs_reach_every_cap(tmp_path):
    found = in_one_process([native(tmp_path / "runs.jsonl")], by="metadata.category")
    reasons = [entry["reason"] for entry in found["summary"]["unscored"] if entry["metric"] == "noise"]
    assert "other reasons" in reasons
    assert any(row["slice"] == "(other)" for row in found["slices"]["rows"])
    assert {row["status"] for row in found["summary"]["metrics"] if row["metric"] == "noise"} == {"ok", "informational"}
    damaged = in_one_process([native(tmp_path / "damaged.jsonl", damaged=True)])
    assert [error.line for error in damaged["errors"]][-1] > 700


def test_a_file_of_which_too_much_is_bad_is_left_at_the_same_place(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTUNIT_MAX_BAD_ITEMS", "20")
    dice = random.Random(3)
    lines = [record_line(n, dice) if n % 3 else b"{bad\n" for n in range(200)]
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"".join(lines))
    other = native(tmp_path / "whole.jsonl", 50)
    alone = in_one_process([path, other])
    assert "more than 20 parts" in alone["errors"][-1].reason
    for block_bytes in (500, 3000, 1 << 22):
        assert in_blocks([path, other], tmp_path / "blocks", 2, block_bytes) == alone


def test_a_strict_job_stops_at_the_first_bad_line_after_the_cases_before_it(tmp_path):
    path = native(tmp_path / "runs.jsonl", damaged=True)
    sink = Lines()
    with pytest.raises(RecordError, match=r"runs\.jsonl, line 8: "):
        in_blocks([path], tmp_path / "kept", 2, 700, strict=True, sink=sink)
    assert sink.lines == in_one_process([path])["lines"][:4]


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=40), max_size=30), st.integers(1, 60))
@settings(max_examples=60)
def test_values_that_come_in_columns_count_as_those_that_come_one_by_one(columns, capacity):
    one_by_one, together = RunningStatistics(capacity), RunningStatistics(capacity)
    for column in columns:
        together.extend(column)
        for value in column:
            one_by_one.add(value)
    for name in ("n", "total", "mean", "sample_variance", "minimum", "maximum", "exact"):
        assert getattr(together, name) == getattr(one_by_one, name)
    assert together.quantile(0.3) == one_by_one.quantile(0.3)
    assert together.interval() == one_by_one.interval()


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e150])
def test_a_column_with_a_value_that_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="value must be finite"):
        RunningStatistics().extend([1.0, bad, 2.0])

"""The questions, each answered by processes that score the same records in several ways."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from benchmarks.speed.answers import Answer, Column, decimals
from benchmarks.speed.environments import ROOT
from benchmarks.speed.recordings import write_recordings
from benchmarks.traces.made_up import write_file

EXACT = "faithfulness,answer_correctness,hallucination_rate,retrieval_quality,tool_success,cost,token_usage"
"""The catalog's seven core metrics, the quality ones without a model (AGENTUNIT_BACKEND=lexical)."""

OF_SPANS = "tool_success,cost,token_usage"
OF_SHORT_RECORDS = "exact_match,cost,token_usage"
_MB = 1_000_000
_TARGET_EFFICIENCY = 0.85
_TARGET_RECORDS_A_S = 20_000
_TARGET_MB_A_S = 45


class JobFailed(RuntimeError):
    """A measured process ended badly; the message is its last line."""


def _environment(backend: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "AGENTUNIT_BACKEND": backend, "PYTHONPATH": path}


def run_jobs(*commands: list[str], backend: str = "lexical") -> list[dict[str, Any]]:
    """The figures of processes that run at the same time."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale.job", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(backend),
        )
        for command in commands
    ]
    figures = []
    for process in started:
        printed, said = process.communicate()
        if process.returncode:
            raise JobFailed((said.strip() or "no message").splitlines()[-1])
        figures.append(json.loads(printed.strip().splitlines()[-1]))
    return figures


def ways(
    files: list[Path], halves: list[list[Path]], folder: Path, metrics: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """One process, one job with one and two workers, and two processes at once, each on its half."""

    def command(which: list[Path], jobs: int, name: str) -> list[str]:
        return [str(folder / name), str(jobs), metrics, *map(str, which)]

    for name, jobs in (("one process", 0), ("--jobs 1", 1), ("--jobs 2", 2)):
        (figures,) = run_jobs(command(files, jobs, "scores.jsonl"))
        yield name, figures
    both = run_jobs(*(command(half, 0, f"half-{number}.jsonl") for number, half in enumerate(halves)))
    yield (
        "two at once",
        {
            "wall_s": max(each["wall_s"] for each in both),
            "cpu_s": sum(each["cpu_s"] for each in both),
            "n_records": sum(each["n_records"] for each in both),
            "peak_bytes": max(each["peak_bytes"] for each in both),
        },
    )


def measure_ways(
    answer: Answer, place: str, files: list[Path], halves: list[list[Path]], folder: Path, metrics: str, rounds: int
) -> None:
    """Add a row for each way: the best of its rounds, with the efficiency of two workers."""
    best: dict[str, dict[str, Any]] = {}
    digests = set()
    for _ in range(rounds):
        for name, figures in ways(files, halves, folder, metrics):
            if "digest" in figures:
                digests.add(figures["digest"])
            if name not in best or figures["wall_s"] < best[name]["wall_s"]:
                best[name] = figures
    n_bytes = sum(path.stat().st_size for path in files)
    ideal = best["two at once"]
    for name, figures in best.items():
        efficiency = ideal["wall_s"] / figures["wall_s"] if name == "--jobs 2" else None
        answer.add(
            place=place,
            name=name,
            wall_s=figures["wall_s"],
            cpu_us=figures["cpu_s"] / figures["n_records"] * 1e6,
            records_a_core_s=figures["n_records"] / figures["cpu_s"],
            mb_a_core_s=n_bytes / _MB / figures["cpu_s"],
            peak_mb=max(figures["peak_bytes"], figures.get("worker_peak_bytes") or 0) / _MB,
            efficiency=efficiency,
            n_score_bytes=figures.get("n_score_bytes"),
            n_records=figures["n_records"],
            n_bytes=n_bytes,
        )
    same = "the same" if len(digests) == 1 else "NOT THE SAME"
    answer.remarks.append(f"{place}: lines and summary of one process and of all jobs are {same}.")
    if len(digests) != 1:
        raise JobFailed(f"{place}: results differ")


def measure_pace(places: dict[str, Path], n_records: int, rounds: int) -> Answer:
    """Exact metrics: records a second and core, and what two workers gain."""
    columns = (
        Column("place", "files on"),
        Column("name", "way"),
        Column("wall_s", "seconds", decimals(1)),
        Column("cpu_us", "CPU µs a record", decimals(1)),
        Column("records_a_core_s", "records/s a core", decimals(0)),
        Column("peak_mb", "peak MB per process", decimals(0)),
        Column("efficiency", "efficiency", decimals(2)),
    )
    answer = Answer("pace", f"Seven exact metrics on {n_records:,} records", columns)
    answer.remarks.append(f"Targets: {_TARGET_RECORDS_A_S:,} records/s a core, efficiency {_TARGET_EFFICIENCY}.")
    with _folder(next(iter(places.values()))) as made:
        write_recordings(made / "records.jsonl", n_records)
        for place, parent in places.items():
            with _folder(parent) as folder:
                whole = shutil.copy(made / "records.jsonl", folder / "records.jsonl")
                halves = _halved(whole, folder)
                measure_ways(answer, place, [whole], [[half] for half in halves], folder, EXACT, rounds)
    return answer


def measure_otlp(places: dict[str, Path], megabytes: int, rounds: int) -> Answer:
    """OTLP/JSON from spans to scores: MB a second and core."""
    columns = (
        Column("place", "files on"),
        Column("name", "way"),
        Column("wall_s", "seconds", decimals(1)),
        Column("mb_a_core_s", "MB/s a core", decimals(0)),
        Column("peak_mb", "peak MB per process", decimals(0)),
        Column("efficiency", "efficiency", decimals(2)),
    )
    answer = Answer("otlp", f"OTLP/JSON of {megabytes} MB in two files, read, put together and scored", columns)
    answer.remarks.append(f"Target: {_TARGET_MB_A_S} MB/s a core.")
    with _folder(next(iter(places.values()))) as made:
        write_file(made / "made.json", "openinference", megabytes * _MB // 2)
        spans = (made / "made.json").read_bytes()
        for place, parent in places.items():
            with _folder(parent) as folder:
                files = [folder / "a.json", folder / "b.json"]
                for number, path in enumerate(files):
                    # Traces of their own: the maker begins every file with the same ids.
                    path.write_bytes(spans.replace(b'"traceId":"0', b'"traceId":"%d' % number))
                measure_ways(answer, place, files, [[path] for path in files], folder, OF_SPANS, rounds)
    return answer


def measure_ray(parent: Path, n_records: int) -> Answer:
    """What tasks of Ray cost beside processes: a record, from two sizes of file, and to start."""
    columns = (
        Column("name", "way"),
        Column("fixed_s", "seconds for a small file", decimals(1)),
        Column("fixed_cpu_s", "its CPU seconds", decimals(1)),
        Column("cpu_us", "CPU µs a further record", decimals(1)),
        Column("ratio", "to --jobs 2", decimals(2)),
    )
    answer = Answer("ray", f"Seven exact metrics on {n_records:,} records by tasks of Ray", columns)
    answer.remarks.append("Targets: 1.3 times the CPU of processes, 20 seconds to start.")
    n_few = max(1, n_records // 50)
    by_processes = None
    with _folder(parent) as folder:
        for size in (n_few, n_records):
            write_recordings(folder / f"{size}.jsonl", size)
        for name, jobs in (("--jobs 2", "2"), ("--engine ray --jobs 2", "ray:2")):
            small, large = (
                run_jobs([str(folder / "scores.jsonl"), jobs, EXACT, str(folder / f"{size}.jsonl")])[0]
                for size in (n_few, n_records)
            )
            cpu_us = (large["cpu_s"] - small["cpu_s"]) / (n_records - n_few) * 1e6
            by_processes = by_processes or (cpu_us, large["digest"])
            if large["digest"] != by_processes[1]:
                raise JobFailed(f"{name}: results differ")
            ratio = cpu_us / by_processes[0]
            answer.add(name=name, fixed_s=small["wall_s"], fixed_cpu_s=small["cpu_s"], cpu_us=cpu_us, ratio=ratio)
    return answer


def measure_growth(parent: Path, sizes: list[int], stream: int | None) -> Answer:
    """What a record costs, and how much memory is taken, as inputs grow; at last through a pipe."""
    columns = (
        Column("n_records", "records", decimals(0)),
        Column("name", "way"),
        Column("wall_s", "seconds", decimals(1)),
        Column("cpu_us", "CPU µs a record", decimals(1)),
        Column("peak_mb", "peak MB of the parent", decimals(0)),
        Column("worker_mb", "of a worker", decimals(0)),
    )
    answer = Answer("growth", "Three exact metrics on short records as inputs grow", columns)
    digests: dict[int, set[str]] = {}
    with _folder(parent) as folder:
        few = folder / "few.jsonl"
        _write_short_records(few)
        ways = [(n_records, name, jobs) for n_records in sizes for name, jobs in (("one process", 0), ("--jobs 2", 2))]
        for n_records, name, jobs in [*ways, *([(stream, "one process, through a pipe", 0)] if stream else [])]:
            if stream == n_records:
                figures = _streamed(few, n_records)
            else:
                path = folder / "records.jsonl"
                with path.open("wb") as file:
                    _repeat(few, n_records, file)
                (figures,) = run_jobs(["none", str(jobs), OF_SHORT_RECORDS, str(path)])
            digests.setdefault(n_records, set()).add(figures["digest"])
            worker = figures["worker_peak_bytes"]
            answer.add(
                n_records=figures["n_records"],
                name=name,
                wall_s=figures["wall_s"],
                cpu_us=figures["cpu_s"] / figures["n_records"] * 1e6,
                peak_mb=figures["peak_bytes"] / _MB,
                worker_mb=None if worker is None else worker / _MB,
            )
    if any(len(each) > 1 for each in digests.values()):
        raise JobFailed("growth: results differ")
    answer.remarks.append(
        f"Records of {_SHORT_BYTES} bytes, {_N_SHORT:,} different ones again and again, without --out. The smallest "
        "input shows what starting costs; from the next on, a record should cost the same within a tenth."
    )
    return answer


_N_SHORT = 10_000
_SHORT_BYTES = 256


def _write_short_records(path: Path) -> None:
    """Records of equal length: a question, an answer that is right or not, tokens and money."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(_N_SHORT):
            usage = {"prompt_tokens": 100 + number * 7 % 900, "completion_tokens": 100 + number * 13 % 900}
            record = {
                "v": 1,
                "case": {"id": f"n{number:05d}", "query": "", "expected_output": f"{number % 10}"},
                "trace": {"metadata": {"usage": usage, "cost": round(0.1 + number % 89 / 1000, 3)}},
                "outcome": {"output": f"{number % 11 % 10}"},
            }
            room = _SHORT_BYTES - len(json.dumps(record)) - 1
            record["case"]["query"] = "How many parts lie there? ".ljust(room, "x")[:room]  # type: ignore[index]
            file.write(json.dumps(record) + "\n")


def _repeat(few: Path, n_records: int, target: IO[bytes]) -> None:
    data = few.read_bytes()
    for _ in range(n_records // _N_SHORT):
        target.write(data)
    target.write(data[: n_records % _N_SHORT * _SHORT_BYTES])


def _streamed(few: Path, n_records: int) -> dict[str, Any]:
    """Score so many records that go through a pipe."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.scale.job", "none", "0", OF_SHORT_RECORDS, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment("lexical"),
    )
    with process:
        assert process.stdin is not None
        _repeat(few, n_records, process.stdin)
        printed, _ = process.communicate()
    if process.returncode:
        raise JobFailed("what scores records of a pipe ended badly")
    figures: dict[str, Any] = json.loads(printed.decode().strip().splitlines()[-1])
    return figures


def measure_model(parent: Path, n_records: int) -> Answer:
    """The local model: milliseconds of a core a case."""
    columns = (
        Column("name", "way"),
        Column("wall_s", "seconds", decimals(1)),
        Column("cpu_ms", "CPU ms a case", decimals(0)),
        Column("worker_mb", "peak MB per process", decimals(0)),
    )
    answer = Answer("model", f"Faithfulness by the local model on {n_records:,} records", columns)
    with _folder(parent) as folder:
        path = folder / "records.jsonl"
        write_recordings(path, n_records)
        # A file of so few records is one block: several make work for two.
        files = [path] if n_records < 2 else _halved(path, folder)
        for name, jobs in (("one process", 0), ("--jobs 2", 2)):
            command = [str(folder / "scores.jsonl"), str(jobs), "faithfulness", *map(str, files)]
            (figures,) = run_jobs(command, backend="local")
            peak = figures["worker_peak_bytes"] or figures["peak_bytes"]
            answer.add(
                name=name,
                wall_s=figures["wall_s"],
                cpu_ms=figures["cpu_s"] / figures["n_records"] * 1e3,
                worker_mb=peak / _MB,
            )
    return answer


def _halved(path: Path, folder: Path) -> list[Path]:
    halves = [folder / "first.jsonl", folder / "second.jsonl"]
    with path.open("rb") as file:
        lines = file.readlines()
    for half, some in zip(halves, (lines[: len(lines) // 2], lines[len(lines) // 2 :]), strict=True):
        half.write_bytes(b"".join(some))
    return halves


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="agentunit-scale-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)

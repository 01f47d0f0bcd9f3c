"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import benchmarks.traces
from benchmarks.speed.answers import Answer, Column, decimals
from benchmarks.speed.processes import OUR_PYTHON, figures_of
from benchmarks.traces.made_up import RUNS, write_file
from benchmarks.traces.stage import STEPS
from benchmarks.traces_public import HEADING as PUBLIC_FILES

_RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
_MB = 1_000_000
_TARGET_MB_PER_S = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table for each question."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        answers = [
            _speed(Path(folder), options.megabytes, options.rounds),
            _memory(Path(folder), options.memory_megabytes),
        ]
    for answer in answers:
        print(answer.table(), end="\n\n", flush=True)
    if options.write_results:
        # The table of public files is another program's.
        _, begin, public_files = _RESULTS.read_text(encoding="utf-8").partition(PUBLIC_FILES)
        _RESULTS.write_text(_results(answers) + "\n" + begin + public_files, encoding="utf-8")
    return 0


def _speed(folder: Path, megabytes: int, rounds: int) -> Answer:
    columns = (
        Column("kind", "file"),
        Column("step", "step"),
        Column("span_kb", "kB a span", decimals(1)),
        Column("best_mb_per_s", "best, MB/s", decimals(0)),
        Column("worst_mb_per_s", "worst, MB/s", decimals(0)),
        Column("best_ms_per_mb", "best, ms/MB", decimals(2)),
        Column("note", "target or remark"),
    )
    answer = Answer("speed", f"OTLP/JSON of {megabytes} MB on one core", columns)
    answer.remarks.append(f"Best and worst of {rounds} fresh processes each; starting Python is not counted.")
    for kind in RUNS:
        path = folder / f"{kind}.json"
        n_spans = write_file(path, kind, megabytes * _MB)
        n_mb = path.stat().st_size / _MB
        for step in STEPS:
            figures = [_figures(step, path) for _ in range(rounds)]
            times_s = [float(each["elapsed_s"]) for each in figures]
            best = n_mb / min(times_s)
            answer.add(
                kind=kind,
                step=step,
                span_kb=n_mb * 1000 / n_spans,
                best_mb_per_s=best,
                worst_mb_per_s=n_mb / max(times_s),
                best_ms_per_mb=1000 / best,
                note=_verdict(best) if step == "records" else None,
            )
        path.unlink()
    return answer


def _memory(folder: Path, sizes: Sequence[int]) -> Answer:
    columns = (
        Column("kind", "file"),
        Column("size_mb", "MB", decimals(0)),
        Column("n_records", "records", decimals(0)),
        Column("elapsed_s", "s", decimals(1)),
        Column("peak_mb", "peak memory, MB", decimals(0)),
    )
    answer = Answer("memory", "Peak memory on the whole way to records", columns)
    answer.remarks.append(
        "The largest resident size of a fresh process, with the 20 to 30 MB that Python itself takes."
    )
    for kind in RUNS:
        for megabytes in sizes:
            path = folder / f"{kind}.json"
            write_file(path, kind, megabytes * _MB)
            figures = _figures("records", path)
            answer.add(
                kind=kind,
                size_mb=path.stat().st_size / _MB,
                n_records=figures["n_values"],
                elapsed_s=figures["elapsed_s"],
                peak_mb=figures["peak_bytes"] / _MB,
            )
            path.unlink()
    return answer


def _figures(step: str, path: Path) -> dict[str, float]:
    figures = figures_of(OUR_PYTHON, "-m", "benchmarks.traces.stage", step, str(path))
    if figures["n_errors"]:
        raise RuntimeError(f"{figures['n_errors']} parts of {path.name} could not be read in step {step}")
    return figures


def _verdict(mb_per_s: float) -> str:
    return f"{'met' if mb_per_s >= _TARGET_MB_PER_S else 'MISSED'} (≥ {_TARGET_MB_PER_S} MB/s)"


def _results(answers: list[Answer]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    heading = (
        "# Reading traces: the last measured tables\n\n"
        f"Measured on one machine in one run: {machine}. "
        "Written by `python -m benchmarks.traces --write-results`; do not edit by hand.\n"
    )
    return heading + "".join(f"\n{answer.table()}\n" for answer in answers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.traces",
        description=benchmarks.traces.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--megabytes", type=int, default=100, help="size of the files that are timed (default: 100)")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each timing (default: 3)")
    parser.add_argument(
        "--memory-megabytes", type=int, nargs="*", default=(100, 1000), help="sizes for memory (default: 100 1000)"
    )
    parser.add_argument("--write-results", action="store_true", help=f"write the tables to {_RESULTS.name} beside this")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.answers import Answer, Column, decimals

_RESULTS = Path(__file__).with_name("RESULTS.md")
_ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description="How fast the local model is.")
    parser.add_argument("--cases", type=int, default=10_000, help="short cases of the long stream (default 10,000)")
    parser.add_argument("--rounds", type=int, default=15, help="repeats of the pairs (default 15)")
    parser.add_argument("--write-results", action="store_true", help=f"write {_RESULTS.name} beside this program")
    options = parser.parse_args(arguments)
    answer = measure(options.cases, options.rounds)
    print(answer.table())
    if options.write_results:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
        heading = f"# The local model: the last measured table\n\nMeasured on one machine in one run: {machine}.\n\n"
        _RESULTS.write_text(heading + answer.table() + "\n", encoding="utf-8")
    return 0


def measure(n_cases: int, rounds: int) -> Answer:
    """Each figure in a process of its own."""
    columns = (Column("name", "what"), Column("figure", "measured", decimals(2)), Column("note", "target"))
    answer = Answer("local", "The groundedness model, 8-bit weights", columns)
    opening = min(_figures("opening", 0)["seconds"] for _ in range(3))
    answer.add(name="import and open, s", figure=opening, note=_met(opening <= 1.0, "≤ 1 s"))
    pairs = _figures("pairs", rounds)
    speed = pairs["pairs_a_second"]
    answer.add(name="pairs of about 256 tokens a second, one core", figure=speed, note=_met(speed >= 20, "≥ 20"))
    few, many = (_figures("cases", n) for n in (max(1, n_cases // 10), n_cases))
    answer.add(name=f"short cases a second, {n_cases:,} cases", figure=many["cases_a_second"])
    answer.add(name=f"peak memory, {max(1, n_cases // 10):,} cases, MiB", figure=few["peak_mib"])
    grown = many["peak_mib"] / few["peak_mib"]
    answer.add(
        name=f"peak memory, {n_cases:,} cases, MiB", figure=many["peak_mib"], note=_met(grown < 1.15, "constant")
    )
    sentences = _figures("sentences", max(4, n_cases // 20))
    share = sentences["ours"] / sentences["bare"]
    answer.add(name="sentences a second of CPU, a bare loop of ONNX Runtime", figure=sentences["bare"])
    answer.add(name="the same from texts", figure=sentences["ours"], note=_met(share >= 0.6, "≥ 60 % of the loop"))
    answer.remarks.append("Best of several runs for time. Every short case has one sentence that the model must read.")
    return answer


def _met(met: bool, target: str) -> str:
    return f"{'met' if met else 'MISSED'} ({target})"


def _figures(stage: str, number: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.local.stage", stage, str(number)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    sys.exit(main())

"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from math import isclose
from pathlib import Path
from typing import Any

import benchmarks.multiagent
from benchmarks.speed.answers import Answer, Column, decimals, times, verdict
from benchmarks.speed.processes import OUR_PYTHON, figures_of

_RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
# what it is; the shape and sizes; the most seconds it may take
_TARGETS = (
    ("{n:,} interactions among 50 agents", "talk", (100_000, 50), 0.5),
    ("full mesh of {n:,} agents, a message on each connection", "mesh", (400,), 1.0),
    ("{n:,} agents, ten connections each", "sparse", (5_000, 50_000), 8.0),
)
_GROWTH = (
    ("mesh", (100,)),
    ("mesh", (200,)),
    ("mesh", (400,)),
    ("sparse", (500, 5_000)),
    ("sparse", (1_000, 10_000)),
    ("sparse", (2_000, 20_000)),
    ("sparse", (5_000, 50_000)),
    ("chain", (250,)),
    ("chain", (500,)),
    ("chain", (1_000,)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table for each question."""
    options = _parser().parse_args(arguments)
    answers = [_targets(options.rounds, options.shrink), _growth(options.rounds, options.shrink)]
    for answer in answers:
        print(answer.table(), end="\n\n", flush=True)
    if options.write_results:
        _RESULTS.write_text(_results(answers), encoding="utf-8")
    return 0


def _targets(rounds: int, shrink: int) -> Answer:
    columns = (
        Column("what", "what"),
        Column("best_s", "best, s", decimals(2)),
        Column("worst_s", "worst, s", decimals(2)),
        Column("processor_s", "processor, s", decimals(2)),
        Column("note", "target"),
    )
    answer = Answer("targets", "All measures at once (calculate_all), from the interactions", columns)
    answer.remarks.append(
        f"Best and worst elapsed time of {rounds} fresh processes, and the least processor time: where the two differ, "
        "other work held the processor. The target is held against the best. Making up the interactions is not counted."
    )
    for words, shape, sizes, target_s in _TARGETS:
        smaller = _shrunk(shape, sizes, shrink)
        figures = [_figures("whole", shape, smaller) for _ in range(rounds)]
        taken_s = [each["elapsed_s"] for each in figures]
        answer.add(
            what=words.format(n=smaller[0]),
            best_s=min(taken_s),
            worst_s=max(taken_s),
            processor_s=min(each["processor_s"] for each in figures),
            note=verdict(min(taken_s), target_s, "s"),
        )
    return answer


def _growth(rounds: int, shrink: int) -> Answer:
    columns = (
        Column("shape", "network"),
        Column("n_agents", "agents", decimals(0)),
        Column("ours_s", "agentunit, s", decimals(3)),
        Column("theirs_s", "networkx, s", decimals(3)),
        Column("ratio", "networkx / agentunit", times),
        Column("note", "same numbers"),
    )
    answer = Answer("growth", "The graph measures alone, as networks grow", columns)
    with_networkx = find_spec("networkx") is not None
    for shape, sizes in _GROWTH:
        smaller = _shrunk(shape, sizes, shrink)
        ours = [_figures("ours", shape, smaller) for _ in range(rounds)]
        row = {"shape": shape, "n_agents": smaller[0], "ours_s": min(each["processor_s"] for each in ours)}
        if with_networkx:
            theirs = _figures("networkx", shape, smaller)
            alike = all(isclose(a, b, rel_tol=1e-9) for a, b in zip(ours[0]["found"], theirs["found"], strict=True))
            row |= {"theirs_s": theirs["processor_s"], "ratio": theirs["processor_s"] / row["ours_s"]}
            row["note"] = "yes" if alike else "NO"
        answer.add(**row)
    answer.remarks.append(
        f"Processor seconds, best of {rounds} fresh processes for agentunit, one for networkx. Sparse: ten directed "
        "connections an agent. Ours includes the worst single loss, which networkx does not offer."
    )
    return answer


def _shrunk(shape: str, sizes: tuple[int, ...], by: int) -> tuple[int, ...]:
    """Sizes divided; who talks among how many stays."""
    return (sizes[0] // by, *(sizes[1:] if shape == "talk" else (size // by for size in sizes[1:])))


def _figures(what: str, shape: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    return figures_of(OUR_PYTHON, "-m", "benchmarks.multiagent.stage", what, shape, *map(str, sizes))


def _results(answers: list[Answer]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    heading = (
        "# Multi-agent measures: the last measured tables\n\n"
        f"Measured on one machine in one run: {machine}. "
        "Written by `python -m benchmarks.multiagent --write-results`; do not edit by hand.\n"
    )
    return heading + "".join(f"\n{answer.table()}\n" for answer in answers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.multiagent",
        description=benchmarks.multiagent.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each timing (default: 5)")
    parser.add_argument("--shrink", type=int, default=1, help="divide all sizes by this, for a quick look (default: 1)")
    parser.add_argument("--write-results", action="store_true", help=f"write the tables to {_RESULTS.name} beside this")
    return parser


if __name__ == "__main__":
    sys.exit(main())

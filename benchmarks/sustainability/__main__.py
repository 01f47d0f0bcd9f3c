"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import benchmarks.sustainability
from benchmarks.speed.answers import Answer, Column, decimals, times, verdict
from benchmarks.speed.environments import ENVIRONMENTS, ROOT, python_of
from benchmarks.speed.processes import figures_of

_RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
_PEER = "codecarbon"
_REQUIREMENT = "codecarbon==3.3.2"
_WORK = (
    ("busy", "one busy processor"),
    ("children", "two busy child processes"),
    ("detached", "one busy process that detached itself, half of the time"),
    ("waiting", "waiting, a tenth of the time busy"),
)
_MOST_OVERHEAD_PERCENT = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table for each question."""
    options = _parser().parse_args(arguments)
    if options.install_peer:
        _install()
    if not python_of(_PEER).exists():
        print(f"{ENVIRONMENTS / _PEER} is missing: add --install-peer", file=sys.stderr)
        return 2
    answers = [_agreement(options.rounds, options.seconds), _overhead(options.rounds, options.seconds)]
    for answer in answers:
        print(answer.table(), end="\n\n", flush=True)
    if options.write_results:
        _RESULTS.write_text(_results(answers), encoding="utf-8")
    return 0


def _agreement(rounds: int, seconds: float) -> Answer:
    columns = (
        Column("work", "work"),
        Column("cpu", "processor, mWh", decimals(2)),
        Column("ours", "with memory", decimals(2)),
        Column("our_spread", "from run to run"),
        Column("range", "its range"),
        Column("their_cpu", "CodeCarbon: processor, mWh", decimals(2)),
        Column("theirs", "with memory", decimals(2)),
        Column("their_spread", "from run to run"),
        Column("note", "theirs within our range"),
    )
    answer = Answer("energy", f"Energy over {seconds:g} s, both measuring the same run", columns)
    methods = set()
    for work, words in _WORK:
        found = [_figures("both", work, seconds) for _ in range(rounds)]
        methods |= {each["ours"]["cpu_method"] for each in found}
        ours, theirs = ([1e6 * each[who]["energy_kwh"] for each in found] for who in ("ours", "theirs"))
        cpu, their_cpu = (1e6 * median(each[who]["cpu_kwh"] for each in found) for who in ("ours", "theirs"))
        low, high = (1e6 * median(each["ours"][key] for each in found) for key in ("energy_min_kwh", "energy_max_kwh"))
        within = [
            each["ours"]["energy_min_kwh"] <= each["theirs"]["energy_kwh"] <= each["ours"]["energy_max_kwh"]
            for each in found
        ]
        answer.add(
            work=words,
            cpu=cpu,
            ours=median(ours),
            our_spread=_ends(ours),
            range=_ends([low, high]),
            their_cpu=their_cpu,
            theirs=median(theirs),
            their_spread=_ends(theirs),
            note="yes" if all(within) else f"NO: {within.count(True)} of {len(within)}",
        )
    answer.remarks.append(
        f"Medians of {rounds} runs. AgentUnit's method here: {', '.join(sorted(methods))}. CodeCarbon follows the "
        "process (tracking_mode='process') and models the processor too: 4 W a hardware thread for one that it does "
        "not know. For memory it takes two modules of 5 W at least, however little the process uses, where AgentUnit's "
        "middle figure takes what is in use and its highest all modules of the machine."
    )
    return answer


def _ends(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _overhead(rounds: int, seconds: float) -> Answer:
    columns = (
        Column("who", "measured by"),
        Column("cpu_percent", "CPU of the measuring process, %", decimals(3)),
        Column("start_s", "start, s", decimals(3)),
        Column("ratio", "against agentunit", times),
        Column("note", "target"),
    )
    answer = Answer(
        "overhead", f"What measuring costs: a process that sleeps {seconds:g} s, a sample a second", columns
    )
    found: dict[str, tuple[float, float]] = {}
    for what in ("nobody", "ours", "theirs"):
        figures = [_figures(what, "idle", seconds) for _ in range(rounds)]
        found[what] = (median(each["cpu_percent"] for each in figures), median(each["start_s"] for each in figures))
    own, _ = found["ours"]
    for what, who in (("nobody", "nobody"), ("ours", "agentunit"), ("theirs", "CodeCarbon")):
        percent, start_s = found[what]
        answer.add(
            who=who,
            cpu_percent=percent,
            start_s=None if what == "nobody" else start_s,
            ratio=percent / own if what == "theirs" else None,
            note=verdict(percent, _MOST_OVERHEAD_PERCENT, "%") if what == "ours" else None,
        )
    answer.remarks.append(f"Medians of {rounds} runs. Start includes importing the library and finding the counters.")
    return answer


def _figures(what: str, work: str, seconds: float) -> dict[str, Any]:
    stage = Path(__file__).with_name("stage.py")
    return figures_of(python_of(_PEER), str(stage), what, work, str(seconds))


def _install() -> None:
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENTS / _PEER)], check=True)
    pip = [str(python_of(_PEER)), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    subprocess.run([*pip, _REQUIREMENT, "-e", str(ROOT)], check=True)


def _results(answers: list[Answer]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    heading = (
        "# Energy: the last measured tables\n\n"
        f"Measured on one machine in one run: {machine}; {_REQUIREMENT}. "
        "Written by `python -m benchmarks.sustainability --write-results`; do not edit by hand.\n"
    )
    return heading + "".join(f"\n{answer.table()}\n" for answer in answers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sustainability",
        description=benchmarks.sustainability.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each measurement (default: 3)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each runs (default: 10)")
    parser.add_argument("--install-peer", action="store_true", help="install CodeCarbon into .bench first")
    parser.add_argument("--write-results", action="store_true", help=f"write the tables to {_RESULTS.name} beside this")
    return parser


if __name__ == "__main__":
    sys.exit(main())

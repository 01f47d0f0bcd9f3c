"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchmarks.judge
from benchmarks.judge.judge_process import JudgeProcess
from benchmarks.speed.answers import Answer, Column, decimals
from benchmarks.speed.environments import ENVIRONMENTS, python_of
from benchmarks.speed.processes import OUR_PYTHON, figures_of

_FOLDER = Path(__file__).resolve().parent
_RESULTS = _FOLDER / "RESULTS.md"
_PEERS = {"httpx": "httpx==0.28.1", "openai": "openai==3.49.0"}
_LATENCY_S = 0.2
_AT_ONCE = 50
_N_CASES = 2_000
_LEAST_SHARE = 0.95
# Growth is measured with a quick judge: what counts is how many questions there were, not how long they took.
_QUICK_S = 0.02
_GROWTH = (2_000, 8_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table for each question."""
    options = _parser().parse_args(arguments)
    if options.install_peers:
        _install()
    n_cases = _N_CASES // options.shrink
    answers = [_throughput(n_cases, options.rounds), _second_run(n_cases), _memory(options.shrink)]
    for answer in answers:
        print(answer.table(), end="\n\n", flush=True)
    if options.write_results:
        _RESULTS.write_text(_results(answers), encoding="utf-8")
    return 0


def _throughput(n_cases: int, rounds: int) -> Answer:
    columns = (
        Column("name", "what"),
        Column("n_calls", "calls", decimals(0)),
        Column("ideal_s", "ideal, s", decimals(2)),
        Column("best_s", "best, s", decimals(2)),
        Column("worst_s", "worst, s", decimals(2)),
        Column("share", "share of ideal", _percent),
        Column("processor_ms", "processor a call, ms", decimals(2)),
        Column("grown_mib", "memory grown, MiB", decimals(1)),
        Column("note", "target"),
    )
    answer = Answer("throughput", f"{n_cases:,} cases, a judge of 200 ms, {_AT_ONCE} calls at once", columns)
    ways = [
        ("nothing", "bare connections, nothing else", OUR_PYTHON),
        ("client", "agentunit, the client alone", OUR_PYTHON),
        *((name, f"{_PEERS[name]}, a semaphore".replace("==", " "), python_of(name)) for name in _PEERS),
        ("score", "agentunit.score, faithfulness", OUR_PYTHON),
    ]
    # In turns, so that whatever else the machine does meets all of them alike.
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for way, _, python in ways:
            if python.exists():
                found.setdefault(way, []).append(_run(way, python, n_cases))
    for way, words, _ in ways:
        if way not in found:
            answer.add(name=words, note=f"not installed: add --install-peers ({ENVIRONMENTS.name}/{way})")
            continue
        best = min(found[way], key=lambda figures: figures["elapsed_s"])
        ideal_s = best["n_calls"] * _LATENCY_S / _AT_ONCE
        share = ideal_s / best["elapsed_s"]
        note = f"{'met' if share >= _LEAST_SHARE else 'MISSED'} (≥ 95 %)" if _is_ours(way) else ""
        answer.add(
            name=words,
            n_calls=best["n_calls"],
            ideal_s=ideal_s,
            best_s=best["elapsed_s"],
            worst_s=max(figures["elapsed_s"] for figures in found[way]),
            share=share,
            processor_ms=1000 * best["processor_s"] / best["n_calls"],
            grown_mib=best["grown_mib"],
            note=note,
        )
    answer.remarks.append(
        f"Best and worst of {rounds} fresh processes each, in turns; the judge is a process of its own on the same "
        "machine. Ideal: calls × 0.2 s / 50; bare connections are what the machine allowed with the rest of its work. "
        "Faithfulness takes two calls a case, the second after the first. Imports are not counted, connecting is. The "
        "peers have no retries of their own in use, no cache and no spend cap; agentunit writes its cache."
    )
    return answer


def _is_ours(way: str) -> bool:
    return way in ("client", "score")


def _run(way: str, python: Path, n_cases: int, latency_s: float = _LATENCY_S) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, JudgeProcess(latency_s, reads=way == "score") as judge:
        figures = _stage(way, python, judge.url, n_cases, folder)
        return figures | judge.counts()


def _stage(way: str, python: Path, url: str, n_cases: int, cache: str) -> dict[str, Any]:
    return figures_of(python, str(_FOLDER / "stage.py"), way, url, str(n_cases), str(_AT_ONCE), cache)


def _second_run(n_cases: int) -> Answer:
    columns = (
        Column("name", "what"),
        Column("first_calls", "calls, first run", decimals(0)),
        Column("second_calls", "calls, second run", decimals(0)),
        Column("second_s", "second run, s", decimals(2)),
        Column("note", "target"),
    )
    answer = Answer("cache", f"A second run of {n_cases:,} cases over the cache", columns)
    for way, words in (("client", "agentunit, the client alone"), ("score", "agentunit.score, faithfulness")):
        with tempfile.TemporaryDirectory() as folder, JudgeProcess(_QUICK_S, reads=way == "score") as judge:
            _stage(way, OUR_PYTHON, judge.url, n_cases, folder)
            first = judge.counts()["n_calls"]
            second = _stage(way, OUR_PYTHON, judge.url, n_cases, folder)
            calls = judge.counts()["n_calls"] - first
        note = f"{'met' if calls == 0 else 'MISSED'} (no call)"
        answer.add(name=words, first_calls=first, second_calls=calls, second_s=second["elapsed_s"], note=note)
    return answer


def _memory(shrink: int) -> Answer:
    columns = (
        Column("name", "what"),
        Column("n_cases", "cases", decimals(0)),
        Column("grown_mib", "memory grown, MiB", decimals(1)),
    )
    answer = Answer("memory", "Memory as runs grow, a judge of 20 ms", columns)
    for way, words in (("client", "agentunit, the client alone"), ("score", "agentunit.score, faithfulness")):
        for n_cases in _GROWTH:
            figures = _run(way, OUR_PYTHON, n_cases // shrink, _QUICK_S)
            answer.add(name=words, n_cases=n_cases // shrink, grown_mib=figures["grown_mib"])
    answer.remarks.append("From before the first question to the largest resident size. Scores are read and let go.")
    return answer


def _install() -> None:
    for name, requirement in _PEERS.items():
        if not python_of(name).exists():
            subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENTS / name)], check=True)
            subprocess.run([str(python_of(name)), "-m", "pip", "install", "-q", requirement], check=True)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _results(answers: list[Answer]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    heading = (
        "# The judge's client: the last measured tables\n\n"
        f"Measured on one machine in one run: {machine}. "
        "Written by `python -m benchmarks.judge --write-results`; do not edit by hand.\n"
    )
    return heading + "".join(f"\n{answer.table()}\n" for answer in answers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judge",
        description=benchmarks.judge.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each timing (default: 3)")
    parser.add_argument("--shrink", type=int, default=1, help="divide all sizes by this, for a quick look (default: 1)")
    parser.add_argument("--install-peers", action="store_true", help="make the peers' environments under .bench/")
    parser.add_argument("--write-results", action="store_true", help=f"write the tables to {_RESULTS.name} beside this")
    return parser


if __name__ == "__main__":
    sys.exit(main())

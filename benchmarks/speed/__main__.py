"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import benchmarks.speed
from benchmarks.speed.answers import Answer
from benchmarks.speed.catalog import measure_catalog
from benchmarks.speed.environments import (
    Installed,
    InstallFailed,
    install_ours,
    install_peer,
    installed_ours,
    installed_peer,
)
from benchmarks.speed.imports import measure_imports
from benchmarks.speed.installs import measure_installs
from benchmarks.speed.memory import measure_memory
from benchmarks.speed.overhead import measure_overhead
from benchmarks.speed.peers import PEERS, Peer
from benchmarks.speed.recording import measure_recording
from benchmarks.speed.resuming import measure_resuming
from benchmarks.speed.whole_run import measure_whole_run

_QUESTIONS = ("import", "install", "overhead", "catalog", "recording", "memory", "resume", "run")
_RESULTS = Path(__file__).resolve().parent / "RESULTS.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for and print a table for each question."""
    options = _parser().parse_args(arguments)
    _install(options)
    peers = [] if options.only_ours else [peer for peer in PEERS if installed_peer(peer) is not None]
    # Asked before the long measurements: someone may go on editing the working tree while they run.
    ours = installed_ours()
    print(_machine(), end="\n\n", flush=True)
    answers: list[Answer] = []
    for answer in _answers(options, ours, peers):
        answers.append(answer)
        print(answer.table(), end="\n\n", flush=True)
    missing = [peer.name for peer in PEERS if peer not in peers]
    if missing:
        print(f"Peers without rows: {', '.join(missing)}. To add them: python -m benchmarks.speed --install-peers")
    if options.json:
        figures = {"machine": _machine(), "answers": {answer.key: answer.rows for answer in answers}}
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.write_results:
        before = _RESULTS.read_text(encoding="utf-8") if _RESULTS.exists() else ""
        _RESULTS.write_text(_results(answers, before, date.today()), encoding="utf-8")
    return 0


def _answers(options: argparse.Namespace, ours: Installed | None, peers: list[Peer]) -> Iterator[Answer]:
    if "import" in options.questions:
        yield measure_imports(peers, options.rounds)
    if "install" in options.questions:
        yield measure_installs(ours, peers)
    if "overhead" in options.questions:
        yield measure_overhead(peers, options.rounds, options.cases)
    if "catalog" in options.questions:
        yield from measure_catalog(options.rounds, options.records)
    if "recording" in options.questions:
        yield from measure_recording(peers, options.rounds, options.cases)
    if "memory" in options.questions:
        yield measure_memory(options.rounds, options.memory_cases)
    if "resume" in options.questions:
        yield measure_resuming(options.rounds, options.resume_cases)
    if "run" in options.questions:
        yield measure_whole_run(options.rounds, options.run_cases, options.before)


def _install(options: argparse.Namespace) -> None:
    wanted = [peer for peer in PEERS if installed_peer(peer) is None] if options.install_peers else []
    for peer in wanted:
        print(f"installing {' '.join(peer.requirements)} …", flush=True)
        try:
            install_peer(peer)
        except InstallFailed as failure:
            print(f"  left out: {failure}")
    if options.install_peers or options.install_ours:
        print("installing the working tree …", flush=True)
        try:
            install_ours()
        except InstallFailed as failure:
            print(f"  left out: {failure}")


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _results(answers: list[Answer], before: str, day: date) -> str:
    """The tables of an earlier file in their order, with those measured now in their places, each with its date."""
    heading = (
        "# Speed: the last measured tables\n\n"
        "Under each table stands when and on what it was measured. "
        "Written by `python -m benchmarks.speed --write-results`; do not edit by hand.\n"
    )
    tables = {each.partition("\n")[0]: each.strip() for each in before.split("\n## ")[1:]}
    for answer in answers:
        measured = f"{answer.table().removeprefix('## ')}\n\nMeasured on {day.isoformat()}: {_machine()}."
        tables[measured.partition("\n")[0]] = measured
    return heading + "".join(f"\n## {table}\n" for table in tables.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=benchmarks.speed.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--install-peers", action="store_true", help="make the peers' and our environment under .bench/"
    )
    parser.add_argument("--install-ours", action="store_true", help="make our environment afresh from the working tree")
    parser.add_argument("--only-ours", action="store_true", help="leave peers out, installed or not")
    parser.add_argument("--questions", nargs="+", choices=_QUESTIONS, default=_QUESTIONS, help="default: all")
    parser.add_argument("--rounds", type=_positive, default=7, help="repetitions of each timing (default: 7)")
    parser.add_argument(
        "--cases", type=_positive, default=10_000, help="cases of the trivial metric and agent (default: 10000)"
    )
    parser.add_argument("--records", type=_positive, default=5_000, help="records of the catalog file (default: 5000)")
    parser.add_argument(
        "--memory-cases", type=_positive, default=2_000, help="cases of the shorter recording (default: 2000)"
    )
    parser.add_argument(
        "--resume-cases", type=_positive, default=100_000, help="cases of the stopped run (default: 100000)"
    )
    parser.add_argument("--run-cases", type=_positive, default=3_000, help="cases of the whole run (default: 3000)")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="also time a whole run of this checkout")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--write-results", action="store_true", help=f"write the tables to {_RESULTS.name} beside this")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; received {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

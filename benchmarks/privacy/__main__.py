"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchmarks.privacy
from benchmarks.privacy.texts import mails
from benchmarks.speed.answers import Answer, Column, decimals, times
from benchmarks.speed.environments import install_peer, installed_peer, python_of
from benchmarks.speed.peers import Peer
from benchmarks.speed.processes import OUR_PYTHON, figures_of

PRESIDIO = Peer("presidio-analyzer", ("presidio-analyzer==2.2.366",), "import presidio_analyzer")
_HERE = Path(__file__).resolve().parent
_RESULTS = _HERE / "RESULTS.md"
_MB = 1_000_000
_TARGET_RATIO = 10
_TARGET_ODD = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table for each question."""
    options = _parser().parse_args(arguments)
    if options.install_peers:
        install_peer(PRESIDIO)
    answers = [_speed(options.megabytes, options.rounds), _odd_texts(options.odd_megabytes, options.rounds)]
    for answer in answers:
        print(answer.table(), end="\n\n", flush=True)
    if options.write_results:
        _RESULTS.write_text(_results(answers), encoding="utf-8")
    return 0


def _speed(megabytes: int, rounds: int) -> Answer:
    columns = (
        Column("name", "detector"),
        Column("size_mb", "MB", decimals(1)),
        Column("n_found", "found", decimals(0)),
        Column("mb_per_s", "MB/s", decimals(2)),
        Column("ratio", "to Presidio", times),
        Column("note", "target or remark"),
    )
    answer = Answer("speed", "Finding personal data in mails of about a kilobyte, one core", columns)
    answer.remarks.append(
        f"The best CPU time of {rounds} rounds; starting Python and loading tables are not counted. Ours is everything "
        "that the base install has: 16 types by patterns, names, postal addresses. Presidio's are its recognizers by "
        "pattern of the types we share, called one after the other without its engine; names and addresses are not "
        "among them, since these take a model there."
    )
    theirs = _presidio(min(megabytes, 1), rounds) if installed_peer(PRESIDIO) is not None else None
    ours = _ours("mails", megabytes, rounds)
    mb_per_s = ours["n_bytes"] / _MB / ours["elapsed_s"]
    if theirs is None:
        answer.add(name="agentunit", size_mb=ours["n_bytes"] / _MB, n_found=ours["n_found"], mb_per_s=mb_per_s)
        answer.add(name="presidio recognizers", note="not installed; --install-peers does it")
        return answer
    theirs_mb_per_s = theirs["n_bytes"] / _MB / theirs["elapsed_s"]
    ratio = mb_per_s / theirs_mb_per_s
    answer.add(
        name="agentunit",
        size_mb=ours["n_bytes"] / _MB,
        n_found=ours["n_found"],
        mb_per_s=mb_per_s,
        ratio=ratio,
        note=f"{'met' if ratio >= _TARGET_RATIO else 'MISSED'} (≥ {_TARGET_RATIO}×)",
    )
    answer.add(
        name="presidio recognizers",
        size_mb=theirs["n_bytes"] / _MB,
        n_found=theirs["n_found"],
        mb_per_s=theirs_mb_per_s,
        ratio=1.0,
        note=f"{theirs['recognizers']} recognizers, {PRESIDIO.requirements[0]}",
    )
    return answer


def _odd_texts(megabytes: int, rounds: int) -> Answer:
    columns = (
        Column("name", "text"),
        Column("n_found", "found", decimals(0)),
        Column("ms_per_mb", "ms/MB", decimals(1)),
        Column("ratio", "to prose", times),
        Column("without_ratio", "without reporting", times),
        Column("note", "target or remark"),
    )
    answer = Answer("odd", f"One text of {megabytes} MB made to slow a detector down", columns)
    figures = _ours("odd", megabytes, rounds)
    prose, reported = figures.pop("prose"), figures.pop("email addresses")
    per_finding_s = reported["elapsed_s"] / reported["n_found"]
    prose_s_per_byte = prose["elapsed_s"] / prose["n_bytes"]
    answer.remarks.append(
        f"The best CPU time of {rounds} rounds. Prose has names in it, and finding them is part of its cost. Reporting "
        f"a finding takes {per_finding_s * 1e6:.1f} µs (measured on a text of nothing but email addresses); the column "
        "before the last leaves that out for what was found in an odd text, right or wrong."
    )
    answer.add(name="ordinary prose", n_found=prose["n_found"], ms_per_mb=prose_s_per_byte * 1e9, ratio=1.0)
    for name, each in figures.items():
        s_per_byte = each["elapsed_s"] / each["n_bytes"]
        without = max(0.0, each["elapsed_s"] - each["n_found"] * per_finding_s) / each["n_bytes"] / prose_s_per_byte
        answer.add(
            name=name,
            n_found=each["n_found"],
            ms_per_mb=s_per_byte * 1e9,
            ratio=s_per_byte / prose_s_per_byte,
            without_ratio=without,
            note=f"{'met' if without <= _TARGET_ODD else 'MISSED'} (≤ {_TARGET_ODD:g}×)",
        )
    return answer


def _ours(what: str, megabytes: int, rounds: int) -> dict[str, Any]:
    return figures_of(OUR_PYTHON, "-m", "benchmarks.privacy.with_agentunit", what, str(megabytes * _MB), str(rounds))


def _presidio(megabytes: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.json"
        path.write_text(json.dumps(mails(megabytes * _MB)), encoding="utf-8")
        return figures_of(python_of(PRESIDIO.name), str(_HERE / "with_presidio.py"), str(path), str(rounds))


def _results(answers: list[Answer]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    heading = (
        "# Finding personal data: the last measured tables\n\n"
        f"Measured on one machine in one run: {machine}. "
        "Written by `python -m benchmarks.privacy --write-results`; do not edit by hand.\n"
    )
    return heading + "".join(f"\n{answer.table()}\n" for answer in answers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.privacy",
        description=benchmarks.privacy.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--megabytes", type=int, default=5, help="size of the mails (default: 5; Presidio gets 1)")
    parser.add_argument("--odd-megabytes", type=int, default=10, help="size of each odd text (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each timing (default: 3)")
    parser.add_argument("--install-peers", action="store_true", help="make Presidio's environment with pip first")
    parser.add_argument("--write-results", action="store_true", help=f"write the tables to {_RESULTS.name} beside this")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import benchmarks.multimodal
from benchmarks.speed.answers import Answer

_RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
_FOR_ENCODING = ("torch", "transformers", "tokenizers", "numpy", "PIL")
_FOR_FRAMES = ("av", "numpy", "PIL")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what can be measured here, and print a table for each question."""
    options = _parser().parse_args(arguments)
    answers: list[Answer] = []
    if "encoding" in options.parts and not _lacks("encoding", _FOR_ENCODING):
        from benchmarks.multimodal import encoding

        size = encoding.Size(options.pictures, options.texts, options.rounds, options.tiny)
        answers += encoding.measure(size)
    if "frames" in options.parts and not _lacks("frames", _FOR_FRAMES):
        from benchmarks.multimodal import frames

        with tempfile.TemporaryDirectory() as folder:
            answers.append(frames.measure(Path(folder), options.seconds, options.rounds))
    for answer in answers:
        print(answer.table(), end="\n\n", flush=True)
    if options.write_results:
        options.write_results.write_text(_results(answers), encoding="utf-8")
    return 0 if answers else 2


def _lacks(part: str, packages: Sequence[str]) -> bool:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        print(f"{part} is left out: {', '.join(missing)} cannot be imported here", file=sys.stderr)
    return bool(missing)


def _results(answers: list[Answer]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    heading = (
        "# Multimodal: the last measured tables\n\n"
        f"Measured on one machine in one run: {machine}. "
        "Written by `python -m benchmarks.multimodal --write-results`; do not edit by hand.\n"
    )
    return heading + "".join(f"\n{answer.table()}\n" for answer in answers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.multimodal",
        description=benchmarks.multimodal.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts", nargs="*", default=["encoding", "frames"], help="encoding, frames (default: both)", metavar="PART"
    )
    parser.add_argument("--pictures", type=int, default=8_192, help="pictures to encode (default: %(default)s)")
    parser.add_argument("--texts", type=int, default=65_536, help="texts to encode (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=300, help="length of the clip (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each measurement (default: %(default)s)")
    parser.add_argument("--tiny", action="store_true", help="a much smaller model, to try the benchmark itself")
    parser.add_argument(
        "--write-results",
        type=Path,
        nargs="?",
        const=_RESULTS,
        help=f"write the tables to a file (default: {_RESULTS.name} beside this)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

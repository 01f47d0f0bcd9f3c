"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import benchmarks.scale
from benchmarks.scale.cost_model import cost_model
from benchmarks.scale.drawing import growth_plot
from benchmarks.scale.measured import measure_growth, measure_model, measure_otlp, measure_pace, measure_ray
from benchmarks.speed.answers import Answer
from benchmarks.speed.environments import ROOT

_QUESTIONS = ("pace", "otlp", "growth", "model", "ray")
_RESULTS = Path(__file__).with_name("RESULTS.md")
_PLOT = ROOT / "docs" / "performance.svg"
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
_TMPFS = Path("/dev/shm")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for and print a table for each question."""
    options = _parser().parse_args(arguments)
    print(_machine(), end="\n\n", flush=True)
    answers: dict[str, Answer] = {}
    for answer in _answers(options):
        answers[answer.key] = answer
        print(answer.table(), end="\n\n", flush=True)
    whole = cost_model(answers)
    if whole is not None:
        answers[whole.key] = whole
        print(whole.table(), end="\n\n", flush=True)
    if options.json:
        figures = {"machine": _machine(), "answers": {key: answer.rows for key, answer in answers.items()}}
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.write_results:
        _write_results(answers)
    return 0


def _answers(options: argparse.Namespace) -> Iterator[Answer]:
    places = {"disk": options.disk}
    if _TMPFS.is_dir():
        places = {"tmpfs": _TMPFS, **places}
    if "pace" in options.questions:
        yield measure_pace(places, options.records, options.rounds)
    if "otlp" in options.questions:
        yield measure_otlp(places, options.otlp_megabytes, options.rounds)
    if "growth" in options.questions:
        yield measure_growth(options.disk, options.sizes, options.stream)
    if "model" in options.questions and options.model_records:
        yield measure_model(options.disk, options.model_records)
    if "ray" in options.questions and find_spec("ray") is not None:
        yield measure_ray(options.disk, options.records)


def _write_results(answers: dict[str, Answer]) -> None:
    results = _RESULTS.read_text(encoding="utf-8")
    before, after = results.split(_BEGIN)[0], results.split(_END)[1]
    parts = [f"Measured on {date.today()} on one machine in one run: {_machine()}."]
    for key, answer in answers.items():
        parts.append(answer.table().replace("## ", "### ", 1))
        if key == "growth":
            parts.append("![Cost a record and memory as files grow](../../docs/performance.svg)")
            _PLOT.write_text(growth_plot(answer), encoding="utf-8")
    text = "\n\n".join(parts)
    _RESULTS.write_text(f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}", encoding="utf-8")


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=benchmarks.scale.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--questions", nargs="+", choices=_QUESTIONS, default=_QUESTIONS, help="default: all")
    parser.add_argument("--rounds", type=_positive, default=2, help="repetitions of pace and OTLP (default: 2)")
    parser.add_argument("--records", type=_positive, default=60_000, help="records of the pace (default: 60000)")
    # Enough that also half of the traces have no bootstrap, whose time does not depend on the size of files.
    parser.add_argument("--otlp-megabytes", type=_positive, default=120, metavar="MB", help="default: 120")
    parser.add_argument(
        "--sizes", type=_positive, nargs="+", default=[10**4, 10**5, 10**6], help="default: 10000 100000 1000000"
    )
    parser.add_argument(
        "--stream", type=int, default=10**7, metavar="N", help="through a pipe; 0: none (default: 10000000)"
    )
    parser.add_argument("--model-records", type=int, default=150, help="for the local model; 0: none (default: 150)")
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()), help="a folder on a disk")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument(
        "--write-results", action="store_true", help="write RESULTS.md and the plot of docs/performance.md"
    )
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; received {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

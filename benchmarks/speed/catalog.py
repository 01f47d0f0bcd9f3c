"""Question 4: what do the seven core metrics add to merely reading the records, and does memory stay flat?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.speed.answers import Answer, Column, decimals, times
from benchmarks.speed.processes import OUR_PYTHON, Spread, figures_of
from benchmarks.speed.recordings import EVENTS_PER_RECORD, write_recordings

TARGET_RATIO = 3.0
_LONGER = 10


def measure_catalog(rounds: int, n_records: int) -> list[Answer]:
    """Time decoding and scoring of one generated file, then the memory of scoring it once and ten times over."""
    with tempfile.TemporaryDirectory() as folder:
        path, without_totals = Path(folder) / "recordings.jsonl", Path(folder) / "without_totals.jsonl"
        write_recordings(path, n_records)
        write_recordings(without_totals, n_records, totals=False)
        # A round takes about a second here, so there can be more of them.
        return [_time(path, without_totals, 3 * rounds), _memory(path)]


def _time(path: Path, without_totals: Path, rounds: int) -> Answer:
    answer = Answer(
        "catalog",
        f"Seven core metrics on traces of {EVENTS_PER_RECORD} events, per record",
        (
            Column("name", "what"),
            Column("n_records", "records", decimals(0)),
            Column("best_ms", "best, ms", decimals(4)),
            Column("worst_ms", "worst, ms", decimals(4)),
            Column("ratio", "to decoding", times),
            Column("note", "target or remark"),
        ),
        remarks=[
            f"Best and worst of {rounds} rounds in one process, in turn, from a JSONL file of "
            f"{path.stat().st_size / 1e6:,.1f} MB. Lexical backends. The last row reads runs that record tokens per "
            "call and no totals: tokens are added up, and priced where the price table is installed."
        ],
    )
    figures = _timings(path, rounds)
    decoded, scored = _per_record(figures, "decode_s"), _per_record(figures, "score_s")
    _add(answer, "decode only", figures, decoded, decoded)
    _add(answer, "decode and score", figures, scored, decoded)
    met = scored.best <= TARGET_RATIO * decoded.best
    answer.rows[-1]["note"] = f"{'met' if met else 'MISSED'} (≤ {TARGET_RATIO:g}×)"
    figures = _timings(without_totals, rounds)
    decoded, scored = _per_record(figures, "decode_s"), _per_record(figures, "score_s")
    _add(answer, "decode and score, no totals", figures, scored, decoded)
    answer.rows[-1]["note"] = f"price table {'installed' if figures['prices'] else 'not installed'}"
    return answer


def _timings(path: Path, rounds: int) -> dict[str, Any]:
    return figures_of(OUR_PYTHON, "-m", "benchmarks.speed.seven_metrics", "time", str(path), str(rounds))


def _per_record(figures: dict[str, Any], key: str) -> Spread:
    return Spread.of([each_s * 1000 / figures["n_records"] for each_s in figures[key]])


def _add(answer: Answer, name: str, figures: dict[str, Any], spread: Spread, decoded: Spread) -> None:
    answer.add(
        name=name,
        n_records=figures["n_records"],
        best_ms=spread.best,
        worst_ms=spread.worst,
        rounds=spread.rounds,
        ratio=spread.best / decoded.best,
    )


def _memory(path: Path) -> Answer:
    answer = Answer(
        "scoring_memory",
        "Peak memory of scoring a stream with the seven metrics",
        (
            Column("name", "what"),
            Column("n_records", "records", decimals(0)),
            Column("peak_mb", "peak, MB", decimals(1)),
            Column("ratio", "to the shorter", times),
        ),
        remarks=[
            "Resident size of a fresh process each, the longer one reading the same file ten times as one stream."
        ],
    )
    for name, repeats in (("the file once", 1), (f"the file {_LONGER} times", _LONGER)):
        figures = figures_of(OUR_PYTHON, "-m", "benchmarks.speed.seven_metrics", "memory", str(path), str(repeats))
        answer.add(name=name, n_records=figures["n_records"], peak_mb=figures["peak_bytes"] / 1e6)
    answer.compare("peak_mb", "the file once")
    return answer

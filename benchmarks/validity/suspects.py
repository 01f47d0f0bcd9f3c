"""Suspects against outcomes: figures of the ranking by consensus, on runs whose outcome is known.

``python -m benchmarks.validity.suspects NAME=FILE[,FILE…] …`` measures public results that are not part of the labelled
data and prints the lines for ``recorded_suspects.json``: figures only, with where they come from. No row of those files
is kept, and nothing was designed on them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

import msgspec
from msgspec import Struct

from agentunit.addons.review.labeling.agreement import auroc, bootstrap_statistic_interval
from agentunit.addons.review.labeling.scorer_agreement import ScoredRow, verdict_of
from agentunit.addons.review.suspects.ranking import rank_runs
from agentunit.addons.review.suspects.signatures import Signatures
from agentunit.core.records import Record
from agentunit.traces.reading import read_records
from benchmarks.validity.measure import Figure, Scorer, set_figure, tidy

RECORDED_FILE = Path(__file__).with_name("recorded_suspects.json")
CONSENSUS = Scorer("suspects", "metric", "consensus", "lower")
SHORT_RUN = Scorer("short run", "baseline", direction="lower")
SHORT_TEXT = Scorer("short text", "baseline", direction="lower")
BASE_RATE = Scorer("share of all runs that failed", "baseline")
TOP_SHARE = 0.1
PRECISION = f"precision in the top {TOP_SHARE:.0%}".replace("%", " %")
DIFFERENCE = "AUROC less that of short run"
PRECISION_DIFFERENCE = f"{PRECISION} less that of longest first"
FEWEST_PEERS = 3
"""Sets whose runs have so many peers count in the mean."""


class SuspectSet(Struct, frozen=True):
    """What was measured on one set: figures, and on how many peers the verdicts rest."""

    name: str
    n_runs: int
    n_tasks: int
    fewest_peers: int
    most_peers: int
    n_unranked: int
    figures: list[Figure]
    source: str = ""
    measured: str = ""
    """On which day, with which version."""


def measure_set(name: str, records: Sequence[Record]) -> SuspectSet | None:
    """Rank the runs of a set as a user would, without their outcomes, and hold the ranks against these.

    ``None`` where no run has enough peers, or all that have end alike.
    """
    signatures = Signatures()
    for record in records:
        signatures.add(record)
    report = rank_runs(signatures)
    ranked = [(run, getattr(records[run.place].outcome, "success", None)) for run in report.runs]
    known = [(run, bool(success)) for run, success in ranked if success is not None]
    labels = [int(not success) for _, success in known]
    if not known or len(set(labels)) < 2:
        return None
    tasks = [signatures.keys[run.place].by_id for run, _ in known]
    suspicion = [run.suspicion for run, _ in known]
    steps = [float(run.n_steps) for run, _ in known]
    by_scorer = {
        CONSENSUS: suspicion,
        SHORT_RUN: steps,
        SHORT_TEXT: [float(run.n_characters) for run, _ in known],
    }
    figures = [set_figure(scorer, name, _rows(labels, values, tasks)) for scorer, values in by_scorer.items()]
    for scorer, values in by_scorer.items():
        figures.append(_interval_figure(scorer, name, PRECISION, precision_at_top, (labels, values), tasks))
    figures.append(Figure(BASE_RATE, name, PRECISION, len(labels), tidy(sum(labels) / len(labels)), None, None))
    for statistic, formula in ((DIFFERENCE, auroc), (PRECISION_DIFFERENCE, precision_at_top)):
        pair = (labels, suspicion, steps)
        figures.append(_interval_figure(CONSENSUS, name, statistic, _less(formula), pair, tasks))
    n_peers = [run.n_peers for run, _ in known]
    n_unranked = sum(each.n_runs for each in report.unranked)
    return SuspectSet(name, len(known), len(set(tasks)), min(n_peers), max(n_peers), n_unranked, figures)


def precision_at_top(labels: Sequence[int], values: Sequence[float]) -> float | None:
    """The share of failed runs among the tenth that is ranked first; runs that are ranked alike count by their share.

    >>> precision_at_top([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [9, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    1.0
    >>> precision_at_top([1, 0] * 5, [1.0] * 10)
    0.5
    """
    wanted = max(1, round(TOP_SHARE * len(labels)))
    found = taken = 0.0
    for value in sorted(set(values), reverse=True):
        tied = [label for label, each in zip(labels, values, strict=True) if each == value]
        n = min(len(tied), wanted - taken)
        found += n * sum(tied) / len(tied)
        taken += n
        if taken >= wanted:
            break
    return found / taken if taken else None


def _less(formula: Callable[..., float | None]) -> Callable[..., float | None]:
    """What a formula says of one ranking less what it says of another of the same runs."""

    def difference(labels: Sequence[int], own: Sequence[float], other: Sequence[float]) -> float | None:
        first, second = formula(labels, own), formula(labels, other)
        return None if first is None or second is None else first - second

    return difference


def _rows(labels: Sequence[int], values: Sequence[float], tasks: Sequence[bytes]) -> list[ScoredRow]:
    return [ScoredRow(1 - label, value, task) for label, value, task in zip(labels, values, tasks, strict=True)]


def _interval_figure(
    scorer: Scorer,
    name: str,
    statistic: str,
    formula: Callable[..., float | None],
    columns: tuple[Sequence[float], ...],
    tasks: Sequence[bytes],
) -> Figure:
    interval = bootstrap_statistic_interval(formula, columns, groups=tasks)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Figure(scorer, name, statistic, len(tasks), tidy(formula(*columns)), tidy(low), tidy(high))


def mean_over_sets(sets: Sequence[SuspectSet], scorer: Scorer, statistic: str, name: str) -> Figure | None:
    """The mean over sets, each counting alike. Its interval takes the sets as independent."""
    figures = [each for one in sets for each in one.figures if each.scorer == scorer and each.statistic == statistic]
    values = [each.value for each in figures if each.value is not None]
    if not values:
        return None
    mean = sum(values) / len(values)
    widths = [(each.high - each.low) / 2 for each in figures if each.low is not None and each.high is not None]
    low = high = None
    if len(widths) == len(values):
        half = sqrt(sum(width**2 for width in widths)) / len(widths)
        low, high = max(0.0, mean - half), min(1.0, mean + half)
    verdict = verdict_of("AUROC", low, high) if statistic == "AUROC" else ""
    n = sum(each.n for each in figures)
    return Figure(scorer, name, statistic, n, tidy(mean), tidy(low), tidy(high), verdict, len(values))


def recorded_sets() -> list[SuspectSet]:
    """What was measured on public results that are not part of the labeled data."""
    return msgspec.json.decode(RECORDED_FILE.read_bytes(), type=list[SuspectSet]) if RECORDED_FILE.is_file() else []


def main(arguments: Sequence[str]) -> int:
    """Measure named files and print what to record."""
    found = []
    for argument in arguments:
        name, _, paths = argument.partition("=")
        records = [each for path in paths.split(",") for each in read_records(path) if isinstance(each, Record)]
        measured = measure_set(name, records)
        if measured is None:
            print(f"{name}: no run has two peers, or all that have end alike", file=sys.stderr)
        else:
            found.append(measured)
    print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

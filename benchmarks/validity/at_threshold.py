"""Figures of a score that is cut into yes and no: where the backend says for such a case, else at one half."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import mul

from agentunit.addons.review.labeling.agreement import (
    accuracy,
    balanced_accuracy,
    bootstrap_statistic_interval,
)
from agentunit.addons.review.labeling.scorer_agreement import ScoredRow, verdict_of
from benchmarks.validity.measure import Figure, Scorer, mean_of_sets, tidy

THRESHOLD = 0.5
AGREEMENT, BALANCED_ACCURACY, FAULT_F1 = "agreement", "balanced accuracy", "response-level F1"


def says_good(scorer: Scorer, row: ScoredRow) -> int:
    """1 when the score is at the threshold or better."""
    threshold = THRESHOLD if row.threshold is None else row.threshold
    return int(row.value <= threshold if scorer.direction == "lower" else row.value >= threshold)


def agreement_figure(scorer: Scorer, dataset: str, rows: Sequence[ScoredRow]) -> Figure:
    """How often a scorer says what people said.

    The bar is not one half but the share of the commoner label: always saying that needs no metric.
    """
    labels = [int(row.label) for row in rows]
    value, low, high = _with_interval(accuracy, scorer, rows)
    bar = max(labels.count(0), labels.count(1)) / len(labels)
    verdict = "no better than one fixed answer"
    if low is not None and low > bar:
        verdict = "better than one fixed answer"
    elif high is not None and high < bar:
        verdict = "worse than one fixed answer"
    return Figure(scorer, dataset, AGREEMENT, len(rows), tidy(value), tidy(low), tidy(high), verdict)


def balanced_accuracy_figure(scorer: Scorer, dataset: str, rows: Sequence[ScoredRow]) -> Figure:
    """How often a scorer is right when good and bad count alike; one fixed answer gets 0.5."""
    value, low, high = _with_interval(balanced_accuracy, scorer, rows)
    verdict = verdict_of("AUROC", low, high)
    return Figure(scorer, dataset, BALANCED_ACCURACY, len(rows), tidy(value), tidy(low), tidy(high), verdict)


def mean_balanced_accuracy(scorer: Scorer, rows_of: Mapping[str, Sequence[ScoredRow]], dataset: str) -> Figure:
    """The mean of the balanced accuracy over sets, each counting alike."""

    def of_verdicts(labels: Sequence[int], verdicts: Sequence[float]) -> float | None:
        return balanced_accuracy(labels, [int(verdict) for verdict in verdicts])

    return mean_of_sets(
        scorer, rows_of, dataset, BALANCED_ACCURACY, of_verdicts, lambda row: float(says_good(scorer, row))
    )


def fault_f1_figure(scorer: Scorer, dataset: str, rows: Sequence[ScoredRow]) -> Figure:
    """How well a scorer finds the bad ones: the F1 of "bad", as papers on hallucination report it."""
    value, low, high = _with_interval(_fault_f1, scorer, rows)
    return Figure(scorer, dataset, FAULT_F1, len(rows), tidy(value), tidy(low), tidy(high))


def _fault_f1(labels: Sequence[int], verdicts: Sequence[int]) -> float | None:
    bad, called_bad = [1 - label for label in labels], [1 - verdict for verdict in verdicts]
    n_hits = sum(map(mul, bad, called_bad))
    n_marked = sum(bad) + sum(called_bad)
    return 2 * n_hits / n_marked if n_marked else None


def _with_interval(
    statistic: Callable[[Sequence[int], Sequence[int]], float | None], scorer: Scorer, rows: Sequence[ScoredRow]
) -> tuple[float | None, float | None, float | None]:
    labels = [int(row.label) for row in rows]
    verdicts = [says_good(scorer, row) for row in rows]
    groups = [("row", position) if row.group is None else row.group for position, row in enumerate(rows)]
    interval = bootstrap_statistic_interval(statistic, (labels, verdicts), groups=groups)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return statistic(labels, verdicts), low, high

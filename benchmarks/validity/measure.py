"""From labelled cases to figures: score them with real metrics and plain baselines, one row a scorer and set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from agentunit.core.records import Record
from agentunit.datasets.labels import Label
from agentunit.engine.validity import ScoredRow, measure_agreement, score_labelled, verdict_of
from agentunit.formulas.agreement import accuracy, auroc, bootstrap_statistic_interval
from agentunit.metrics.base import Direction
from agentunit.metrics.trust import TrustFigure
from benchmarks.validity.baselines import Baseline

LabelledCase = tuple[Record, Label]
DECIMALS = 4
THRESHOLD = 0.5


class Scorer(Struct, frozen=True):
    """What gave a score: a metric with its backend, a baseline of ours, or the released output of another system."""

    name: str
    kind: Literal["metric", "baseline", "released"]
    backend: str = ""
    direction: Direction = "higher"

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"{self.name} ({self.backend})" if self.kind == "metric" else self.name


class Figure(Struct, frozen=True):
    """One statistic of one scorer, on one set or as the mean over several."""

    scorer: Scorer
    dataset: str
    statistic: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    verdict: str = ""
    n_sets: int = 1


Scored = dict[Scorer, dict[str, list[ScoredRow]]]


def score_sets(
    sets: Mapping[str, Sequence[LabelledCase]], runs: Iterable[Sequence[Any]], baselines: Iterable[Baseline] = ()
) -> Scored:
    """Every scorer's rows on every set, metrics first.

    Metrics go through ``agentunit.score``, as a user's would: a run for each list of metrics in ``runs``, so that one
    metric can be measured with several backends.
    """
    scored: Scored = defaultdict(dict)
    for metrics in runs:
        for dataset, cases in sets.items():
            found = score_labelled(cases, metrics)
            for (name, backend), rows in found.rows.items():
                scored[Scorer(name, "metric", backend, found.infos[name].direction)][dataset] = rows
    for baseline in baselines:
        for dataset, cases in sets.items():
            values = [(label, baseline.score(record)) for record, label in cases]
            rows = [ScoredRow(label.value, value, label.group) for label, value in values if value is not None]
            scored[Scorer(baseline.name, "baseline")][dataset] = rows
    return dict(scored)


def set_figure(scorer: Scorer, dataset: str, rows: Sequence[ScoredRow]) -> Figure:
    """How well a scorer ranks one set: AUROC for good/bad labels, Spearman for grades."""
    found = measure_agreement(
        rows, metric=scorer.name, backend=scorer.backend, direction=scorer.direction, threshold=None
    )
    bounds = (_tidy(found.low), _tidy(found.high))
    return Figure(scorer, dataset, found.statistic, found.n, _tidy(found.value), *bounds, found.verdict)


def mean_figure(scorer: Scorer, rows_of: Mapping[str, Sequence[ScoredRow]], dataset: str = "mean") -> Figure:
    """The mean AUROC over sets, each counting alike; its interval comes from resampling the groups of all sets."""
    if len(rows_of) == 1:
        ((only, rows),) = rows_of.items()
        return set_figure(scorer, only, rows)
    sign = -1.0 if scorer.direction == "lower" else 1.0
    flat = [(name, row) for name, rows in rows_of.items() for row in rows]
    names = [name for name, _ in flat]
    labels = [int(row.label) for _, row in flat]
    values = [sign * row.value for _, row in flat]
    groups = [(name, position if row.group is None else row.group) for position, (name, row) in enumerate(flat)]
    value = _mean_auroc(names, labels, values)
    interval = bootstrap_statistic_interval(_mean_auroc, (names, labels, values), groups=groups)
    low, high = (interval.low, interval.high) if interval else (None, None)
    verdict = verdict_of("AUROC", low, high)
    return Figure(scorer, dataset, "AUROC", len(flat), _tidy(value), _tidy(low), _tidy(high), verdict, len(rows_of))


def agreement_figure(scorer: Scorer, dataset: str, rows: Sequence[ScoredRow]) -> Figure:
    """How often a scorer says what people said: a score of at least one half counts as a yes.

    The bar is not one half but the share of the commoner label: always saying that needs no metric.
    """
    labels = [int(row.label) for row in rows]
    lower = scorer.direction == "lower"
    predictions = [int(row.value <= THRESHOLD if lower else row.value >= THRESHOLD) for row in rows]
    groups = [("row", position) if row.group is None else row.group for position, row in enumerate(rows)]
    interval = bootstrap_statistic_interval(accuracy, (labels, predictions), groups=groups)
    low, high = (interval.low, interval.high) if interval else (None, None)
    bar = max(labels.count(0), labels.count(1)) / len(labels)
    verdict = "no better than one fixed answer"
    if low is not None and low > bar:
        verdict = "better than one fixed answer"
    elif high is not None and high < bar:
        verdict = "worse than one fixed answer"
    value = accuracy(labels, predictions)
    return Figure(scorer, dataset, "agreement", len(rows), _tidy(value), _tidy(low), _tidy(high), verdict)


def trust_figures(means: Iterable[Figure]) -> list[TrustFigure]:
    """What is shipped with the metrics: the figures of real metrics, without the baselines."""
    return [
        TrustFigure(
            metric=mean.scorer.name,
            backend=mean.scorer.backend,
            statistic=mean.statistic,
            value=mean.value,
            low=mean.low,
            high=mean.high,
            n_sets=mean.n_sets,
            n_cases=mean.n,
        )
        for mean in means
        if mean.scorer.kind == "metric" and mean.value is not None and mean.low is not None and mean.high is not None
    ]


def _mean_auroc(names: Sequence[str], labels: Sequence[int], values: Sequence[float]) -> float | None:
    parts: dict[str, tuple[list[int], list[float]]] = {}
    for name, label, value in zip(names, labels, values, strict=True):
        set_labels, set_values = parts.setdefault(name, ([], []))
        set_labels.append(label)
        set_values.append(value)
    # Sorted, so that the sum does not depend on which set a resample happened to draw first.
    areas = [auroc(*parts[name]) for name in sorted(parts)]
    defined = [area for area in areas if area is not None]
    return sum(defined) / len(defined) if defined else None


def _tidy(value: float | None) -> float | None:
    # Adding zero turns −0.0, which a small negative figure rounds to, into 0.0.
    return None if value is None else round(value, DECIMALS) + 0.0

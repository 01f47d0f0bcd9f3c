"""From labeled cases to figures: score them with real metrics and plain baselines, one row a scorer and set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agentunit.addons.review.labeling.agreement import auroc, bootstrap_statistic_interval
from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import ScoredRow, measure_agreement, score_labeled, verdict_of
from agentunit.core.records import Record
from agentunit.metrics.base import Direction
from agentunit.metrics.trust import TrustFigure
from benchmarks.validity.baselines import Baseline

LabelledCase = tuple[Record, Label]
SetStatistic = Callable[[Sequence[int], Sequence[float]], float | None]
DECIMALS = 4


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
            found = score_labeled(cases, metrics)
            for (name, backend), rows in found.rows.items():
                scored[Scorer(name, "metric", backend, found.infos[name].direction)][dataset] = rows
    for baseline in baselines:
        for dataset, cases in sets.items():
            values = [(label, baseline.score(record)) for record, label in cases]
            rows = [ScoredRow(label.value, value, label.group) for label, value in values if value is not None]
            if rows:
                scored[Scorer(baseline.name, "baseline")][dataset] = rows
    return dict(scored)


def set_figure(scorer: Scorer, dataset: str, rows: Sequence[ScoredRow]) -> Figure:
    """How well a scorer ranks one set: AUROC for good/bad labels, Spearman for grades."""
    found = measure_agreement(
        rows, metric=scorer.name, backend=scorer.backend, direction=scorer.direction, threshold=None
    )
    bounds = (tidy(found.low), tidy(found.high))
    return Figure(scorer, dataset, found.statistic, found.n, tidy(found.value), *bounds, found.verdict)


def mean_figure(scorer: Scorer, rows_of: Mapping[str, Sequence[ScoredRow]], dataset: str | None = None) -> Figure:
    """The mean AUROC over sets, each counting alike; its interval comes from resampling the groups of all sets.

    ``dataset`` is what it is called, by default after the number of sets; the mean of one set is that set's figure.
    """
    if len(rows_of) == 1:
        ((only, rows),) = rows_of.items()
        return set_figure(scorer, only, rows)
    sign = -1.0 if scorer.direction == "lower" else 1.0
    named = dataset or f"mean of {len(rows_of)} sets"
    return mean_of_sets(scorer, rows_of, named, "AUROC", auroc, lambda row: sign * row.value)


def mean_of_sets(
    scorer: Scorer,
    rows_of: Mapping[str, Sequence[ScoredRow]],
    dataset: str,
    name: str,
    statistic: SetStatistic,
    value_of: Callable[[ScoredRow], float],
) -> Figure:
    """The mean of any statistic of labels and values over sets, of which 0.5 is what chance gives."""
    flat = [(place, row) for place, rows in rows_of.items() for row in rows]
    places = [place for place, _ in flat]
    labels = [int(row.label) for _, row in flat]
    values = [value_of(row) for _, row in flat]
    groups = [(place, position if row.group is None else row.group) for position, (place, row) in enumerate(flat)]

    def mean(places: Sequence[str], labels: Sequence[int], values: Sequence[float]) -> float | None:
        return _mean_over_places(statistic, places, labels, values)

    interval = bootstrap_statistic_interval(mean, (places, labels, values), groups=groups)
    low, high = (interval.low, interval.high) if interval else (None, None)
    figure = Figure(scorer, dataset, name, len(flat), tidy(mean(places, labels, values)), tidy(low), tidy(high))
    return replace(figure, verdict=verdict_of("AUROC", low, high), n_sets=len(rows_of))


def headline_means(scored: Scored, names: Iterable[str]) -> list[Figure]:
    """The mean AUROC of each metric over those of the named sets that it scored, and of the baselines on the same."""
    groups = {
        scorer: tuple(name for name in names if name in rows_of)
        for scorer, rows_of in scored.items()
        if scorer.kind == "metric"
    }
    figures = []
    for group in dict.fromkeys(group for group in groups.values() if group):
        asked = [scorer for scorer in scored if groups.get(scorer, group) == group]
        figures += [
            mean_figure(scorer, {name: scored[scorer][name] for name in group})
            for scorer in asked
            if all(name in scored[scorer] for name in group)
        ]
    return figures


# Formulas of the catalog, of which nothing was tuned or fitted on any data.
NOT_TUNED = frozenset({"lexical", "keywords"})


def trust_figures(means: Iterable[Figure]) -> list[TrustFigure]:
    """What these development sets say beside scores: the figures of backends of which nothing was tuned on them.

    The figures of all others come from ``held_out.json``, or from text that was written for the purpose.
    """
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
        if mean.scorer.kind == "metric" and mean.scorer.backend in NOT_TUNED
        if mean.value is not None and mean.low is not None and mean.high is not None
    ]


def tidy(value: float | None) -> float | None:
    """A figure as it is kept."""
    # Adding zero turns −0.0, which a small negative figure rounds to, into 0.0.
    return None if value is None else round(value, DECIMALS) + 0.0


def _mean_over_places(
    statistic: SetStatistic, places: Sequence[str], labels: Sequence[int], values: Sequence[float]
) -> float | None:
    parts: dict[str, tuple[list[int], list[float]]] = {}
    for place, label, value in zip(places, labels, values, strict=True):
        set_labels, set_values = parts.setdefault(place, ([], []))
        set_labels.append(label)
        set_values.append(value)
    # Sorted, so that the sum does not depend on which set a resample happened to draw first.
    found = [statistic(*parts[place]) for place in sorted(parts)]
    defined = [each for each in found if each is not None]
    return sum(defined) / len(defined) if defined else None

"""Which figures are made of the scores of answers: for real metrics and baselines alike, quick ones and slow ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentunit.addons.review.labeling.agreement import auroc, bootstrap_statistic_interval
from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import ScoredRow
from benchmarks.validity.at_threshold import (
    agreement_figure,
    balanced_accuracy_figure,
    fault_f1_figure,
    mean_balanced_accuracy,
)
from benchmarks.validity.baselines import ALWAYS_BAD, ALWAYS_GOOD, Baseline
from benchmarks.validity.measure import (
    Figure,
    LabelledCase,
    Scored,
    Scorer,
    mean_figure,
    score_sets,
    set_figure,
    tidy,
)
from benchmarks.validity.progress import each_set

ABOVE_PLAIN = "AUROC above content-token precision"
CALIBRATION = "calibration error"
FIXED_ANSWERS = frozenset({ALWAYS_GOOD.name, ALWAYS_BAD.name})
# Others report the F1 of finding hallucinated answers on this set.
SETS_WITH_FAULT_F1 = frozenset({"ragtruth_qa"})
SMALL_EDITS = "summedits_"


def score_slowly(
    backend: str,
    sets: Mapping[str, Sequence[LabelledCase]],
    metric: Callable[[str], Any],
    baselines: Sequence[Baseline] = (),
) -> Scored:
    """The scores of one metric with a slow backend, and of baselines on the same rows, telling how it goes."""
    scored: Scored = {}
    made = metric(backend)
    for name, cases in each_set(f"{made.name} ({backend})", sets):
        for scorer, rows_of in score_sets({name: cases}, [[made]], baselines).items():
            scored.setdefault(scorer, {}).update(rows_of)
    return scored


def numbered(sets: Mapping[str, Sequence[LabelledCase]]) -> dict[str, list[LabelledCase]]:
    """The cases with their numbers, so that the scores of two scorers can be told to be of the same case."""
    return {
        name: [(record, Label(label.value, (number, label.group))) for number, (record, label) in enumerate(cases)]
        for name, cases in sets.items()
    }


def unnumbered(scored: Scored) -> Scored:
    """The scores as if nobody had numbered the cases."""
    return {
        scorer: {name: [row._replace(group=row.group[1]) for row in rows] for name, rows in rows_of.items()}  # type: ignore[index]
        for scorer, rows_of in scored.items()
    }


def above_plain(scored: Scored, plain: Baseline) -> list[Figure]:
    """By set: how far the AUROC of each metric is above that of a baseline on the same cases, resampled together.

    ``scored`` is of numbered cases.
    """
    rivals = next((rows_of for scorer, rows_of in scored.items() if scorer.name == plain.name), {})
    figures = []
    for scorer, rows_of in scored.items():
        for name, rows in sorted(rows_of.items()) if scorer.kind == "metric" else ():
            known = {row.group: row.value for row in rivals.get(name, ())}
            both = [row for row in rows if row.group in known]
            labels = [row.label for row in both]
            if set(labels) == {0.0, 1.0}:
                figures.append(_difference(scorer, name, labels, both, [known[row.group] for row in both]))
    return figures


def _difference(
    scorer: Scorer, name: str, labels: Sequence[float], rows: Sequence[ScoredRow], rival: Sequence[float]
) -> Figure:
    def difference(labels: Sequence[int], ours: Sequence[float], theirs: Sequence[float]) -> float | None:
        parts = auroc(labels, ours), auroc(labels, theirs)
        return None if parts[0] is None or parts[1] is None else parts[0] - parts[1]

    columns = ([int(label) for label in labels], [row.value for row in rows], list(rival))
    groups = [number if group is None else group for number, group in (row.group for row in rows)]  # type: ignore[misc]
    found = bootstrap_statistic_interval(difference, columns, groups=groups)
    low, high = (found.low, found.high) if found else (None, None)
    return Figure(scorer, name, ABOVE_PLAIN, len(rows), tidy(difference(*columns)), tidy(low), tidy(high))


def grounding_figures(scored: Scored) -> list[Figure]:
    """By set: AUROC (Spearman for grades), balanced accuracy, and where others report it the F1 of the bad ones."""
    figures = []
    for scorer, rows_of in scored.items():
        for name, rows in sorted(rows_of.items()):
            if scorer.name not in FIXED_ANSWERS:
                ranked = set_figure(scorer, name, rows)
                figures.append(ranked)
                if ranked.statistic == "AUROC":
                    figures.append(balanced_accuracy_figure(scorer, name, rows))
            if name in SETS_WITH_FAULT_F1:
                figures.append(fault_f1_figure(scorer, name, rows))
    return figures


def mean_aurocs(scored: Scored, names: Iterable[str], dataset: str) -> list[Figure]:
    """The mean AUROC of each scorer over those of the named sets that it scored."""
    wanted = list(names)
    chosen = {
        scorer: {name: rows_of[name] for name in wanted if name in rows_of}
        for scorer, rows_of in scored.items()
        if scorer.name not in FIXED_ANSWERS
    }
    means = [mean_figure(scorer, rows_of, dataset) for scorer, rows_of in chosen.items() if rows_of]
    # The mean of one set is called a mean too: the name says which sets were asked for.
    return [replace(figure, dataset=dataset) for figure in means]


def calibration_figures(scored: Scored, names: Sequence[str], dataset: str) -> list[Figure]:
    """The expected calibration error of each metric on the named sets, over all rows and with sets and labels alike."""
    figures = []
    for scorer, rows_of in scored.items():
        rows = [(name, row) for name in names for row in rows_of.get(name, ())]
        if scorer.kind != "metric" or not rows:
            continue
        shares = Counter((name, row.label) for name, row in rows)
        n_labels = Counter(name for name, _ in shares)
        alike = [1 / (shares[name, row.label] * n_labels[name]) for name, row in rows]
        for weights, added in (([1.0] * len(rows), ""), (alike, ", sets and labels counting alike")):
            error = calibration_error([row for _, row in rows], weights)
            figures.append(Figure(scorer, dataset + added, CALIBRATION, len(rows), tidy(error), None, None))
    return figures


def calibration_error(rows: Sequence[ScoredRow], weights: Sequence[float]) -> float:
    """The mean distance between values and labels, by tenths of the scale."""
    off: dict[int, float] = defaultdict(float)
    for row, weight in zip(rows, weights, strict=True):
        off[min(9, int(row.value * 10))] += weight * (row.value - row.label)
    return sum(map(abs, off.values())) / sum(weights)


def small_edit_means(scored: Scored) -> list[Figure]:
    """The mean balanced accuracy of each scorer over the sets whose bad rows are small edits of good ones."""
    figures = []
    for scorer, rows_of in scored.items():
        edits = {name: rows for name, rows in sorted(rows_of.items()) if name.startswith(SMALL_EDITS)}
        if len(edits) > 1 and scorer.name not in FIXED_ANSWERS:
            figures.append(mean_balanced_accuracy(scorer, edits, f"mean of {len(edits)} SummEdits sets"))
    return figures


def correctness_figures(scored: Scored) -> list[Figure]:
    """By set: AUROC, and agreement at the threshold."""
    figures = []
    for scorer, rows_of in scored.items():
        for name, rows in rows_of.items():
            if scorer.name not in FIXED_ANSWERS:
                figures.append(set_figure(scorer, name, rows))
            figures.append(agreement_figure(scorer, name, rows))
    return figures


def relevance_figures(scored: Scored) -> list[Figure]:
    """By set: AUROC, and balanced accuracy at the threshold."""
    return [
        figure(scorer, name, rows)
        for scorer, rows_of in scored.items()
        for name, rows in sorted(rows_of.items())
        for figure in (set_figure, balanced_accuracy_figure)
    ]

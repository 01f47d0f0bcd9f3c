"""Items worth a second look: labels and test cases that may themselves be wrong.

Three signs, none of them a proof: a label that contradicts a scorer which is otherwise right, raters who disagree on
one answer, and a case that good runs fail while bad runs pass it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum, sqrt
from typing import Literal

from msgspec import Struct

from agentunit.addons.review.labeling.scorer_validity import judged_rows, scorer_auroc
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.text import shown_share
from agentunit.store.labels import places_of

SignKind = Literal["label against score", "raters disagree", "good runs fail it"]

OTHERWISE_RIGHT = 0.75
"""The AUROC from which on a scorer counts as otherwise right."""
_FEWEST_LABELS, _FEWEST_NEIGHBORS = 20, 10
_RARE = 0.1
_FEWEST_RUNS = 5
_FEWEST_CASES = 5
_SURELY_BACKWARDS = -0.5


class SecondLook(Struct):
    """A case to look at again, and why; ``weight`` orders those of one kind."""

    case_id: str
    metric: str
    kind: SignKind
    text: str
    weight: float


def second_look(run: ScoredRun, others: Iterable[ScoredRun] = ()) -> list[SecondLook]:
    """What may be wrong with a run's labels and cases; ``others`` are further runs of the same cases."""
    found: list[SecondLook] = []
    for metric in run.metrics:
        labels = [label for label in run.labels if label.metric == metric and label.value is not None]
        if not labels:
            continue
        for backend in dict.fromkeys(row.backend for row in run.metrics[metric] if row.value is not None):
            found += _against_score(run, metric, backend)
        for of_place in places_of(labels).values():
            values = [label.value or 0.0 for label in of_place]
            if max(values) - min(values) >= 0.5:
                said = ", ".join(f"{label.rater} {_word(label.value or 0.0)}" for label in of_place)
                spread = max(values) - min(values)
                found.append(SecondLook(of_place[0].case_id, metric, "raters disagree", said, spread))
    found += _backwards([run, *others])
    order: list[SignKind] = ["raters disagree", "label against score", "good runs fail it"]
    return sorted(found, key=lambda each: (order.index(each.kind), -each.weight))


def _against_score(run: ScoredRun, metric: str, backend: str) -> Iterator[SecondLook]:
    """Labels unlike those of nearly all cases with a score as high, where the scores tell good from bad."""
    rows, _ = judged_rows(run, metric, backend)
    overall = scorer_auroc(rows)
    if len(rows) < _FEWEST_LABELS or overall is None or overall < OTHERWISE_RIGHT:
        return
    for row in rows:
        others = sorted((each for each in rows if each is not row), key=lambda each: abs(each.score - row.score))
        near = others[: max(_FEWEST_NEIGHBORS, len(rows) // 5)]
        alike = sum(each.label == row.label for each in near) / len(near)
        if alike <= _RARE:
            score = 1.0 - row.score if run.info(metric).direction == "lower" else row.score
            word = "good" if row.label >= 0.5 else "bad"
            text = (
                f"labeled {word}; of {len(near)} cases scored about {score:.2f}, {shown_share(alike)} are ({backend})"
            )
            yield SecondLook(row.case_id, metric, "label against score", text, 1.0 - alike)


def _backwards(runs: Sequence[ScoredRun]) -> Iterator[SecondLook]:
    """Cases whose score falls where the score of all other cases rises, over runs of the same cases.

    The correlation of a case with the mean of the others (a test's item-rest correlation) is positive for a good item.
    """
    if len(runs) < _FEWEST_RUNS:
        return
    newest = runs[0]
    for metric in newest.metrics:
        info = newest.info(metric)
        if info.unit != "score" or info.direction == "none":
            continue
        tables = [_by_case(run, metric) for run in runs]
        for case_id in tables[0]:
            having = [table for table in tables if case_id in table and len(table) > _FEWEST_CASES]
            if len(having) < _FEWEST_RUNS:
                continue
            own = [table[case_id] for table in having]
            rest = [(fsum(table.values()) - table[case_id]) / (len(table) - 1) for table in having]
            correlation = _correlation(own, rest)
            if correlation is not None and correlation <= _SURELY_BACKWARDS:
                text = f"over {len(having)} runs it fails where the others pass: correlation {correlation:.2f}"
                yield SecondLook(case_id, metric, "good runs fail it", text, -correlation)


def _by_case(run: ScoredRun, metric: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for row in run.metrics.get(metric, ()):
        if row.value is not None and row.status == "ok":
            values.setdefault(row.case_id, []).append(row.value)
    return {case_id: fsum(each) / len(each) for case_id, each in values.items()}


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    mean_x, mean_y = fsum(xs) / len(xs), fsum(ys) / len(ys)
    spread_x = fsum((x - mean_x) ** 2 for x in xs)
    spread_y = fsum((y - mean_y) ** 2 for y in ys)
    if spread_x < 1e-12 or spread_y < 1e-12:
        return None
    return fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sqrt(spread_x * spread_y)


def _word(value: float) -> str:
    return {1.0: "yes", 0.0: "no"}.get(value, f"{value:g}")

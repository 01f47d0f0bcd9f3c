"""Fit a judge, or any scorer from 0 to 1, to people's labels, and measure it on labels that it did not learn from.

Labels are split by what they are about, the same way on every machine. From one third come the examples that a judge is
shown and the mapping of its scores; the others measure both, and stay evidence for the labeled rate. Where labels are
few, each part is also measured with what the other part taught, so that all of them say how good the way is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from math import fsum, isfinite
from statistics import fmean
from typing import Any, NamedTuple

from msgspec import structs

from agentunit.addons.review.labeling.agreement import auroc
from agentunit.core.records import Record
from agentunit.engine.scoring.records import score
from agentunit.formulas.statistics import Knot, wilson_interval
from agentunit.metrics.base import describe
from agentunit.metrics.calibration import Calibration, Figure, ShownExample, models_asked
from agentunit.metrics.inputs import Item
from agentunit.store.labels import StoredLabel, split_labels

SHOWN_SHARE = 1 / 3
FEWEST_LABELS = 10
MOST_EXAMPLES = 6
FEW_LABELS = 60
"""With fewer labels than these, both parts are measured."""
_FEWEST_TO_MAP = 8
_LONGEST_EXAMPLE = 4_000
_HALF = 0.5


class CalibrationError(ValueError):
    """Labels from which nothing can be learned; the message says why and what to do."""


@dataclass(frozen=True)
class LabeledAnswer:
    """A record with what people said of it: the mean of its raters, and their notes."""

    record: Record
    subject: str
    value: float
    note: str | None = None


ScoreAndLabel = tuple[float, float]
"""A score and a label."""


def labeled_answers(records: Sequence[tuple[Record, Sequence[StoredLabel]]]) -> list[LabeledAnswer]:
    """The answers that some rater could judge, each once."""
    found: dict[str, LabeledAnswer] = {}
    for record, labels in records:
        said = [label for label in labels if label.value is not None]
        if said and said[0].subject not in found:
            value = fmean(label.value for label in said if label.value is not None)
            note = next((label.note for label in said if label.note), None)
            found[said[0].subject] = LabeledAnswer(record, said[0].subject, value, note)
    return list(found.values())


def calibrate(
    metric: Any,
    answers: Sequence[LabeledAnswer],
    *,
    n_examples: int = MOST_EXAMPLES,
    on_pass: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """What a metric learns from labeled answers, with how well it then agrees with labels that it was not shown.

    A metric that shows no examples (one that is no rubric) only gets its scores mapped.
    """
    shown, held_out = _parts(answers)
    if len(answers) < FEWEST_LABELS or not shown or not held_out:
        raise CalibrationError(
            f"{metric.name} has {len(answers)} labeled answers, {FEWEST_LABELS} are needed; "
            f"'agentunit label RUN --metric {metric.name}' asks for more"
        )
    if len({each.value >= _HALF for each in answers}) < 2:
        raise CalibrationError(
            f"all {len(answers)} labels of {metric.name} are on one side: nothing distinguishes them"
        )
    on_pass("as it is")
    before = _scores(metric, answers)
    backend = _backend(metric)
    taught = partial_calibration(metric, backend, len(answers))
    examples = _examples(metric, shown, before, n_examples)
    first = _learned(metric, taught, examples, shown, held_out, on_pass)
    raw, mapped = first.raw, first.mapped
    crossed = len(answers) < FEW_LABELS
    if crossed:
        others = _examples(metric, held_out, before, n_examples)
        second = _learned(metric, taught, others, held_out, shown, on_pass)
        raw, mapped = [*raw, *second.raw], [*mapped, *second.mapped]
    measured = answers if crossed else held_out
    plain = [(before[each.subject], each.value) for each in measured if each.subject in before]
    return _changed(
        taught,
        examples=examples,
        knots=first.knots,
        crossed=crossed,
        before=_figure(plain),
        with_examples=_figure(raw),
        measured=_figure(mapped),
    )


def provisional(metric: Any, answers: Sequence[LabeledAnswer]) -> Calibration:
    """A calibration with as many examples as one will have, to plan by what is sent."""
    taught = partial_calibration(metric, _backend(metric), len(answers))
    return _changed(taught, examples=_examples(metric, _parts(answers)[0], {}, MOST_EXAMPLES))


def partial_calibration(metric: Any, backend: str, n_labels: int) -> Calibration:
    """A calibration that has learned nothing yet."""
    nothing = Figure(0)
    return Calibration(
        metric=metric.name,
        metric_version=describe(metric).version,
        backend=backend,
        models=models_asked(backend),
        made_at=time.time(),
        n_labels=n_labels,
        shown_share=SHOWN_SHARE,
        measured=nothing,
        before=nothing,
        with_examples=nothing,
    )


@dataclass(frozen=True)
class _Learned:
    knots: list[Knot]
    raw: list[ScoreAndLabel]
    mapped: list[ScoreAndLabel]


def _learned(
    metric: Any,
    taught: Calibration,
    examples: list[ShownExample],
    shown: Sequence[LabeledAnswer],
    held_out: Sequence[LabeledAnswer],
    on_pass: Callable[[str], None],
) -> _Learned:
    """The mapping of one part, and the scores of the other before and after it."""
    asked = replace(metric, calibration=_changed(taught, examples=examples))
    texts = {each.answer for each in examples}
    # What stands in the prompt is judged with the answer at hand: its score says nothing.
    unseen = [each for each in shown if _answer(each) not in texts]
    on_pass("with examples" if examples else "again")
    scores = _scores(asked, [*unseen, *held_out])
    pairs = [(scores[each.subject], each.value) for each in unseen if each.subject in scores]
    knots: list[Knot] = []
    if len(pairs) >= _FEWEST_TO_MAP and len({label >= _HALF for _, label in pairs}) == 2:
        knots = fit_isotonic([score for score, _ in pairs], [label for _, label in pairs])
    raw = [(scores[each.subject], each.value) for each in held_out if each.subject in scores]
    fitted = _changed(taught, knots=knots)
    return _Learned(knots, raw, [(fitted.value_of(value), label) for value, label in raw])


def _changed(calibration: Calibration, **changes: Any) -> Calibration:
    return structs.replace(calibration, **changes)


def _parts(answers: Sequence[LabeledAnswer]) -> tuple[list[LabeledAnswer], list[LabeledAnswer]]:
    labels = [StoredLabel(each.subject, "", "", each.value, "") for each in answers]
    shown = {label.subject for label in split_labels(labels, held_out_share=1.0 - SHOWN_SHARE)[0]}
    return (
        [each for each in answers if each.subject in shown],
        [each for each in answers if each.subject not in shown],
    )


def _examples(
    metric: Any, shown: Sequence[LabeledAnswer], scores: dict[str, float], n_examples: int
) -> list[ShownExample]:
    """As many good as bad ones, those first on which the judge was most wrong; none for a metric without examples."""
    if n_examples < 1 or not any(field.name == "examples" for field in fields(metric)):
        return []
    usable = [each for each in shown if 0 < len(_answer(each)) <= _LONGEST_EXAMPLE]

    def worth(each: LabeledAnswer) -> tuple[float, int, str]:
        wrong = abs(scores[each.subject] - each.value) if each.subject in scores else 0.0
        return -wrong, len(_answer(each)), each.subject

    sides = [sorted([each for each in usable if (each.value >= _HALF) == good], key=worth) for good in (True, False)]
    taken = [each for side in sides for each in side[: max(1, n_examples // 2)]]
    # Half of the labels must be left to fit the mapping to.
    taken = sorted(taken, key=worth)[: max(2, len(shown) // 2)]
    # In an order that has nothing to do with the labels: a row of one kind at the end would pull the judge.
    order = sorted(taken, key=lambda each: each.subject)
    return [ShownExample(_answer(each), each.value, _question(each), each.note) for each in order]


def _answer(each: LabeledAnswer) -> str:
    return _item(each).answer or ""


def _question(each: LabeledAnswer) -> str | None:
    query = each.record.case.query
    return query if isinstance(query, str) and query.strip() else None


def _item(each: LabeledAnswer) -> Item:
    return Item(each.record.case, each.record.trace, each.record.outcome)


def _scores(metric: Any, answers: Sequence[LabeledAnswer]) -> dict[str, float]:
    """The score of each answer that has one, by what it is about; a calibrated metric's before it is mapped."""
    found: dict[str, float] = {}
    for case in score([each.record for each in answers], [metric]):
        result = case.scores[metric.name].result
        value = result.detail.get("raw_value", result.value)
        if value is not None:
            found[answers[case.index].subject] = float(value)
    if not found:
        raise CalibrationError(f"{metric.name} could score none of the {len(answers)} labeled answers")
    return found


def _backend(metric: Any) -> str:
    return str(getattr(metric, "current_backend", describe(metric).backend))


def _figure(pairs: Sequence[ScoreAndLabel]) -> Figure:
    if not pairs:
        return Figure(0)
    same = sum((value >= _HALF) == (label >= _HALF) for value, label in pairs)
    interval = wilson_interval(same, len(pairs))
    is_binary = all(label in (0.0, 1.0) for _, label in pairs)
    ranked = auroc([int(label) for _, label in pairs], [value for value, _ in pairs]) if is_binary else None
    bias = fsum(value - label for value, label in pairs) / len(pairs)
    return Figure(len(pairs), same / len(pairs), interval.low, interval.high, ranked, bias)


# A monotone mapping fitted to pairs: pooled neighbors, drawn toward the middle where they are few.


class _Block(NamedTuple):
    low: float
    high: float
    total: float
    weight: float

    @property
    def mean(self) -> float:
        return self.total / self.weight

    def joined(self, other: _Block) -> _Block:
        return _Block(self.low, other.high, self.total + other.total, self.weight + other.weight)


def fit_isotonic(scores: Sequence[float], targets: Sequence[float]) -> list[Knot]:
    """The mapping of scores that never falls and is nearest to the targets (0 to 1) by squares.

    Neighbors whose targets fall are pooled (pool adjacent violators). The value of a block is (sum + 1/2) / (n + 1): a
    block of one pass is 0.75 and not 1. Its knots are its lowest and its highest score. No pairs: no knots.
    Source: Barlow et al., Statistical Inference under Order Restrictions (1972).

    >>> fit_isotonic([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])  # the middle two are out of order
    [Knot(score=0.2, value=0.25), Knot(score=0.4, value=0.5), Knot(score=0.6, value=0.5), Knot(score=0.8, value=0.75)]
    """
    if len(scores) != len(targets):
        raise ValueError(
            f"fit_isotonic: there must be as many scores as targets; received {len(scores)}, {len(targets)}"
        )
    for number, target in enumerate(targets):
        if not 0.0 <= target <= 1.0 or not isfinite(scores[number]):
            raise ValueError(f"fit_isotonic: targets must be from 0 to 1 and scores finite; received pair {number}")
    pairs = sorted(zip(scores, targets, strict=True))
    blocks = []
    for place, group in groupby(pairs, key=lambda pair: pair[0]):
        values = [target for _, target in group]
        blocks.append(_Block(place, place, fsum(values), float(len(values))))
    pooled = _pooled(blocks)
    # Drawing blocks of different sizes toward the middle may put two of them out of order again.
    drawn = _pooled([_Block(b.low, b.high, (b.total + 0.5) / (b.weight + 1.0) * b.weight, b.weight) for b in pooled])
    return [knot for block in drawn for knot in _knots(block)]


def _pooled(blocks: Sequence[_Block]) -> list[_Block]:
    pooled: list[_Block] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and pooled[-2].mean > pooled[-1].mean:
            last = pooled.pop()
            pooled[-1] = pooled[-1].joined(last)
    return pooled


def _knots(block: _Block) -> list[Knot]:
    ends = (block.low, block.high) if block.high > block.low else (block.low,)
    return [Knot(score, block.mean) for score in ends]

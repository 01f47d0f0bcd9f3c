"""What a run's labels say about its scorers: how far they agree, where to draw the line, and what they get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Any

from msgspec import Struct, structs

from agentunit.addons.review.labeling.agreement import auroc, cohen_kappa
from agentunit.addons.review.labeling.scorer_agreement import Agreement, ScoredRow, measure_agreement, threshold_for
from agentunit.core.score_block import Place
from agentunit.engine.deciding.cut_offs import MIDDLE, leveled, usable_threshold
from agentunit.engine.scoring.case_fields import field_values
from agentunit.engine.scoring.labeled_rates import labeled_sample
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.statistics import krippendorff_alpha, wilson_interval
from agentunit.formulas.text import shown_share
from agentunit.store.labels import StoredLabel, label_values, places_of, unshown_labels

_BINS = 5
_FEWEST_IN_SLICE = 5
_SLICES_SHOWN = 5
_MOST_VALUES = 10
_FEWEST_SHARED = 10
"""Records that two raters labeled: from so many on their agreement is held against the scorer's."""


class CalibrationBin(Struct):
    """Cases with scores in one part of the scale: what the scores say on average, and what people say."""

    low: float
    high: float
    n: int
    mean_score: float
    label_rate: float


class ThresholdChoice(Struct):
    """Where to draw the line so that what is at it or better is right as often as asked, or best as a whole.

    ``precision`` is that of all labels, with its 95 % interval; ``held_out_precision`` of each half of the labels, by
    the line that the other half gives: what to expect on new cases.
    """

    asked: float | None
    threshold: float
    precision: float
    low: float
    high: float
    recall: float
    n_kept: int
    held_out_precision: float | None


class SliceErrors(Struct):
    """One kind of cases: how many the scorer puts on the wrong side of the line."""

    name: str
    n: int
    n_too_good: int
    n_too_bad: int

    @property
    def error_rate(self) -> float:
        """The share of them."""
        return (self.n_too_good + self.n_too_bad) / self.n


class RaterAgreement(Struct):
    """How far raters agree with each other on the records that several labeled."""

    raters: list[str]
    n_shared: int
    agreement: float
    alpha: float | None
    kappas: dict[str, float | None]


class ScorerValidity(Struct):
    """One metric and backend against the labels of a run."""

    agreement: Agreement
    kappa: float | None
    calibration: list[CalibrationBin]
    threshold: ThresholdChoice | None
    slices: list[SliceErrors]
    raters: RaterAgreement | None
    n_tied: int
    warning: str | None


class JudgedRow(Struct):
    """A record with both: its score and its label, higher being better; ``threshold`` is the score's own, if any."""

    place: Place
    case_id: str
    score: float
    label: float
    subject: str
    threshold: float | None = None

    def is_good(self, line: float) -> bool:
        """Whether the score says so: at its own threshold or better, otherwise at this line."""
        return self.score >= line if self.threshold is None else leveled(self.score, self.threshold) >= MIDDLE


def judged_rows(run: ScoredRun, metric: str, backend: str) -> tuple[list[JudgedRow], int]:
    """The labeled records that a metric scored, as good or bad where all labels are; and how many are tied.

    Where raters disagree the majority counts, and a tie says nothing about the scorer.
    """
    labels = [label for label in run.labels if label.metric == metric and label.value is not None]
    labels = unshown_labels(labels, run.info(metric).shown_share)
    values, by_place = label_values(labels, metric), places_of(labels)
    is_binary = all(label.value in (0.0, 1.0) for label in labels)
    info = run.info(metric)
    turned = info.direction == "lower"
    rows, n_tied = [], 0
    for row in run.metrics.get(metric, ()):
        place = row.place
        if row.value is None or row.backend != backend or place not in values:
            continue
        label = values[place]
        if is_binary and label == 0.5:
            n_tied += 1
            continue
        label = float(label > 0.5) if is_binary else label
        score = 1.0 - row.value if turned else row.value
        said = by_place[place][0].subject
        own = usable_threshold(row.amount) if info.mean_of else None
        threshold = 1.0 - own if turned and own is not None else own
        rows.append(JudgedRow(place, row.case_id, score, 1.0 - label if turned else label, said, threshold))
    return rows, n_tied


def scorer_validity(
    run: ScoredRun, metric: str, backend: str, *, precision: float | None = None, by: str | None = None
) -> ScorerValidity | None:
    """One metric and backend against the labels of its own question; ``None`` where none is of a record it scored."""
    rows, n_tied = judged_rows(run, metric, backend)
    if not rows:
        return None
    at = threshold_for(run.info(metric), None)
    sample = labeled_sample(run, metric, backend)
    groups = {} if sample.clusters is None else dict(zip(sample.places, sample.clusters, strict=True))
    agreement = measure_agreement(
        [ScoredRow(row.label, row.score, groups.get(row.place), row.threshold) for row in rows],
        metric=metric,
        backend=backend,
        threshold=at,
    )
    if run.info(metric).direction == "lower" and agreement.cut is not None:
        # Rows are turned round; thresholds are shown where the metric has them.
        low, high = (round(1.0 - each, 6) for each in reversed(agreement.cut))
        agreement = structs.replace(agreement, cut=(low, high), threshold=low if low == high else None)
    is_binary = agreement.statistic == "AUROC"
    raters = rater_agreement([label for label in run.labels if label.metric == metric])
    return ScorerValidity(
        agreement,
        cohen_kappa([int(row.label) for row in rows], [int(row.is_good(at)) for row in rows])
        if is_binary and at is not None
        else None,
        list(_calibration(rows)),
        _on_scale_of(run.info(metric).direction, choose_threshold(rows, precision)) if is_binary else None,
        _slices(run, rows, at, by) if is_binary and at is not None else [],
        raters,
        n_tied,
        _warning(raters, agreement),
    )


def choose_threshold(rows: Sequence[JudgedRow], precision: float | None) -> ThresholdChoice | None:
    """The lowest score from which on so large a share is right, or without a wish the line with the fewest mistakes
    on both sides (balanced); ``None`` where no line does it.
    """
    chosen = _line(rows, precision)
    if chosen is None:
        return None
    kept = [row.label for row in rows if row.score >= chosen]
    good, n_good = int(fsum(kept)), int(fsum(row.label for row in rows))
    interval = wilson_interval(good, len(kept))
    return ThresholdChoice(
        precision,
        chosen,
        good / len(kept),
        interval.low,
        interval.high,
        good / n_good if n_good else 0.0,
        len(kept),
        _held_out_precision(rows, precision),
    )


def _on_scale_of(direction: str, choice: ThresholdChoice | None) -> ThresholdChoice | None:
    """A line among scores that were turned round, back where the metric has it."""
    if choice is None or direction != "lower":
        return choice
    return structs.replace(choice, threshold=1.0 - choice.threshold)


def _line(rows: Sequence[JudgedRow], precision: float | None) -> float | None:
    n_good = fsum(row.label for row in rows)
    n_bad = len(rows) - n_good
    best: tuple[float, float] | None = None
    kept = good = 0.0
    ordered = sorted(rows, key=lambda row: -row.score)
    for at, row in enumerate(ordered):
        kept, good = kept + 1, good + row.label
        if at + 1 < len(ordered) and ordered[at + 1].score == row.score:
            continue
        if precision is not None:
            # The longest such list: later ones have more recall.
            worth = kept if good / kept >= precision else None
        else:
            worth = (good / n_good + (n_bad - (kept - good)) / n_bad) / 2 if n_good and n_bad else None
        if worth is not None and (best is None or worth > best[0]):
            best = (worth, row.score)
    return None if best is None else best[1]


def _held_out_precision(rows: Sequence[JudgedRow], precision: float | None) -> float | None:
    """The precision of each half of the labels beyond the line that the other half gives, taken together."""
    halves = [[row for row in rows if int(row.subject[8:16], 16) % 2 == side] for side in (0, 1)]
    kept: list[float] = []
    for chosen_on, measured_on in (halves, halves[::-1]):
        line = _line(chosen_on, precision)
        if line is not None:
            kept += [row.label for row in measured_on if row.score >= line]
    return fsum(kept) / len(kept) if kept else None


def _calibration(rows: Sequence[JudgedRow]) -> Iterator[CalibrationBin]:
    for number in range(_BINS):
        low, high = number / _BINS, (number + 1) / _BINS
        inside = [row for row in rows if low <= row.score < high or (number == _BINS - 1 and row.score == high)]
        if inside:
            n = len(inside)
            yield CalibrationBin(
                low, high, n, fsum(row.score for row in inside) / n, fsum(row.label for row in inside) / n
            )


def rater_agreement(labels: Sequence[StoredLabel]) -> RaterAgreement | None:
    """How far raters agree on what several labeled; ``None`` where nothing was labeled twice."""
    said = {
        place: {label.rater: label.value for label in of_place if label.value is not None}
        for place, of_place in places_of(labels).items()
    }
    shared = [values for values in said.values() if len(values) > 1]
    if not shared:
        return None
    raters = sorted({rater for values in shared for rater in values})
    pairs = [(a, b) for values in shared for a, b in combinations(values.values(), 2)]
    kappas: dict[str, float | None] = {}
    for one, other in combinations(raters, 2):
        both = [(values[one], values[other]) for values in shared if one in values and other in values]
        if both and all(value in (0.0, 1.0) for pair in both for value in pair):
            kappas[f"{one}, {other}"] = cohen_kappa([int(a) for a, _ in both], [int(b) for _, b in both])
    return RaterAgreement(
        raters,
        len(shared),
        1.0 - fsum(abs(a - b) for a, b in pairs) / len(pairs),
        krippendorff_alpha([list(values.values()) for values in shared]),
        kappas,
    )


def _warning(raters: RaterAgreement | None, agreement: Agreement) -> str | None:
    if raters is None or raters.n_shared < _FEWEST_SHARED or agreement.agreement is None:
        return None
    if raters.agreement >= agreement.agreement:
        return None
    return (
        f"raters agree with each other on {shown_share(raters.agreement)}, "
        f"with the scorer on {shown_share(agreement.agreement)}: "
        "the question may be unclear, and these labels cannot tell how good the scorer is"
    )


def _slices(run: ScoredRun, rows: Sequence[JudgedRow], at: float, by: str | None) -> list[SliceErrors]:
    """The kinds of cases, the most mistaken first. Without a field: those of any field that has few values."""
    metadata = _metadata(run, {row.place for row in rows})
    named = [by] if by is not None else _fields_of_few_values(metadata)
    found: dict[str, SliceErrors] = {}
    for field in named:
        for row in rows:
            for value in field_values(metadata.get(row.place, {}), field):
                name = value if by is not None else f"{field.removeprefix('metadata.')}={value}"
                entry = found.setdefault(name, SliceErrors(name, 0, 0, 0))
                entry.n += 1
                entry.n_too_good += row.is_good(at) and row.label < 0.5
                entry.n_too_bad += not row.is_good(at) and row.label >= 0.5
    ordered = sorted(found.values(), key=lambda each: (-each.error_rate, -each.n))
    if by is not None:
        return ordered
    n_wrong = sum(row.is_good(at) != (row.label >= 0.5) for row in rows)
    worse = [each for each in ordered if each.n >= _FEWEST_IN_SLICE and each.error_rate * len(rows) > n_wrong]
    return worse[:_SLICES_SHOWN]


def _metadata(run: ScoredRun, places: set[Place]) -> dict[Place, Mapping[str, Any]]:
    if run.read_records is None:
        return {}
    records = (each for each in run.read_records() if each.place in places)
    return {each.place: each.record.case.metadata for each in records}


def _fields_of_few_values(metadata: Mapping[Place, Mapping[str, Any]]) -> list[str]:
    values: dict[str, set[str]] = {}
    for of_case in metadata.values():
        for name, value in of_case.items():
            if isinstance(value, (str, bool, int)):
                values.setdefault(name, set()).add(str(value))
    return [f"metadata.{name}" for name, seen in values.items() if 2 <= len(seen) <= _MOST_VALUES]


def scorer_auroc(rows: Sequence[JudgedRow]) -> float | None:
    """How well the scores tell good from bad; ``None`` for grades and for one class only."""
    if not all(row.label in (0.0, 1.0) for row in rows):
        return None
    return auroc([int(row.label) for row in rows], [row.score for row in rows])

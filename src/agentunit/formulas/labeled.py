"""The labeled rate: what people would say about all cases, from the labels of some and the scores of all.

The labels of randomly drawn cases are corrected by the scores of all cases (`score_correction`), and their mean gets
Gaffke's bounds (`bounded_mean`), one on each side. The interval holds whatever the scorer's bias: a bias moves the
scores of labeled and unlabeled cases alike and cancels. Measured by ``benchmarks/labeled``; explained in
docs/labeling.md.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from agentunit.formulas.bounded_mean import pass_fail_bound, weighted_mean_bound
from agentunit.formulas.score_correction import corrected_labels
from agentunit.formulas.statistics import check_confidence, finite_floats

# Strata of a draw: enough that a few dozen labels follow the scores closely, few enough that each soon has one.
N_STRATA = 10


@dataclass(frozen=True, slots=True)
class LabeledRate:
    """The rate people would give over all cases, or the difference of two, with its interval.

    ``method`` is "all labeled", "labels alone", or "labels and scores". ``weight`` is by how much a corrected label
    falls when the score rises by 1: 0.0 for labels alone. ``is_paired`` says of a difference that its labels are of
    cases labeled in both runs, so that it need not be the difference of the two rates.
    """

    rate: float
    low: float
    high: float
    n_labels: int
    n_cases: int
    method: str
    weight: float
    confidence: float = 0.95
    is_paired: bool = False


@dataclass(frozen=True, slots=True)
class _Unit:
    """What counts as one draw, a case or a cluster: its label, its score minus the mean of all, and its size."""

    label: float
    score: float
    size: float


@dataclass(frozen=True, slots=True)
class _Side:
    estimate: float
    bound: float
    weight: float


def labeled_rate(
    scores: Sequence[float | None],
    labels: Mapping[int, float],
    *,
    probabilities: Mapping[int, float] | None = None,
    strata: Sequence[int] | None = None,
    clusters: Sequence[int] | None = None,
    skipped: Collection[int] = (),
    confidence: float = 0.95,
) -> LabeledRate | None:
    """The rate people would give over all cases, with an interval that holds whatever the scorer's bias.

    `scores` are those of all cases by position (None: not scored), `labels` (0 to 1) those of the positions that were
    drawn at random. `probabilities` are the chances that drawn positions had of being drawn, where they differ; without
    them `strata`, the group of every position, say within which groups labels are random. `clusters`, of every
    position, say which cases are alike, so that only clusters count as independent. `skipped` are drawn positions that
    nobody could label: the interval allows for any label of theirs. All labeled: the mean, of zero width. No labels,
    or none of a stratum that should have several: None.

    >>> found = labeled_rate([None] * 1000, {place: 1.0 for place in range(30)})
    >>> round(found.rate, 2), round(found.low, 2), round(found.high, 2), found.method
    (1.0, 0.89, 1.0, 'labels alone')
    """
    who = "labeled_rate"
    check_confidence(who, confidence)
    finite_floats(who, "scores", [score for score in scores if score is not None])
    _check_labels(who, labels, len(scores))
    _check_labels(who, dict.fromkeys(skipped, 0.0), len(scores))
    _check_groups(who, len(scores), strata=strata, clusters=clusters)
    if not labels:
        return None
    if len(labels) == len(scores):
        mean = math.fsum(labels.values()) / len(labels)
        return LabeledRate(mean, mean, mean, len(labels), len(scores), "all labeled", 0.0, confidence)
    unknown = sorted(set(skipped) - labels.keys())
    sizes = _sizes(who, [*labels, *unknown], len(scores), probabilities, strata)
    if sizes is None:
        return None
    alpha = (1.0 - confidence) / 2.0
    mirrored = {place: 1.0 - label for place, label in labels.items()}
    below, above = (
        _lower_side(scores, {**each, **dict.fromkeys(unknown, 0.0)}, sizes, clusters, alpha)
        for each in (labels, mirrored)
    )
    # The worst labels of skipped cases belong to the interval, not to the estimate.
    centers = (
        [_lower_side(scores, each, sizes, clusters, alpha) for each in (labels, mirrored)]
        if unknown
        else [below, above]
    )
    # Whatever the scores say, the rate is one that labels of the other cases can make.
    known = math.fsum(labels.values()) / len(scores)
    most = known + (len(scores) - len(labels)) / len(scores)
    rate = min(most, max(known, (centers[0].estimate + 1.0 - centers[1].estimate) / 2.0))
    return LabeledRate(
        rate,
        min(rate, below.bound),
        max(rate, 1.0 - above.bound),
        len(labels),
        len(scores),
        "labels and scores" if below.weight or above.weight else "labels alone",
        (below.weight - above.weight) / 2.0,
        confidence,
    )


def _lower_side(
    scores: Sequence[float | None],
    labels: Mapping[int, float],
    sizes: Mapping[int, float],
    clusters: Sequence[int] | None,
    alpha: float,
) -> _Side:
    """The estimate and the lower bound at the one-sided level alpha."""
    known = [score for score in scores if score is not None]
    mean_score = math.fsum(known) / len(known) if known else 0.0
    reach = (min(known) - mean_score, max(known) - mean_score) if known else (0.0, 0.0)
    units = _units(scores, labels, sizes, clusters, mean_score)
    unit_labels, unit_sizes = [unit.label for unit in units], [unit.size for unit in units]
    alike = max(unit_sizes) - min(unit_sizes) <= 1e-9 * max(unit_sizes)
    corrected = corrected_labels(
        unit_labels,
        [unit.score for unit in units],
        reach,
        sizes=None if alike else unit_sizes,
    )
    estimate = math.fsum(size * value for size, value in zip(unit_sizes, corrected.values, strict=True))
    estimate /= math.fsum(unit_sizes)
    # What is labeled is known. One case that is left is too few for a law of samples: it may have any label.
    least = math.fsum(labels.values()) / len(scores)
    if len(labels) >= len(scores) - 1:
        return _Side(estimate, least, corrected.weight)
    if alike and not corrected.weight and len(units) == len(labels) and set(unit_labels) <= {0.0, 1.0}:
        bound = pass_fail_bound(round(math.fsum(unit_labels)), len(units), len(scores), alpha)
        return _Side(estimate, bound, 0.0)
    bound = weighted_mean_bound(corrected.values, lowest=corrected.lowest, alpha=alpha, weights=unit_sizes)
    # Cases are drawn without replacement: the mean spreads less, by the share that was drawn where it is smallest.
    most = max(sizes[place] for place in labels) * len(scores) / math.fsum(sizes[place] for place in labels)
    shrink = math.sqrt(max(0.0, 1.0 - 1.0 / most))
    return _Side(estimate, max(least, estimate - shrink * (estimate - bound)), corrected.weight)


def _units(
    scores: Sequence[float | None],
    labels: Mapping[int, float],
    sizes: Mapping[int, float],
    clusters: Sequence[int] | None,
    mean_score: float,
) -> list[_Unit]:
    """The labeled cases, those of one cluster as one, in the order of their scores."""
    members: dict[int, list[int]] = {}
    for place in sorted(labels):
        members.setdefault(place if clusters is None else clusters[place], []).append(place)
    units = []
    for places in members.values():
        size = math.fsum(sizes[place] for place in places)
        label = math.fsum(sizes[place] * labels[place] for place in places) / size
        # A case without a score counts like one of the mean score, which corrects nothing.
        known = ((place, scores[place]) for place in places)
        score = math.fsum(sizes[place] * (each - mean_score) for place, each in known if each is not None) / size
        units.append(_Unit(label, score, size))
    return sorted(units, key=lambda unit: unit.score)


def _sizes(
    who: str,
    places: Sequence[int],
    n_cases: int,
    probabilities: Mapping[int, float] | None,
    strata: Sequence[int] | None,
) -> dict[int, float] | None:
    """How many cases each drawn one stands for, up to a common factor; ``None`` where no drawn one can."""
    if probabilities is not None:
        chances = [probabilities[place] for place in places if place in probabilities]
        for chance in chances:
            if not 0.0 < chance <= 1.0:
                raise ValueError(f"{who}: probabilities must be above 0 and at most 1; received {chance!r}")
        usual = math.fsum(chances) / len(chances) if chances else 1.0
        return {place: 1.0 / probabilities.get(place, usual) for place in places}
    if strata is not None:
        of_stratum, drawn = Counter(strata), Counter(strata[place] for place in places)
        # One label more or fewer than its share is how a draw breaks off, in a stratum that chance has chosen.
        fair = all(abs(drawn[key] - len(places) * size / n_cases) <= 1.0 for key, size in of_stratum.items())
        if not fair and len(drawn) < len(of_stratum):
            return None
        if not fair:
            return {place: of_stratum[strata[place]] / drawn[strata[place]] for place in places}
    return dict.fromkeys(places, 1.0)


def labeled_difference(
    scores: Sequence[float | None],
    labels: Mapping[int, float],
    baseline_scores: Sequence[float | None],
    baseline_labels: Mapping[int, float],
    *,
    same: Collection[int] = (),
    skipped: Collection[int] = (),
    baseline_skipped: Collection[int] = (),
    strata: Sequence[int] | None = None,
    baseline_strata: Sequence[int] | None = None,
    clusters: Sequence[int] | None = None,
    confidence: float = 0.95,
) -> LabeledRate | None:
    """The rate of a run minus that of a baseline over the same cases, by position, from −1 to 1.

    `same` are positions at which both gave the same output: there the difference is 0 and needs no label. Cases that
    are labeled in both are compared case by case. Where fewer than half of either run's labels are paired, each run has
    its own labeled rate instead, and the distances to the bounds add up as squares. No labels of either: None.
    `skipped` and `strata` of each run, and the `clusters` of both, are those of `labeled_rate`.

    >>> both = {place: 1.0 for place in range(30)}
    >>> found = labeled_difference([None] * 30, both, [None] * 30, both)
    >>> found.rate, found.low, found.high
    (0.0, 0.0, 0.0)
    """
    who = "labeled_difference"
    check_confidence(who, confidence)
    if len(scores) != len(baseline_scores):
        received = f"{len(scores)} and {len(baseline_scores)}"
        raise ValueError(f"{who}: scores and baseline_scores must be of the same cases; received {received}")
    _check_labels(who, labels, len(scores))
    _check_labels(who, baseline_labels, len(scores))
    equal = set(same)
    changed = [place for place in range(len(scores)) if place not in equal]
    if not changed:
        return LabeledRate(0.0, 0.0, 0.0, 0, len(scores), "all labeled", 0.0, confidence)
    ours, theirs = [scores[place] for place in changed], [baseline_scores[place] for place in changed]
    known = {at: labels[place] for at, place in enumerate(changed) if place in labels}
    known_before = {at: baseline_labels[place] for at, place in enumerate(changed) if place in baseline_labels}
    paired = {at: (known[at] - known_before[at] + 1.0) / 2.0 for at in known if at in known_before}
    silent, silent_before = (
        {at for at, place in enumerate(changed) if place in set(each)} for each in (skipped, baseline_skipped)
    )
    groups, groups_before = (
        None if each is None else [each[place] for place in changed] for each in (strata, baseline_strata)
    )
    alike = None if clusters is None else [clusters[place] for place in changed]
    if 2 * len(paired) >= max(len(known), len(known_before)) and paired:
        halves = [
            None if after is None or before is None else (after - before + 1.0) / 2.0
            for after, before in zip(ours, theirs, strict=True)
        ]
        asked_of_both = (known.keys() | silent) & (known_before.keys() | silent_before)
        rate = labeled_rate(
            halves,
            paired,
            strata=_joint(groups, groups_before),
            clusters=alike,
            skipped=asked_of_both - paired.keys(),
            confidence=confidence,
        )
        found = None if rate is None else _stretched(rate)
    else:
        found = _unpaired(
            *(
                labeled_rate(each, said, strata=of, clusters=alike, skipped=unsaid, confidence=confidence)
                for each, said, of, unsaid in (
                    (ours, known, groups, silent),
                    (theirs, known_before, groups_before, silent_before),
                )
            )
        )
    if found is None:
        return None
    share = len(changed) / len(scores)
    return replace(found, rate=share * found.rate, low=share * found.low, high=share * found.high, n_cases=len(scores))


def _joint(ours: Sequence[int] | None, theirs: Sequence[int] | None) -> list[int] | None:
    """The groups of positions that are in one group of either run."""
    if ours is None or theirs is None:
        given = ours if theirs is None else theirs
        return None if given is None else list(given)
    numbers: dict[tuple[int, int], int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in zip(ours, theirs, strict=True)]


def _stretched(half: LabeledRate) -> LabeledRate:
    """A difference that was moved to 0..1, back on its own scale."""
    rate, low, high = (2.0 * each - 1.0 for each in (half.rate, half.low, half.high))
    return replace(half, rate=rate, low=low, high=high, is_paired=True)


def _unpaired(ours: LabeledRate | None, theirs: LabeledRate | None) -> LabeledRate | None:
    if ours is None or theirs is None:
        return None
    rate = ours.rate - theirs.rate
    down = math.hypot(ours.rate - ours.low, theirs.high - theirs.rate)
    up = math.hypot(ours.high - ours.rate, theirs.rate - theirs.low)
    corrected = "labels and scores" in (ours.method, theirs.method)
    return replace(
        ours,
        rate=rate,
        low=max(-1.0, rate - down),
        high=min(1.0, rate + up),
        n_labels=ours.n_labels + theirs.n_labels,
        method="labels and scores" if corrected else "labels alone",
        weight=(ours.weight + theirs.weight) / 2.0,
    )


def draw_for_labeling(
    scores: Sequence[float | None], n: int, *, seed: int, already: Collection[int] = ()
) -> list[tuple[int, int, float]]:
    """Which cases to ask people about, in order: position, stratum, and the chance of being among so many.

    Cases sorted by score are cut into ten strata of equal size. Each round of the order has one case of every stratum,
    strata and cases in random order; cases beyond a multiple of ten, chosen at random, come last. So every case has the
    same chance at every place of the order, and the first so many of a longer draw are a valid draw of that many.
    `already` are positions drawn before with the same scores and seed; the order goes on behind them. No more cases
    are left: a shorter list.

    >>> [position for position, _, _ in draw_for_labeling([0.1, 0.9, 0.5], 3, seed=1)]
    [1, 0, 2]
    """
    if n < 0:
        raise ValueError(f"draw_for_labeling: n must be at least 0; received {n!r}")
    shuffled = random.Random(seed)
    n_cases = len(scores)
    order = list(range(n_cases))
    # Shuffled before it is sorted: equal scores come in any order, and chance says which cases are left over.
    shuffled.shuffle(order)
    per_stratum = n_cases // min(N_STRATA, n_cases) if order else 0
    n_even = per_stratum * min(N_STRATA, n_cases)
    even, left_over = order[:n_even], order[n_even:]
    even.sort(key=lambda place: math.inf if (score := scores[place]) is None else score)
    strata = [even[start : start + per_stratum] for start in range(0, n_even, per_stratum or 1)]
    for members in strata:
        shuffled.shuffle(members)
    queue: list[tuple[int, int]] = []
    for turn in zip(*strata, strict=True):
        present = [(place, number) for number, place in enumerate(turn)]
        shuffled.shuffle(present)
        queue += present
    queue += [(place, len(strata)) for place in left_over]
    drawn = set(already)
    taken = [(place, stratum) for place, stratum in queue if place not in drawn][:n]
    chance = (len(drawn) + len(taken)) / n_cases if n_cases else 0.0
    return [(place, stratum, chance) for place, stratum in taken]


def labels_needed(current: LabeledRate, width: float) -> int:
    """About how many more labels would make the interval that narrow; 0 where it is, all cases for a width of 0.

    The width falls with √(1/n − 1/N), n labels being drawn from N cases, or faster while labels are few.

    >>> found = LabeledRate(0.5, 0.4, 0.6, 100, 100_000, "labels alone", 0.0)
    >>> labels_needed(found, 0.1)  # half the width: about four times as many
    299
    """
    if width < 0.0 or not math.isfinite(width):
        raise ValueError(f"labels_needed: width must be finite and at least 0; received {width!r}")
    present, n, n_cases = current.high - current.low, current.n_labels, current.n_cases
    if present <= width:
        return 0
    if width == 0.0:
        return n_cases - n
    spread = (1.0 / n - 1.0 / n_cases) * (width / present) ** 2
    return max(1, min(n_cases, math.ceil(1.0 / (spread + 1.0 / n_cases) - 1e-9)) - n)


def _check_labels(who: str, labels: Mapping[int, float], n_cases: int) -> None:
    for place, label in labels.items():
        if not 0 <= place < n_cases:
            raise ValueError(f"{who}: labels must be of positions from 0 to {n_cases - 1}; received {place!r}")
        if not 0.0 <= label <= 1.0:
            raise ValueError(f"{who}: labels must be from 0 to 1; received {label!r} at position {place}")


def _check_groups(who: str, n_cases: int, **groups: Sequence[int] | None) -> None:
    for parameter, values in groups.items():
        if values is not None and len(values) != n_cases:
            raise ValueError(f"{who}: {parameter} must be of all {n_cases} cases; received {len(values)}")

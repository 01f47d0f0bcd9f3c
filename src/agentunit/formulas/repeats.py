"""What repeated runs and judgments of the same case show: success within k tries, and where the spread comes from.

Repeats of one case are not independent evidence about the agent: an interval has to be drawn over cases.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from agentunit.formulas.statistics import (
    DRAW_BUDGET,
    FEWEST_RESAMPLES,
    Interval,
    check_confidence,
    check_resamples,
    finite_floats,
    percentile_interval,
)


def pass_at_k(successes: int, n: int, k: int) -> float | None:
    """The chance that at least one of k tries at a case succeeds, from n tries of which some did (pass@k).

    1 − C(n − successes, k) / C(n, k): the share of the k-subsets of the tries that hold a success, an unbiased
    estimate of 1 − (1 − p)ᵏ. From 0 to 1; k = 1 is the success rate. Fewer than k tries cannot tell: None.
    Source: Chen et al., "Evaluating large language models trained on code", arXiv:2107.03374 (2021).

    >>> pass_at_k(1, 4, 2)  # of the 6 pairs of tries, 3 hold the one success
    0.5
    """
    _check_tries("pass_at_k", successes, n, k)
    if k > n:
        return None
    subsets = math.comb(n, k)
    # Whole numbers up to the one division, which Python rounds correctly however large they are.
    return (subsets - math.comb(n - successes, k)) / subsets


def pass_hat_k(successes: int, n: int, k: int) -> float | None:
    """The chance that k tries at a case all succeed, from n tries of which some did (pass^k).

    C(successes, k) / C(n, k): the share of the k-subsets of the tries that hold nothing but successes, an
    unbiased estimate of pᵏ. From 0 to 1; k = 1 is the success rate. Fewer than k tries cannot tell: None.
    Source: Yao et al., "τ-bench", arXiv:2406.12045 (2024).

    >>> pass_hat_k(3, 4, 2)  # of the 6 pairs of tries, 3 hold two of the three successes
    0.5
    """
    _check_tries("pass_hat_k", successes, n, k)
    return None if k > n else math.comb(successes, k) / math.comb(n, k)


def cluster_bootstrap_mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval | None:
    """The percentile bootstrap interval of a mean whose values come in clusters, such as repeats of a case.

    Draw as many clusters as there are, with replacement, and take the mean of all values in them; repeat. The
    interval runs between the quantiles of those means. `clusters` names each value's cluster. With one value
    per cluster it equals `bootstrap_mean_interval`, whose cap on the work and whose limits it shares: it stays
    within the sample's range, equal values give zero width, and below some 20 clusters it is narrower than it
    claims. Fewer than two clusters: None.
    Source: Davison and Hinkley, "Bootstrap Methods and their Application" (1997), section 3.8.

    >>> cluster_bootstrap_mean_interval([0.0, 0.0, 4.0, 4.0], ["a", "a", "b", "b"])  # "a" alone in a quarter
    Interval(low=0.0, high=4.0, method='bootstrap')
    """
    who = "cluster_bootstrap_mean_interval"
    check_confidence(who, confidence)
    check_resamples(who, resamples)
    sample = finite_floats(who, "values", values)
    if len(clusters) != len(sample):
        raise ValueError(f"{who}: clusters must be as long as values, {len(sample)}; received {len(clusters)}")
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(sample, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    if len(members) < 2:
        return None
    least, largest = min(sample), max(sample)
    if least == largest:
        return Interval(least, least, "bootstrap")
    totals_and_sizes = [(math.fsum(group), len(group)) for group in members.values()]
    draw = random.Random(seed).choices
    affordable = max(FEWEST_RESAMPLES, DRAW_BUDGET // len(members))
    means = []
    for _ in range(min(resamples, affordable)):
        totals, sizes = zip(*draw(totals_and_sizes, k=len(members)), strict=True)
        means.append(math.fsum(totals) / sum(sizes))
    spread = percentile_interval(sorted(means), confidence)
    return Interval(max(least, spread.low), min(largest, spread.high), "bootstrap")


def between_within_variance(groups: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    """How much cases differ from each other, and how much a case differs from itself when repeated.

    Between: the sample variance of the groups' means. Within: the mean of the groups' sample variances, over
    the groups with at least two values. Both are 0 or more, in the values' unit squared. The means carry
    repeat noise themselves: of the variance between, about within / repeats is that noise. An empty group says
    nothing and is left out. Between is None for fewer than two groups, within when no group was repeated.

    >>> between_within_variance([[1.0, 3.0], [5.0, 7.0]])  # means 2 and 6; both groups vary by (1 + 1) / 1
    (8.0, 2.0)
    """
    filled = [finite_floats("between_within_variance", f"groups[{place}]", group) for place, group in enumerate(groups)]
    filled = [group for group in filled if group]
    between = _sample_variance([math.fsum(group) / len(group) for group in filled])
    variances = [variance for group in filled if (variance := _sample_variance(group)) is not None]
    return between, math.fsum(variances) / len(variances) if variances else None


def _sample_variance(values: Sequence[float]) -> float | None:
    n = len(values)
    if n < 2:
        return None
    # Measured from one of the values, equal values have a variance of exactly 0, whatever their mean rounds to.
    offsets = [value - values[0] for value in values]
    mean_offset = math.fsum(offsets) / n
    return math.fsum([(offset - mean_offset) ** 2 for offset in offsets]) / (n - 1)


def _check_tries(who: str, successes: int, n: int, k: int) -> None:
    if n < 0:
        raise ValueError(f"{who}: n must be at least 0; received {n!r}")
    if not 0 <= successes <= n:
        raise ValueError(f"{who}: successes must be between 0 and n = {n}; received {successes!r}")
    if k < 1:
        raise ValueError(f"{who}: k must be at least 1; received {k!r}")


class Spread(NamedTuple):
    """How judged scores vary, as standard deviations in the unit of the score.

    ``judge_sd``: the judge against itself on one answer. ``agent_sd``: answers to one case against each other, without
    the judge's part; ``None`` unless cases were run several times. ``case_sd``: cases against each other, without the
    judge's and the agent's part. ``judge_share``: which part of the squared standard error of the mean over cases is
    the judge's, 0 to 1: what more judge repeats could at most take away.
    """

    judge_sd: float | None
    agent_sd: float | None
    case_sd: float | None
    judge_share: float | None


class JudgeVariance:
    """Components of variance of scores that a judge gave several times, in constant memory.

    Each case has R ≥ 1 answers, each answer j was judged kⱼ times; its score is the mean of those, the case's value the
    mean of its answers' scores. The judge's variance w is pooled over all answers: Σ squares from the answer's mean /
    Σ(kⱼ − 1). A score carries w/kⱼ of it, so a case's value carries w · Σ(1/kⱼ)/R², and the judge's share of the
    variance S² of the cases' values (hence of the squared standard error S²/n) is the mean of that over the cases / S².
    The agent's variance is that of the scores within a case, pooled, less the judge's part in it; the cases' is S² less
    both. Differences below 0 are chance and count as 0; the share is at most 1. Unknown is ``None``: the judge without
    an answer judged twice, the agent without a case answered twice, the rest with fewer than two cases, the share when
    all cases are equal.
    Source: Searle, Casella and McCulloch, "Variance Components" (1992), chapter 3 (the method of moments).

    >>> noise = JudgeVariance()
    >>> noise.add([[0.0, 1.0]])  # one answer, judged twice, differently: its value is 0.5
    >>> noise.add([[1.0, 1.0]])
    >>> noise.spread()  # w = 0.5 / 2; the values 0.5 and 1 vary by 0.125, as much as the judge alone explains
    Spread(judge_sd=0.5, agent_sd=None, case_sd=0.0, judge_share=1.0)
    """

    def __init__(self) -> None:
        self.most_repeats = 0
        self._judge = _Pooled()
        self._agent = _Pooled()
        self._judge_in_scores = 0.0
        self._n_repeated_scores = 0
        self._judge_in_values = 0.0
        self._agent_in_values = 0.0
        self._n_cases = 0
        self._mean = 0.0
        self._squares = 0.0

    def add(self, answers: Sequence[Sequence[float]]) -> None:
        """Take one case: for each of its answers, what the judge said each time."""
        filled = [finite_floats("JudgeVariance", f"answers[{at}]", values) for at, values in enumerate(answers)]
        filled = [values for values in filled if values]
        if not filled:
            return
        scores = [self._judge.add(values) for values in filled]
        self.most_repeats = max(self.most_repeats, *(len(values) for values in filled))
        value = self._agent.add(scores)
        inverse = math.fsum(1 / len(values) for values in filled)
        if len(scores) > 1:
            self._judge_in_scores += inverse
            self._n_repeated_scores += len(scores)
        self._judge_in_values += inverse / len(scores) ** 2
        self._agent_in_values += 1 / len(scores)
        self._n_cases += 1
        step = value - self._mean
        self._mean += step / self._n_cases
        self._squares += step * (value - self._mean)

    def spread(self) -> Spread:
        """The components, as far as the cases so far can tell."""
        judge = self._judge.variance
        agent = self._agent.variance
        if agent is not None and judge is not None:
            agent = max(0.0, agent - judge * self._judge_in_scores / self._n_repeated_scores)
        if self._n_cases < 2:
            return Spread(_root(judge), _root(agent), None, None)
        values = self._squares / (self._n_cases - 1)
        judge_part = None if judge is None else judge * self._judge_in_values / self._n_cases
        agent_part = 0.0 if agent is None else agent * self._agent_in_values / self._n_cases
        share = None if judge_part is None or not values else min(1.0, judge_part / values)
        rest = max(0.0, values - (judge_part or 0.0) - agent_part)
        return Spread(_root(judge), _root(agent), math.sqrt(rest), share)


class _Pooled:
    """The variance within groups, pooled over them."""

    def __init__(self) -> None:
        self._squares = 0.0
        self._freedom = 0

    def add(self, values: Sequence[float]) -> float:
        """Take a group; gives its mean. Equal values have no spread at all, whatever their mean rounds to."""
        offsets = [value - values[0] for value in values]
        offset = math.fsum(offsets) / len(values)
        self._squares += math.fsum((each - offset) ** 2 for each in offsets)
        self._freedom += len(values) - 1
        return values[0] + offset

    @property
    def variance(self) -> float | None:
        """The pooled variance; ``None`` when every group had one value."""
        return self._squares / self._freedom if self._freedom else None


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(variance)

"""What part of the noise in judged scores is the judge's: components of variance, kept as scores are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from agentunit.formulas.statistics import finite_floats


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

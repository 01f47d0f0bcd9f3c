"""The cases that a reader should look at first: the few with the worst values of a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from agentunit.metrics.base import MetricInfo

CASES_NAMED = 5


class WorstCases:
    """The few cases with the worst values of a metric, the first to come where they tie; none that is perfect."""

    def __init__(self, info: MetricInfo) -> None:
        # Badness grows with the value where lower is better, and falls with it where higher is.
        self.sign = {"higher": -1.0, "lower": 1.0, "none": 0.0}[info.direction]
        perfect = {"higher": info.range[1], "lower": info.range[0], "none": 0.0}[info.direction]
        self.best = -inf if perfect is None else self.sign * perfect
        self.n_below_best = 0
        self.floor = self.best
        self._worst: list[tuple[float, str]] = []

    def add(self, case_id: str, value: float) -> bool:
        """Take one more value; true when its case is among the worst so far."""
        badness = self.sign * value
        self.n_below_best += badness > self.best
        if badness <= self.floor:
            return False
        # Two cases may have one id: the worse of them counts.
        known = next((entry for entry in self._worst if entry[1] == case_id), None)
        if known is not None:
            if badness <= known[0]:
                return False
            self._worst.remove(known)
        self._worst.append((badness, case_id))
        self._worst.sort(key=lambda entry: -entry[0])
        del self._worst[CASES_NAMED:]
        if len(self._worst) == CASES_NAMED:
            self.floor = self._worst[-1][0]
        return True

    def could_take(self, value: float) -> bool:
        """Whether a value is bad enough to be among the worst so far."""
        return self.sign * value > self.floor

    def add_all(self, values: Sequence[float], case_id_of: Callable[[int], str]) -> None:
        """Take values one after the other; ``case_id_of`` tells the case of one that may be among the worst."""
        sign, floor = self.sign, self.floor
        below_best = len([value for value in values if sign * value > self.best])
        candidates = [number for number, value in enumerate(values) if sign * value > floor]
        self.n_below_best += below_best - len(candidates)
        for number in candidates:
            if sign * values[number] > self.floor:
                self.add(case_id_of(number), values[number])
            else:
                self.n_below_best += 1

    def case_ids(self) -> list[str]:
        """The worst first."""
        return [case_id for _, case_id in self._worst]

"""A streaming aggregate: what a sample's mean, spread and quantiles are, in constant memory."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence

from agentunit.formulas.statistics import (
    LARGEST_BOOTSTRAP_N,
    LARGEST_MAGNITUDE,
    Interval,
    check_confidence,
    cluster_mean_interval,
    mean_interval,
    normal_interval,
    quantile,
    wilson_interval,
)

# Values wait in a buffer of this size: one pass in C over many costs less than Python arithmetic on each.
FOLD_SIZE = 1024


class RunningStatistics:
    """One metric's values, aggregated as they come, in constant memory.

    Count, total, mean, sample variance, minimum and maximum cover every value added. Quantiles are exact as
    long as every value is kept, up to `capacity`; beyond that they come from a uniform random sample of that
    size (Li's reservoir algorithm L, 1994, seeded) and `exact` is False. Everything depends on the values,
    their order and the seed alone, never on when it is asked for. Before the first value every number
    but `n` is None.

    >>> latency_s = RunningStatistics()
    >>> for value in (1.0, 2.0, 6.0):
    ...     latency_s.add(value)
    >>> latency_s.mean, latency_s.sample_variance, latency_s.quantile(0.5)  # (4 + 1 + 9) / 2
    (3.0, 7.0, 2.0)
    """

    def __init__(self, capacity: int = 10_000, *, seed: int = 0) -> None:
        if capacity < 1:
            raise ValueError(f"RunningStatistics: capacity must be at least 1; received {capacity!r}")
        self._capacity = capacity
        self._seed = seed
        self._pending = array("d")
        self._kept = array("d")
        self._sorted: array[float] | None = None
        self._folded_n = 0
        self._minimum = math.inf
        self._maximum = -math.inf
        self._zero_one = True
        self._origin = 0.0
        self._total_parts: list[float] = []
        self._deviation_parts: list[float] = []
        self._square_parts: list[float] = []
        self._random: random.Random | None = None
        self._threshold = 1.0
        self._next_kept = 0

    def add(self, value: float) -> None:
        """Take one more value; NaN, infinity and sizes from 1e140 on are a ValueError."""
        # One chained comparison refuses NaN and both infinities as well.
        if not -LARGEST_MAGNITUDE < value < LARGEST_MAGNITUDE:
            raise ValueError(
                f"RunningStatistics: value must be finite and below {LARGEST_MAGNITUDE} in size; received {value!r}"
            )
        pending = self._pending
        pending.append(value)
        if len(pending) >= FOLD_SIZE:
            self._fold()

    def extend(self, values: Sequence[float]) -> None:
        """Take more values, in order: the same as adding each, at a fraction of the cost."""
        # NaN hides from min and max, but not from the sum.
        if values and not (
            -LARGEST_MAGNITUDE < min(values) <= max(values) < LARGEST_MAGNITUDE and math.isfinite(sum(values))
        ):
            for value in values:
                self.add(value)
            return
        self._pending.extend(values)
        if len(self._pending) >= FOLD_SIZE:
            self._fold()

    @property
    def n(self) -> int:
        """How many values were added."""
        return self._folded_n + len(self._pending)

    @property
    def exact(self) -> bool:
        """Whether every value is still kept, so that quantiles are exact."""
        return self.n <= self._capacity

    @property
    def total(self) -> float | None:
        """The sum, correctly rounded; None before the first value: nothing recorded is not zero."""
        self._fold()
        return math.fsum(self._total_parts) if self._folded_n else None

    @property
    def mean(self) -> float | None:
        """The sum over the count: 160 passes in 200 read 0.8, not 0.7999…; None before the first value."""
        total = self.total
        if total is None:
            return None
        # Rounding may carry the mean of equal values out of their range by one unit in the last place.
        return min(self._maximum, max(self._minimum, total / self._folded_n))

    @property
    def sample_variance(self) -> float | None:
        """The squared deviations from the mean over n − 1; None for fewer than two values."""
        self._fold()
        n = self._folded_n
        if n < 2:
            return None
        deviation = math.fsum(self._deviation_parts)
        return max(0.0, math.fsum(self._square_parts) - deviation * (deviation / n)) / (n - 1)

    @property
    def minimum(self) -> float | None:
        """The smallest value; None before the first."""
        self._fold()
        return self._minimum if self._folded_n else None

    @property
    def maximum(self) -> float | None:
        """The largest value; None before the first."""
        self._fold()
        return self._maximum if self._folded_n else None

    def quantile(self, q: float) -> float | None:
        """As `quantile` over every value, or over the kept sample when not `exact`; None before the first.

        q = 0 and q = 1 are the true minimum and maximum either way.
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"RunningStatistics: q must be between 0 and 1; received {q!r}")
        self._fold()
        if not self._folded_n:
            return None
        if q in (0, 1):
            return self._maximum if q else self._minimum
        if self._sorted is None:
            self._sorted = array("d", sorted(self._kept))
        return quantile(self._sorted, q)

    def interval(self, confidence: float = 0.95, *, shares: bool = True) -> Interval | None:
        """As `mean_interval` over every value, but Student's t instead of a bootstrap where not all are kept."""
        check_confidence("RunningStatistics", confidence)
        total, mean, sample_variance = self.total, self.mean, self.sample_variance
        if total is None or mean is None or sample_variance is None:
            return None
        if shares and self._zero_one:
            return wilson_interval(round(total), self._folded_n, confidence)
        if self.exact and self._folded_n <= LARGEST_BOOTSTRAP_N:
            return mean_interval(self._kept, shares=shares, confidence=confidence)
        return normal_interval(mean, sample_variance, self._folded_n, confidence)

    def _fold(self) -> None:
        chunk = self._pending.tolist()
        if not chunk:
            return
        self._pending = array("d")
        self._sorted = None
        if not self._folded_n:
            # Any value of the sample will do as origin: its distance from the mean is of the sample's own
            # spread, so an offset of 1e9 cancels before anything is squared.
            self._origin = chunk[0]
        origin = self._origin
        deviations = [value - origin for value in chunk]
        self._total_parts = _exact_sum(self._total_parts + chunk)
        self._deviation_parts = _exact_sum(self._deviation_parts + deviations)
        self._square_parts = _exact_sum(self._square_parts + [value * value for value in deviations])
        self._minimum = min(self._minimum, min(chunk))
        self._maximum = max(self._maximum, max(chunk))
        if self._zero_one:
            self._zero_one = chunk.count(0.0) + chunk.count(1.0) == len(chunk)
        self._keep(chunk)
        self._folded_n += len(chunk)

    def _keep(self, chunk: list[float]) -> None:
        room = self._capacity - len(self._kept)
        if room:
            self._kept.extend(chunk[:room])
            if len(chunk) < room:
                return
        if self._random is None:
            self._random = random.Random(self._seed)
            self._next_kept = self._capacity + self._skipped(self._random)
        end = self._folded_n + len(chunk)
        while self._next_kept < end:
            slot = int(self._random.random() * self._capacity)
            self._kept[slot] = chunk[self._next_kept - self._folded_n]
            self._next_kept += 1 + self._skipped(self._random)

    def _skipped(self, source: random.Random) -> int:
        """How many values pass by before the next one that is kept."""
        # 1 − random() is never 0, whose logarithm does not exist.
        self._threshold *= math.exp(math.log(1.0 - source.random()) / self._capacity)
        if self._threshold >= 1.0:
            return 0
        return int(math.log(1.0 - source.random()) / math.log1p(-self._threshold))


class ClusterTotals:
    """The sum and the number of values of each cluster: all that the interval over clusters needs.

    >>> answers = ClusterTotals()
    >>> for customer, value in ((1, 0.0), (1, 0.0), (2, 2.0), (2, 2.0)):
    ...     answers.add(customer, value)
    >>> round(answers.interval().low, 4)  # as in `cluster_mean_interval`
    -11.7062
    """

    def __init__(self) -> None:
        self._totals: dict[int, list[float]] = {}
        self._sizes: dict[int, int] = {}
        self._zero_one = True

    def add(self, cluster: int, value: float) -> None:
        """Take one more value of a cluster."""
        self._totals[cluster] = _exact_sum([*self._totals.get(cluster, ()), value])
        self._sizes[cluster] = self._sizes.get(cluster, 0) + 1
        self._zero_one = self._zero_one and value in (0.0, 1.0)

    def interval(self, *, shares: bool = False) -> Interval | None:
        """As `cluster_mean_interval`; `shares` that are all 0 or 1 are passes and failures."""
        totals = [math.fsum(parts) for parts in self._totals.values()]
        return cluster_mean_interval(totals, list(self._sizes.values()), pass_fail=shares and self._zero_one)

    def scaled_totals(self) -> tuple[list[float], float]:
        """The totals as values whose mean is that of all values, and how many times a value the largest of them can be.

        With G clusters of N values: total · G / N, and the greatest size · G / N.
        """
        scale = len(self._sizes) / sum(self._sizes.values())
        return [math.fsum(parts) * scale for parts in self._totals.values()], max(self._sizes.values()) * scale


def _exact_sum(terms: list[float]) -> list[float]:
    """A few floats that add up to exactly the sum of `terms`, largest first; `terms` is used up.

    Carrying the rounding error along makes a running sum independent of where it was interrupted.
    """
    parts = []
    while leading := math.fsum(terms):
        parts.append(leading)
        terms.append(-leading)
    return parts

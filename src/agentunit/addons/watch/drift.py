"""Whether the mean of a stream of values has moved away from its baseline, watched for ever with few false alarms.

An e-detector of the kind of Shiryaev and Roberts: with every value a new bet is opened that the mean has left the
range in which the baseline puts it, and all bets grow or shrink with the values. While the mean stays in that range no
bet is expected to grow. What is staked on the next value is the time that the last one took to come, in days: capital
of 1 a day comes in, so the sum exceeds a threshold of D less than once in D days on average, however many values a day
brings, and also where a value has to do with the time that it took.

Shin, Ramdas, Rinaldo: E-detectors: a nonparametric framework for sequential change detection (2023).
Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting (2024).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import fsum, isfinite
from typing import Literal, NamedTuple

from msgspec import Struct, field

from agentunit.formulas.bounded_mean import weighted_mean_bound

UNTIMED_A_DAY = 1_000
"""Values without a time cannot tell days: so many of them count as one."""
FIRST_STAGE = 100
BASELINE_SIZE = 1_600
# Without false alarms from here, the bounds of a baseline may themselves be wrong this often, over its whole life.
BOUNDS_WRONG = 0.01
# Shares of the largest bet that cannot lose everything: small ones for small changes.
_BETS = (0.02, 0.04, 0.08, 0.14, 0.24, 0.38, 0.58, 0.85)
_N_BETS = len(_BETS)
_SMALLEST = 1e-9
# Without new stakes, as where all values have one time, a run could outgrow what a number can hold.
_LARGEST_RUN = 1e200
_DAY_S = 86_400.0
_LONGEST_GAP = 1.0
_SIGN_OF_CHANGE = 0.01
# By chance the run of one bet is this large at most a twentieth of the time; the best of eight more often, which only
# makes a slice learn anew.
_SIGN_OF_PART = 20.0
_LARGEST_REFERENCE = 1_000

ChangeDirection = Literal["fell", "rose"]


class Change(NamedTuple):
    """A mean that moved: which way, its level before and after, and since when, by the best estimate.

    ``n_since`` values have come since then. Levels are means in the unit of the values.
    """

    direction: ChangeDirection
    before: float
    after: float
    since_s: float
    n_since: int


class _DriftSide(Struct, array_like=True):
    """The bets on one direction: their capital, and for each since when it would have been best to hold it alone.

    Beside that time stand the number and the sum of the values before it.
    """

    capital: list[float] = field(default_factory=lambda: [0.0] * _N_BETS)
    runs: list[float] = field(default_factory=lambda: [0.0] * _N_BETS)
    since: list[tuple[float, int, float]] = field(default_factory=lambda: [(0.0, 0, 0.0)] * _N_BETS)

    def add(self, gain: float, opened: float, now: tuple[float, int, float]) -> float:
        """Take one more value, and return the capital of all bets together, with what is staked on the next value."""
        factors = [1.0 + bet * gain for bet in _BETS]
        self.capital = [held * factor + opened for held, factor in zip(self.capital, factors, strict=True)]
        runs = self.runs
        for place, run in enumerate(runs):
            if run <= 1.0:
                runs[place], self.since[place] = 1.0, now
        self.runs = [min(run * factor, _LARGEST_RUN) for run, factor in zip(runs, factors, strict=True)]
        return sum(self.capital) / _N_BETS


class DriftDetector(Struct):
    """Watches one stream of values, and says when its mean has moved. Its fields are its state: plain data to keep.

    Values lie between ``low`` and ``high``; where one of them is ``None``, the ranks of values among the first hundred
    are watched in their place, so that no value is too large. The baseline is the first values of the stream: bets
    begin after 100 of them, and the range of its mean is narrowed at every doubling up to ``size``; ``learn`` takes
    a baseline of another origin. After a change the baseline begins anew. ``baseline_mean`` is in the unit of the
    values, and ``None`` before the first hundred.

    Values must not depend on those before them, but through the moment at which they come.
    """

    low: float | None = 0.0
    high: float | None = 1.0
    size: int = BASELINE_SIZE
    reference: list[float] = []
    values: list[float] = []
    n_baseline: int = 0
    total: float = 0.0
    baseline_mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    clock_s: float | None = None
    n_watched: int = 0
    total_watched: float = 0.0
    fell: _DriftSide = field(default_factory=_DriftSide)
    rose: _DriftSide = field(default_factory=_DriftSide)
    capital: float = 0.0

    @property
    def is_watching(self) -> bool:
        """Whether the baseline suffices to notice a change."""
        return self.lower is not None

    def evidence(self, share: float = 1.0, days: float = 1_000.0) -> float:
        """How near an alarm is: the capital as a share of what one takes, from 0 to 1."""
        return min(1.0, self.capital * share / (2.0 * days))

    def add(
        self, value: float, at_s: float, *, is_timed: bool = True, share: float = 1.0, days: float = 1_000.0
    ) -> Change | None:
        """Take the value of a case that came at this time; a change that is shown by now, once.

        ``share`` is the part of one false alarm in ``days`` days that this stream may use. A value that is not
        ``is_timed`` only happened to be looked at then: a thousand such count as a day.

        >>> detector = DriftDetector()
        >>> changes = [detector.add(float(case % 10 > 0), case * 600.0) for case in range(400)]  # 90 % pass
        >>> any(changes), detector.baseline_mean
        (False, 0.9)
        >>> after = [detector.add(float(case % 10 > 4), case * 600.0) for case in range(400, 500)]  # then 50 %
        >>> change = next(each for each in after if each)
        >>> change.direction, change.since_s / 600.0
        ('fell', 400.0)
        """
        if not isfinite(value):
            raise ValueError(f"DriftDetector: value must be finite; received {value!r}")
        scaled = self._scaled(value)
        if scaled is None:
            return None
        enough = 2.0 * days / share
        change = self._bet(scaled, value, at_s, self._opened(at_s, is_timed), enough)
        if change is not None:
            self._begin_anew()
            return change
        if self.n_baseline < self.size:
            self._take(scaled, value, share, enough)
        return None

    def learn(self, values: Sequence[float], *, share: float = 1.0) -> None:
        """Take a baseline that lies before the stream, in place of the first values of it; fewer than 100 are none."""
        if len(values) < FIRST_STAGE:
            return
        self.size = 0
        if self.low is None or self.high is None:
            # Half of them say what is usual, the other half how far that holds.
            self.reference = sorted(values[:: 2 * max(1, len(values) // (2 * _LARGEST_REFERENCE))])
            values = values[1::2]
        scaled = [each for value in values if (each := self._scaled(value)) is not None]
        self.n_baseline, self.total = len(scaled), fsum(values)
        self._bound(scaled, BOUNDS_WRONG * share / 2.0)

    def takes_part(self, direction: ChangeDirection) -> bool:
        """Whether the values speak for a change that was noticed in more than these; then the baseline begins anew."""
        side = self.fell if direction == "fell" else self.rose
        if not self.is_watching or max(side.runs) < _SIGN_OF_PART:
            return False
        self._begin_anew()
        return True

    def is_outside(self, value: float) -> bool:
        """Whether a value is outside of the range, by more than rounding."""
        if self.low is None or self.high is None:
            return False
        rounding = 1e-9 * (self.high - self.low)
        return not self.low - rounding <= value <= self.high + rounding

    def watch_ranks(self) -> None:
        """Begin anew with the ranks of values, whatever range they have."""
        self.low = self.high = None
        self._begin_anew()

    def _scaled(self, value: float) -> float | None:
        """A value from 0 to 1; ``None`` while the first ones only say what is usual."""
        if self.low is not None and self.high is not None:
            width = self.high - self.low
            return min(1.0, max(0.0, (value - self.low) / width)) if width > 0 else None
        if self.size and len(self.reference) < FIRST_STAGE:
            self.reference.insert(bisect_left(self.reference, value), value)
            return None
        below, up_to = bisect_left(self.reference, value), bisect_right(self.reference, value)
        return (below + up_to + 1) / (2 * len(self.reference) + 2)

    def _take(self, scaled: float, value: float, share: float, enough: float) -> None:
        self.values.append(round(scaled, 6))
        self.n_baseline += 1
        self.total += value
        n = self.n_baseline
        # A sign of change must not become part of what is usual.
        if n >= FIRST_STAGE and _is_stage(n, self.size) and self.capital < _SIGN_OF_CHANGE * enough:
            # At each doubling twice the chance to be wrong, all together BOUNDS_WRONG.
            self._bound(self.values, BOUNDS_WRONG * share / 2.0 * n / _sum_of_stages(self.size))
        if n >= self.size:
            self.values = []

    def _bound(self, scaled: Sequence[float], alpha: float) -> None:
        self.lower = _lower_bound(scaled, alpha)
        self.upper = 1.0 - _lower_bound([1.0 - each for each in scaled], alpha)
        self.baseline_mean = self.total / self.n_baseline

    def _opened(self, at_s: float, is_timed: bool) -> float:
        """What is staked anew: the days since the value before. Values may come out of order."""
        if not is_timed:
            return 1.0 / UNTIMED_A_DAY
        before, self.clock_s = self.clock_s, at_s if self.clock_s is None else max(at_s, self.clock_s)
        return 0.0 if before is None else min(_LONGEST_GAP, max(0.0, at_s - before) / _DAY_S)

    def _bet(self, scaled: float, value: float, at_s: float, opened: float, enough: float) -> Change | None:
        if self.lower is None or self.upper is None:
            return None
        # A mean of 0 cannot fall: the largest bet on it would be without limit, and is not made.
        can_fall, can_rise = 1.0 - self.lower, self.upper
        now = (at_s, self.n_watched, self.total_watched)
        fell = self.fell.add((self.lower - scaled) / max(can_fall, _SMALLEST), opened, now)
        rose = self.rose.add((scaled - self.upper) / max(can_rise, _SMALLEST), opened, now)
        self.n_watched += 1
        self.total_watched += value
        self.capital = max(fell, rose)
        if self.capital < enough:
            return None
        direction: ChangeDirection = "fell" if fell >= rose else "rose"
        side = self.fell if direction == "fell" else self.rose
        best = max(range(_N_BETS), key=side.capital.__getitem__)
        since_s, n_before, total_before = side.since[best]
        n_since = self.n_watched - n_before
        after = (self.total_watched - total_before) / n_since
        before = after if self.baseline_mean is None else self.baseline_mean
        return Change(direction, before, after, since_s, n_since)

    def _begin_anew(self) -> None:
        self.reference, self.values = [], []
        self.n_baseline, self.total, self.size = 0, 0.0, self.size or BASELINE_SIZE
        self.lower = self.upper = self.baseline_mean = None
        self.fell, self.rose, self.capital = _DriftSide(), _DriftSide(), 0.0
        self.n_watched, self.total_watched = 0, 0.0


def _lower_bound(scaled: Sequence[float], alpha: float) -> float:
    # Streams that never change are common, and their bounds are known without a search.
    if max(scaled) <= 0.0:
        return 0.0
    if min(scaled) >= 1.0:
        return float(alpha ** (1.0 / len(scaled)))
    return weighted_mean_bound(scaled, lowest=0.0, alpha=alpha)


def _is_stage(n: int, size: int) -> bool:
    """Whether bounds are computed anew at this number of values: 100, 200, 400, … and the last."""
    if n == size:
        return True
    doubled, rest = divmod(n, FIRST_STAGE)
    return rest == 0 and doubled & (doubled - 1) == 0 and n < size


def _sum_of_stages(size: int) -> int:
    """The numbers of values at which bounds are computed, added up.

    >>> _sum_of_stages(1_600), _sum_of_stages(150)
    (3100, 250)
    """
    total, n = size, FIRST_STAGE
    while n < size:
        total, n = total + n, 2 * n
    return total

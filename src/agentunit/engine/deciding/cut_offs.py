"""Where a score counts as low: below the threshold that it names itself, otherwise below the middle of its scale.

Every list, table, color and share of low scores asks here. Gates do not: their numbers are the user's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from agentunit.core.results import Score
from agentunit.formulas.statistics import Interval
from agentunit.metrics.base import MetricInfo

# How much worse a metric may get before that counts: margins as they are written, and in the metric's unit.

Margin = float | str
"""A margin in the metric's unit, or a text like ``"10%"``: a share of the baseline's mean."""


def parse_margin(received: Margin) -> float:
    """The number of a margin; a share for one in percent.

    >>> parse_margin("10%"), parse_margin("0.02")
    (0.1, 0.02)
    """
    try:
        text = str(received).strip()
        number = float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise ValueError(f"margin: must be a number above 0, such as 0.02 or 10%; received {received!r}")
    return number


def margin_in_unit(
    metric: str,
    backend: str | None,
    received: Margin | Mapping[str, Margin] | None,
    width: float | None,
    scale: float,
) -> float | None:
    """The margin of one metric in its unit; ``None`` where none was given for it.

    ``width`` is that of its range, None for a raw quantity; ``scale`` the size that a share is of.
    """
    if isinstance(received, Mapping):
        received = received.get(f"{metric}[{backend}]", received.get(metric))
    if received is None:
        return None
    margin = parse_margin(received)
    amount = margin * scale if isinstance(received, str) and received.strip().endswith("%") else margin
    if width is not None and amount >= width:
        raise ValueError(
            f"compare_runs: the margin of {metric} must be below {width:g}, the width of its range; "
            f"received {received!r}"
        )
    return amount


def range_width(info: MetricInfo, values: Sequence[float]) -> float | None:
    """How far a metric's values can lie apart; None where nothing bounds them."""
    low, high = info.range
    if low is not None and high is not None:
        return high - low
    # A user's own metric rarely declares its range.
    return 1.0 if info.unit == "score" and all(0.0 <= value <= 1.0 for value in values) else None


def margins_from(texts: Sequence[str]) -> Margin | dict[str, Margin] | None:
    """What ``--margin`` says: one for all metrics, or one for each that it names."""
    by_metric: dict[str, Margin] = {}
    for_all: Margin | None = None
    for text in texts:
        name, equals, loss = text.rpartition("=")
        parse_margin(loss)
        if equals:
            by_metric[name.strip()] = loss
        else:
            for_all = loss
    if for_all is not None and by_metric:
        raise ValueError("--margin: use one for all metrics, or METRIC=LOSS for some; received both")
    return by_metric or for_all


MIDDLE = 0.5
"""From here on a score from 0 to 1 says yes rather than no."""
THRESHOLD = "threshold"
"""The key of a detail under which a backend says from which value on it calls such a case good."""
# 1 - 0.47 and 0.53 differ by less than this, and are the same threshold.
_ROUNDING = 1e-9


def own_threshold(info: MetricInfo, detail: Mapping[str, Any]) -> float | None:
    """The threshold that a score names itself, on the scale of its value; ``None`` where it names none.

    Only degrees (``mean_of``) have one: a threshold in the detail of another metric is one of its parameters.

    >>> support = MetricInfo("faithfulness", "quality", "", range=(0.0, 1.0), mean_of="support")
    >>> own_threshold(support, {"threshold": 0.3}), own_threshold(support, {})
    (0.3, None)
    """
    return usable_threshold(detail.get(THRESHOLD)) if info.mean_of else None


def usable_threshold(received: Any) -> float | None:
    """A threshold as it was stored or received; ``None`` for what cannot be one of a score from 0 to 1."""
    is_number = isinstance(received, (int, float)) and not isinstance(received, bool)
    return float(received) if is_number and 0.0 < received < 1.0 else None


def mean_threshold(thresholds: Iterable[float | None]) -> float | None:
    """Where the mean of a case's repeats is cut: at the mean of their thresholds; ``None`` where none names one."""
    named = list(thresholds)
    if all(each is None for each in named):
        return None
    return fsum(MIDDLE if each is None else each for each in named) / len(named)


def number_key(info: MetricInfo) -> str | None:
    """The key of the number in details that a run's figures need beside the values: an amount, or a threshold."""
    if info.amount is not None:
        return info.amount[0]
    return THRESHOLD if info.mean_of else None


def number_keys(infos: Mapping[str, MetricInfo]) -> dict[str, str]:
    """The keys of all metrics that have one."""
    return {name: key for name, info in infos.items() if (key := number_key(info)) is not None}


def leveled(value: float, threshold: float | None) -> float:
    """A score from 0 to 1 on the scale on which its threshold is 0.5, so that scores with different ones compare.

    >>> leveled(0.15, 0.3), leveled(0.3, 0.3), leveled(0.65, 0.3), leveled(0.4, None)
    (0.25, 0.5, 0.75, 0.4)
    """
    if threshold is None:
        return value
    if abs(value - threshold) < _ROUNDING:
        return MIDDLE
    if value < threshold:
        return MIDDLE * value / threshold
    return MIDDLE + MIDDLE * (value - threshold) / (1.0 - threshold)


def is_low(info: MetricInfo, value: float, threshold: float | None = None) -> bool:
    """Whether a score is on the bad side of its ``threshold``, or of the middle of its scale where it names none.

    At the line a degree counts as good, as thresholds mean it; where things are counted, half of them is low: one of
    two calls failed. Amounts have no such scale.

    >>> support = MetricInfo("faithfulness", "quality", "", "higher", (0.0, 1.0), mean_of="support")
    >>> is_low(support, 0.4), is_low(support, 0.4, 0.36), is_low(support, 0.5)
    (True, False, False)
    >>> is_low(MetricInfo("tool_success", "quality", "", "higher", (0.0, 1.0)), 0.5)
    True
    """
    if info.unit != "score" or info.direction == "none":
        return False
    low, high = info.range
    middle = MIDDLE if low is None or high is None else (low + high) / 2
    shown = leveled(value, threshold)
    if shown == middle:
        return not info.mean_of
    return shown > middle if info.direction == "lower" else shown < middle


def claim_threshold(direction: str, detail: Mapping[str, Any]) -> float:
    """The probability from which on a claim in a detail counts as supported: that of its answer.

    Claims tell support, whichever way their metric is better.

    >>> claim_threshold("higher", {"threshold": 0.3}), claim_threshold("lower", {"threshold": 0.7})
    (0.3, 0.3)
    """
    threshold = usable_threshold(detail.get(THRESHOLD))
    if threshold is None:
        return MIDDLE
    return round(1.0 - threshold, 6) if direction == "lower" else threshold


def is_low_score(info: MetricInfo, score: Score) -> bool:
    """Whether a score with its detail is low; one without a value is not."""
    value = score.result.value
    return value is not None and is_low(info, value, own_threshold(info, score.result.detail))


class CutDegrees:
    """How many degrees of a metric are low, and between which thresholds they were cut.

    >>> cut = CutDegrees(MetricInfo("faithfulness", "quality", "", "higher", (0.0, 1.0), mean_of="support"))
    >>> [round(cut.add(0.4, threshold), 2) for threshold in (0.36, 0.47)]
    [0.53, 0.43]
    >>> cut.n_low, cut.span
    (1, (0.36, 0.47))
    """

    __slots__ = ("_info", "_least", "_most", "n_low")

    def __init__(self, info: MetricInfo) -> None:
        self._info = info
        self._least, self._most = 1.0, 0.0
        self.n_low = 0

    @property
    def span(self) -> tuple[float, float] | None:
        """The lowest and the highest of the thresholds; ``None`` before the first score."""
        return None if self._least > self._most else (self._least, self._most)

    def add(self, value: float, threshold: float | None) -> float:
        """Take one more score; returns it as ``leveled`` does, to be compared with others."""
        self.n_low += is_low(self._info, value, threshold)
        self._widen(threshold)
        return leveled(value, threshold)

    def add_all(self, values: Sequence[float], thresholds: Sequence[float | None] | None) -> Sequence[float]:
        """Take scores at once; ``thresholds`` is ``None`` where no score names one."""
        if thresholds is not None and any(each is not None for each in thresholds):
            return [self.add(value, each) for value, each in zip(values, thresholds, strict=True)]
        if values:
            self.n_low += sum(is_low(self._info, value) * n for value, n in Counter(values).items())
            self._widen(None)
        return values

    def _widen(self, threshold: float | None) -> None:
        at = MIDDLE if threshold is None else threshold
        if at < self._least:
            self._least = at
        if at > self._most:
            self._most = at


def are_shares(info: MetricInfo) -> bool:
    """Whether a metric's values are shares from 0 to 1, so that 0 and 1 are fail and pass and not two amounts.

    A user's own metric rarely declares its range; without one a score is taken for a share.
    """
    return info.unit == "score" and info.range in ((0.0, 1.0), (None, None))


def possible_range(info: MetricInfo, minimum: float | None, maximum: float | None) -> tuple[float | None, float | None]:
    """The values a metric can take, as far as known; ``minimum`` and ``maximum`` are those that were seen.

    A user's own metric rarely declares its range: a score whose values all are from 0 to 1 is taken for a share.
    """
    is_share = minimum is not None and maximum is not None and minimum >= 0.0 and maximum <= 1.0
    return (0.0, 1.0) if info.unit == "score" and info.range == (None, None) and is_share else info.range


def within(interval: Interval | None, allowed: tuple[float | None, float | None]) -> Interval | None:
    """An interval that does not leave the values a metric can take; Student's t knows nothing of them."""
    if interval is None:
        return None
    least = -math.inf if allowed[0] is None else allowed[0]
    most = math.inf if allowed[1] is None else allowed[1]
    low, high = (min(most, max(least, end)) for end in (interval.low, interval.high))
    return Interval(low, high, interval.method)

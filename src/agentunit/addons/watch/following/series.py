"""What the scores of one metric add up to while a source is followed, as a whole and by slice."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, field

from agentunit.addons.watch.drift import Change, DriftDetector
from agentunit.core.results import decode_json, encode_json
from agentunit.engine.deciding.cut_offs import possible_range
from agentunit.metrics.base import MetricInfo

SeriesKind = Literal["value", "scored"]
WHOLE = ""
FAILED = "failed"
"""The share of failed traces, which is followed beside the metrics: of all traces, not only of those scored."""
FAILED_INFO = MetricInfo(FAILED, "operations", "The share of traces in which the agent failed.", "lower", (0.0, 1.0))

# Parts of one metric's false alarms: its values as a whole, whether it has any, and all of its slices together.
_SHARES = {"value": 0.5, "scored": 0.25}
_SLICES_SHARE = 0.25
_CASES_KEPT = 20
_SCORE_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_AMOUNT_EDGES = tuple(digit * 10.0**power for power in range(-5, 7) for digit in (1.0, 2.0, 5.0))


class SeriesKey(Struct, frozen=True, order=True, array_like=True):
    """One stream of values: a metric by one backend, as a whole or on one slice, or whether the metric has a value."""

    metric: str
    backend: str
    slice: str = WHOLE
    kind: SeriesKind = "value"

    @property
    def name(self) -> str:
        """What a store keeps it under."""
        return encode_json(self).decode()


def key_named(name: str) -> SeriesKey:
    """The key of a name."""
    metric, backend, slice, kind = decode_json(name.encode())
    return SeriesKey(metric, backend, slice, kind)


class SeriesState(Struct):
    """What is kept of a stream: counts by status, sums, a histogram, the detector, and the last cases on each side.

    ``last_alert`` has the number and direction of the last one, and the time of the case that it came with.
    ``n`` values of a random sample of the traffic add up to ``total``. Failed traces that were scored beside the sample
    are counted by status and nowhere else: they would make the traffic look worse than it is.
    """

    detector: DriftDetector
    edges: tuple[float, ...]
    histogram: list[int]
    statuses: dict[str, int] = field(default_factory=dict)
    n: int = 0
    total: float = 0.0
    n_alerts: int = 0
    low_cases: list[tuple[str, float, float]] = field(default_factory=list)
    high_cases: list[tuple[str, float, float]] = field(default_factory=list)
    last_alert: tuple[int, str, float] | None = None

    @property
    def mean(self) -> float | None:
        """The mean of all values."""
        return self.total / self.n if self.n else None

    def add(self, value: float, case_id: str, at_s: float, is_timed: bool, share: float) -> Change | None:
        """Take the value of a case of the sample."""
        if self.detector.is_outside(value):
            # The range was a guess by the first value.
            self.detector.watch_ranks()
            if not self.n:
                self.edges, self.histogram = _AMOUNT_EDGES, [0] * (len(_AMOUNT_EDGES) + 1)
        self.n += 1
        self.total += value
        self.histogram[bisect_left(self.edges, value)] += 1
        usual = self.detector.baseline_mean
        if usual is not None and value != usual:
            cases = self.low_cases if value < usual else self.high_cases
            cases.append((case_id, value, at_s))
            del cases[:-_CASES_KEPT]
        change = self.detector.add(value, at_s, is_timed=is_timed, share=share)
        self.n_alerts += change is not None
        return change

    def cases_behind(self, change: Change) -> list[str]:
        """The last cases that speak for a change, those that do most first."""
        fell = change.direction == "fell"
        found = [each for each in (self.low_cases if fell else self.high_cases) if each[2] >= change.since_s]
        found.sort(key=lambda each: each[1], reverse=not fell)
        return list(dict.fromkeys(case_id for case_id, _, _ in found))


def new_series(key: SeriesKey, info: MetricInfo, seen: Sequence[float], size: int) -> SeriesState:
    """The beginning of a stream. A metric without a range of its own is a share if the values seen so far are."""
    low, high = (0.0, 1.0) if key.kind == "scored" else possible_range(info, min(seen), max(seen))
    edges = _SCORE_EDGES if (low, high) == (0.0, 1.0) else _AMOUNT_EDGES
    if low is not None and high is not None and not low < high:
        low = high = None
    return SeriesState(DriftDetector(low=low, high=high, size=size), edges, [0] * (len(edges) + 1))


def share_of(key: SeriesKey, n_alike: int) -> float:
    """What a stream may use of its metric's false alarms, beside so many streams of its kind."""
    whole = _SHARES[key.kind] if key.slice == WHOLE else _SLICES_SHARE
    return whole / max(1, n_alike)


class Alert(Struct, omit_defaults=True):
    """A change that was noticed: of what, from which level to which, since when, and cases that speak for it.

    ``is_worse`` is ``None`` where no direction is better than the other. Times are seconds since 1970. ``slices`` are
    those that show the change as well. A slice that shows it later has an alert of its own, ``part_of`` the one
    with that number.
    """

    number: int
    raised_at: float
    metric: str
    backend: str
    slice: str
    kind: SeriesKind
    direction: str
    before: float
    after: float
    since: float
    n_since: int
    unit: str = "score"
    is_worse: bool | None = None
    cases: list[str] = field(default_factory=list)
    source: str = ""
    slices: list[str] = field(default_factory=list)
    part_of: int | None = None

    def as_data(self) -> dict[str, Any]:
        """The alert for other programs."""
        return {"event": "agentunit.drift", **{name: getattr(self, name) for name in self.__struct_fields__}}


def worsens(info: MetricInfo, kind: SeriesKind, direction: str) -> bool | None:
    """Whether a change in this direction is for the worse."""
    if kind == "scored":
        return direction == "fell"
    if info.direction == "none":
        return None
    return (info.direction == "higher") == (direction == "fell")

"""What is kept of a followed source beside its series, and what is shown of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct, field

from agentunit.addons.watch.following.sampling import ModelBudget
from agentunit.addons.watch.following.series import Alert, SeriesKey, SeriesState

MOST_SLICES = 50
NO_VALUE, OTHER = "(none)", "(other)"


class Retention(Struct, frozen=True):
    """What is kept of scored traces: their text or masked text, for so many seconds (``None``: for good)."""

    is_masked: bool
    seconds: float | None = None


class FollowSettings(Struct, frozen=True):
    """How a source is followed.

    ``sample`` is the share of traces that are scored, ``by`` the field that slices are made by, ``budget`` how many
    cases a day may have the metrics with a model behind them, ``judge_usd`` what a judge may cost a day.
    ``n_baseline`` cases are the baseline, unless ``baseline`` has the values of a run by metric and backend.
    """

    sample: float = 1.0
    by: str | None = None
    budget: int | None = None
    judge_usd: float | None = None
    n_baseline: int = 1_600
    baseline: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    baseline_name: str = ""
    keep: Retention | None = None


class FollowState(Struct):
    """Counts and sums over the whole life of a followed source; those of a day begin anew at midnight UTC."""

    counts: dict[str, int] = field(default_factory=dict)
    day: int = 0
    spent_usd: float = 0.0
    spent_usd_total: float = 0.0
    capped_day: int = -1
    slices: dict[str, int] = field(default_factory=dict)
    budget: ModelBudget = field(default_factory=lambda: ModelBudget(None))
    n_alerts: int = 0
    last_scored_at: float | None = None
    kept_run: str = ""
    n_kept: int = 0
    baseline_name: str = ""
    metrics: list[str] = field(default_factory=list)

    def count(self, what: str, n: int = 1) -> None:
        """Count traces by what became of them."""
        if n:
            self.counts[what] = self.counts.get(what, 0) + n

    def slice_names(self, values: Sequence[str]) -> tuple[str, ...]:
        """The slices that a case counts for; beyond so many different ones they are one."""
        names = (
            name if name in self.slices or len(self.slices) < MOST_SLICES else OTHER for name in values or (NO_VALUE,)
        )
        return tuple(dict.fromkeys(names))


class SeriesRow(Struct):
    """One series as it is shown; means are of the last hour, the last day and the baseline."""

    key: SeriesKey
    state: SeriesState
    evidence: float
    n_hour: int
    hour_mean: float | None
    n_day: int
    day_mean: float | None


class Snapshot(Struct):
    """How a followed source stands at one moment. Nothing in it changes afterwards."""

    source: str
    at: float
    counts: dict[str, int]
    rows: list[SeriesRow]
    alerts: list[Alert]
    n_open: int
    n_unread_bytes: int
    last_scored_at: float | None
    spent_usd: float
    spent_usd_total: float
    sample: float
    by: str | None
    errors: list[str] = field(default_factory=list)


def follow_id_of(paths: Sequence[str]) -> str:
    """What the following of these paths is known by: the same command continues where it was."""
    names = "\n".join(sorted({os.path.abspath(path) for path in paths}))
    return f"follow-{blake2b(names.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"

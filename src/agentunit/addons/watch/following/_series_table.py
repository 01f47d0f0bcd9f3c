"""All series of a followed source: traces are added to those that they belong to, and changes become alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite

import msgspec
from msgspec import structs

from agentunit.addons.watch.drift import Change
from agentunit.addons.watch.followed_table import FollowChanges, HourRow
from agentunit.addons.watch.following._arrivals import Arrived
from agentunit.addons.watch.following.series import (
    FAILED,
    WHOLE,
    Alert,
    SeriesKey,
    SeriesState,
    key_named,
    new_series,
    share_of,
    worsens,
)
from agentunit.addons.watch.following.state import FollowSettings, FollowState, SeriesRow
from agentunit.core.results import encode_json
from agentunit.engine.scoring.scored_run import info_of
from agentunit.metrics.base import MetricInfo

_HOUR_S = 3_600
HOURS_SHOWN = 24


class SeriesTable:
    """The series of a followed source, with the sums of the last hours. ``infos`` are those of its metrics, by name.

    What was added since the last ``changes`` is not counted in the hours that are shown before ``kept`` is called.
    """

    def __init__(
        self,
        kept: Mapping[str, str],
        hours: list[HourRow],
        infos: Mapping[str, MetricInfo],
        settings: FollowSettings,
        state: FollowState,
        source: str,
    ) -> None:
        self._infos, self._settings, self._state, self._source = dict(infos), settings, state, source
        self.series: dict[SeriesKey, SeriesState] = {
            key_named(name): msgspec.json.decode(each, type=SeriesState) for name, each in kept.items()
        }
        self._alike = Counter(kind_of(key) for key in self.series)
        self._hours: dict[tuple[str, int], list[float]] = {(row.series, row.hour): [row.n, row.total] for row in hours}
        self._touched: dict[SeriesKey, SeriesState] = {}
        self._new_hours: dict[tuple[str, int], list[float]] = {}
        self._begin_baseline()

    def info(self, metric: str) -> MetricInfo:
        """What a metric says of itself, also one that is not scored any more."""
        if metric not in self._infos:
            self._infos[metric] = info_of(metric)
        return self._infos[metric]

    def put_changes(self, changes: FollowChanges) -> None:
        """Put what has changed where it is kept from."""
        changes.series = {key.name: encode_json(state).decode() for key, state in self._touched.items()}
        changes.hours = [HourRow(name, hour, int(n), total) for (name, hour), (n, total) in self._new_hours.items()]

    def kept(self) -> None:
        """What has changed is kept."""
        for place, (n, total) in self._new_hours.items():
            both = self._hours.setdefault(place, [0, 0.0])
            both[0], both[1] = both[0] + n, both[1] + total
        self._touched, self._new_hours = {}, {}

    def forget_hours(self, before: int) -> None:
        """Let go of hours that are not shown any more."""
        self._hours = {place: sums for place, sums in self._hours.items() if place[1] >= before}

    def add(self, each: Arrived, case_id: str, now: float) -> Iterator[Alert]:
        """Add a trace to all series that it belongs to; the changes that it shows, in which it has this id."""
        hour = int(each.at_s // _HOUR_S)

        def add(key: SeriesKey, value: float) -> Alert | None:
            state = self._touched[key] = self._series(key, value)
            sums = self._new_hours.setdefault((key.name, hour), [0, 0.0])
            sums[0], sums[1] = sums[0] + 1, sums[1] + value
            change = state.add(value, case_id, each.at_s, each.is_timed, share_of(key, self._alike[kind_of(key)]))
            return None if change is None else self._alert(key, state, change, each.at_s, now)

        def added() -> Iterator[Alert | None]:
            for name in (WHOLE, *each.slices):
                yield add(SeriesKey(FAILED, "trace", name), float(each.failed))
            for metric in self._infos if each.scores is not None else ():
                if metric == FAILED:
                    continue
                score = (each.scores or {}).get(metric)
                if score is None:
                    key = SeriesKey(metric, "")
                    self._mark(key, "skipped")
                    continue
                value = score.value if score.value is not None and isfinite(score.value) else None
                key = SeriesKey(metric, score.backend)
                self._mark(key, score.status, value)
                if each.in_sample:
                    if value is not None:
                        yield add(key, value)
                    yield add(SeriesKey(metric, "", kind="scored"), float(value is not None))
                for name in each.in_slices if value is not None else ():
                    yield add(SeriesKey(metric, score.backend, name), value or 0.0)

        return (alert for alert in added() if alert is not None)

    def _mark(self, key: SeriesKey, status: str, value: float | None = None) -> None:
        # Without a value a metric has a series, too: how often it had none is counted there.
        state = self._touched[key] = self._series(key, 0.0 if value is None else value)
        state.statuses[status] = state.statuses.get(status, 0) + 1

    def _series(self, key: SeriesKey, first: float) -> SeriesState:
        state = self.series.get(key)
        if state is None:
            info = self.info(key.metric)
            is_whole = key.slice == WHOLE and key.kind == "value"
            values = self._settings.baseline.get((key.metric, key.backend), []) if is_whole else []
            state = self.series[key] = new_series(key, info, [first, *values], self._settings.n_baseline)
            self._alike[kind_of(key)] += 1
            if values:
                state.detector.learn(values, share=share_of(key, 1))
        return state

    def _alert(self, key: SeriesKey, state: SeriesState, change: Change, at_s: float, now: float) -> Alert:
        self._state.n_alerts += 1
        state.last_alert = (self._state.n_alerts, change.direction, at_s)
        info = self.info(key.metric)
        return Alert(
            number=self._state.n_alerts,
            raised_at=now,
            metric=key.metric,
            backend=key.backend,
            slice=key.slice,
            kind=key.kind,
            direction=change.direction,
            before=change.before,
            after=change.after,
            since=change.since_s,
            n_since=change.n_since,
            unit="score" if key.kind == "scored" else info.unit,
            is_worse=worsens(info, key.kind, change.direction),
            cases=state.cases_behind(change),
            source=self._source,
            slices=self._slices_of(key, change),
            part_of=self._whole_of(key, change),
        )

    def _slices_of(self, key: SeriesKey, change: Change) -> list[str]:
        """The slices that show a change of the whole by now; they have no alert of their own then."""
        if key.slice != WHOLE or key.kind != "value":
            return []
        found = []
        for other, state in self.series.items():
            is_slice = other.slice != WHOLE and (other.metric, other.backend) == (key.metric, key.backend)
            if is_slice and state.detector.takes_part(change.direction):
                state.n_alerts += 1
                self._touched[other] = state
                found.append(other.slice)
        return sorted(found)

    def _whole_of(self, key: SeriesKey, change: Change) -> int | None:
        """The alert of the whole that a change of a slice is a part of: it began before that was raised."""
        whole = self.series.get(SeriesKey(key.metric, key.backend)) if key.slice != WHOLE else None
        if whole is None or whole.last_alert is None:
            return None
        number, direction, raised_at = whole.last_alert
        return number if direction == change.direction and change.since_s <= raised_at else None

    def _begin_baseline(self) -> None:
        """A baseline of another run than before takes the place of what was usual."""
        if self._settings.baseline_name in ("", self._state.baseline_name):
            return
        self._state.baseline_name = self._settings.baseline_name
        for key, values in self._settings.baseline.items():
            state = self.series.pop(SeriesKey(*key), None)
            if state is None:
                continue
            self._alike[kind_of(SeriesKey(*key))] -= 1
            anew = self._series(SeriesKey(*key), values[0] if values else 0.0)
            anew.statuses, anew.n, anew.total = state.statuses, state.n, state.total
            anew.histogram, anew.edges, anew.n_alerts = state.histogram, state.edges, state.n_alerts

    def rows(self, hour: int) -> list[SeriesRow]:
        """How each series stands in this hour."""
        sums: dict[str, list[float]] = {}
        for (name, at), (n, total) in self._hours.items():
            if at > hour - HOURS_SHOWN:
                row = sums.setdefault(name, [0, 0.0, 0, 0.0])
                row[0], row[1] = row[0] + n, row[1] + total
                if at == hour:
                    row[2], row[3] = n, total
        rows = []
        for key, state in sorted(self.series.items()):
            n_day, day_total, n_hour, hour_total = sums.get(key.name, (0, 0.0, 0, 0.0))
            evidence = state.detector.evidence(share_of(key, self._alike[kind_of(key)]))
            shown = structs.replace(state, statuses=dict(state.statuses), histogram=list(state.histogram))
            means = (hour_total / n_hour if n_hour else None, day_total / n_day if n_day else None)
            rows.append(SeriesRow(key, shown, evidence, int(n_hour), means[0], int(n_day), means[1]))
        return rows


def kind_of(key: SeriesKey) -> tuple[str, str, bool]:
    """Series of one kind share what a metric may use of false alarms; one without a backend only counts statuses."""
    kind = "statuses" if key.kind == "value" and not key.backend else key.kind
    return (key.metric, kind, key.slice != WHOLE)

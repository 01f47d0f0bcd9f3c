"""The follower: reads what is new, scores it, and keeps all that came of it in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

import agentunit
from agentunit.addons.watch._growing import FileProgress, Found, GrowingFiles
from agentunit.addons.watch.collector.spool import SpanSpool
from agentunit.addons.watch.followed_table import FollowChanges, Followed, StoredAlert
from agentunit.addons.watch.following._arrivals import ArrivalScorer, Arrived
from agentunit.addons.watch.following._series_table import HOURS_SHOWN, SeriesTable
from agentunit.addons.watch.following.sampling import ModelBudget, digest_of, identity_of
from agentunit.addons.watch.following.series import FAILED, FAILED_INFO, Alert, SeriesKey, SeriesState
from agentunit.addons.watch.following.state import FollowSettings, FollowState, Retention, Snapshot, follow_id_of
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.core.results import InputError, Score, encode_json
from agentunit.engine.deciding.cut_offs import number_keys
from agentunit.engine.scoring.scored_run import infos_as_data
from agentunit.metrics.base import MetricInfo, describe
from agentunit.store.run_store import RunStore
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import ScoreBuffer
from agentunit.traces.assembly.record import assemble
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.grouping import LARGEST_GROUP_BYTES

# What is kept of scored traces, if asked for: a run a day, for a set time.


class KeptRuns:
    """The runs of one followed source in a store; without ``keep`` nothing is kept."""

    def __init__(
        self,
        store: RunStore,
        follow_id: str,
        source: str,
        metrics: Sequence[Any],
        keep: Retention | None,
        state: FollowState,
    ) -> None:
        self._store, self._id, self._source, self._metrics = store, follow_id, source, metrics
        self._keep, self._state = keep, state
        self._infos = {metric.name: describe(metric) for metric in metrics}
        self._must_compact = False

    def keep(self, scored: Sequence[Arrived], now: float) -> None:
        """Keep scored traces, in the transaction of the caller."""
        if not scored or self._keep is None:
            return
        day = time.strftime("%Y-%m-%d", time.gmtime(now))
        run_id = f"{self._id}-{day}"
        if self._state.kept_run != run_id:
            self._state.kept_run, self._state.n_kept = run_id, 0
            settings = {"metric_infos": infos_as_data(self._metrics), "tags": {"followed": self._source}}
            version = agentunit.__version__
            self._store.create_run(
                f"followed {day}", agentunit_version=version, settings=settings, run_id=run_id, created_at=now
            )
            self._store.set_status(run_id, "finished", finished_at=now)
        lines, waiting = [], ScoreBuffer(number_keys(self._infos))
        for each in scored:
            position = self._state.n_kept
            self._state.n_kept += 1
            record = each.record
            lines.append((run_id, position, 0, record.case.id, int(each.failed), 0.0, encode_record(record)))
            waiting.add(position, 0, each.scores or {})
        self._store.add_lines(lines)
        self._store.add_blocks(run_id, waiting.take())

    def delete_old(self, now: float) -> str | None:
        """Delete the runs whose time is over; why they are not out of the file yet, if they are not."""
        seconds = None if self._keep is None else self._keep.seconds
        if seconds is None:
            return None
        # A day's run is over a day after it began, and its last trace is as old as was asked for that much later.
        old = [
            run
            for run in self._store.runs()
            if run.id.startswith(f"{self._id}-") and run.created_at < now - seconds - _DAY_S
        ]
        for run in old:
            self._store.delete_run(run.id)
        self._must_compact = self._must_compact or bool(old)
        if self._must_compact:
            try:
                self._store.database.compact()
                self._must_compact = False
            except StoreError as error:
                # Somebody reads the store: what was deleted leaves the file an hour later.
                return str(error)
        return None


ROOT_QUIET_S, ROOTLESS_QUIET_S = 5.0, 60.0
SEEN_DAYS, HOURS_KEPT = 14, 24 * 35
_HELD_BACK_S = 1.0
_TRACES_AT_ONCE = 200
_DAY_S, _HOUR_S = 86_400, 3_600
_TIDY_EVERY_S = 3_600.0
_ERRORS_SHOWN, _ALERTS_SHOWN = 5, 10


class TraceFollower:
    """Follows files and folders: ``step`` takes in what is new since the last one, and returns how many traces came.

    What came of a trace, and how far its file was read, is kept in one transaction: a killed process begins again
    where the last one ended. Spans wait in ``spool`` for the rest of their trace; what is in it twice counts once.
    ``on_scored`` and ``on_alert`` are called after that.
    """

    def __init__(
        self,
        store: RunStore,
        paths: Sequence[str],
        metrics: Sequence[Any],
        settings: FollowSettings,
        spool: SpanSpool,
        *,
        source: str = "",
        format: str | None = None,
        expected: ExpectedAnswers | None = None,
        on_scored: Callable[[Record, dict[str, Score]], None] = lambda record, scores: None,
        on_alert: Callable[[Alert], None] = lambda alert: None,
        on_error: Callable[[InputError], None] = lambda error: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.id = follow_id_of(paths)
        self.source = source or ", ".join(paths)
        self.settings = settings
        self._store, self._spool, self._now = store, spool, now
        self._expected = expected
        self._on_scored, self._on_alert, self._on_error = on_scored, on_alert, on_error
        self._followed = Followed(store.database, self.id)
        kept = self._followed.begin(self.source, now())
        self.state = msgspec.json.decode(kept, type=FollowState) if kept else FollowState()
        self.state.budget.a_day = settings.budget
        if not kept:
            self.state.budget = ModelBudget(settings.budget, float(settings.budget or 0), now())
        self._scorer = ArrivalScorer(metrics, settings, self.state, store.masking.masked_data)
        self._kept = KeptRuns(store, self.id, self.source, metrics, settings.keep, self.state)
        known = [msgspec.json.decode(each, type=FileProgress) for each in self._followed.files()]
        self.files = GrowingFiles(paths, known, format=format, lines_at_once=self._scorer.batch)
        infos = {**{metric.name: describe(metric) for metric in metrics}, FAILED: FAILED_INFO}
        hours = self._followed.hours(self._hour() - HOURS_SHOWN)
        self._table = SeriesTable(self._followed.series(), hours, infos, settings, self.state, self.source)
        # Before this was kept, the series told it.
        self.metrics_before = self.state.metrics or list(dict.fromkeys(key.metric for key in self._table.series))
        self.state.metrics = [metric.name for metric in metrics]
        self.alerts = [
            msgspec.json.decode(each.alert, type=Alert) for each in self._followed.alerts(most=_ALERTS_SHOWN)
        ]
        self.errors: list[str] = []
        self._waiting: list[tuple[Record, str]] = []
        self._from_spool: list[tuple[str, int]] = []
        self._progress: dict[str, str | None] = {}
        self._due_at = 0.0
        self._tidied_at = 0.0

    # Reading

    def step(self, *, up_to: dict[str, int] | None = None, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Take in what is new; ``is_stopped`` is asked between pieces."""
        n_before = self.state.counts.get("arrived", 0)
        self._due_at = time.monotonic() + _HELD_BACK_S
        for found in self.files.read(self._now(), up_to=up_to):
            self._take(found)
            if is_stopped():
                break
        for gone in self.files.gone:
            self._progress.setdefault(gone.key, None)
        self.files.gone = []
        self._keep()
        while not is_stopped() and self._take_traces():
            self._keep()
        self._tidy()
        return self.state.counts.get("arrived", 0) - n_before

    @property
    def n_open(self) -> int:
        """How many traces wait for more of their spans."""
        return self._spool.n_open()

    def _take(self, found: Found) -> None:
        for error in found.errors:
            self.state.count("unreadable")
            self.errors = [*self.errors, str(error)][-_ERRORS_SHOWN:]
            self._on_error(error)
        if found.spans or found.logs:
            self._take_spans(found)
        for each in found.records:
            if self._expected is not None:
                self._expected.join(each.record)
            self._waiting.append((each.record, identity_of(each.record, each.place)))
        if found.progress is not None:
            self._progress[found.progress.key] = encode_json(found.progress).decode()
        if len(self._waiting) >= self._scorer.batch or time.monotonic() >= self._due_at:
            self._keep()

    def _take_spans(self, found: Found) -> None:
        names = {span.trace_id for span in found.spans} | {log.trace_id for log in found.logs}
        digests = {digest_of(name): name for name in names}
        late = {digests[digest] for digest in self._followed.seen(list(digests))}
        spans = [span for span in found.spans if span.trace_id not in late]
        self.state.count("late_spans", len(found.spans) - len(spans))
        logs = [log for log in found.logs if log.trace_id not in late]
        if spans or logs:
            # Kept before the progress is: read twice after a kill, they are still there once.
            self._spool.add(spans, logs, now=found.written_at)

    def _take_traces(self) -> bool:
        """Put the traces together that have been quiet; whether there were any."""
        now = self._now()
        due = self._spool.due(
            rooted_before=now - ROOT_QUIET_S, rootless_before=now - ROOTLESS_QUIET_S, most=_TRACES_AT_ONCE
        )
        for trace_id in due:
            revision, n_bytes = self._spool.size(trace_id)
            self._from_spool.append((trace_id, revision))
            try:
                if n_bytes > LARGEST_GROUP_BYTES:
                    raise ValueError(f"it has more than {LARGEST_GROUP_BYTES >> 20:,} MiB")
                record = assemble(self._spool.trace(trace_id).spans, self.files.notes)
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001  # one odd trace must not cost the others
                self._take(
                    Found(now, errors=[InputError(f"trace {trace_id}", None, f"cannot be put together: {error}")])
                )
                continue
            if record is None:
                self.state.count("without_agent")
                continue
            if self._expected is not None:
                self._expected.join(record)
            self._waiting.append((record, trace_id))
        return bool(due)

    # Scoring

    def _keep(self) -> None:
        """Score what waits, and keep it with the progress."""
        self._due_at = time.monotonic() + _HELD_BACK_S
        if not (self._waiting or self._progress or self._from_spool):
            return
        now = self._now()
        self._scorer.begin_day(int(now // _DAY_S))
        arrived, digests = self._new_of(self._waiting, now)
        # Detectors stake the time that passes.
        arrived.sort(key=lambda each: each.at_s)
        scored = self._scorer.score(arrived, now)
        alerts = [alert for each in arrived for alert in self._table.add(each, self._case_id(each), now)]
        if scored:
            self.state.last_scored_at = now
        changes = FollowChanges("", dict(self._progress), digests, self.state.day)
        changes.alerts = [StoredAlert(each.number, each.raised_at, encode_json(each).decode()) for each in alerts]
        self._table.put_changes(changes)
        with self._store.transaction():
            self._kept.keep(scored, now)
            changes.state = encode_json(self.state).decode()
            self._followed.keep(changes)
        self._table.kept()
        self._let_go_of_spans()
        self._waiting, self._progress = [], {}
        self.alerts = [*reversed(alerts), *self.alerts][:_ALERTS_SHOWN]
        for each in scored:
            self._on_scored(each.record, each.scores or {})
        for alert in alerts:
            self._on_alert(alert)

    def _case_id(self, each: Arrived) -> str:
        return str(self._store.masking.masked_data(each.record.case.id or each.identity))

    def _let_go_of_spans(self) -> None:
        for trace_id, revision in self._from_spool:
            self._spool.mark_written(trace_id, revision)
        if self._from_spool:
            self._spool.remove_recorded(before=float("inf"), spanless_before=self._now() - ROOTLESS_QUIET_S)
        self._from_spool = []

    def _new_of(self, waiting: Sequence[tuple[Record, str]], now: float) -> tuple[list[Arrived], list[int]]:
        """The traces that were not counted before, each with what is decided about it."""
        by_digest: dict[int, tuple[Record, str]] = {}
        for record, identity in waiting:
            by_digest.setdefault(digest_of(identity), (record, identity))
        seen = self._followed.seen(list(by_digest))
        from_spool = {trace_id for trace_id, _ in self._from_spool}
        known = sum(by_digest[digest][1] not in from_spool for digest in seen)
        self.state.count("repeated", len(waiting) - len(by_digest) + known)
        new = [digest for digest in by_digest if digest not in seen]
        return [self._scorer.decide(*by_digest[digest], now) for digest in new], new

    # Keeping

    def _tidy(self) -> None:
        """Once an hour: forget what was kept for its time."""
        now = self._now()
        if now - self._tidied_at < _TIDY_EVERY_S:
            return
        self._tidied_at = now
        hour = self._hour()
        self._table.forget_hours(hour - HOURS_SHOWN)
        self._followed.forget(seen_before_day=int(now // _DAY_S) - SEEN_DAYS, before_hour=hour - HOURS_KEPT)
        if (problem := self._kept.delete_old(now)) is not None:
            self.errors = [*self.errors, problem][-_ERRORS_SHOWN:]

    def _hour(self) -> int:
        return int(self._now() // _HOUR_S)

    # Showing

    def undelivered(self) -> list[Alert]:
        """The alerts that nobody was told of, oldest first."""
        stored = self._followed.alerts(undelivered=True)
        return [msgspec.json.decode(each.alert, type=Alert) for each in reversed(stored)]

    def mark_delivered(self, numbers: Sequence[int]) -> None:
        """Somebody was told of these alerts."""
        self._followed.mark_delivered(numbers)

    @property
    def series(self) -> Mapping[SeriesKey, SeriesState]:
        """All series, by what they are of."""
        return self._table.series

    def snapshot(self) -> Snapshot:
        """How it stands."""
        own = self.state
        return Snapshot(
            *(self.source, self._now(), dict(own.counts), self._table.rows(self._hour()), list(self.alerts)),
            *(self.n_open, self.files.n_unread_bytes, own.last_scored_at, own.spent_usd, own.spent_usd_total),
            *(self.settings.sample, self.settings.by, list(self.errors)),
        )

    def info(self, metric: str) -> MetricInfo:
        """What a metric says of itself."""
        return self._table.info(metric)

    def close(self) -> None:
        """End what is one run for a judge."""
        self._scorer.close()

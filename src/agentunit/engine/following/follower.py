"""The follower: reads what is new, scores it, and keeps all that came of it in one transaction."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from math import isfinite
from typing import Any

import msgspec
from msgspec import structs

import agentunit
from agentunit.backends.judge.limits import SPEND_CAP_REACHED
from agentunit.core.codec import encode_record
from agentunit.core.judged import judged_of
from agentunit.core.records import Record
from agentunit.core.results import InputError, Score, encode_json
from agentunit.engine.case_fields import field_values
from agentunit.engine.following.sampling import (
    ModelBudget,
    digest_of,
    ended_at,
    fraction_of,
    has_failed,
    identity_of,
    slice_share,
)
from agentunit.engine.following.series import (
    FAILED,
    FAILED_INFO,
    WHOLE,
    Alert,
    SeriesKey,
    SeriesState,
    key_named,
    new_series,
    share_of,
    worsens,
)
from agentunit.engine.following.state import FollowSettings, FollowState, SeriesRow, Snapshot, follow_id_of
from agentunit.engine.judge_runs import judge_run
from agentunit.engine.judging import judged_metrics
from agentunit.engine.scored_run import infos_as_data
from agentunit.engine.scoring import Run
from agentunit.formulas.drift import Change
from agentunit.metrics.base import MetricInfo, describe
from agentunit.store.followed import FollowChanges, HourRow, StoredAlert
from agentunit.store.protocol import RunStore
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import written_scores
from agentunit.traces.assembly.record import assemble
from agentunit.traces.collector.spool import SpanSpool
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.grouping import LARGEST_GROUP_BYTES
from agentunit.traces.growing import FileProgress, Found, GrowingFiles

ROOT_QUIET_S, ROOTLESS_QUIET_S = 5.0, 60.0
SEEN_DAYS, HOURS_KEPT = 14, 24 * 35
_BATCH, _MODEL_BATCH, _JUDGED_BATCH = 256, 32, 16
_HELD_BACK_S = 1.0
_TRACES_AT_ONCE = 200
_DAY_S, _HOUR_S = 86_400, 3_600
_TIDY_EVERY_S = 3_600.0
_ERRORS_SHOWN, _ALERTS_SHOWN = 5, 10


class _Arrived(msgspec.Struct):
    """A trace that came, and what was decided about it."""

    record: Record
    identity: str
    at_s: float
    is_timed: bool
    failed: bool
    in_sample: bool = True
    slices: tuple[str, ...] = ()
    in_slices: tuple[str, ...] = ()
    has_models: bool = True
    scores: dict[str, Score] | None = None


class Follower:
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
        self._metrics = list(metrics)
        self._plain = [metric for metric in metrics if not is_model_backed(metric)]
        self._judged = {metric.name for metric in judged_metrics(metrics)}
        self._unjudged = [metric for metric in metrics if not judged_metrics([metric])]
        self._infos = {**{metric.name: describe(metric) for metric in metrics}, FAILED: FAILED_INFO}
        self._expected = expected
        self._on_scored, self._on_alert, self._on_error = on_scored, on_alert, on_error
        self._followed = store.followed(self.id)
        kept = self._followed.begin(self.source, now())
        self.state = msgspec.json.decode(kept, type=FollowState) if kept else FollowState()
        self.state.budget.a_day = settings.budget
        if not kept:
            self.state.budget = ModelBudget(settings.budget, float(settings.budget or 0), now())
        known = [msgspec.json.decode(each, type=FileProgress) for each in self._followed.files()]
        # What is kept together is what a signal to end waits for, and what a budget of a judge may be exceeded by.
        self._batch = _JUDGED_BATCH if self._judged else _MODEL_BATCH if self._plain != self._metrics else _BATCH
        self.files = GrowingFiles(paths, known, format=format, lines_at_once=self._batch)
        self.series: dict[SeriesKey, SeriesState] = {
            key_named(name): msgspec.json.decode(state, type=SeriesState)
            for name, state in self._followed.series().items()
        }
        self._alike = Counter(_kind_of(key) for key in self.series)
        self._hours: dict[tuple[str, int], list[float]] = {
            (row.series, row.hour): [row.n, row.total] for row in self._followed.hours(self._hour() - 24)
        }
        self.alerts = [
            msgspec.json.decode(each.alert, type=Alert) for each in self._followed.alerts(most=_ALERTS_SHOWN)
        ]
        self.errors: list[str] = []
        self._judging, self._is_judging = ExitStack(), False
        self._waiting: list[tuple[Record, str]] = []
        self._from_spool: list[tuple[str, int]] = []
        self._progress: dict[str, str | None] = {}
        self._due_at = 0.0
        self._tidied_at = 0.0
        self._must_compact = False
        self._begin_baseline()

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
        if len(self._waiting) >= self._batch or time.monotonic() >= self._due_at:
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
        self._begin_day(int(now // _DAY_S))
        arrived, digests = self._new_of(self._waiting, now)
        changes = FollowChanges("", dict(self._progress), digests, self.state.day)
        touched: dict[SeriesKey, SeriesState] = {}
        hours: dict[tuple[str, int], list[float]] = {}
        scored = self._scored(arrived, now)
        alerts = [alert for each in arrived for alert in self._count(each, now, touched, hours)]
        for alert in alerts:
            changes.alerts.append(StoredAlert(alert.number, alert.raised_at, encode_json(alert).decode()))
        changes.series = {key.name: encode_json(state).decode() for key, state in touched.items()}
        changes.hours = [HourRow(name, hour, int(n), total) for (name, hour), (n, total) in hours.items()]
        if scored:
            self.state.last_scored_at = now
        with self._store.transaction():
            if self.settings.keep is not None:
                self._keep_records(scored, now)
            changes.state = encode_json(self.state).decode()
            self._followed.keep(changes)
        self._let_go_of_spans()
        for place, (n, total) in hours.items():
            both = self._hours.setdefault(place, [0, 0.0])
            both[0], both[1] = both[0] + n, both[1] + total
        self._waiting, self._progress = [], {}
        self.alerts = [*reversed(alerts), *self.alerts][:_ALERTS_SHOWN]
        for each in scored:
            self._on_scored(each.record, each.scores or {})
        for alert in alerts:
            self._on_alert(alert)

    def _let_go_of_spans(self) -> None:
        for trace_id, revision in self._from_spool:
            self._spool.mark_written(trace_id, revision)
        if self._from_spool:
            self._spool.remove_recorded(before=float("inf"), spanless_before=self._now() - ROOTLESS_QUIET_S)
        self._from_spool = []

    def _new_of(self, waiting: Sequence[tuple[Record, str]], now: float) -> tuple[list[_Arrived], list[int]]:
        """The traces that were not counted before, each with what is decided about it."""
        by_digest: dict[int, tuple[Record, str]] = {}
        for record, identity in waiting:
            by_digest.setdefault(digest_of(identity), (record, identity))
        seen = self._followed.seen(list(by_digest))
        from_spool = {trace_id for trace_id, _ in self._from_spool}
        known = sum(by_digest[digest][1] not in from_spool for digest in seen)
        self.state.count("repeated", len(waiting) - len(by_digest) + known)
        new = [digest for digest in by_digest if digest not in seen]
        return [self._arrived(*by_digest[digest], now) for digest in new], new

    def _arrived(self, record: Record, identity: str, now: float) -> _Arrived:
        # What claims to come from the future would keep all others from counting as new.
        ended = ended_at(record)
        at_s = now if ended is None else min(ended, now)
        each = _Arrived(record, identity, at_s, ended is not None, has_failed(record))
        fraction = fraction_of(identity)
        each.in_sample = fraction < self.settings.sample
        if self.settings.by is not None:
            each.slices = self.state.slice_names(_values_of(record, self.settings.by))
            in_slices = []
            for name in each.slices:
                n_today = self.state.slices.get(name, 0)
                if fraction < slice_share(self.settings.sample, n_today):
                    in_slices.append(name)
                self.state.slices[name] = n_today + 1
            each.in_slices = tuple(in_slices)
        self.state.count("arrived")
        self.state.count("failed", int(each.failed))
        return each

    def _scored(self, arrived: Sequence[_Arrived], now: float) -> list[_Arrived]:
        """Score those that were chosen; each has its scores then."""
        chosen = [each for each in arrived if each.in_sample or each.in_slices or each.failed]
        self.state.count("scored", len(chosen))
        self.state.count("not_sampled", len(arrived) - len(chosen))
        if len(self._plain) < len(self._metrics):
            for each in chosen:
                each.has_models = self.state.budget.take(now)
        cap = self.settings.judge_usd
        is_spent = cap is not None and (self.state.spent_usd >= cap or self.state.capped_day == self.state.day)
        with_models = self._unjudged if is_spent else self._metrics
        for metrics, some in (
            (with_models, [each for each in chosen if each.has_models]),
            (self._plain, [each for each in chosen if not each.has_models]),
        ):
            for each, scores in zip(some, _scores_of([each.record for each in some], metrics), strict=True):
                each.scores = self._without_capped(scores)
                for score in scores.values() if self._judged else ():
                    spent = judged_of(score.result.detail, nested=True)
                    if spent is not None and spent.cost_usd is not None:
                        self.state.spent_usd += spent.cost_usd
                        self.state.spent_usd_total += spent.cost_usd
        return chosen

    def _without_capped(self, scores: dict[str, Score]) -> dict[str, Score]:
        """Scores without those that the judge was not asked for any more: they are left out, not failed."""
        if self.settings.judge_usd is None:
            return scores
        capped = {name for name, score in scores.items() if score.status == "error" and _is_capped(score)}
        if capped:
            self.state.capped_day = self.state.day
        return {name: score for name, score in scores.items() if name not in capped}

    # Counting

    def _count(
        self,
        each: _Arrived,
        now: float,
        touched: dict[SeriesKey, SeriesState],
        hours: dict[tuple[str, int], list[float]],
    ) -> Iterator[Alert]:
        """Add a trace to all series that it belongs to; the changes that it shows."""
        case_id = str(self._store.masked_data(each.record.case.id or each.identity))
        hour = int(each.at_s // _HOUR_S)

        def add(key: SeriesKey, value: float) -> Alert | None:
            state = touched[key] = self._series(key, value)
            sums = hours.setdefault((key.name, hour), [0, 0.0])
            sums[0], sums[1] = sums[0] + 1, sums[1] + value
            change = state.add(value, case_id, each.at_s, each.is_timed, share_of(key, self._alike[_kind_of(key)]))
            return None if change is None else self._alert(key, state, change, now)

        def added() -> Iterator[Alert | None]:
            for name in (WHOLE, *each.slices):
                yield add(SeriesKey(FAILED, "trace", name), float(each.failed))
            for metric in self._infos if each.scores is not None else ():
                if metric == FAILED:
                    continue
                score = (each.scores or {}).get(metric)
                if score is None:
                    key = SeriesKey(metric, "")
                    self._mark(key, "skipped", touched)
                    continue
                value = score.value if score.value is not None and isfinite(score.value) else None
                key = SeriesKey(metric, score.backend)
                self._mark(key, score.status, touched, value)
                if each.in_sample:
                    if value is not None:
                        yield add(key, value)
                    yield add(SeriesKey(metric, "", kind="scored"), float(value is not None))
                for name in each.in_slices if value is not None else ():
                    yield add(SeriesKey(metric, score.backend, name), value or 0.0)

        return (alert for alert in added() if alert is not None)

    def _mark(
        self, key: SeriesKey, status: str, touched: dict[SeriesKey, SeriesState], value: float | None = None
    ) -> None:
        # Without a value a metric has a series, too: how often it had none is counted there.
        state = touched[key] = self._series(key, 0.0 if value is None else value)
        state.statuses[status] = state.statuses.get(status, 0) + 1

    def _series(self, key: SeriesKey, first: float) -> SeriesState:
        state = self.series.get(key)
        if state is None:
            info = self._infos.get(key.metric) or MetricInfo(key.metric, "custom", "")
            state = self.series[key] = new_series(key, info, first, self.settings.n_baseline)
            self._alike[_kind_of(key)] += 1
            values = self.settings.baseline.get((key.metric, key.backend))
            if values and key.slice == WHOLE and key.kind == "value":
                state.detector.learn(values, share=share_of(key, 1))
        return state

    def _alert(self, key: SeriesKey, state: SeriesState, change: Change, now: float) -> Alert:
        self.state.n_alerts += 1
        info = self._infos.get(key.metric) or MetricInfo(key.metric, "custom", "")
        return Alert(
            number=self.state.n_alerts,
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
            source=self.source,
        )

    # Keeping

    def _keep_records(self, scored: Sequence[_Arrived], now: float) -> None:
        if not scored:
            return
        day = time.strftime("%Y-%m-%d", time.gmtime(now))
        run_id = f"{self.id}-{day}"
        if self.state.kept_run != run_id:
            self.state.kept_run, self.state.n_kept = run_id, 0
            settings = {"metric_infos": infos_as_data(self._metrics), "tags": {"followed": self.source}}
            version = agentunit.__version__
            self._store.create_run(
                f"followed {day}", agentunit_version=version, settings=settings, run_id=run_id, created_at=now
            )
            self._store.set_status(run_id, "finished", finished_at=now)
        amounts = {name: info.amount[0] for name, info in self._infos.items() if info.amount is not None}
        lines, rows = [], []
        for each in scored:
            position = self.state.n_kept
            self.state.n_kept += 1
            record = each.record
            lines.append((run_id, position, 0, record.case.id, int(each.failed), 0.0, encode_record(record)))
            scores = each.scores or {}
            if self._store.keeps_masked:
                # Details quote what was scored.
                scores = {name: self._masked(score) for name, score in scores.items()}
            rows.extend(written_scores(run_id, position, 0, scores, amounts))
        self._store.add_lines(lines)
        self._store.add_written_scores(rows)

    def _masked(self, score: Score) -> Score:
        detail = self._store.masked_data(msgspec.json.decode(encode_json(score.result.detail)))
        return structs.replace(score, result=type(score.result)(score.result.name, score.result.value, detail))

    def _begin_day(self, day: int) -> None:
        if day != self.state.day:
            self.state.day, self.state.spent_usd = day, 0.0
            self.state.slices = dict.fromkeys(self.state.slices, 0)
            self.close()
        if self._judged and not self._is_judging:
            # All batches of a day are one run for the judge, whose cap is on what a run spends.
            self._judging.enter_context(judge_run(self._metrics))
            self._is_judging = True

    def close(self) -> None:
        """End what is one run for a judge."""
        self._judging.close()
        self._is_judging = False

    def _begin_baseline(self) -> None:
        """A baseline of another run than before takes the place of what was usual."""
        if self.settings.baseline_name in ("", self.state.baseline_name):
            return
        self.state.baseline_name = self.settings.baseline_name
        for key, values in self.settings.baseline.items():
            state = self.series.pop(SeriesKey(*key), None)
            if state is None:
                continue
            self._alike[_kind_of(SeriesKey(*key))] -= 1
            anew = self._series(SeriesKey(*key), values[0] if values else 0.0)
            anew.statuses, anew.n, anew.total = state.statuses, state.n, state.total
            anew.histogram, anew.edges, anew.n_alerts = state.histogram, state.edges, state.n_alerts

    def _tidy(self) -> None:
        """Once an hour: forget what was kept for its time."""
        now = self._now()
        if now - self._tidied_at < _TIDY_EVERY_S:
            return
        self._tidied_at = now
        hour = self._hour()
        self._hours = {place: sums for place, sums in self._hours.items() if place[1] >= hour - 24}
        self._followed.forget(seen_before_day=int(now // _DAY_S) - SEEN_DAYS, before_hour=hour - HOURS_KEPT)
        keep = self.settings.keep
        if keep is None or keep.seconds is None:
            return
        seconds = keep.seconds
        # A day's run is over a day after it began, and its last trace is as old as was asked for that much later.
        old = [
            run
            for run in self._store.runs()
            if run.id.startswith(f"{self.id}-") and run.created_at < now - max(seconds, 0.0) - _DAY_S
        ]
        for run in old:
            self._store.delete_run(run.id)
        self._must_compact = self._must_compact or bool(old)
        if self._must_compact:
            try:
                self._store.compact()
                self._must_compact = False
            except StoreError as error:
                # Somebody reads the store: what was deleted leaves the file an hour later.
                self.errors = [*self.errors, str(error)][-_ERRORS_SHOWN:]

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

    def snapshot(self) -> Snapshot:
        """How it stands."""
        hour = self._hour()
        sums: dict[str, list[float]] = {}
        for (name, at), (n, total) in self._hours.items():
            if at > hour - 24:
                row = sums.setdefault(name, [0, 0.0, 0, 0.0])
                row[0], row[1] = row[0] + n, row[1] + total
                if at == hour:
                    row[2], row[3] = n, total
        rows = []
        for key, state in sorted(self.series.items()):
            n_day, day_total, n_hour, hour_total = sums.get(key.name, (0, 0.0, 0, 0.0))
            evidence = state.detector.evidence(share_of(key, self._alike[_kind_of(key)]))
            shown = structs.replace(state, statuses=dict(state.statuses), histogram=list(state.histogram))
            rows.append(
                SeriesRow(
                    key,
                    shown,
                    evidence,
                    int(n_hour),
                    hour_total / n_hour if n_hour else None,
                    int(n_day),
                    day_total / n_day if n_day else None,
                )
            )
        own = self.state
        return Snapshot(
            *(self.source, self._now(), dict(own.counts), rows, list(self.alerts), self.n_open),
            *(self.files.n_unread_bytes, own.last_scored_at, own.spent_usd, own.spent_usd_total),
            *(self.settings.sample, self.settings.by, list(self.errors)),
        )

    def info(self, metric: str) -> MetricInfo:
        """What a metric says of itself."""
        return self._infos.get(metric) or MetricInfo(metric, "custom", "")


def is_model_backed(metric: Any) -> bool:
    """Whether a model or a service scores."""
    return bool(
        getattr(metric, "asks_service", False)
        or getattr(metric, "gains_from_batches", False)
        or describe(metric).family == "multimodal"
    )


def _is_capped(score: Score) -> bool:
    reason = score.result.detail.get("reason")
    return isinstance(reason, str) and SPEND_CAP_REACHED in reason


def _values_of(record: Record, field: str) -> tuple[str, ...]:
    """The values of a field of a case; traces of spans have theirs in the metadata of the trace."""
    return field_values(record.case.metadata, field) or field_values(record.trace.metadata, field)


def _kind_of(key: SeriesKey) -> tuple[str, str, bool]:
    return (key.metric, key.kind, key.slice != WHOLE)


def _scores_of(records: Sequence[Record], metrics: Sequence[Any]) -> list[dict[str, Score]]:
    if not records or not metrics:
        return [{} for _ in records]
    # What metrics print must not get between the lines of a table.
    with redirect_stdout(sys.stderr):
        found = [case.scores for case in Run(iter(records), metrics, aggregated=False)]
    if len(found) == len(records):
        return found
    # One of them cannot be looked at: each by itself, so that none gets the scores of another.
    return [
        next((case.scores for case in Run([record], metrics, aggregated=False)), {}) if len(records) > 1 else {}
        for record in records
    ]

"""``agentunit score --follow`` and ``agentunit collect --score``: their options, and the loop around a follower."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import inf
from typing import Any

import click
from msgspec import structs

from agentunit.addons.watch._collect_session import Stop, is_loopback, stop_signals
from agentunit.addons.watch._follow_console import FollowScreen, snapshot_as_data
from agentunit.addons.watch._prometheus import MetricsServer, prometheus_text
from agentunit.addons.watch.alerting import AlertSender
from agentunit.addons.watch.collector.request_limits import receiver_limits
from agentunit.addons.watch.collector.spool import SpanSpool, SpoolError
from agentunit.addons.watch.drift import BASELINE_SIZE, FIRST_STAGE
from agentunit.addons.watch.following.follower import TraceFollower
from agentunit.addons.watch.following.series import FAILED, Alert
from agentunit.addons.watch.following.state import FollowSettings, Snapshot, follow_id_of
from agentunit.backends.services import configured
from agentunit.cli.follow_options import FollowChoice
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure, open_store
from agentunit.cli.score_options import ScoreOptions
from agentunit.cli.sending_notice import ask_before_sending
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.trace_inputs import refuse_missing, trace_files_from
from agentunit.core.records import Record
from agentunit.core.results import InputError, Score
from agentunit.engine.scoring.judging import plan_sending
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics.base import describe
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_json
from agentunit.reports.reported_run import Mask
from agentunit.reports.reporters import ReportError
from agentunit.store.opening import DEFAULT_PATH, sqlite_file
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunTaken
from agentunit.store.schema import StoreError
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.native import STDIN
from agentunit.urls import is_remote

_LOOK_EVERY_S, _LOOK_AT_LEAST_EVERY_S = 1.0, 30.0
_SHOW_EVERY_S = 1.0
_SLEEP_S = 0.1
_MOST_BASELINE = 20_000
EXIT_DRIFT = 1


class Scoring:
    """A follower with all that hangs on it: a store, a spool, an endpoint, exports, alerts. A context manager.

    ``report`` prints a line that stays, ``on_alert`` an alert.
    """

    def __init__(
        self,
        paths: Sequence[str],
        metrics: Sequence[Any],
        following: FollowChoice,
        *,
        store_path: str,
        by: str | None,
        yes: bool,
        report: Callable[[str], None],
        on_alert: Callable[[Alert], None] = lambda alert: None,
        format_name: str | None = None,
        expected: ExpectedAnswers | None = None,
        errors: Callable[[InputError], None] = lambda error: None,
        show_personal_data: bool = False,
    ) -> None:
        self.following = following
        self.mask = Mask(show_all=show_personal_data)
        self.n_worse = 0
        self.is_hurried: Callable[[], bool] = lambda: not following.once
        self._next_at = 0.0
        self._stack = ExitStack()
        self._report, self._shown_alert = report, on_alert
        self._otel: Any = None
        self._sender: AlertSender | None = None
        self._snapshot: Snapshot | None = None
        _refuse_metrics(metrics)
        ask_before_sending(plan_sending(metrics, [], n_cases=None, exact=False), yes=yes)
        try:
            store = self._stack.enter_context(open_store(store_path, must_exist=False))
            self._stack.enter_context(_held(store, paths))
            if following.keep is not None and following.keep.is_masked:
                store.masking.turn_on()
            spool = SpanSpool(_spool_folder(store_path, follow_id_of(paths)), max_bytes=receiver_limits().spool_bytes)
            self._stack.enter_context(spool)
            self.follower = TraceFollower(
                store,
                paths,
                metrics,
                _settings(store, following, by),
                spool,
                format=format_name,
                expected=expected,
                on_scored=self._scored,
                on_alert=self._alerted,
                on_error=errors,
            )
            self._stack.callback(self.follower.close)
            self._tell_of_short_baselines(metrics)
            self._tell_of_other_metrics(paths, metrics)
            self._begin_outputs()
        except (StoreError, SpoolError, ReportError) as error:
            self._stack.close()
            raise InputFailure(str(error)) from None
        except BaseException:
            self._stack.close()
            raise

    def _tell_of_short_baselines(self, metrics: Sequence[Any]) -> None:
        settings = self.follower.settings
        known = {metric for (metric, _), values in settings.baseline.items() if len(values) >= FIRST_STAGE}
        lacking = [metric.name for metric in metrics if metric.name not in known]
        if settings.baseline_name and lacking:
            self._report(
                f"run {settings.baseline_name} has fewer than {FIRST_STAGE} scores of {', '.join(lacking)}: "
                f"the first {settings.n_baseline:,} cases are the baseline of such metrics"
            )

    def _tell_of_other_metrics(self, paths: Sequence[str], metrics: Sequence[Any]) -> None:
        """Say that these are not the metrics of last time: what was scored then is not scored again."""
        n_scored = self.follower.state.counts.get("scored", 0)
        before = [name for name in self.follower.metrics_before if name != FAILED]
        now = [metric.name for metric in metrics]
        if not n_scored or not before:
            return
        if new := [name for name in now if name not in before]:
            scoring = shlex.join(["agentunit", "score", *paths, "-m", ",".join(new)])
            self._report(
                f"{', '.join(new)}: not scored before; {counted(n_scored, 'trace')} scored earlier stay without, "
                f"those that come are scored ('{scoring}' scores all that is there)"
            )
        if left := [name for name in before if name not in now]:
            self._report(f"{', '.join(left)}: scored before, not named now; shown as it stood")

    def __enter__(self) -> Scoring:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _begin_outputs(self) -> None:
        self._snapshot = self.follower.snapshot()
        if self.following.prometheus is not None:
            host, port = self.following.prometheus
            try:
                server = MetricsServer(host, port, self._prometheus)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise InputFailure(f"cannot listen on {host}, port {port} (--prometheus): {reason}") from None
            self._stack.callback(server.stop)
            self._report(f"metrics: {server.address}")
            if not is_loopback(host):
                self._report(f"warning: {host} is not loopback: whoever reaches this address can read the metrics")
        if self.following.otlp is not None:
            from agentunit.addons.watch._follow_events import OtelExport

            self._otel = OtelExport(self.following.otlp, lambda: self.snapshot, self.mask)
            self._stack.callback(self._otel.stop)
        if self.following.alert is not None:
            self._sender = AlertSender(self.following.alert, self._report)
            self._stack.callback(self._end_alerts, self._sender)
            for alert in self.follower.undelivered():
                self._sender.put(self._masked(alert))

    @property
    def snapshot(self) -> Snapshot:
        """How it stood after the last step."""
        assert self._snapshot is not None
        return self._snapshot

    def step(self, *, up_to: dict[str, int] | None = None, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Take in what is new; how many traces came."""
        try:
            n_new = self.follower.step(up_to=up_to, is_stopped=is_stopped)
            self._settle()
        except (StoreError, SpoolError) as error:
            raise InputFailure(f"{error}; what was scored until then is kept, the same command continues") from None
        self._snapshot = self.follower.snapshot()
        return n_new

    def step_when_due(self, is_stopped: Callable[[], bool]) -> None:
        """Take in what is new, unless looking would take more than a tenth of the time."""
        began = time.monotonic()
        if began >= self._next_at:
            self.step(is_stopped=is_stopped)
            self._next_at = time.monotonic() + min(_LOOK_AT_LEAST_EVERY_S, 9.0 * (time.monotonic() - began))

    def _prometheus(self) -> str:
        return prometheus_text(self.snapshot, self.mask, dict(self._sender.counts) if self._sender else {})

    def _scored(self, record: Record, scores: dict[str, Score]) -> None:
        if self._otel is not None:
            self._otel.on_scored(record, scores)

    def _alerted(self, alert: Alert) -> None:
        self.n_worse += alert.is_worse is not False
        self._shown_alert(alert)
        if self._otel is not None:
            self._otel.on_alert(alert)
        if self._sender is not None:
            self._sender.put(self._masked(alert))

    def _masked(self, alert: Alert) -> Alert:
        names = {name: self.mask.data(getattr(alert, name)) for name in ("slice", "slices", "cases", "source")}
        return structs.replace(alert, **names)

    def _settle(self) -> None:
        if self._sender is not None and (numbers := self._sender.settled()):
            self.follower.mark_delivered(numbers)

    def _end_alerts(self, sender: AlertSender) -> None:
        sender.stop(self.is_hurried)
        self._settle()


def follow_files(options: ScoreOptions, metrics: Sequence[Any]) -> None:
    """Follow files and folders until a signal, or with ``--once`` until all that is there was scored."""
    _refuse_with_follow(
        out=options.out, errors=options.errors_file, all=options.all_rows, strict=options.strict, jobs=options.jobs,
        engine=options.engine, resume=options.resume, plan=options.plan, again=options.again,
        group_by=options.group_by != "trace",
    )  # fmt: skip
    paths, following, as_json = options.files, options.following, options.as_json
    refuse_missing(paths)
    expected = trace_files_from((), options.format_name, options.group_by, options.expected).expected
    for path in paths:
        if path == STDIN or is_remote(path):
            raise click.UsageError(f"--follow reads files and folders of this machine; received {path}")
    n_before = 0
    with stop_signals() as stop:
        lines: list[str] = []
        screen: FollowScreen | None = None

        def report(line: str) -> None:
            lines.append(line) if screen is None else screen.print_line(line)

        def show_alert(alert: Alert) -> None:
            if screen is not None and not as_json:
                screen.alert(alert)

        with Scoring(
            paths,
            metrics,
            following,
            report=report,
            on_alert=show_alert,
            show_personal_data=options.show_personal_data,
            store_path=options.store_path,
            by=options.by,
            yes=options.choice.yes,
            format_name=options.format_name,
            expected=expected,
        ) as scoring:
            scoring.is_hurried = lambda: stop.is_asked or not following.once
            n_before = scoring.follower.state.counts.get("unreadable", 0)
            screen = FollowScreen(scoring.follower.info, scoring.mask, quiet=as_json, to_an_end=following.once)
            try:
                for line in lines:
                    screen.print_line(line)
                if not following.once:
                    screen.print_line(f"following {', '.join(paths)} (Ctrl-C ends it)")
                _loop(scoring, screen, stop)
            finally:
                screen.close()
            if as_json:
                click.echo(printable_json(scoring.mask.data(snapshot_as_data(scoring.snapshot))))
            else:
                screen.show(scoring.snapshot, last=True)
            n_unreadable = scoring.follower.state.counts.get("unreadable", 0) - n_before
            code = EXIT_DRIFT if scoring.n_worse else EXIT_ERRORS if n_unreadable > options.max_errors else 0
    if following.once and not stop.is_asked and code:
        remember_exit_code(code)
        raise click.exceptions.Exit(code)


def _refuse_with_follow(**said: Any) -> None:
    """Refuse options that mean nothing while a source is followed."""
    for name, value in said.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} does not go with --follow, which keeps its results in the store")


def _loop(scoring: Scoring, screen: FollowScreen, stop: Stop) -> None:
    follower = scoring.follower
    up_to = follower.files.sizes() if scoring.following.once else None
    said_waiting = False
    shown_at = -inf

    def is_stopped() -> bool:
        nonlocal shown_at
        # Between pieces of a long file, too.
        if time.monotonic() - shown_at >= _SHOW_EVERY_S:
            shown_at = time.monotonic()
            screen.show(follower.snapshot())
        return stop.is_asked

    while not stop.is_asked:
        began = time.monotonic()
        n_new = scoring.step(up_to=up_to, is_stopped=is_stopped)
        screen.show(scoring.snapshot)
        if n_new:
            continue
        n_waiting = follower.n_open + follower.files.n_waiting
        if scoring.following.once:
            if not n_waiting:
                return
            if not said_waiting:
                said_waiting = True
                screen.print_line("waiting for traces and files that may not be complete yet (at most a minute)")
        # Looking at a large folder takes long: not more than a tenth of the time.
        wait_s = min(_LOOK_AT_LEAST_EVERY_S, max(_LOOK_EVERY_S, 9.0 * (time.monotonic() - began)))
        ends_at = time.monotonic() + wait_s
        while not stop.is_asked and time.monotonic() < ends_at:
            time.sleep(_SLEEP_S)


def _refuse_metrics(metrics: Sequence[Any]) -> None:
    for metric in metrics:
        if metric.name == FAILED:
            raise click.UsageError(f"{FAILED} is the share of failed traces: give your metric another name")
        if describe(metric).stateful or describe(metric).aggregate == "last":
            raise click.UsageError(
                f"{metric.name} counts from case to case over one run, and what is followed has no end: leave it out"
            )


@contextmanager
def _held(store: RunStore, paths: Sequence[str]) -> Iterator[None]:
    """Hold what is followed for this process."""
    with ExitStack() as stack:
        try:
            stack.enter_context(store.recording(follow_id_of(paths)))
        except RunTaken:
            raise StoreError(
                f"{', '.join(paths)} is followed by another process, with the same store: "
                "stop it, or name another store with --store"
            ) from None
        yield


def _spool_folder(store_path: str, follow_id: str) -> str:
    """Where spans wait for the rest of their trace: beside the store."""
    file = sqlite_file(store_path) or DEFAULT_PATH
    folder, name = os.path.split(os.path.abspath(file))
    return os.path.join(folder, "follow", f"{name}-{follow_id}")


def _settings(store: RunStore, following: FollowChoice, by: str | None) -> FollowSettings:
    n_baseline, name, judge = BASELINE_SIZE, "", configured()
    values: dict[tuple[str, str], list[float]] = {}
    if following.baseline is not None and following.baseline.isdecimal():
        n_baseline = int(following.baseline)
        if not FIRST_STAGE <= n_baseline <= _MOST_BASELINE:
            raise click.BadParameter(
                f"a baseline has from {FIRST_STAGE} to {_MOST_BASELINE:,} cases; received {n_baseline}",
                param_hint="--baseline",
            )
    elif following.baseline is not None:
        name, values = _values_of_run(store, following.baseline)
    return FollowSettings(
        sample=following.sample,
        by=by,
        budget=following.budget,
        judge_usd=None if judge is None else judge.max_spend_usd,
        n_baseline=n_baseline,
        baseline=values,
        baseline_name=name,
        keep=following.keep,
    )


def _values_of_run(store: RunStore, reference: str) -> tuple[str, dict[tuple[str, str], list[float]]]:
    run = run_from_store(store, reference, labels=False)
    values: dict[tuple[str, str], list[float]] = {}
    for metric, rows in run.metrics.items():
        for row in rows:
            if row.value is not None:
                some = values.setdefault((metric, row.backend), [])
                if len(some) < _MOST_BASELINE:
                    some.append(row.value)
    values[FAILED, "trace"] = [float(record.failed) for record in run.records][:_MOST_BASELINE]
    if all(len(some) < FIRST_STAGE for some in values.values()):
        raise click.BadParameter(
            f"run {run.header.label} has fewer than {FIRST_STAGE} cases: too few for a baseline",
            param_hint="--baseline",
        )
    return run.header.id, values

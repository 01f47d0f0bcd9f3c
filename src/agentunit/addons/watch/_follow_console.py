"""A followed source in the terminal: a table that is drawn anew in place, or lines where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from msgspec import structs

from agentunit.addons.watch.following.series import FAILED, WHOLE, Alert
from agentunit.addons.watch.following.state import SeriesRow, Snapshot
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import plain_table
from agentunit.reports.figures import DIRECTION_MARK, counted, quantity
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask
from agentunit.reports.terminal import Terminal, Text

_LINE_EVERY_S = 10.0
_MOST_SLICES, _MOST_ALERTS, _CASES_NAMED, _SLICES_NAMED = 8, 5, 5, 5
_WATCHED, _CLOSE = 0.02, 0.1


def describe_alert(alert: Alert, mask: Mask) -> str:
    """An alert as a sentence.

    >>> alert = Alert(1, 0.0, "cost", "recorded", "", "value", "rose", 0.01, 0.02, 86400.0, 40, "USD", True, ["q7"])
    >>> describe_alert(alert, Mask())
    'cost [recorded] rose from $0.0100 to $0.0200 since 1970-01-02 00:00 UTC (40 cases), worse; such as q7'
    """
    what = f"the share of cases with a score of {alert.metric}" if alert.kind == "scored" else alert.metric
    backend = f" [{alert.backend}]" if alert.backend and alert.metric != FAILED else ""
    where = f" for {mask.name(alert.slice)}" if alert.slice != WHOLE else ""
    judged = {True: ", worse", False: ", better", None: ""}[alert.is_worse]
    cases = ", ".join(alert.cases[:_CASES_NAMED])
    since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(alert.since))
    levels = f"from {quantity(alert.before, alert.unit)} to {quantity(alert.after, alert.unit)}"
    told = f"{what}{backend}{where} {alert.direction} {levels} since {since} ({counted(alert.n_since, 'case')}){judged}"
    if alert.slices:
        told += f"; shown by {', '.join(map(mask.name, alert.slices[:_SLICES_NAMED]))}"
        told += f" and {len(alert.slices) - _SLICES_NAMED} more" if len(alert.slices) > _SLICES_NAMED else ""
    if alert.part_of is not None:
        told += f"; part of alert {alert.part_of}"
    return printable_line(told + (f"; such as {cases}" if cases else ""), 1000)


def describe_earlier(alert: Alert, mask: Mask) -> str:
    """An alert of an earlier call: without it a level that was called worse then would look usual now."""
    raised = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(alert.raised_at))
    return f"last alert ({raised}; baseline learned again since): {describe_alert(alert, mask)}"


def describe_counts(snapshot: Snapshot) -> str:
    """How many traces came and what became of them, in a line."""
    counts = snapshot.counts
    parts = [f"{counted(counts.get('arrived', 0), 'trace')}", f"{counts.get('scored', 0):,} scored"]
    for what, shown in (
        ("not_sampled", "{:,} not in the sample"),
        ("failed", "{:,} failed"),
        ("repeated", "{:,} seen before"),
        ("without_agent", "{:,} without an agent"),
        ("late_spans", "{:,} late spans"),
        ("unreadable", "{:,} unreadable"),
    ):
        if counts.get(what):
            parts.append(shown.format(counts[what]))
    if snapshot.n_open:
        parts.append(f"{snapshot.n_open:,} open")
    if snapshot.n_unread_bytes >= 1 << 20:
        parts.append(f"{snapshot.n_unread_bytes >> 20:,} MiB to read")
    if snapshot.spent_usd_total:
        parts.append(f"judge {quantity(snapshot.spent_usd, 'USD')} today")
    return " · ".join(parts)


class FollowScreen:
    """Shows snapshots as they come: on a terminal in place, else a line now and then when something has changed.

    A ``quiet`` one shows none: standard output is for a program. Lines of progress ``to_an_end`` go to standard error.
    """

    def __init__(
        self, info: Callable[[str], MetricInfo], mask: Mask, *, quiet: bool = False, to_an_end: bool = False
    ) -> None:
        self._info, self._mask, self._is_quiet, self._has_end = info, mask, quiet, to_an_end
        self._console = Terminal()
        is_watched = sys.stdout.isatty() and not quiet
        self._live = _Drawn(self._console) if is_watched else None
        self._shown = ""
        self._told: set[int] = set()
        self._next_at = 0.0

    def show(self, snapshot: Snapshot, *, last: bool = False) -> None:
        """Show how it stands; ``last``: whatever was shown before."""
        if self._is_quiet:
            return
        if self._live is not None and not last:
            self._live.draw(follow_lines(snapshot, self._info, self._mask, self._console))
            return
        line = describe_counts(snapshot)
        if not last and (line == self._shown or time.monotonic() < self._next_at):
            return
        self._shown, self._next_at = line, time.monotonic() + _LINE_EVERY_S
        if last:
            self.close()
            if snapshot.rows:
                # Alerts were printed when they came. Those of earlier calls explain a baseline that was learned again.
                without_alerts = structs.replace(snapshot, alerts=[])
                print("\n".join(follow_lines(without_alerts, self._info, self._mask, self._console)))
                earlier = [alert for alert in snapshot.alerts if alert.number not in self._told]
                if earlier:
                    self.print_line(describe_earlier(earlier[0], self._mask))
                return
        if self._has_end and not last:
            print(line, file=sys.stderr)
        else:
            self.print_line(line)

    def alert(self, alert: Alert) -> None:
        """Print an alert, which stays."""
        self._told.add(alert.number)
        self.print_line(f"ALERT: {describe_alert(alert, self._mask)}")

    def print_line(self, line: str) -> None:
        """Print a line that stays; on standard error where the output is for a program."""
        if self._is_quiet:
            print(printable_line(line, 1000), file=sys.stderr)
            return
        drawn = self._live.erase() if self._live is not None else []
        self._console.print(printable_line(line, 1000), soft_wrap=True)
        if self._live is not None:
            self._live.draw(drawn)

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.erase()
            self._live = None


class _Drawn:
    """Lines that are drawn in place: what was drawn before is erased."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lines: list[str] = []

    def draw(self, lines: list[str]) -> None:
        """Draw lines instead of those that are there."""
        erasing = self._erasing()
        # What scrolls away cannot be erased.
        self._lines = lines[: self._terminal.height - 1]
        # In one go: a screen that is empty in between would flicker.
        self._terminal.file.write(erasing + "".join(f"{line}\n" for line in self._lines))
        self._terminal.file.flush()

    def erase(self) -> list[str]:
        """Take away what was drawn, and give it back."""
        self._terminal.file.write(self._erasing())
        self._terminal.file.flush()
        erased, self._lines = self._lines, []
        return erased

    def _erasing(self) -> str:
        return f"\x1b[{len(self._lines)}F\x1b[J" if self._lines else ""


def follow_lines(snapshot: Snapshot, info: Callable[[str], MetricInfo], mask: Mask, terminal: Terminal) -> list[str]:
    """The table: a row for each metric and backend, the slices that come nearest to an alert, and the last alerts."""
    # Short, so that names of metrics stand on one line of a terminal of 80 columns.
    numbers = ("1 h", "24 h", "all", "cases", "baseline")
    table = plain_table("metric", "backend", *numbers, "change", right=numbers, fixed=("backend", *numbers, "change"))
    whole = [row for row in snapshot.rows if row.key.slice == WHOLE and row.key.kind == "value"]
    lacking = {row.key.metric: row for row in snapshot.rows if row.key.kind == "scored" and row.evidence >= _WATCHED}
    named: set[str] = set()
    for row in whole:
        if row.key.backend:
            named.add(row.key.metric)
            _add_row(table.add_row, row, info(row.key.metric), row.key.metric)
    for row in lacking.values():
        _add_row(table.add_row, row, MetricInfo(row.key.metric, "", "", range=(0.0, 1.0)), f"{row.key.metric}: scored")
    means = {(row.key.metric, row.key.backend): row.state.mean for row in whole}

    def interest(row: SeriesRow) -> tuple[float, float, float]:
        """What changed or may have comes first, then what differs most from the whole."""
        mean, usual = row.state.mean or 0.0, means.get((row.key.metric, row.key.backend)) or 0.0
        return (-row.state.n_alerts, -round(row.evidence, 2), -abs(mean - usual) / (abs(usual) + 0.1))

    sliced = sorted((row for row in snapshot.rows if row.key.slice != WHOLE and row.state.n), key=interest)
    for row in sliced[:_MOST_SLICES]:
        _add_row(table.add_row, row, info(row.key.metric), f"{row.key.metric} · {mask.name(row.key.slice)}")
    parts = [Text(describe_counts(snapshot))]
    skipped = {row.key.metric: row.state.statuses["skipped"] for row in whole if "skipped" in row.state.statuses}
    if skipped:
        named_skips = ", ".join(f"{metric} {n:,}" for metric, n in skipped.items())
        parts.append(Text(printable_line(f"left out for the budget: {named_skips}")))
    parts += [Text(printable_line(f"unreadable: {mask.text(error)}", 300)) for error in snapshot.errors[-2:]]
    parts += [Text(f"ALERT: {describe_alert(alert, mask)}") for alert in snapshot.alerts[:_MOST_ALERTS]]
    return [*terminal.rendered(table), *terminal.rendered(Text.stacked(parts))]


def _add_row(add_row: Callable[..., None], row: SeriesRow, info: MetricInfo, name: str) -> None:
    unit = "score" if row.key.kind == "scored" else info.unit
    detector = row.state.detector
    baseline = detector.baseline_mean
    add_row(
        Text(printable_line(name + DIRECTION_MARK[info.direction], 60)),
        Text(printable_line(row.key.backend, 20)),
        _shown(row.hour_mean, unit),
        _shown(row.day_mean, unit),
        _shown(row.state.mean, unit),
        f"{row.state.n:,}",
        _shown(baseline, unit),
        _describe_evidence(row),
    )


def _describe_evidence(row: SeriesRow) -> str:
    """How near an alert is, in words."""
    detector = row.state.detector
    if not row.state.n:
        return "no scores"
    if not detector.is_watching:
        return "learning"
    return "close to an alert" if row.evidence >= _CLOSE else "some signs" if row.evidence >= _WATCHED else "none"


def _shown(value: float | None, unit: str) -> str:
    return "–" if value is None else quantity(value, unit)


def snapshot_as_data(snapshot: Snapshot) -> Mapping[str, object]:
    """A snapshot for other programs."""
    return {
        "source": snapshot.source,
        "counts": snapshot.counts,
        "series": [
            {
                "metric": row.key.metric,
                "backend": row.key.backend,
                "slice": row.key.slice,
                "kind": row.key.kind,
                "n": row.state.n,
                "mean": row.state.mean,
                "baseline": row.state.detector.baseline_mean,
                "last_hour": row.hour_mean,
                "last_day": row.day_mean,
                "evidence": row.evidence,
                "statuses": row.state.statuses,
                "alerts": row.state.n_alerts,
            }
            for row in snapshot.rows
        ],
        "alerts": [alert.as_data() for alert in snapshot.alerts],
    }

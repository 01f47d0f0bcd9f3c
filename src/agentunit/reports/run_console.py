"""A stored run in the terminal: its facts, its table, and the cases to look at first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentunit.core.results import MetricSummary, RunSummary
from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import CaseView, view_case, worst_repeat
from agentunit.reports.console import plain_table, print_causes, print_line, print_run
from agentunit.reports.decision_console import print_decision, print_gates
from agentunit.reports.failure_groups import describe_groups
from agentunit.reports.figures import describe_failed, quantity
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.run_facts import origin_facts
from agentunit.reports.slice_table import print_slices
from agentunit.store.runs import RunHeader

_WORST_SHOWN = 5
_HEADLINES = 3
_WIDE, _NARROW = 90, 76
_NAME_WIDTH, _SHORT_NAME_WIDTH = 14, 6


def print_stored_run(
    reported: ReportedRun,
    console: Console,
    *,
    next_steps: Sequence[str] = (),
    all_rows: bool = True,
) -> None:
    """Print a run: header, metric table, slices, gates, failed cases, worst cases, the decision, next commands."""
    run, header = reported.run, reported.run.header
    title = Text(printable_line(header.name), style="bold")
    facts = (
        f"run {printable_line(header.id)}",
        _local_time(header.created_at),
        f"{_done(header)} done, {header.status}",
    )
    title.append(f"   {' · '.join(facts)}", style="not bold dim")
    console.print(title, soft_wrap=True)
    if origin := origin_facts(header):
        print_line(printable_line(" · ".join(f"{name} {text}" for name, text in origin)), console, "dim")
    console.print()
    gated = {verdict.gate.metric for verdict in reported.decision.gates}
    print_run(reported.summary, reported.infos, console, all_rows=all_rows, gated=gated)
    for table in reported.slices:
        print_slices(table, reported.infos, console, all_rows=all_rows)
    print_gates(reported.decision, console)
    if run.n_failed:
        console.print(f"\n[bold red]The agent failed[/bold red] {describe_failed(run)}", highlight=False)
        for line in describe_groups(reported.failures):
            print_line(f"  {line}", console)
    print_causes(reported.causes, console)
    worst = _worst_views(reported)
    if worst:
        console.print("\n[bold]Worst cases[/bold]")
        console.print(_case_table(worst, reported))
    print_decision(reported.decision, console, *map(printable_line, next_steps or ("agentunit runs",)))


def print_runs(
    runs: Sequence[tuple[RunHeader, list[MetricSummary]]], infos: dict[str, MetricInfo], console: Console
) -> None:
    """Print a listing of runs, one per line."""
    # In a narrow window the names of the runs come before their scores; the id says when a run began.
    is_wide, is_narrow = console.width >= _WIDE, console.width < _NARROW
    fixed = ("run", "done", "status") if is_narrow else ("run", "when", "done", "failed", "status")
    columns = ("run", "name", *fixed[1:], *(("metrics",) if is_wide else ()))
    table = plain_table(*columns, right=("done", "failed"), fixed=fixed)
    for header, headlines in runs:
        name = Text(printable_line(header.name, 40))
        for key, value in header.tags.items():
            name.append(f" {printable_line(f'{key}={value}', 40)}", style="dim")
        cells = {
            "run": Text(printable_line(header.id)),
            "name": name,
            "when": Text(_local_time(header.created_at)[0 if is_wide else 5 :]),
            "done": Text(_done(header)),
            "failed": Text(str(header.n_failed), style="red" if header.n_failed else "dim"),
            "status": Text(header.status, style="" if header.status == "finished" else "yellow"),
            "metrics": Text(printable_line(_describe_headlines(headlines, infos))),
        }
        table.add_row(*(cells[column] for column in columns))
    table.columns[1].min_width = _NAME_WIDTH if is_wide else _SHORT_NAME_WIDTH
    console.print(table)


def headline_rows(summary: RunSummary, infos: dict[str, MetricInfo]) -> list[MetricSummary]:
    """The few metrics that say most about a run: scores one may decide on first, then what it cost."""

    def rank(row: MetricSummary) -> int:
        scores = infos[row.metric].unit == "score"
        return (0 if scores else 1) if row.status == "ok" else 2

    # A metric is shown by the scores that decide, however many informational ones are beside them.
    scored = sorted((row for row in summary.metrics if row.mean is not None), key=lambda row: row.status != "ok")
    first_of_metric = list({row.metric: row for row in reversed(scored)}.values())[::-1]
    return sorted(first_of_metric, key=rank)[:_HEADLINES]


def _describe_headlines(rows: Iterable[MetricSummary], infos: dict[str, MetricInfo]) -> str:
    """The headline of a run in one line."""
    return ", ".join(
        f"{row.metric} {quantity(row.mean, infos[row.metric].unit)}" for row in rows if row.mean is not None
    )


def _local_time(moment_s: float) -> str:
    """A moment on this machine's clock."""
    return datetime.fromtimestamp(moment_s).astimezone().strftime("%Y-%m-%d %H:%M")


def _done(header: RunHeader) -> str:
    planned = "" if header.n_planned is None else f"/{header.n_planned:,}"
    return f"{header.n_done:,}{planned}"


def _worst_views(reported: ReportedRun) -> list[CaseView]:
    views = []
    for case_id in list(reported.worst_cases())[:_WORST_SHOWN]:
        repeats = [case for case in reported.case(case_id) if not case.failed]
        if repeats:
            views.append(view_case(worst_repeat(repeats, reported.infos), brief=True))
    return views


def _case_table(views: Sequence[CaseView], reported: ReportedRun) -> Padding:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for view in views:
        lines = Text()
        if view.query:
            lines.append(printable_line(view.query, 160) + "\n", style="dim")
        if view.recorded:
            lines.append(printable_line(view.answer or "(no answer)", 160) + "\n")
        lines.append(_low_scores(view, reported), style="dim")
        table.add_row(Text(printable_line(view.case_id), style="bold"), lines)
    return Padding(table, (0, 0, 0, 2), expand=False)


def _low_scores(view: CaseView, reported: ReportedRun) -> str:
    low = [
        f"{score.metric} {quantity(score.value, 'score')}"
        for score in view.scores
        if score.value is not None and score.status == "ok" and reported.unit(score.metric) == "score"
    ]
    return printable_line(", ".join(low))

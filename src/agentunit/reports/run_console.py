"""A stored run in the terminal: its facts, its table, and the cases to look at first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import CaseView, view_case, worst_repeat
from agentunit.reports.console import plain_table, print_line, print_next, print_run
from agentunit.reports.decision_console import VERDICT_STYLE, print_details, print_verdict_block
from agentunit.reports.figures import quantity
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.run_facts import describe_beside, origin_facts
from agentunit.reports.terminal import Column, Terminal, Text, TextTable
from agentunit.store.runs import RunHeader

_WORST_SHOWN = 5
# The widths in which names and metrics may be broken into lines, and what a narrow window leaves out first.
_BROKEN_WIDTHS = {"name": 10, "metrics": 20}
_LEFT_OUT = ("metrics", "failed", "when", "done")


def print_stored_run(
    reported: ReportedRun,
    console: Terminal,
    *,
    next_steps: Sequence[str] = (),
    all_rows: bool = True,
) -> None:
    """Print a run: the verdict and what is wrong, figures, gates, what was compared, its facts, next commands."""
    header = reported.run.header
    title = Text(printable_line(header.name), style="bold")
    facts = (
        f"run {printable_line(header.id)}",
        _local_time(header.created_at),
        f"{_done(header)} done, {header.status}",
    )
    title.append(f"   {' · '.join(facts)}", style="not bold dim")
    decision = reported.decision
    beside = [describe_beside(*each, _local_time(each[0].made_at)) for each in reported.beside]
    print_verdict_block(decision, reported.findings, console, beside=beside, all_rows=all_rows)
    gated = {verdict.gate.metric for verdict in decision.gates}
    print_run(reported.summary, reported.infos, console, all_rows=all_rows, gated=gated)
    if reported.slices:
        from agentunit.reports.slice_table import print_slices

    for table in reported.slices:
        print_slices(table, reported.infos, console, all_rows=all_rows)
    print_details(decision, console, all_rows=all_rows)
    worst = _worst_views(reported) if all_rows else []
    if worst:
        console.print("\nWorst cases", style="bold")
        console.print(_case_table(worst, reported), indent=2)
    console.print(title, soft_wrap=True)
    if origin := origin_facts(header):
        print_line(printable_line(" · ".join(f"{name} {text}" for name, text in origin)), console, "dim")
    steps = next_steps or ("agentunit runs",)
    print_next([decision.way_out] if decision.way_out else map(printable_line, steps), console)


def print_runs(
    runs: Sequence[tuple[RunHeader, Mapping[str, float]]],
    verdicts: Mapping[str, str | None],
    infos: dict[str, MetricInfo],
    console: Terminal,
) -> None:
    """Print a listing of runs with means of theirs, one per line. ``verdicts`` are of their own decisions, by id."""
    rows = [_listed(header, means, verdicts.get(header.id), infos) for header, means in runs]
    widths = {column: max(len(column), *(cell.cell_len for cell in cells)) for column, cells in _columns(rows)}
    columns = list(widths)
    for column in _LEFT_OUT:
        # The id says when a run began.
        if sum(min(widths[each], _BROKEN_WIDTHS.get(each, widths[each])) + 2 for each in columns) <= console.width:
            break
        columns.remove(column)
    fixed = [column for column in columns if column not in _BROKEN_WIDTHS]
    table = plain_table(*columns, right=("done", "failed"), fixed=fixed)
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    table.columns[1].min_width = min(widths["name"], _BROKEN_WIDTHS["name"])
    console.print(table)


def _columns(rows: Sequence[Mapping[str, Text]]) -> Iterable[tuple[str, list[Text]]]:
    for column in rows[0]:
        yield column, [row[column] for row in rows]


def _listed(
    header: RunHeader, means: Mapping[str, float], verdict: str | None, infos: dict[str, MetricInfo]
) -> dict[str, Text]:
    """The cells of a run in a listing, by their headings."""
    name = Text(printable_line(header.name, 40))
    for key, value in header.tags.items():
        name.append(f" {printable_line(f'{key}={value}', 40)}", style="dim")
    return {
        "run": Text(printable_line(header.id)),
        "name": name,
        "when": Text(_local_time(header.created_at)[5:]),
        "done": Text(_done(header)),
        "failed": Text(str(header.n_failed), style="red" if header.n_failed else "dim"),
        "status": Text(header.status, style="" if header.status == "finished" else "yellow"),
        "verdict": Text((verdict or "–").upper(), style=VERDICT_STYLE.get(verdict, "bold red")),
        "metrics": Text(printable_line(_describe_means(means, infos))),
    }


def _describe_means(means: Mapping[str, float], infos: dict[str, MetricInfo]) -> str:
    """The headline of a run in one line."""
    return ", ".join(f"{metric} {quantity(mean, infos[metric].unit)}" for metric, mean in means.items())


def _local_time(moment_s: float) -> str:
    """A moment on this machine's clock."""
    return datetime.fromtimestamp(moment_s).astimezone().strftime("%Y-%m-%d %H:%M")


def _done(header: RunHeader) -> str:
    planned = "" if header.n_planned is None else f"/{header.n_planned:,}"
    return f"{header.n_done:,}{planned}"


def _worst_views(reported: ReportedRun) -> list[CaseView]:
    views = []
    worst = list(reported.worst_cases())[:_WORST_SHOWN]
    cases = reported.cases_of(worst)
    for case_id in worst:
        repeats = [case for case in cases.get(case_id, ()) if not case.failed]
        if repeats:
            views.append(view_case(worst_repeat(repeats, reported.infos), brief=True))
    return views


def _case_table(views: Sequence[CaseView], reported: ReportedRun) -> TextTable:
    table = TextTable(Column(no_wrap=True), Column())
    for view in views:
        lines = Text()
        if view.query:
            lines.append(printable_line(view.query, 160) + "\n", style="dim")
        if view.recorded:
            lines.append(printable_line(view.answer or "(no answer)", 160) + "\n")
        lines.append(_low_scores(view, reported), style="dim")
        table.add_row(Text(printable_line(view.case_id), style="bold"), lines)
    return table


def _low_scores(view: CaseView, reported: ReportedRun) -> str:
    low = [
        f"{score.metric} {quantity(score.value, 'score')}"
        for score in view.scores
        if score.value is not None and score.status == "ok" and reported.unit(score.metric) == "score"
    ]
    return printable_line(", ".join(low))

"""Suspects in the terminal: the runs that differ most from their peers, why, by cause, and what could not be told."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from msgspec import structs
from rich.console import Console
from rich.text import Text

from agentunit.engine.suspects.ranking import FEWEST_PEERS, MOST_EXPLAINED, Suspect, SuspectReport
from agentunit.reports.console import ROWS_SHOWN, print_line, print_next
from agentunit.reports.failure_groups import Cause, FailureGroup, cause_groups, describe_groups
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask

_LONGEST_LINE = 320
_TOOLS_NAMED = 12
_TASK_WORDS = {
    "field": "the field that you name",
    "id": "their ids",
    "question": "the words of their questions",
    "meaning": "the meaning of their questions",
}
WORTH = "on public runs on which nothing was designed it finds failed ones with AUROC 0.78 and 0.81 (docs/validity.md)"


def masked_report(report: SuspectReport, mask: Mask, n_shown: int | None) -> SuspectReport:
    """The report with personal data masked, and its first ``n_shown`` runs; ids stay, or none could be looked up."""
    runs = report.runs if n_shown is None else report.runs[:n_shown]
    texts = [each.text for run in runs for each in run.evidence] + [each.cause for run in runs for each in run.evidence]
    shown = iter(mask.data(texts))
    by_text = dict(zip(texts, shown, strict=True))
    masked = [
        structs.replace(
            run,
            evidence=tuple(
                structs.replace(each, text=by_text[each.text], cause=by_text[each.cause]) for each in run.evidence
            ),
        )
        for run in runs
    ]
    return structs.replace(report, runs=masked)


def suspect_groups(report: SuspectReport, reference: str, mask: Mask) -> list[FailureGroup]:
    """The suspects by cause: what tells most about each."""
    causes = (
        Cause(run.case_id, run.repeat, first.kind, first.cause, first.text, run.slices, run.source)
        for run in report.suspects
        for first in run.evidence[:1]
    )
    return cause_groups(causes, reference, mask.data, slice_counts=report.slice_counts, n_records=report.n_runs)


def print_suspects(
    report: SuspectReport,
    shown: SuspectReport,
    groups: Sequence[FailureGroup],
    console: Console,
    *,
    next_steps: Iterable[str] = (),
) -> None:
    """Print the runs of ``shown``, the causes of all suspects of ``report``, what tools do, and what was not ranked."""
    n_suspects = len(report.suspects)
    title = Text("Suspects", style="bold")
    ranked = f"{counted(len(report.runs), 'run')} of {counted(report.n_tasks, 'task')} ranked"
    title.append(f"   {ranked}, {n_suspects:,} differ from most of their peers", style="not bold dim")
    console.print(title, soft_wrap=True)
    several = len({run.source for run in report.runs}) > 1
    for run in shown.runs:
        _print_run(run, console, with_source=several)
    if len(shown.runs) < len(report.runs):
        console.print(
            f"… and {len(report.runs) - len(shown.runs):,} more (--all shows them)", style="dim", highlight=False
        )
    if groups:
        first = f"   [dim]the first {MOST_EXPLAINED:,} suspects[/dim]" if n_suspects > MOST_EXPLAINED else ""
        console.print(f"\n[bold]By cause[/bold]{first}", highlight=False)
        for line in describe_groups(groups):
            print_line(f"  {line}", console)
    _print_tools(report, console)
    _print_unranked(report, console)
    if report.runs:
        console.print()
        by = " and ".join(_TASK_WORDS[each] for each in _TASK_WORDS if report.task_by.get(each))
        print_line(f"runs of one task were told by {by}; {WORTH}", console, "dim")
        print_line(
            "steps and length: percentiles within this input; they tell how hard a task is, not how it went",
            console,
            "dim",
        )
    print_next(next_steps, console)


def _print_run(run: Suspect, console: Console, *, with_source: bool) -> None:
    head = Text(f"\n{run.rank:>3}  ", style="dim")
    head.append(printable_line(run.case_id, 120), style="bold")
    if run.repeat:
        head.append(f" repeat {run.repeat + 1}", style="dim")
    if with_source and run.source:
        head.append(f" in {printable_line(os.path.basename(run.source), 80)}", style="dim")
    head.append(f"   {run.suspicion:.2f}", style="red" if run.is_suspect else "")
    head.append(f" · {run.basis} against {counted(run.n_peers, 'peer')}", style="dim")
    head.append(f" · steps p{run.steps_percentile:.0f}, length p{run.length_percentile:.0f}", style="dim")
    console.print(head, soft_wrap=True)
    for each in run.evidence:
        print_line(f"       {printable_line(each.text, _LONGEST_LINE)}", console)
    if not run.evidence:
        print_line("       does as its peers do", console, "dim")


def _print_tools(report: SuspectReport, console: Console) -> None:
    if not report.tools:
        return
    console.print("\n[bold]Tools[/bold]   [dim]only calls that change something are compared[/dim]")
    for mark, words in (
        ("write", "change something"),
        ("unknown", "not known, so not compared"),
        ("read", "only read"),
    ):
        tools = [each for each in report.tools if each.mark == mark]
        if not tools:
            continue
        named = [
            f"{printable_line(each.tool, 60)} ({each.source})"
            if each.source != "name"
            else printable_line(each.tool, 60)
            for each in tools
        ]
        more = f" and {len(named) - _TOOLS_NAMED} more" if len(named) > _TOOLS_NAMED else ""
        print_line(f"  {words}: {', '.join(named[:_TOOLS_NAMED])}{more}", console)
    unknown = [each.tool for each in report.tools if each.mark == "unknown"]
    example = unknown[0] if unknown else report.tools[0].tool
    print_line(
        f"  by their names unless it says how; --mark {printable_line(example, 60)}=write (or =read) says otherwise",
        console,
        "dim",
    )


def _print_unranked(report: SuspectReport, console: Console) -> None:
    if not report.unranked:
        return
    console.print("\n[bold]Not ranked[/bold]")
    for each in report.unranked:
        such = ", ".join(printable_line(case, 60) for case in each.first_cases)
        print_line(f"  {counted(each.n_runs, 'run')}: {each.reason} (such as {such})", console)
    if not report.runs:
        print_line(
            f"  a verdict rests on at least {FEWEST_PEERS} other runs of the same task: record repeats "
            "(agentunit run --repeats 4), or say with --task metadata.FIELD which runs are of one task",
            console,
        )


def rows_shown(all_rows: bool) -> int | None:
    """How many runs are printed; ``None``: all."""
    return None if all_rows else ROWS_SHOWN

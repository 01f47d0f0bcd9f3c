"""Suspects in the terminal: the runs that differ most from their peers, why, by cause, and what could not be told."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import structs

from agentunit.addons.review.suspects.ranking import FEWEST_PEERS, MOST_EXPLAINED, Suspect, SuspectReport
from agentunit.addons.review.suspects.suspect_evidence import SuspectEvidence
from agentunit.core.results import RunFinding
from agentunit.core.score_block import Cause
from agentunit.engine.deciding.run_findings import CauseGroups
from agentunit.reports.console import ROWS_SHOWN, print_line, print_next
from agentunit.reports.failure_groups import describe_groups
from agentunit.reports.figures import counted
from agentunit.reports.finding_text import with_commands
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask
from agentunit.reports.terminal import Terminal, Text

# Three arguments in which two calls differ.
_LONGEST_LINE = 640
_LINES_SHOWN = 3
_TOOLS_NAMED = 12
_TASK_WORDS = {
    "field": "the field that you name",
    "id": "their ids",
    "question": "the words of their questions",
    "meaning": "the meaning of their questions",
}
WORTH = (
    "failed runs are ranked first with AUROC 0.77 on tau-bench retail (357 runs), 0.94 on tau2 retail with Claude Code "
    "(373) and 0.78 on GSM8K (5,276 answers), public sets that were measured once; docs/validity.md has held-out runs"
)
"""Figures of ``benchmarks/validity/recorded_suspects.json``, of sets that no choice was made with."""


def masked_report(report: SuspectReport, mask: Mask, n_shown: int | None) -> SuspectReport:
    """The report with personal data masked, and its first ``n_shown`` runs; ids stay, or none could be looked up."""
    runs = report.runs if n_shown is None else report.runs[:n_shown]
    said = (text for run in runs for each in run.evidence for text in (each.text, each.cause))
    kinds = (slice for run in runs for slice in run.slices)
    texts = list(dict.fromkeys((*said, *kinds, *report.slice_counts)))
    by_text = dict(zip(texts, mask.data(texts), strict=True))
    counts: Counter[str] = Counter()
    for slice, count in report.slice_counts.items():
        counts[by_text[slice]] += count
    masked = [
        structs.replace(
            run,
            evidence=tuple(
                structs.replace(each, text=by_text[each.text], cause=by_text[each.cause]) for each in run.evidence
            ),
            slices=tuple(map(by_text.__getitem__, run.slices)),
        )
        for run in runs
    ]
    return structs.replace(report, runs=masked, slice_counts=dict(counts))


def suspect_groups(
    report: SuspectReport, reference: str, mask: Mask, show_options: Sequence[str] = ()
) -> list[RunFinding]:
    """The suspects by cause: what tells most about each. ``reference`` is empty where none could be shown."""
    groups = CauseGroups()
    for run in report.suspects:
        found = _cause(run)
        if found is not None:
            repeat = run.repeat if run.n_repeats > 1 else None
            source = run.source if reference else ""
            groups.add(Cause(run.case_id, repeat, found.kind, found.cause, found.text, run.slices, source))
    return mask.view(with_commands(groups.findings(report.n_runs, report.slice_counts), reference, show_options))


def _cause(run: Suspect) -> SuspectEvidence | None:
    """The evidence that tells why: that another answer came out is known of all runs whose answers are compared."""
    first = next(iter(run.evidence), None)
    if first is None or first.kind != "other answer":
        return first
    return next((each for each in run.evidence if each.kind == "failed call"), first)


def print_suspects(
    report: SuspectReport,
    shown: SuspectReport,
    groups: Sequence[RunFinding],
    console: Terminal,
    *,
    next_steps: Iterable[str] = (),
) -> None:
    """Print the runs of ``shown``, the causes of all suspects of ``report``, what tools do, and what was not ranked."""
    n_suspects = len(report.suspects)
    title = Text("Suspects", style="bold")
    ranked = f"{counted(len(report.runs), 'run')} of {counted(report.n_tasks, 'task')} ranked"
    title.append(f"   {ranked}, {_differ(n_suspects)}", style="not bold dim")
    console.print(title, soft_wrap=True)
    several = len({run.source for run in report.runs}) > 1
    for run in shown.runs:
        _print_run(run, console, with_source=several)
    if len(shown.runs) < len(report.runs):
        console.print(f"… and {len(report.runs) - len(shown.runs):,} more (--why shows them)", style="dim")
    if groups:
        first = f"   the first {MOST_EXPLAINED:,} suspects" if n_suspects > MOST_EXPLAINED else ""
        console.print(Text("\nBy cause", style="bold").append(first, style="not bold dim"))
        for line in describe_groups(groups):
            print_line(f"  {line}", console)
    _print_tools(report, console)
    _print_task_field(report, console)
    _print_unranked(report, console)
    if report.runs:
        console.print()
        by = " and ".join(_TASK_WORDS[each] for each in _TASK_WORDS if report.task_by.get(each))
        print_line(f"runs of the same task were found by {by}; {WORTH}", console, "dim")
        print_line(
            "steps and length: percentiles within this input; they tell how hard a task is, not how it went",
            console,
            "dim",
        )
    print_next(next_steps, console)


def _differ(n: int) -> str:
    return "1 differs from most of its peers" if n == 1 else f"{n:,} differ from most of their peers"


def _print_run(run: Suspect, console: Terminal, *, with_source: bool) -> None:
    head = Text(f"\n{run.rank:>3}  ", style="dim")
    head.append(printable_line(run.case_id, 120), style="bold")
    if run.repeat:
        head.append(f" repeat {run.repeat + 1}", style="dim")
    if with_source and run.source:
        head.append(f" in {printable_line(os.path.basename(run.source), 80)}", style="dim")
    head.append(f"   {run.suspicion:.2f}", style="red" if run.is_suspect else "")
    if run.suspicion != run.difference:
        head.append(f" · differs {run.difference:.2f}, task {run.task_difference:.2f}", style="dim")
    head.append(f" · {run.basis} against {counted(run.n_peers, 'peer')}", style="dim")
    head.append(f" · steps p{run.steps_percentile:.0f}, length p{run.length_percentile:.0f}", style="dim")
    console.print(head, soft_wrap=True)
    for each in run.evidence[:_LINES_SHOWN]:
        print_line(f"       {printable_line(each.text, _LONGEST_LINE)}", console)
    if len(run.evidence) > _LINES_SHOWN:
        print_line(f"       … and {len(run.evidence) - _LINES_SHOWN} more (--json lists them)", console, "dim")
    if not run.evidence:
        print_line(f"       {_without_evidence(run)}", console, "dim")


def _without_evidence(run: Suspect) -> str:
    if run.is_suspect:
        return f"not explained: only the first {MOST_EXPLAINED:,} suspects are"
    return "does as most of its peers do" if run.difference else "does as its peers do"


def _print_tools(report: SuspectReport, console: Terminal) -> None:
    if not report.tools:
        return
    heading = Text("\nTools", style="bold")
    console.print(heading.append("   only calls that change something are compared", style="not bold dim"))
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
        more = f" and {len(named) - _TOOLS_NAMED:,} more" if len(named) > _TOOLS_NAMED else ""
        print_line(f"  {words}: {', '.join(named[:_TOOLS_NAMED])}{more}", console)
    unknown = [each.tool for each in report.tools if each.mark == "unknown"]
    example = unknown[0] if unknown else report.tools[0].tool
    print_line(
        f"  by their names unless it says how; --mark {shlex.quote(f'{printable_line(example, 60)}=write')} "
        "(or =read) says otherwise",
        console,
        "dim",
    )


def _print_task_field(report: SuspectReport, console: Terminal) -> None:
    """How many runs have the field that the user names, where others lack it."""
    n_with = report.n_with_task_field
    if report.task_field is not None and n_with is not None and n_with < report.n_runs:
        field = printable_line(report.task_field)
        print_line(
            f"\n{n_with:,} of {report.n_runs:,} runs have {field}; the others were matched by their ids or questions",
            console,
        )


def _print_unranked(report: SuspectReport, console: Terminal) -> None:
    if not report.unranked:
        return
    console.print("\nNot ranked", style="bold")
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

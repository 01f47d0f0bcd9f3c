"""``agentunit doctor FILE…``: whether a test is sound, or what traces hold and lack; records of a test are both."""

from __future__ import annotations

from collections.abc import Iterable

import click
import msgspec

from agentunit.addons.review._doctor_suite import (
    Named,
    examine_test,
    holds_tests,
    masked,
    print_soundness,
    sort_inputs,
    tell_soundness,
)
from agentunit.addons.review._trace_health import FoundRemedy, MetricHealth, TraceHealth, examine, masked_health
from agentunit.addons.review._trace_settings import CAUSES, WORDS
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.trace_inputs import trace_files_from
from agentunit.core.results import encode_json
from agentunit.reports.console import plain_table, print_errors_heading, print_line
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.progress import Progress
from agentunit.reports.reported_run import Mask
from agentunit.reports.terminal import Column, Terminal, Text, TextTable
from agentunit.reports.trace_console import reading_lines
from agentunit.traces.formats import ROWS_FORMAT
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN

# What a trace of production lacks, and a record of a test has.
_OF_A_TEST = [WORDS[each] for each in ("expected", "expected_tools", "success", "pattern")]
_SHOWN = 6
_REASONS_SHOWN = 2
_REMEDIES_SHOWN = 3
_LONGEST_NAME = 60
_LONGEST_REASON = 200


def examine_files(
    files: tuple[str, ...],
    format_name: str | None,
    group_by: GroupBy,
    store_path: str,
    *,
    as_json: bool,
    everything: bool,
    show_personal_data: bool,
) -> None:
    """Examine what the words of a command line name: suites, datasets and runs as a test, other files as traces."""
    named = sort_inputs(files, format_name, store_path)
    if named.tests or named.runs:
        found = examine_test(named, group_by, store_path)
        tell_soundness(found, as_json=as_json, everything=everything, show_personal_data=show_personal_data)
        n_cases = found.n_cases
    else:
        n_cases = _examine_traces(files, format_name, group_by, as_json, everything, show_personal_data)
    if not n_cases:
        click.echo(f"nothing here is a case: {printable_line(', '.join(files))}", err=True)
        raise click.exceptions.Exit(EXIT_ERRORS)


def _examine_traces(
    files: tuple[str, ...],
    format_name: str | None,
    group_by: GroupBy,
    as_json: bool,
    everything: bool,
    show_personal_data: bool,
) -> int:
    """What traces hold; and, where they are the records of a test, whether that is sound."""
    source = trace_files_from(files, format_name, group_by)
    progress = Progress("cases", fraction=source.fraction)
    source.on_progress = progress.touch
    mask = Mask(show_all=show_personal_data)
    health = masked_health(examine(source, progress.watch), mask)
    found = None
    # Tests of some tools have a place for the answer that nobody filled.
    is_unanswered = set(health.formats) == {ROWS_FORMAT} and not health.holds[WORDS["answer"]]
    if (not health.n_cases or is_unanswered) and format_name is None and all(map(holds_tests, files)):
        found = examine_test(Named(tests=list(files)), group_by, "")
        tell_soundness(found, as_json=as_json, everything=everything, show_personal_data=show_personal_data)
        return found.n_cases
    if STDIN not in files and format_name is None and any(health.holds.get(word) for word in _OF_A_TEST):
        found = masked(examine_test(Named(traces=list(files)), group_by, ""), show_personal_data=show_personal_data)
    if as_json:
        data = msgspec.to_builtins(health)
        click.echo(encode_json({**data, "soundness": found}).decode())
    else:
        _print_health(health, reading_lines(source, mask), Terminal(), everything=everything)
        if found is not None and (found.warnings or everything):
            click.echo()
            print_soundness(found, Terminal(), everything=everything)
    return health.n_cases


def _print_health(health: TraceHealth, reading: Iterable[str], console: Terminal, *, everything: bool = False) -> None:
    """Print what matters first, or everything; ``reading`` are the lines about how the files were read."""
    _print_contents(health, reading, console)
    _print_errors(health, console)
    if not health.n_cases:
        return
    console.print()
    if health.n_tried < health.n_cases:
        tried = f"metrics were tried on {health.n_tried:,} of {health.n_cases:,} cases: of many that are alike, on some"
        console.print(Text(tried, style="dim"))
    judged = [row for row in health.metrics if row.asks_judge]
    rows = [row for row in health.metrics if row not in judged]
    if everything:
        console.print(_table(rows))
        if judged:
            names = ", ".join(printable_line(row.metric, _LONGEST_NAME) for row in judged)
            console.print(Text(f"{names}: a judge is asked, and nothing is sent anywhere here", style="dim"))
    else:
        _print_scorable(rows, console)
    remedies = health.remedies if everything else health.remedies[:_REMEDIES_SHOWN]
    if remedies:
        console.print("\nTo get more scores", style="bold")
        for remedy in remedies:
            _print_remedy(remedy, health.n_cases, console, everything=everything)
    left = len(health.remedies) - len(remedies)
    if not everything:
        more = f", {counted(left, 'more thing')} to do" if left > 0 else ""
        console.print(Text(f"\nwhat each metric lacks{more}, and why: --why", style="dim"))


def _print_scorable(rows: list[MetricHealth], console: Terminal) -> None:
    """Three lines in place of a table: the metrics that can score all cases, some, or none."""
    all_of_them = [row.metric for row in rows if row.n_scored == row.n_cases]
    some = [f"{row.metric} ({row.n_scored:,})" for row in rows if 0 < row.n_scored < row.n_cases]
    n_none = len(rows) - len(all_of_them) - len(some)
    for label, names in (("every case can be scored by", all_of_them), ("some by", some)):
        if names:
            told = ", ".join(printable_line(name, _LONGEST_NAME) for name in names)
            console.print(Text(f"{label}: ", style="bold").append(told, style="not bold"))
    if n_none:
        console.print(Text("none by: ", style="bold").append(f"{n_none} other metrics", style="not bold"))


def _print_contents(health: TraceHealth, reading: Iterable[str], console: Terminal) -> None:
    lines = list(reading)
    if health.formats and not any(line.startswith("read as") for line in lines):
        lines.insert(0, f"read as {', '.join(health.formats)}")
    lines.append(counted(health.n_cases, "case"))
    if any(health.scopes):
        lines.append(f"made by {_names_with_counts(health.scopes)}")
    if health.kinds:
        lines.append(f"spans: {_names_with_counts(health.kinds)}")
    for line in lines:
        console.print(Text(line))
    if not health.n_cases:
        return
    held = {word: count for word, count in health.holds.items() if count}
    everywhere = [word for word, count in held.items() if count == health.n_cases]
    some = [f"{word} ({count:,})" for word, count in held.items() if count < health.n_cases]
    nowhere = [word for word in health.holds if word not in held]
    for label, words in (("every case has", everywhere), ("some have", some), ("none has", nowhere)):
        if words:
            console.print(Text(f"{label}: ", style="bold").append(", ".join(words), style="not bold"))


def _names_with_counts(counts: dict[str, int]) -> str:
    named = [
        f"{printable_line(name, _LONGEST_NAME) or '(no name)'} ({count:,})"
        for name, count in list(counts.items())[:_SHOWN]
    ]
    return ", ".join(named) + (f", … ({len(counts):,} in all)" if len(counts) > _SHOWN else "")


def _print_errors(health: TraceHealth, console: Terminal) -> None:
    if not health.n_errors:
        return
    print_errors_heading(health.n_errors, console)
    for error in health.errors[:_SHOWN]:
        print_line(f"  {printable_line(error)}", console)
    if health.n_errors > _SHOWN:
        console.print("  … (--json lists more)", style="dim")


def _table(rows: list[MetricHealth]) -> TextTable:
    fixed = ("metric", "can score", "see")
    table = plain_table("metric", "can score", "what the rest lacks", "see", right=("can score",), fixed=fixed)
    for row in rows:
        colour = "green" if row.n_scored == row.n_cases else "yellow" if row.n_scored else "dim"
        table.add_row(
            Text(printable_line(row.metric, _LONGEST_NAME)),
            Text(f"{row.n_scored:,}/{row.n_cases:,}", style=colour),
            Text(_reasons(row)),
            Text(", ".join(map(str, row.remedies))),
        )
    return table


def _reasons(row: MetricHealth) -> str:
    alone = len(row.reasons) == 1
    shown = [
        printable_line(each.reason if alone else f"{each.n_cases:,} × {each.reason}", _LONGEST_REASON)
        for each in row.reasons[:_REASONS_SHOWN]
    ]
    left = len(row.reasons) - _REASONS_SHOWN
    return "; ".join([*shown, *([counted(left, "more reason")] if left > 0 else [])])


def _print_remedy(remedy: FoundRemedy, n_cases: int, console: Terminal, *, everything: bool) -> None:
    where = "" if remedy.n_cases == n_cases else f" ({remedy.n_cases:,} of {n_cases:,} cases)"
    heading = Text(f"{', '.join(remedy.adds)}{where}", style="bold")
    if remedy.cause != "unknown":
        heading.append(f": {CAUSES[remedy.cause]}", style="not bold")
    numbered = TextTable(Column(right=True, width=2), Column(), gap=1)
    numbered.add_row(str(remedy.number), heading)
    console.print(numbered)
    # What is to be copied stays on one line, whatever the width.
    print_line(f"     {remedy.switch}", console, "cyan")
    if everything:
        console.print(Text(remedy.why), indent=3)

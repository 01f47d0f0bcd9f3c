"""Trace files in the terminal: how they were read, what they hold, what each metric can do with it, what to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentunit.reports.console import Terminal, plain_table, print_errors_heading, print_line
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.reading import TraceSource
from agentunit.traces.settings import CAUSES

if TYPE_CHECKING:
    from agentunit.reports.trace_health import FoundRemedy, MetricHealth, TraceHealth

_NAMES_SHOWN = 5
_SHOWN = 6
_REASONS_SHOWN = 2
_REMEDIES_SHOWN = 3
_LONGEST_NAME = 60
_LONGEST_REASON = 200


def reading_lines(source: TraceSource) -> list[str]:
    """One line a fact; none when nothing was noticed."""
    notes, lines = source.notes, []
    if set(notes.formats) - {NATIVE_FORMAT}:
        formats = ", ".join(f"{name} ({n:,})" if n > 1 else name for name, n in notes.formats.most_common())
        spans = f": {counted(notes.n_spans, 'span')} in {counted(notes.n_traces, 'trace')}" if notes.n_spans else ""
        lines.append(f"read as {formats}{spans}")
    if notes.unplaced:
        n_unplaced = sum(notes.unplaced.values())
        names = ", ".join(
            printable_line(name)[:40] or "(no name)" for name, _ in notes.unplaced.most_common(_NAMES_SHOWN)
        )
        more = f", … ({len(notes.unplaced)} names)" if len(notes.unplaced) > _NAMES_SHOWN else ""
        lines.append(f"{counted(n_unplaced, 'span')} of no known vocabulary, kept as plain events: {names}{more}")
    if notes.not_understood:
        lines.append(_not_understood(notes.not_understood))
    lines += [f"{n:,} × {printable_line(problem)}" for problem, n in notes.problems.most_common()]
    if source.expected is not None:
        lines.append(_joined(source))
    return lines


def _not_understood(fields: Counter[str]) -> str:
    named = [f"{printable_line(name)[:_LONGEST_NAME]} ×{n:,}" for name, n in fields.most_common(_NAMES_SHOWN)]
    more = ", …" if len(fields) > _NAMES_SHOWN else ""
    return f"{counted(len(fields), 'field')} not understood: {', '.join(named)}{more}"


def print_reading(source: TraceSource, terminal: Terminal) -> None:
    """Print what was noticed, under a heading of its own."""
    lines = reading_lines(source)
    if lines:
        terminal.print("[bold]While reading[/bold]")
        for line in lines:
            print_line(f"  {line}", terminal)
        terminal.print()


def _joined(source: TraceSource) -> str:
    answers = source.expected
    if answers is None:
        return ""
    line = f"expected answers were found for {counted(answers.n_joined, 'case')}"
    unused = answers.unused
    if unused:
        names = ", ".join(printable_line(name)[:40] for name in unused[:_NAMES_SHOWN])
        more = ", …" if len(unused) > _NAMES_SHOWN else ""
        line += f"; {counted(len(unused), 'row')} of the dataset met no case: {names}{more}"
    if answers.n_ambiguous:
        line += f"; {answers.n_ambiguous:,} cases fit several rows there (the same question, or ids that differ only "
        line += "in case or prefix): write the exact ids into the rows"
    return line


def print_health(health: TraceHealth, reading: Iterable[str], console: Console, *, everything: bool = False) -> None:
    """Print what matters first, or everything; ``reading`` are the lines about how the files were read."""
    _print_contents(health, reading, console)
    _print_errors(health, console)
    if not health.n_cases:
        return
    console.print()
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
        console.print("\n[bold]To get more scores[/bold]")
        for remedy in remedies:
            _print_remedy(remedy, health.n_cases, console, everything=everything)
    left = len(health.remedies) - len(remedies)
    if not everything:
        more = f", {counted(left, 'more thing')} to do" if left > 0 else ""
        console.print(Text(f"\nwhat each metric lacks{more}, and why: --all", style="dim"))


def _print_scorable(rows: list[MetricHealth], console: Console) -> None:
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


def _print_contents(health: TraceHealth, reading: Iterable[str], console: Console) -> None:
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


def _print_errors(health: TraceHealth, console: Console) -> None:
    if not health.n_errors:
        return
    print_errors_heading(health.n_errors, console)
    for error in health.errors[:_SHOWN]:
        print_line(f"  {printable_line(error)}", console)
    if health.n_errors > _SHOWN:
        console.print("  … (--json lists more)", style="dim")


def _table(rows: list[MetricHealth]) -> Table:
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


def _print_remedy(remedy: FoundRemedy, n_cases: int, console: Console, *, everything: bool) -> None:
    where = "" if remedy.n_cases == n_cases else f" ({remedy.n_cases:,} of {n_cases:,} cases)"
    heading = Text(f"{', '.join(remedy.adds)}{where}", style="bold")
    if remedy.cause != "unknown":
        heading.append(f": {CAUSES[remedy.cause]}", style="not bold")
    numbered = Table.grid(padding=(0, 1, 0, 0))
    numbered.add_column(width=2, justify="right")
    numbered.add_column()
    numbered.add_row(str(remedy.number), heading)
    console.print(numbered)
    # What is to be copied stays on one line, whatever the width.
    print_line(f"     {remedy.switch}", console, "cyan")
    if everything:
        console.print(Padding(Text(remedy.why), (0, 0, 0, 3)))

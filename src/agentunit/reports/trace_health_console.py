"""The health of trace files in the terminal: what they hold, what each metric can do with it, what to change."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentunit.reports.printable import printable_line
from agentunit.reports.trace_health import FoundRemedy, MetricHealth, TraceHealth
from agentunit.traces.settings import CAUSES

_SHOWN = 6
_REASONS_SHOWN = 2
_LONGEST_NAME = 60
_LONGEST_REASON = 200


def print_health(health: TraceHealth, reading: Iterable[str], console: Console) -> None:
    """Print everything; ``reading`` are the lines about how the files were read."""
    _print_contents(health, reading, console)
    _print_errors(health, console)
    if not health.n_cases:
        return
    console.print()
    console.print(_table(health.metrics))
    if health.remedies:
        console.print("\n[bold]To get more scores[/bold]")
        for remedy in health.remedies:
            _print_remedy(remedy, health.n_cases, console)


def _print_contents(health: TraceHealth, reading: Iterable[str], console: Console) -> None:
    lines = list(reading)
    if health.formats and not any(line.startswith("read as") for line in lines):
        lines.insert(0, f"read as {', '.join(health.formats)}")
    lines.append("1 case" if health.n_cases == 1 else f"{health.n_cases:,} cases")
    if any(health.scopes):
        lines.append(f"made by {_counted(health.scopes)}")
    if health.kinds:
        lines.append(f"spans: {_counted(health.kinds)}")
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


def _counted(counts: dict[str, int]) -> str:
    named = [
        f"{printable_line(name, _LONGEST_NAME) or '(no name)'} ({count:,})"
        for name, count in list(counts.items())[:_SHOWN]
    ]
    return ", ".join(named) + (f", … ({len(counts):,} in all)" if len(counts) > _SHOWN else "")


def _print_errors(health: TraceHealth, console: Console) -> None:
    if not health.n_errors:
        return
    parts = "1 part" if health.n_errors == 1 else f"{health.n_errors:,} parts"
    console.print(f"\n[bold red]Errors[/bold red]: {parts} of the input could not be read")
    for error in health.errors[:_SHOWN]:
        console.print(f"  {printable_line(error)}", markup=False, highlight=False, soft_wrap=True)
    if health.n_errors > _SHOWN:
        console.print("  … (--json lists more)", style="dim")


def _table(rows: list[MetricHealth]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True, header_style="bold")
    table.add_column("metric", no_wrap=True)
    table.add_column("can score", justify="right", no_wrap=True)
    table.add_column("what the rest lacks")
    table.add_column("see", no_wrap=True)
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
    return "; ".join([*shown, *([f"{left} more reasons"] if left > 0 else [])])


def _print_remedy(remedy: FoundRemedy, n_cases: int, console: Console) -> None:
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
    console.print(f"     {remedy.switch}", markup=False, highlight=False, soft_wrap=True, style="cyan")
    console.print(Padding(Text(remedy.why), (0, 0, 0, 3)))

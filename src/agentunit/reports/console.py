"""A run in the terminal: one row a metric, what was not scored and why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from agentunit.core.results import InputError, MetricSummary, RunSummary, Unscored
from agentunit.metrics.base import MetricInfo
from agentunit.reports.figures import INTERVAL_HEADING, counted_cases, duration, number, shown_direction, spoken_value
from agentunit.reports.judge_words import spent_words, spread_rows, spread_words
from agentunit.reports.printable import printable_line


class Terminal(Console):
    """A console that leaves a closed pipe to the command line, which ends without a word."""

    def on_broken_pipe(self) -> None:
        """Say so, instead of ending the process here with the code of a failed gate."""
        raise BrokenPipeError


_ERRORS_SHOWN = 10
_REASONS_SHOWN = 12
_CASES_NAMED = 2


def print_run(
    summary: RunSummary, infos: Mapping[str, MetricInfo], console: Console, *, next_steps: Iterable[str] = ()
) -> None:
    """Print the table of a run, its gaps, its errors and the next commands."""
    if summary.n_cases:
        console.print(_table(summary.metrics, infos))
        if any(row.status == "informational" for row in summary.metrics):
            console.print("i  informational: shown, but no ground for a decision", style="dim")
        _print_repeats(summary.metrics, infos, console)
        _print_judge(summary, infos, console)
        _print_worst(summary.metrics, infos, console)
    _print_unscored(summary.unscored, console)
    _print_input_errors(summary, console)
    rate = f" ({summary.n_cases / summary.elapsed_s:,.0f}/s)" if summary.elapsed_s > 0 else ""
    cases = counted_cases(summary.n_cases, summary.n_repeats, summary.n_records)
    if summary.n_without_content:
        cases += f", {summary.n_without_content:,} records without content"
    # A stored run may have been stopped and resumed: it has no one duration.
    took = f" in {duration(summary.elapsed_s)}{rate}" if summary.elapsed_s else ""
    console.print(f"{cases}{took}", style="dim", highlight=False)
    for step in next_steps:
        console.print(f"next: {escape(step)}", style="bold", highlight=False, soft_wrap=True)


def _table(rows: list[MetricSummary], infos: Mapping[str, MetricInfo]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True, header_style="bold")
    for heading in ("metric", INTERVAL_HEADING, "scored", "backend", "trust"):
        table.add_column(
            heading, justify="right" if heading == "scored" else "left", no_wrap=heading != INTERVAL_HEADING
        )
    for row in rows:
        info = infos[row.metric]
        dim = row.status != "ok"
        mark = {"higher": "↑", "lower": "↓", "none": " "}[shown_direction(row, info)]
        if row.status == "informational":
            mark += " i"
        trust = row.trust or "–"
        table.add_row(
            Text(f"{printable_line(row.metric)} {mark}"),
            Text(spoken_value(row, info.unit)),
            Text(f"{row.n_scored}/{row.n_cases}", style="" if row.n_scored == row.n_cases else "yellow"),
            Text(printable_line(row.backend) if row.n_scored else "–"),
            Text(trust),
            style="dim" if dim else None,
        )
    return table


def _print_worst(rows: list[MetricSummary], infos: Mapping[str, MetricInfo], console: Console) -> None:
    # Only where a low score is a fault: the dearest case of a cheap run is not one.
    faulty = [row for row in rows if row.worst_cases and row.status == "ok" and infos[row.metric].unit == "score"]
    if not faulty:
        return
    console.print("\n[bold]Look at[/bold]")
    for row in faulty:
        backend = f" ({row.backend})" if sum(other.metric == row.metric for other in rows) > 1 else ""
        line = printable_line(f"{row.metric}{backend}: {', '.join(row.worst_cases)}")
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def _print_repeats(rows: list[MetricSummary], infos: Mapping[str, MetricInfo], console: Console) -> None:
    repeated = [row for row in rows if row.within_case_sd is not None]
    if not repeated:
        return
    times = max(row.n_repeats for row in repeated)
    console.print(f"\n[bold]Repeats[/bold] (each case {times} times; 'scored' counts every repeat)", highlight=False)
    for row in repeated:
        unit, k = infos[row.metric].unit, row.n_repeats
        parts = [f"± {number(row.within_case_sd or 0.0, unit)} from run to run of a case"]
        if row.pass_all is not None and row.pass_any is not None:
            parts = [f"pass^{k} {row.pass_all:.2f}", f"pass@{k} {row.pass_any:.2f}", *parts]
        line = printable_line(f"{row.metric}: {', '.join(parts)}")
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def _print_judge(summary: RunSummary, infos: Mapping[str, MetricInfo], console: Console) -> None:
    spreads = spread_rows(summary.metrics)
    if spreads:
        console.print(f"\n[bold]Judge[/bold] (asked {max(spread.n_repeats for _, spread in spreads)} times)")
    for row, spread in spreads:
        line = printable_line(f"{row.metric}: {spread_words(spread, infos[row.metric].unit)}")
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    spent = spent_words(summary)
    if spent:
        console.print("\n[bold]Spent[/bold]")
    for who, words in spent:
        console.print(f"  {who}: {printable_line(words)}", highlight=False, markup=False, soft_wrap=True)


def _print_unscored(entries: list[Unscored], console: Console) -> None:
    if not entries:
        return
    console.print("\n[bold]Not scored[/bold]")
    # Several metrics often miss the same input: one line says it for all of them.
    shared: dict[tuple[str, str, int, tuple[str, ...]], list[Unscored]] = {}
    for entry in entries:
        key = (entry.status, entry.reason, entry.n_records, tuple(entry.first_cases))
        shared.setdefault(key, []).append(entry)
    ordered = sorted(shared.items(), key=lambda pair: (pair[0][0] != "error", -pair[0][2]))
    for (status, reason, n_records, _), group in ordered[:_REASONS_SHOWN]:
        named = printable_line(", ".join(group[0].first_cases[:_CASES_NAMED]))
        more = ", …" if group[0].n_cases > _CASES_NAMED else ""
        metrics = printable_line(", ".join(entry.metric for entry in group))
        mark = "[red]error[/red] " if status == "error" else ""
        why = escape(printable_line(reason))
        console.print(
            f"  {mark}{escape(metrics)}: {n_records} × {why} [dim]({escape(named)}{more})[/dim]",
            highlight=False,
            soft_wrap=True,
        )
    if len(ordered) > _REASONS_SHOWN:
        console.print(f"  … and {len(ordered) - _REASONS_SHOWN} more reasons (--json lists them)", style="dim")


def _print_input_errors(summary: RunSummary, console: Console) -> None:
    if not summary.n_input_errors:
        return
    parts = "1 part" if summary.n_input_errors == 1 else f"{summary.n_input_errors} parts"
    console.print(f"\n[bold red]Errors[/bold red]: {parts} of the input could not be read")
    # A file of another format gives the same reason on every line: it is said once.
    alike: dict[tuple[str, str], list[InputError]] = {}
    for error in summary.input_errors:
        alike.setdefault((error.source, error.reason), []).append(error)
    for group in list(alike.values())[:_ERRORS_SHOWN]:
        more = f" (and {len(group) - 1:,} more lines like it)" if len(group) > 1 else ""
        console.print(f"  {error_line(group[0])}{more}", highlight=False, markup=False, soft_wrap=True)
    if len(alike) > _ERRORS_SHOWN or summary.n_input_errors > len(summary.input_errors):
        console.print("  … --errors FILE lists them all", style="dim", highlight=False)


def error_line(error: InputError) -> str:
    """An input error as one printable line: control characters of a hostile file do not reach the terminal."""
    return printable_line(str(error))

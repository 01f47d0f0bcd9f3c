"""A run in the terminal: one row a metric, what was not scored and why, and what to do next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from agentunit.backends.quality import LEXICAL, missing_local_model
from agentunit.core.results import InputError, MetricSummary, RunSummary, Unscored
from agentunit.engine.scored_run import ScoredRun
from agentunit.metrics.base import MetricInfo
from agentunit.reports.failure_groups import FailureGroup, describe_groups
from agentunit.reports.figures import (
    INTERVAL_HEADING,
    counted,
    counted_cases,
    describe_clusters,
    describe_failed,
    describe_spending,
    describe_spread,
    duration,
    informational_notes,
    metric_cells,
    n_to_look_at,
    number,
    spread_rows,
    threshold_notes,
)
from agentunit.reports.label_figures import LABELED_ROW, label_notes, labeled_cells
from agentunit.reports.panel_view import describe_panel, panel_rows
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import resume_command
from agentunit.store.opening import DEFAULT_PATH

ROWS_SHOWN = 10
_WORD_WIDTH = 20
# The width of a window in which trust may wrap, and that of a score with its interval.
_NARROW, _VALUE_WIDTH, _TRUST_WIDTH = 90, len("0.93 [0.82, 0.98]"), len("useful, AUROC 0.73;")
_ERRORS_SHOWN = 10
_REASONS_SHOWN = 10
_LINES_TO_LOOK_AT = 6
_CASES_NAMED = 2


class Terminal(Console):
    """A console that leaves a closed pipe to the command line, which ends quietly, and texts as they are."""

    def __init__(self, *, stderr: bool = False) -> None:
        # A text from data that reads ":fire:" stays that, and the list of such names is not loaded.
        super().__init__(stderr=stderr, emoji=False)

    def on_broken_pipe(self) -> None:
        """Say so, instead of ending the process here with the code of a failed gate."""
        raise BrokenPipeError


class _PlainTable(Table):
    """A table whose words without wrapping keep their width: Rich would cut them where the window is narrow."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*cells, **options)
        for column, cell in zip(self.columns, cells, strict=False):
            width = cell_len(cell.plain if isinstance(cell, Text) else str(cell))
            if column.no_wrap and width <= _WORD_WIDTH:
                column.min_width = max(width, column.min_width or cell_len(str(column.header)))


def plain_table(*headings: str, right: Sequence[str] = (), fixed: Sequence[str] = ()) -> Table:
    """A table without lines. Columns of ``right`` hold numbers; those of ``fixed`` hold words that stay whole."""
    table = _PlainTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, no_wrap=heading in fixed, overflow="fold")
    return table


def print_line(text: str, console: Console, style: str = "") -> None:
    """Print a line of any length; nothing in it is markup, or obeyed by a terminal or a CI log."""
    console.print(printable(text), style=style, markup=False, highlight=False, soft_wrap=True)


def print_next(steps: Iterable[str], console: Console) -> None:
    """The commands to go on with."""
    for step in steps:
        print_line(f"next: {step}", console, "bold")


def print_run(
    summary: RunSummary,
    infos: Mapping[str, MetricInfo],
    console: Console,
    *,
    next_steps: Iterable[str] = (),
    all_rows: bool = True,
    gated: Collection[str] = (),
    shared_ids: Collection[str] = (),
) -> None:
    """Print the table of a run, its gaps, its errors and the next commands.

    Without ``all_rows`` the table has ten rows: those of the metrics that are ``gated`` first. ``shared_ids`` are ids
    that several cases have.
    """
    if summary.n_cases:
        shown = summary.metrics if all_rows else _first_rows(summary.metrics, gated)
        console.print(_table(shown, infos, console.width))
        if len(shown) < len(summary.metrics):
            left_out = counted(len(summary.metrics) - len(shown), "more row")
            console.print(f"… and {left_out} (--all shows them)", style="dim", highlight=False)
        if clusters := describe_clusters(summary):
            print_line(printable_line(clusters), console, "dim")
        for note in (*label_notes(shown), *threshold_notes(shown)):
            print_line(printable_line(note), console, "dim")
        _print_informational(shown, console)
        _print_repeats(summary.metrics, infos, console)
        _print_judge(summary, infos, console)
        _print_worst(shown, summary.metrics, infos, shared_ids, console)
    _print_unscored(summary.unscored, console)
    _print_input_errors(summary, console)
    rate = f" ({summary.n_cases / summary.elapsed_s:,.0f}/s)" if summary.elapsed_s > 0 else ""
    cases = counted_cases(summary.n_cases, summary.n_repeats, summary.n_records)
    if summary.n_without_content:
        cases += f", {counted(summary.n_without_content, 'record')} without content"
    if summary.n_user_failed:
        cases += f", the simulated user failed in {summary.n_user_failed:,}"
    # A stored run may have been stopped and resumed: it has no one duration.
    elapsed = f" in {duration(summary.elapsed_s)}{rate}" if summary.elapsed_s else ""
    console.print(f"{cases}{elapsed}", style="dim", highlight=False)
    print_next(next_steps, console)


def _first_rows(rows: list[MetricSummary], gated: Collection[str]) -> list[MetricSummary]:
    """The rows to show where there are many, in their order: gated ones, and one a metric before further backends."""
    seen: set[str] = set()
    ranked = []
    for place, row in enumerate(rows):
        is_useful = row.status == "ok" and row.n_scored > 0
        ranked.append((row.metric not in gated, row.metric in seen, not is_useful, place))
        seen.add(row.metric)
    return [rows[place] for place in sorted(rank[-1] for rank in sorted(ranked)[:ROWS_SHOWN])]


def _table(rows: list[MetricSummary], infos: Mapping[str, MetricInfo], width: int) -> Table:
    headings = ("metric", INTERVAL_HEADING, "scored", "backend", "trust")
    shown = [(row, metric_cells(row, infos[row.metric])) for row in rows]
    names = [f"{row.metric}{cells.mark}{' i' if row.status == 'informational' else ''}" for row, cells in shown]
    labeled_rows = [labeled_cells(row, infos[row.metric]) for row in rows]
    every = [cells for _, cells in shown] + [cells for cells in labeled_rows if cells is not None]
    values, scored, backends, trusts = ([cells[at] for cells in every] for at in range(1, 5))
    labeled_name = [f"  {LABELED_ROW} ↑"] * any(labeled_rows)
    others = sum(_longest(each) + 2 for each in ([*names, *labeled_name], [*scored, "scored"], [*backends, "backend"]))
    # Values stay whole as long as trust has room to wrap in; in a narrow window both wrap, trust between its words.
    room = width - others - _longest([*values, INTERVAL_HEADING]) - 2
    are_whole = width >= _NARROW and room >= _TRUST_WIDTH
    fixed = ("metric", "scored", "backend", *((INTERVAL_HEADING,) if are_whole else ()))
    table = plain_table(*headings, right=("scored",), fixed=fixed)
    if are_whole:
        table.columns[1].min_width = _longest(values)
    else:
        lines = [line for value in values for line in _lines_of(value).split("\n")]
        # Trust keeps the width of its longest word, where the words of the values leave it that much.
        left = width - others - 2 - _longest_word(trusts)
        least = (
            min(_VALUE_WIDTH, _longest(values)) if left >= _VALUE_WIDTH else _longest_word([*values, INTERVAL_HEADING])
        )
        table.columns[1].width = max(least, min(_longest([*lines, INTERVAL_HEADING]), left))
    for (row, cells), name, labeled in zip(shown, names, labeled_rows, strict=True):
        table.add_row(
            Text(printable_line(name)),
            Text(cells.value if are_whole else _lines_of(cells.value)),
            Text(cells.scored, style="" if row.n_scored == row.n_cases else "yellow"),
            Text(printable_line(cells.backend)),
            Text(cells.trust),
            style=None if row.status == "ok" else "dim",
        )
        if labeled is not None:
            table.add_row(f"  {LABELED_ROW}{labeled.mark}", *map(Text, map(printable_line, labeled[1:])), style="bold")
    return table


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _lines_of(value: str) -> str:
    """A value with what follows its interval on a line of its own."""
    return value.replace("], ", "],\n")


def _longest_word(texts: Iterable[str]) -> int:
    return _longest(word for text in texts for word in text.split())


def _print_informational(rows: list[MetricSummary], console: Console) -> None:
    for note in informational_notes(rows):
        print_line(f"i  {printable_line(note)}", console, "dim")
    command = missing_local_model() if any(row.backend == LEXICAL for row in rows) else None
    if command is not None:
        print_line(f"i  {command} adds the local model, whose scores are worth more", console, "dim")


def _print_worst(
    rows: list[MetricSummary],
    all_rows: list[MetricSummary],
    infos: Mapping[str, MetricInfo],
    shared_ids: Collection[str],
    console: Console,
) -> None:
    # Only where a low score is a fault: the dearest case of a cheap run is not one.
    faulty = [row for row in rows if row.worst_cases and row.status == "ok" and infos[row.metric].unit == "score"]
    # Metrics that name the same cases, such as faithfulness and hallucination_rate, share a line.
    by_cases: dict[str, list[str]] = {}
    for row in faulty:
        n_faulty = n_to_look_at(row)
        if not n_faulty:
            continue
        backend = f" ({row.backend})" if sum(other.metric == row.metric for other in all_rows) > 1 else ""
        named = row.worst_cases[:n_faulty]
        more = f" and {n_faulty - len(named):,} more" if n_faulty > len(named) else ""
        marked = ", ".join(f"{case_id} *" if case_id in shared_ids else case_id for case_id in named)
        by_cases.setdefault(f"{marked}{more}", []).append(f"{row.metric}{backend}")
    if not by_cases:
        return
    console.print("\n[bold]Look at[/bold]")
    lines = [f"{', '.join(metrics)}: {cases}" for cases, metrics in by_cases.items()]
    for line in lines[:_LINES_TO_LOOK_AT]:
        print_line("  " + printable_line(line), console)
    if len(lines) > _LINES_TO_LOOK_AT:
        left_off = counted(len(lines) - _LINES_TO_LOOK_AT, "more metric")
        console.print(f"  … and {left_off} (--json lists them)", style="dim", highlight=False)
    if any(case_id in shared_ids for row in faulty for case_id in row.worst_cases):
        said = "  *  cases of several files have this id: 'agentunit show FILE|FOLDER ID' lists them with their files"
        console.print(said, style="dim", highlight=False)


def _print_repeats(rows: list[MetricSummary], infos: Mapping[str, MetricInfo], console: Console) -> None:
    repeated = [row for row in rows if row.within_case_sd is not None]
    if not repeated:
        return
    times = max(row.n_repeats for row in repeated)
    console.print(f"\n[bold]Repeats[/bold] (a case up to {times} times; 'scored' counts every repeat)", highlight=False)
    for row in repeated:
        unit, k = infos[row.metric].unit, row.n_repeats
        parts = [f"± {number(row.within_case_sd or 0.0, unit)} from run to run of a case"]
        if row.pass_all is not None and row.pass_any is not None:
            parts = [f"pass^{k} {row.pass_all:.2f}", f"pass@{k} {row.pass_any:.2f}", *parts]
        print_line("  " + printable_line(f"{row.metric}: {', '.join(parts)}"), console)


def _print_judge(summary: RunSummary, infos: Mapping[str, MetricInfo], console: Console) -> None:
    spreads = spread_rows(summary.metrics)
    if spreads:
        console.print(f"\n[bold]Judge[/bold] (asked {max(spread.n_repeats for _, spread in spreads)} times)")
    for row, spread in spreads:
        spread_text = describe_spread(spread, infos[row.metric].unit)
        print_line("  " + printable_line(f"{row.metric}: {spread_text}"), console)
    for metric, panel in panel_rows(summary.metrics):
        first, *lines = describe_panel(panel)
        console.print(Text("\nPanel of ", style="bold").append(printable_line(f"{metric}: {first}"), style="not bold"))
        for line in lines:
            print_line(f"  {printable_line(line)}", console)
    spent = describe_spending(summary)
    if spent:
        console.print("\n[bold]Spent[/bold]")
    for who, words in spent:
        print_line(f"  {who}: {printable_line(words)}", console)


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
        console.print(
            f"  … and {counted(len(ordered) - _REASONS_SHOWN, 'more reason')} (--json lists them)", style="dim"
        )


def _print_input_errors(summary: RunSummary, console: Console) -> None:
    if not summary.n_input_errors:
        return
    print_errors_heading(summary.n_input_errors, console)
    # A file of another format has the same reason on every line: it is printed once.
    alike: dict[tuple[str, str], list[InputError]] = {}
    for error in summary.input_errors:
        alike.setdefault((error.source, error.reason), []).append(error)
    for group in list(alike.values())[:_ERRORS_SHOWN]:
        more = f" (and {counted(len(group) - 1, 'more line')} like it)" if len(group) > 1 else ""
        print_line(f"  {error_line(group[0])}{more}", console)
    if len(alike) > _ERRORS_SHOWN or summary.n_input_errors > len(summary.input_errors):
        console.print("  … --errors FILE lists them all", style="dim", highlight=False)


def print_errors_heading(n_errors: int, console: Console) -> None:
    """The heading of what could not be read."""
    parts = counted(n_errors, "part")
    console.print(f"\n[bold red]Errors[/bold red]: {parts} of the input could not be read", highlight=False)


def error_line(error: InputError) -> str:
    """An input error as one printable line: control characters of a hostile file do not reach the terminal."""
    return printable_line(str(error))


def print_causes(groups: Sequence[FailureGroup], console: Console) -> None:
    """Print why cases scored low, the most frequent causes first; nothing where none did."""
    if groups:
        console.print("\n[bold]Low scores by cause[/bold]")
        for line in describe_groups(groups):
            print_line(f"  {line}", console)


def describe_failures(groups: Sequence[FailureGroup], run: ScoredRun, store_path: str = DEFAULT_PATH) -> list[str]:
    """Lines for the terminal and the log: failed cases by their cause, and how to go on.

    The order of a run until decided must not depend on what came out, so that it cannot run them again.
    """
    if not groups:
        return []
    lines = [f"the agent failed {describe_failed(run)}:"]
    lines += [f"  {line}" for line in describe_groups(groups)]
    suite = run.header.settings.get("suite")
    if isinstance(suite, str) and not run.header.is_foreign:
        # The evidence of a run until decided must come in its order: only as one of fixed size can cases be retried.
        fixed = " --repeats 1" if run.header.settings.get("until_decided") else ""
        again = f"{resume_command(run.header.id, suite, store_path)}{fixed} --retry-failed"
        # Answers of two versions of an agent are mixed only by somebody who says so.
        is_mixed = run.n_failed < run.n_records and run.header.settings.get("agent_version") is not None
        changed = ", with --changed-agent if you change the agent first" if is_mixed else ""
        lines.append(f"  run them again{changed}: {printable_line(again)}")
    return lines

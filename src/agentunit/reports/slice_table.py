"""The table by slice: its cells for every report, and the table itself in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agentunit.engine.scoring.slices import FEWEST_CASES, NO_VALUE, SliceTable
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import ROWS_SHOWN, plain_table, print_line
from agentunit.reports.figures import INTERVAL_HEADING, counted, with_interval
from agentunit.reports.printable import printable_line
from agentunit.reports.run_facts import signed_interval
from agentunit.reports.terminal import Terminal, Text

SLICE_HEADINGS = ("metric", "slice", INTERVAL_HEADING, "scored", "from the rest")


class SliceCells(NamedTuple):
    """A row of the table as plain text, in the order of ``SLICE_HEADINGS``."""

    metric: str
    slice: str
    value: str
    scored: str
    difference: str


def describe_slices(table: SliceTable) -> str:
    """The heading of a table by slice."""
    return f"By {table.by}{', new run − baseline' if table.differences else ''}"


def slice_cells(table: SliceTable, infos: Mapping[str, MetricInfo]) -> list[SliceCells]:
    """Every row of a table by slice; none where no case has a value of the field."""
    if all(row.slice == NO_VALUE for row in table.rows):
        return []
    backends: dict[str, set[str]] = {}
    for row in table.rows:
        backends.setdefault(row.metric, set()).add(row.backend)
    described = signed_interval if table.differences else with_interval
    found = []
    for row in table.rows:
        label = row.metric if len(backends[row.metric]) == 1 else f"{row.metric}[{row.backend}]"
        unit = infos[row.metric].unit
        difference = "–" if row.difference is None else f"{row.difference:+.2f} sd"
        found.append(
            SliceCells(
                f"{label}{' i' if row.status == 'informational' else ''}",
                row.slice,
                "–" if row.mean is None else described(row.mean, row.low, row.high, unit),
                f"{row.n_scored}/{row.n_cases}",
                "too small" if row.too_small else difference,
            )
        )
    return found


def slices_note(table: SliceTable, n_shown: int | None = None) -> str:
    """What stands below a table by slice: how to read it, or why it is empty."""
    if all(row.slice == NO_VALUE for row in table.rows):
        has = f"; cases have {', '.join(table.fields)}" if table.fields else "; cases have no metadata"
        return f"no scored case has a value of {table.by}{has}"
    is_small = any(row.too_small for row in table.rows[:n_shown])
    small_note = f"; too small: fewer than {FEWEST_CASES} values" if is_small else ""
    return f"from the rest: the mean less that of all other cases, in standard deviations; not tested{small_note}"


def print_slices(
    table: SliceTable,
    infos: Mapping[str, MetricInfo],
    console: Terminal,
    *,
    all_rows: bool = False,
    run: str | None = None,
) -> None:
    """Print a row for each metric and slice, those that differ most from the rest first; ten unless ``all_rows``.

    ``run`` names the run of the table, where there are several.
    """
    heading = Text(f"\nBy {printable_line(table.by)}{'' if run is None else f', {printable_line(run)}'}", style="bold")
    if table.differences:
        heading.append("   new run − baseline", style="not bold dim")
    console.print(heading)
    rows = slice_cells(table, infos)
    if not rows:
        print_line(printable_line(slices_note(table)), console, "yellow")
        return
    shown = rows if all_rows else rows[:ROWS_SHOWN]
    printed = plain_table(*SLICE_HEADINGS, right=("scored", "from the rest"), fixed=("from the rest",))
    for row, cells in zip(table.rows, shown, strict=False):
        is_aside = row.too_small or row.status != "ok"
        texts = (Text(printable_line(cell, 40 if cell == cells.slice else 200)) for cell in cells)
        printed.add_row(*texts, style="dim" if is_aside else "")
    console.print(printed)
    if len(shown) < len(rows):
        left_out = counted(len(rows) - len(shown), "more row")
        console.print(f"… and {left_out} (--why shows them)", style="dim")
    print_line(slices_note(table, len(shown)), console, "dim")

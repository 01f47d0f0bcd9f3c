"""The table by slice in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from agentunit.engine.slices import FEWEST_CASES, NO_VALUE, SliceRow
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import ROWS_SHOWN, plain_table, print_line
from agentunit.reports.figures import INTERVAL_HEADING, counted, with_interval
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask


def masked_slices(rows: Sequence[SliceRow], mask: Mask) -> list[SliceRow]:
    """Rows whose slices are named by no personal data: a value of a field may be an e-mail address."""
    names = list(dict.fromkeys(row.slice for row in rows))
    shown = dict(zip(names, mask.data(names), strict=True))
    return [replace(row, slice=shown[row.slice]) for row in rows]


def print_slices(
    rows: Sequence[SliceRow],
    field: str,
    infos: Mapping[str, MetricInfo],
    console: Console,
    *,
    all_rows: bool = False,
    differences: bool = False,
) -> None:
    """Print a row for each metric and slice, those that differ most from the rest first; ten unless ``all_rows``."""
    heading = Text(f"\nBy {printable_line(field)}", style="bold")
    if differences:
        heading.append("   new run − baseline", style="not bold dim")
    console.print(heading)
    if all(row.slice == NO_VALUE for row in rows):
        print_line(f"no scored case has a value of {printable_line(field)}", console, "yellow")
        return
    backends: dict[str, set[str]] = {}
    for row in rows:
        backends.setdefault(row.metric, set()).add(row.backend)
    shown = rows if all_rows else rows[:ROWS_SHOWN]
    table = plain_table(
        "metric", "slice", INTERVAL_HEADING, "scored", "from the rest", right=("scored", "from the rest")
    )
    for row in shown:
        unit = infos[row.metric].unit
        label = row.metric if len(backends[row.metric]) == 1 else f"{row.metric}[{row.backend}]"
        informational = " i" if row.status == "informational" else ""
        difference = "–" if row.difference is None else f"{row.difference:+.2f} sd"
        table.add_row(
            Text(f"{printable_line(label)}{informational}"),
            Text(printable_line(row.slice, 40)),
            Text("–" if row.mean is None else with_interval(row.mean, row.low, row.high, unit)),
            Text(f"{row.n_scored}/{row.n_cases}"),
            Text("too small" if row.too_small else difference),
            style="dim" if row.too_small or row.status != "ok" else None,
        )
    console.print(table)
    if len(shown) < len(rows):
        left_out = counted(len(rows) - len(shown), "more row")
        console.print(f"… and {left_out} (--all shows them)", style="dim", highlight=False)
    small_note = f"; too small: fewer than {FEWEST_CASES} values" if any(row.too_small for row in shown) else ""
    note = f"from the rest: the mean less that of all other cases, in standard deviations; not tested{small_note}"
    print_line(note, console, "dim")

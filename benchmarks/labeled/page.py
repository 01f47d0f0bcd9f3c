"""The measured parts: the summary in docs/labeling.md, and coverage and width set by set in RESULTS.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from benchmarks.labeled.coverage import Cell
from benchmarks.labeled.stopping import FIRST_LOOK, LAST_LOOK, STEP, Stopped

START, END = "<!-- Measured by `python -m benchmarks.labeled`: begin -->", "<!-- Measured: end -->"
LEAST_COVERAGE, MOST_RATIO = 0.945, 1.1


def inserted(page: str, measured: str) -> str:
    """The page with its measured part replaced."""
    before, _, rest = page.partition(START)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the lines {START!r} and {END!r} must both be on the page")
    return f"{before}{START}\n\n{measured}\n{END}{after}"


def summary_part(on_sets: Sequence[Cell], simulated: Sequence[Cell]) -> str:
    """One table for users: does it hold, beside other methods."""
    rows = []
    for title, cells in (("public sets", on_sets), ("simulated", simulated)):
        for n in sorted({cell.n_labels for cell in cells}):
            here = [cell for cell in cells if cell.n_labels == n]
            least = [
                min(getattr(cell, name) for cell in here)
                for name in ("coverage", "coverage_alone", "coverage_ppi", "coverage_bootstrap")
            ]
            rows.append([title, str(n), str(len(here)), *(f"{each:.3f}" for each in least)])
    headings = ["populations", "labels", "cells", "labeled rate", "labels alone", "PPI++", "bootstrap"]
    return _table(headings, rows)


def measured_part(on_sets: Sequence[Cell], simulated: Sequence[Cell], stopped: Sequence[Stopped]) -> str:
    """Three tables: a summary, the sets, and what stopping does."""
    parts = []
    if on_sets:
        parts.append(_summary(f"On {len({cell.population for cell in on_sets})} labeled sets", on_sets))
    if simulated:
        parts.append(_summary("By simulation", simulated))
    if on_sets:
        parts.append("Set by set, at 60 labels:\n\n" + _set_table(on_sets))
    if stopped:
        parts.append(_stopping(stopped))
    return "\n".join(parts)


def _summary(title: str, cells: Sequence[Cell]) -> str:
    rows = []
    for n in sorted({cell.n_labels for cell in cells}):
        here = [cell for cell in cells if cell.n_labels == n]
        below = sum(cell.coverage < LEAST_COVERAGE for cell in here)
        near = sum(cell.ratio <= MOST_RATIO * cell.ideal for cell in here) / len(here)
        rows.append([
            str(n), str(len(here)), _span(cell.coverage for cell in here), str(below),
            _span(cell.coverage_alone for cell in here), _span(cell.coverage_ppi for cell in here),
            _span(cell.coverage_bootstrap for cell in here),
            f"{statistics.median(cell.ratio for cell in here):.2f} (at most {max(cell.ratio for cell in here):.2f})",
            f"{100 * near:.0f} %",
        ])  # fmt: skip
    headings = ["labels", "cells", "labeled rate holds", f"below {LEAST_COVERAGE}", "labels alone hold", "PPI++ holds",
                "bootstrap holds", "width / labels alone", "within 1.1 × normal law"]  # fmt: skip
    draws = sorted({cell.n_draws for cell in cells})
    drawn = f"{draws[0]:,}" if len(draws) == 1 else f"{draws[0]:,} to {draws[-1]:,}"
    return f"**{title}** ({drawn} draws a cell; lowest share, then the median over cells):\n\n" + _table(headings, rows)


def _span(values: Iterable[float]) -> str:
    found = list(values)
    return f"{min(found):.3f}, {statistics.median(found):.3f}"


def _set_table(cells: Sequence[Cell]) -> str:
    rows = [
        [cell.population, cell.scorer, f"{cell.n_cases:,}", f"{cell.rate:.2f}", f"{cell.mean_score:.2f}",
         f"{cell.correlation:.2f}", f"{cell.coverage:.3f}", f"{cell.coverage_ppi:.3f}",
         f"{cell.coverage_bootstrap:.3f}", f"{cell.width_alone:.2f}", f"{cell.width:.2f}", f"{cell.ratio:.2f}",
         f"{cell.ideal:.2f}"]
        for cell in cells
        if cell.n_labels == 60
    ]  # fmt: skip
    headings = ["set", "scorer", "cases", "true rate", "mean score", "ρ", "labeled rate holds", "PPI++", "bootstrap",
                "width alone", "width", "ratio", "√(1 − ρ²(1 − n/N))"]  # fmt: skip
    return _table(headings, rows)


def _stopping(stopped: Sequence[Stopped]) -> str:
    rows = [
        [f"{width:g}", str(len(here)), _span(each.coverage for each in here),
         f"{min(each.median_labels for each in here):.0f} to {max(each.median_labels for each in here):.0f}"]
        for width in sorted({each.width for each in stopped}, reverse=True)
        for here in [[each for each in stopped if each.width == width]]
    ]  # fmt: skip
    return (
        f"**Stopping when the interval is narrow enough** (a look every {STEP} labels from the {FIRST_LOOK}th to the "
        f"{LAST_LOOK}th, {stopped[0].n_draws:,} draws a cell, 5,000 simulated cases; lowest share, then the median):"
        "\n\n" + _table(["stop at width", "cells", "interval holds", "labels asked for, median"], rows)
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *rows)]
    return "\n".join(lines) + "\n"

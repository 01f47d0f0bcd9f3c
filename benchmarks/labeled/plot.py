"""The plot of docs/labeling.md: coverage of each method, and width beside what the normal law would promise."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from html import escape

from benchmarks.labeled.coverage import Cell

_PANEL, _GAP, _TOP, _LEFT, _HEIGHT = 330, 90, 46, 52, 300
_COLORS = {"labeled rate": "#1a6fb5", "PPI++": "#c8553d", "bootstrap": "#8a8a8a"}


def plot(cells: Sequence[Cell]) -> str:
    """An SVG with both panels."""
    width = _LEFT + 2 * _PANEL + _GAP + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_TOP + _HEIGHT + 56}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        f'<rect width="{width}" height="{_TOP + _HEIGHT + 56}" fill="white"/>',
        *_coverage_panel(cells),
        *_width_panel(cells, _LEFT + _PANEL + _GAP),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _coverage_panel(cells: Sequence[Cell]) -> Iterable[str]:
    yield _text(_LEFT, 18, "How often a 95 % interval holds the truth", bold=True)
    yield _text(_LEFT, 34, "one dot: one population and number of labels")

    def height(coverage: float) -> float:
        return _TOP + (1.0 - coverage) * _HEIGHT

    yield from _frame(_LEFT, [(height(each / 10), f"{each / 10:.1f}") for each in range(0, 11, 2)])
    counts = sorted({cell.n_labels for cell in cells})
    slot = _PANEL / (len(counts) * len(_COLORS))
    scatter = random.Random(0)
    for group, n in enumerate(counts):
        here = [cell for cell in cells if cell.n_labels == n]
        for order, (method, color) in enumerate(_COLORS.items()):
            left = _LEFT + (group * len(_COLORS) + order) * slot
            for cell in here:
                covered = _covered(cell, method)
                yield _dot(left + slot * (0.2 + 0.6 * scatter.random()), height(covered), color)
        yield _text(_LEFT + (group + 0.5) * len(_COLORS) * slot, _TOP + _HEIGHT + 18, f"{n} labels", middle=True)
    yield _line(_LEFT, height(0.95), _LEFT + _PANEL, height(0.95), "#333", dashed=True)
    for order, (method, color) in enumerate(_COLORS.items()):
        yield _dot(_LEFT + 8 + order * 105, _TOP + _HEIGHT + 38, color, radius=5.0)
        yield _text(_LEFT + 18 + order * 105, _TOP + _HEIGHT + 42, method)


def _width_panel(cells: Sequence[Cell], left: float) -> Iterable[str]:
    yield _text(left, 18, "Width beside that of labels alone", bold=True)
    yield _text(left, 34, "line: what the normal law would promise")
    scale = 1.2

    def place(ideal: float, ratio: float) -> tuple[float, float]:
        return left + min(ideal, scale) / scale * _PANEL, _TOP + (1.0 - min(ratio, scale) / scale) * _HEIGHT

    marks = [each / 10 for each in range(0, 13, 2)]
    yield from _frame(left, [(place(0.0, mark)[1], f"{mark:.1f}") for mark in marks])
    for mark in marks:
        yield _text(place(mark, 0.0)[0], _TOP + _HEIGHT + 18, f"{mark:.1f}", middle=True)
    yield _text(left + _PANEL / 2, _TOP + _HEIGHT + 42, "√(1 − ρ²(1 − n/N)): left, better scorers", middle=True)
    shades = {30: "#9cc4e4", 60: "#4b93cc", 120: "#0b4a7f"}
    for cell in cells:
        yield _dot(*place(cell.ideal, cell.ratio), shades.get(cell.n_labels, "#1a6fb5"))
    yield _line(*place(0.0, 0.0), *place(1.0, 1.0), "#333", dashed=True)
    for order, (n, color) in enumerate(shades.items()):
        yield _dot(left + _PANEL - 92, _TOP + _HEIGHT - 48 + 16 * order, color, radius=4.0)
        yield _text(left + _PANEL - 82, _TOP + _HEIGHT - 44 + 16 * order, f"{n} labels")


def _covered(cell: Cell, method: str) -> float:
    return {"labeled rate": cell.coverage, "PPI++": cell.coverage_ppi, "bootstrap": cell.coverage_bootstrap}[method]


def _frame(left: float, marks: Iterable[tuple[float, str]]) -> Iterable[str]:
    for y, label in marks:
        yield _line(left, y, left + _PANEL, y, "#e3e3e3")
        yield f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'


def _text(x: float, y: float, text: str, *, bold: bool = False, middle: bool = False) -> str:
    style = (' font-weight="bold"' if bold else "") + (' text-anchor="middle"' if middle else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, color: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"{dash}/>'


def _dot(x: float, y: float, color: str, radius: float = 2.2) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}" fill-opacity="0.7"/>'

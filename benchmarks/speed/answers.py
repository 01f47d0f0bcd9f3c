"""The answer to one question: figures for the JSON file, a table for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Column:
    """One column: the key of a row, its heading, and how a number is written; without that it holds text."""

    key: str
    heading: str
    written: Callable[[Any], str] | None = None

    def cell(self, row: dict[str, Any]) -> str:
        """What stands in this column of a row."""
        if self.key not in row:
            return "–"
        return str(row[self.key]) if self.written is None else self.written(row[self.key])


@dataclass
class Answer:
    """A question, its rows as plain data, and how they are shown. A value that a row lacks is shown as a dash."""

    key: str
    question: str
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, **row: Any) -> None:
        """Add a row; what is ``None`` is unknown and left out."""
        self.rows.append({key: value for key, value in row.items() if value is not None})

    def compare(self, key: str, ours: str) -> None:
        """Give each row its ``ratio``: how many times the figure of the row named ``ours``."""
        base = next((row.get(key) for row in self.rows if row["name"] == ours), None)
        for row in self.rows:
            if base and key in row:
                row["ratio"] = row[key] / base

    def table(self) -> str:
        """The rows as a Markdown table, aligned so that it reads well in a terminal too."""
        cells = [[column.heading for column in self.columns]]
        cells += [[column.cell(row) for column in self.columns] for row in self.rows]
        widths = [max(len(line[n]) for line in cells) for n in range(len(self.columns))]
        lines = [self._line(each, widths) for each in cells]
        rule = [
            "-" * width if column.written is None else "-" * (width - 1) + ":"
            for column, width in zip(self.columns, widths, strict=True)
        ]
        lines.insert(1, "| " + " | ".join(rule) + " |")
        return "\n".join([f"## {self.question}", "", *lines, *(f"\n{remark}" for remark in self.remarks)])

    def _line(self, cells: list[str], widths: list[int]) -> str:
        aligned = [
            cell.ljust(width) if column.written is None else cell.rjust(width)
            for column, cell, width in zip(self.columns, cells, widths, strict=True)
        ]
        return "| " + " | ".join(aligned) + " |"


def decimals(n: int) -> Callable[[float], str]:
    """Writes numbers with this many decimals."""
    return lambda value: f"{value:,.{n}f}"


def times(ratio: float) -> str:
    """Writes a ratio, coarser as it grows."""
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2f}×"


def verdict(figure: float, target: float, unit: str) -> str:
    """Whether a figure of ours is within its target."""
    return f"{'met' if figure <= target else 'MISSED'} (≤ {target:g} {unit})"

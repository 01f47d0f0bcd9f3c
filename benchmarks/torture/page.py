"""The table, on the terminal and in docs/reliability.md."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from benchmarks.torture.ledger import Ledger

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN, _END = "<!-- torture: begin -->", "<!-- torture: end -->"
_PARTS = {
    "kill -9": "SIGKILL at a random moment",
    "signal": "SIGTERM, SIGHUP, Ctrl-C twice",
    "full disk": "disk full",
    "read-only": "disk read-only",
    "clock": "clock set back",
    "two writers": "two at once",
    "agents": "hostile agents",
    "fuzz": "fuzzed inputs",
    "output": "hostile output",
    "attacks": "attacks",
    "determinism": "same scores",
}


def table(ledger: Ledger) -> str:
    """What was tried, how often, what was lost: as Markdown, which is also read well on a terminal."""
    header = [("what was done", "to what", "times", "lost")]
    rows = [
        (
            _PARTS.get(row.part, row.part) if first else "",
            row.tried,
            f"{row.times:,}",
            row.result.replace("|", "/")[:120],
        )
        for _, rows in groupby(ledger.rows, key=lambda row: row.part)
        for first, row in ((at == 0, row) for at, row in enumerate(rows))
    ]
    widths = [max(len(row[column]) for row in header + rows) for column in range(4)]
    lines = [
        _line(header[0], widths),
        "|" + "|".join("-" * (width + 1) + (":" if at == 2 else "-") for at, width in enumerate(widths)) + "|",
    ]
    return "\n".join([*lines, *(_line(row, widths) for row in rows)])


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    shown = [
        cell.rjust(width) if at == 2 else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "| " + " | ".join(shown) + " |"


def totals(ledger: Ledger) -> str:
    """The counts in one sentence."""
    counted = {part: sum(row.times for row in ledger.rows if row.part == part) for part in _PARTS}
    lost = f"see {len(ledger.failed)} rows" if ledger.failed else "nothing"
    return (
        f"{counted['kill -9']:,} kills, {counted['signal']:,} signals, {counted['agents']:,} acts of hostile agents, "
        f"{counted['fuzz']:,} fuzzed inputs; lost: {lost}"
    )


def write_page(ledger: Ledger, version: str, form: str) -> None:
    """Put the table into its place on the page; what stands around it is written by hand."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    said = f"AgentUnit {version}, {form}, seed {ledger.seed}: {totals(ledger)}."
    PAGE.write_text(f"{before}{_BEGIN}\n{said}\n\n{table(ledger)}\n{_END}{after}", encoding="utf-8")

"""The table, on the terminal and in RESULTS.md, and its summary in docs/reliability.md."""

from __future__ import annotations

from datetime import date
from itertools import groupby
from pathlib import Path

from benchmarks.torture.ledger import Ledger

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
RESULTS = Path(__file__).with_name("RESULTS.md")
_BEGIN, _END = "<!-- torture: begin -->", "<!-- torture: end -->"
# Each part: its name in tables, and what must hold whatever was done.
_PARTS = {
    "kill -9": (
        "SIGKILL at a random moment",
        "what was shown or acknowledged is there; no finished case runs again, no process is left; continued, the "
        "result is that of an undisturbed run",
    ),
    "signal": (
        "SIGTERM, SIGHUP, Ctrl-C twice",
        "the same, with the command's own exit code and no traceback",
    ),
    "full disk": (
        "disk full",
        "exit code 3 and a message; with space again, the work continues to the same result",
    ),
    "read-only": ("disk read-only", "reading works and changes nothing; commands that write say why they cannot"),
    "clock": ("clock set back", "no negative duration; `last` is the run that was started last"),
    "two writers": ("two at once", "each command does its work or is refused with a message"),
    "agents": (
        "hostile agents",
        "the other cases are recorded, the exit code says what happened, and a harmless agent completes the run",
    ),
    "fuzz": ("fuzzed inputs", "a reader fails only with the errors that it declares, within 10 s and 3 GB"),
    "output": ("hostile output", "escapes, formulas, markup and workflow commands have no effect in any output"),
    "attacks": (
        "attacks",
        "nothing of an imported file is run; memory, time and a judge's spend stay within their limits",
    ),
    "determinism": ("same scores", "equal to the last digit for any processes, batches, seeds and orders"),
}


def table(ledger: Ledger) -> str:
    """What was tried, how often, what was lost: as Markdown, which is also read well on a terminal."""
    header = [("what was done", "to what", "times", "lost")]
    rows = [
        (
            _name_of(row.part) if first else "",
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


def summary(ledger: Ledger) -> str:
    """One row for each part: how much was tried, what was lost, and what had to hold."""
    lines = ["| what was done | rows | times | lost | what must hold |", "| --- | --: | --: | --- | --- |"]
    for part, grouped in groupby(ledger.rows, key=lambda row: row.part):
        rows = list(grouped)
        bad = sum(row.result != "nothing" for row in rows)
        lost = f"see {bad} rows" if bad else "nothing"
        _, must_hold = _PARTS.get(part, (part, ""))
        lines.append(f"| {_name_of(part)} | {len(rows)} | {sum(row.times for row in rows):,} | {lost} | {must_hold} |")
    return "\n".join(lines)


def _name_of(part: str) -> str:
    return _PARTS.get(part, (part, ""))[0]


def write_page(ledger: Ledger, version: str, form: str) -> None:
    """Put the summary on the page and the table into RESULTS.md; what stands around them is written by hand."""
    measured = f"AgentUnit {version}, {form}, {date.today()}, seed {ledger.seed}: {totals(ledger)}."
    for path, text in ((PAGE, summary(ledger)), (RESULTS, table(ledger))):
        before, _, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
        _, _, after = rest.partition(_END)
        path.write_text(f"{before}{_BEGIN}\n{measured}\n\n{text}\n{_END}{after}", encoding="utf-8")

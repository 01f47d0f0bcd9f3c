"""Trace files in the terminal: how they were read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentunit.reports.console import print_line
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask, printing_mask
from agentunit.reports.terminal import Terminal
from agentunit.traces.formats import format_named, format_table
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.reading import TraceSource

if TYPE_CHECKING:
    pass

_NAMES_SHOWN = 5
_LONGEST_NAME = 60


def reading_lines(source: TraceSource, mask: Mask | None = None) -> list[str]:
    """One line a fact, with names that are data masked; none when nothing was noticed."""
    notes, lines = source.notes, []
    mask = mask or printing_mask()
    if set(notes.formats) - {NATIVE_FORMAT}:
        formats = ", ".join(_read_as(name, n) for name, n in notes.formats.most_common())
        spans = f": {counted(notes.n_spans, 'span')} in {counted(notes.n_traces, 'trace')}" if notes.n_spans else ""
        lines.append(f"read as {formats}{spans}")
    if notes.unplaced:
        n_unplaced = sum(notes.unplaced.values())
        names = ", ".join(
            printable_line(mask.name(name))[:40] or "(no name)" for name, _ in notes.unplaced.most_common(_NAMES_SHOWN)
        )
        more = f", … ({len(notes.unplaced)} names)" if len(notes.unplaced) > _NAMES_SHOWN else ""
        lines.append(f"{counted(n_unplaced, 'span')} of no known vocabulary, kept as plain events: {names}{more}")
    if notes.not_understood:
        lines.append(_not_understood(notes.not_understood, mask))
    lines += [f"{n:,} × {printable_line(mask.name(problem))}" for problem, n in notes.problems.most_common()]
    if source.expected is not None:
        lines.append(_joined(source, mask))
    return lines


def _read_as(name: str, n_files: int) -> str:
    """A format, of how many files, and whether nothing but the shape of what was in them told it."""
    known = format_named(name) if name in format_table().entries else None
    shape = " by its shape" if known is not None and known.by_shape else ""
    return f"{name}{shape} ({n_files:,})" if n_files > 1 else f"{name}{shape}"


def _not_understood(fields: Counter[str], mask: Mask) -> str:
    named = [
        f"{printable_line(mask.name(name))[:_LONGEST_NAME]} ×{n:,}" for name, n in fields.most_common(_NAMES_SHOWN)
    ]
    more = ", …" if len(fields) > _NAMES_SHOWN else ""
    return f"{counted(len(fields), 'field')} not understood: {', '.join(named)}{more}"


def print_reading(source: TraceSource, terminal: Terminal) -> None:
    """Print what was noticed, under a heading of its own."""
    lines = reading_lines(source)
    if lines:
        terminal.print("While reading", style="bold")
        for line in lines:
            print_line(f"  {line}", terminal)
        terminal.print()


def _joined(source: TraceSource, mask: Mask) -> str:
    answers = source.expected
    if answers is None:
        return ""
    line = f"expected answers were found for {counted(answers.n_joined, 'case')}"
    unused = answers.unused
    if unused:
        names = ", ".join(printable_line(mask.name(name))[:40] for name in unused[:_NAMES_SHOWN])
        more = ", …" if len(unused) > _NAMES_SHOWN else ""
        line += f"; {counted(len(unused), 'row')} of the dataset met no case: {names}{more}"
    if answers.n_ambiguous:
        line += f"; {answers.n_ambiguous:,} cases fit several rows there (the same question, or ids that differ only "
        line += "in case or prefix): write the exact ids into the rows"
    return line

"""What was noticed while traces were read, in a few lines: nothing is dropped silently."""

from __future__ import annotations

from agentunit.reports.console import Terminal
from agentunit.reports.printable import printable_line
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.reading import TraceSource

_SHOWN = 5


def reading_lines(source: TraceSource) -> list[str]:
    """One line a fact; none when there is nothing to tell."""
    notes, lines = source.notes, []
    if set(notes.formats) - {NATIVE_FORMAT}:
        formats = ", ".join(f"{name} ({n:,})" if n > 1 else name for name, n in notes.formats.most_common())
        spans = f": {_n(notes.n_spans, 'span')} in {_n(notes.n_traces, 'trace')}" if notes.n_spans else ""
        lines.append(f"read as {formats}{spans}")
    if notes.unplaced:
        n_unplaced = sum(notes.unplaced.values())
        names = ", ".join(printable_line(name)[:40] or "(no name)" for name, _ in notes.unplaced.most_common(_SHOWN))
        more = f", … ({len(notes.unplaced)} names)" if len(notes.unplaced) > _SHOWN else ""
        lines.append(f"{_n(n_unplaced, 'span')} of no known vocabulary, kept as plain events: {names}{more}")
    lines += [f"{n:,} × {printable_line(problem)}" for problem, n in notes.problems.most_common()]
    if source.expected is not None:
        lines.append(_joined(source))
    return lines


def print_reading(source: TraceSource, terminal: Terminal) -> None:
    """Print what was noticed, under a heading of its own."""
    lines = reading_lines(source)
    if lines:
        terminal.print("[bold]While reading[/bold]")
        for line in lines:
            terminal.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        terminal.print()


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _joined(source: TraceSource) -> str:
    answers = source.expected
    if answers is None:
        return ""
    line = f"expected answers were found for {_n(answers.n_joined, 'case')}"
    unused = answers.unused
    if unused:
        names = ", ".join(printable_line(name)[:40] for name in unused[:_SHOWN])
        line += f"; {_n(len(unused), 'row')} of the dataset met no case: {names}{', …' if len(unused) > _SHOWN else ''}"
    if answers.n_ambiguous:
        line += f"; {answers.n_ambiguous:,} cases fit several rows there (the same question, or ids that differ only "
        line += "in case or prefix): write the exact ids into the rows"
    return line

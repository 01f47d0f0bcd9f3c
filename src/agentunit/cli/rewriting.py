"""Records written anew, by this process or several: what ``convert`` and ``redact`` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import click

from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.outputs import Output
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.score_block import MaskedValues
from agentunit.doors import part
from agentunit.reports.console import error_line
from agentunit.reports.progress import Progress
from agentunit.reports.terminal import Terminal
from agentunit.reports.trace_console import print_reading
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN
from agentunit.traces.reading import TraceFiles, TraceSource

# A few at a time are redacted faster than one by one.
RECORDS_AT_ONCE = 16
_SHOWN = 5


class RewritesBlock(Protocol):
    """What gives the lines of some records, and what was masked in them. It must be able to go to another process."""

    def __call__(self, records: Sequence[Record], /) -> tuple[list[bytes], MaskedValues | None]:
        """The lines, one a record and without their ends."""


class Rewritten(NamedTuple):
    """What came of rewriting: how many records were written, and what could not be read."""

    n_records: int
    errors: list[InputError]


def rewrite_records(
    source: TraceSource, out: str, rewritten: Callable[[Sequence[Record]], Iterable[bytes]]
) -> Rewritten:
    """Write the records of a source as ``rewritten`` gives them back, a few at a time, which is faster for some.

    What was there before stays until the new records are whole.
    """
    errors: list[InputError] = []
    progress = Progress("records", fraction=source.fraction, failures=lambda: len(errors))
    source.on_progress = progress.touch
    records = _readable(progress.watch(source), errors)
    n_records = 0
    with Output(out) as output:
        while batch := list(islice(records, RECORDS_AT_ONCE)):
            n_records += len(batch)
            output.stream.writelines(line + b"\n" for line in rewritten(batch))
        output.finish(keep=n_records > 0)
    return Rewritten(n_records, errors)


def _readable(source: Iterable[Record | InputError], errors: list[InputError]) -> Iterator[Record]:
    for each in source:
        if isinstance(each, InputError):
            errors.append(each)
        else:
            yield each


def rewrite_in_processes(
    source: TraceFiles,
    out: str,
    rewritten: RewritesBlock,
    jobs: int,
    *,
    format_name: str | None,
    final: Callable[[MaskedValues, bytes], bytes] | None = None,
) -> Rewritten:
    """Write the records of files as ``rewritten`` gives them back, in several processes.

    ``final`` gives the lines of each block in which something was masked, if they are to be others.
    """
    done: Rewritten = part("rewrite_in_processes")(source, out, rewritten, jobs, format_name, final)
    return done


def can_share(source: TraceSource, files: Sequence[str], group_by: GroupBy) -> TraceFiles | None:
    """The source if its files can be read by several processes, each a part; ``None`` when one must read all."""
    return source if isinstance(source, TraceFiles) and STDIN not in files and group_by == "trace" else None


def conclude_rewriting(
    source: TraceSource, out: str, done: Rewritten, more: Iterable[str] = (), what: str = "record"
) -> None:
    """Say what was noticed, not read and written; nothing written, or an error, ends the command with exit code 3."""
    console = Terminal(stderr=True)
    print_reading(source, console)
    lines = [f"not read: {error_line(error)}" for error in done.errors[:_SHOWN]]
    if len(done.errors) > _SHOWN:
        lines.append(f"… and {len(done.errors) - _SHOWN:,} more")
    where = "standard output" if out == STDIN else out
    written = f"1 {what}" if done.n_records == 1 else f"{done.n_records:,} {what}s"
    lines.append(f"{written} in {where}" if done.n_records else f"no {what}s")
    for line in (*lines, *(more if done.n_records else ())):
        console.print(line, soft_wrap=True)
    if done.errors or not done.n_records:
        raise click.exceptions.Exit(EXIT_ERRORS)

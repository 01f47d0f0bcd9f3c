"""The unit of work as a pure function: some bytes of the input in, score lines and columns out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any

from msgspec import Struct

from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.engine.columns import Block
from agentunit.engine.parallel.collect import Collector
from agentunit.engine.parallel.units import TraceUnit, Unit
from agentunit.engine.scoring import Run
from agentunit.metrics.base import describe
from agentunit.metrics.inputs import Item
from agentunit.traces.expected import ExpectedAnswers, ExpectedUse
from agentunit.traces.grouping import SpanGroups
from agentunit.traces.reading import TraceFiles
from agentunit.traces.spans import ReadingNotes
from agentunit.traces.spools import Spool, finish_spool, read_traces

# A unit may be a whole file of any size: what it adds up to is handed on after so many records or bytes of lines.
_RECORDS_A_BLOCK = 4096
_LINE_BYTES_A_BLOCK = 8 << 20

Lines = bytes | bytearray


@dataclass(frozen=True)
class Job:
    """What all units of a job share. ``first_path`` is the first of all files, beside which media of spans lie."""

    first_path: str
    format: str | None = None
    expected: ExpectedAnswers | None = None
    with_ids: bool = False

    def source(self) -> TraceFiles:
        """What reads the files of its units."""
        return TraceFiles([self.first_path], format=self.format, expected=self.expected)

    def blocks(self, found: Iterator[Record | InputError], counts: UnitCounts) -> Iterator[tuple[Block, Lines]]:
        """What is made of the records of a unit."""
        raise NotImplementedError


@dataclass(frozen=True)
class ScoringJob(Job):
    """A job that scores: score lines, and columns for the aggregates."""

    metrics: Sequence[Any] = ()
    strict: bool = False
    by: str | None = None
    with_lines: bool = False
    batch_size: int = 64

    def blocks(self, found: Iterator[Record | InputError], counts: UnitCounts) -> Iterator[tuple[Block, Lines]]:
        """The records' scores."""
        return _scored(self, found, counts)


class UnitEnd(Struct, array_like=True, tag="end"):
    """What is known of a unit when all of it was read.

    ``n_bad`` parts could not be read, and ``is_cut_off`` says that these were too many to read on. ``is_refused``: the
    last of its errors ends a strict job. ``spool`` says where its spans are.
    """

    notes: dict[str, Any]
    passed_over: dict[str, str]
    n_bad: int = 0
    is_cut_off: bool = False
    is_refused: bool = False
    expected: ExpectedUse | None = None
    spool: Spool | None = None


@dataclass
class SpoolFiles:
    """Where the spans of units lie: what a unit writes its own to, and those of others by number."""

    own: IO[bytes] | None = None
    others: dict[int, tuple[IO[bytes], Spool]] = field(default_factory=dict)


def work_on_unit(
    job: Job, unit: Unit, spools: SpoolFiles, first: int = 0, bad_before: int = 0
) -> Iterator[tuple[Block, Lines] | UnitEnd]:
    """Do a job on what a unit holds: blocks of records, each with its lines, and at last what is known of it all.

    The spans of a file are written to ``spools.own``: their traces may go on in other files. Records are numbered from
    ``first``. ``bad_before`` parts of the unit's file before it could not be read.
    """
    source = job.source()
    counts = UnitCounts(first)
    used_before = None if job.expected is None else job.expected.take_use()
    with ExitStack() as stack:
        groups = stack.enter_context(SpanGroups(source.notes, file=spools.own))
        found = _found(source, unit, groups, spools, bad_before)
        yield from job.blocks(counts.watched(found), counts)
        spool = finish_spool(groups, source.notes) if len(groups) else None
        used = None if job.expected is None else job.expected.take_use()
        if job.expected is not None and used_before is not None:
            job.expected.add_use(used_before)
        yield UnitEnd(
            notes_as_data(source.notes),
            source.passed_over,
            counts.n_bad,
            counts.is_cut_off,
            counts.is_refused,
            used,
            spool,
        )


class UnitCounts:
    """What is counted while a unit is read; ``first`` is the place of its first record in the input, as is guessed."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.n_bad = 0
        self.is_cut_off = self.is_refused = False
        self.errors: list[InputError] = []

    def watched(self, found: Iterator[Record | InputError]) -> Iterator[Record | InputError]:
        """What is found, with what could not be read kept aside."""
        for each in found:
            if isinstance(each, InputError):
                self.n_bad += 1
                self.is_cut_off = self.is_cut_off or is_cut_off(each)
                self.errors.append(each)
            yield each

    def take_errors(self) -> list[InputError]:
        """What could not be read since this was asked before."""
        errors, self.errors = self.errors, []
        return errors


def _found(
    source: TraceFiles, unit: Unit, groups: SpanGroups, spools: SpoolFiles, bad_before: int
) -> Iterator[Record | InputError]:
    if isinstance(unit, TraceUnit):
        return source.assembled(read_traces(unit.traces, spools.others, source.notes))
    return source.read_file(unit.path, unit.named, groups, unit.lines, bad_before)


def _scored(job: ScoringJob, found: Iterator[Record | InputError], counts: UnitCounts) -> Iterator[tuple[Block, Lines]]:
    infos = [describe(metric) for metric in job.metrics]
    latest: list[Item] = []
    run = Run(found, job.metrics, batch_size=job.batch_size, strict=job.strict, aggregated=False)
    run.on_scored = lambda item, scores: latest.append(item)
    without_content = user_failed = 0

    def block(collected: Collector) -> tuple[Block, Lines]:
        nonlocal without_content, user_failed
        n_without_content, n_user_failed = run.n_without_content - without_content, run.n_user_failed - user_failed
        made = collected.block(counts.take_errors(), n_without_content, n_user_failed)
        without_content, user_failed = run.n_without_content, run.n_user_failed
        return made

    def collector() -> Collector:
        first = counts.first + run.n_cases
        return Collector(infos, first, by=job.by, with_lines=job.with_lines, with_ids=job.with_ids)

    now = collector()
    try:
        for case in run:
            item = latest.pop()
            now.add(case, str(item.case.id or ""), item.case.metadata)
            if now.n_records >= _RECORDS_A_BLOCK or now.n_line_bytes >= _LINE_BYTES_A_BLOCK:
                yield block(now)
                now = collector()
    except RecordError:
        counts.is_refused = True
    yield block(now)


def is_cut_off(error: InputError) -> bool:
    """Whether an error says that so much of a file cannot be read that the rest of it is left out."""
    return error.line is None and error.reason.startswith("more than ") and "parts of the file" in error.reason


def notes_as_data(notes: ReadingNotes) -> dict[str, Any]:
    """Notes as plain data."""
    return {name: getattr(notes, name) for name in notes.__struct_fields__}


def notes_from_data(data: dict[str, Any]) -> ReadingNotes:
    """Notes that were written as plain data."""
    notes = ReadingNotes()
    for name, each in data.items():
        setattr(notes, name, Counter(each) if isinstance(each, dict) else each)
    return notes

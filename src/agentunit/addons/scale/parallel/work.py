"""The unit of work as a pure function: some bytes of the input in, score lines and columns out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any

from msgspec import Struct

from agentunit.addons.scale.parallel._spools import Spool, finish_spool, read_traces
from agentunit.addons.scale.parallel.units import TraceUnit, Unit
from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import CaseScores, InputError, append_scores
from agentunit.core.score_block import Block, BlockBuilder, SliceColumns
from agentunit.engine.deciding.cut_offs import number_key
from agentunit.engine.deciding.run_findings import CaseTally
from agentunit.engine.scoring.case_fields import field_values, other_fields
from agentunit.engine.scoring.records import Run
from agentunit.engine.scoring.slices import MOST_FIELDS
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.inputs import Item
from agentunit.traces.expected import ExpectedAnswers, ExpectedUse
from agentunit.traces.grouping import SpanGroups
from agentunit.traces.reading import TraceFiles
from agentunit.traces.spans import ReadingNotes

# In a worker: the scores of one record after the other become blocks.


class _Sliced:
    """The slices of some cases."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._values: dict[tuple[str, ...], list[int]] = {}
        self._other: dict[str, None] = {}
        self._other_fields: list[list[str]] = []
        self._of_record: list[int] = []

    def add(self, metadata: Any) -> None:
        values = field_values(metadata, self._field)
        if not values and len(self._other) < MOST_FIELDS and (fields := other_fields(metadata)):
            self._other.update(dict.fromkeys(fields))
            self._other_fields.append(fields)
        known = self._values.setdefault(values, [len(self._values), 0])
        known[1] += 1
        self._of_record.append(known[0])

    def columns(self) -> SliceColumns:
        n_cases_of = [(values, n_cases) for values, (_, n_cases) in self._values.items()]
        return SliceColumns(n_cases_of, self._other_fields, self._of_record)


class Collector:
    """Takes cases with their scores, from place ``first`` of the input on; ``block`` is what they add up to."""

    def __init__(self, infos: Mapping[str, MetricInfo], first: int, *, by: str | None, with_lines: bool) -> None:
        self._builders = [BlockBuilder(name, number_key(info)) for name, info in infos.items()]
        self._first = first
        self._slices = None if by is None else _Sliced(by)
        self._lines: bytearray | None = bytearray() if with_lines else None
        self._case_ids: list[str] = []
        self.tally = CaseTally(infos)

    @property
    def n_records(self) -> int:
        """How many cases were taken."""
        return len(self._case_ids)

    @property
    def n_line_bytes(self) -> int:
        """How long the lines are so far."""
        return 0 if self._lines is None else len(self._lines)

    def add(self, case: CaseScores, item: Item) -> None:
        """Take the scores of the next record."""
        place = self.n_records
        own_id = str(item.case.id or "")
        self._case_ids.append(own_id)
        self.tally.add(own_id or f"case-{self._first + place + 1}", item, case.scores)
        for builder, score in zip(self._builders, case.scores.values(), strict=True):
            builder.add(score)
        if self._slices is not None:
            self._slices.add(item.case.metadata)
        if self._lines is not None:
            case.index = self._first + place
            case.case_id = own_id or f"case-{case.index + 1}"
            append_scores(case, self._lines)

    def block(self, errors: list[InputError], n_without_content: int, n_user_failed: int) -> tuple[Block, bytearray]:
        """What the records add up to, and their lines."""
        lines = self._lines or bytearray()
        scores = [builder.block() for builder in self._builders]
        for block in scores:
            # The same for all metrics, and where the records stand in the run is known only there.
            block.positions = block.repeats = []
        made = Block(
            self.n_records,
            scores,
            errors,
            n_without_content,
            n_user_failed,
            len(lines),
            self._case_ids,
            None if self._slices is None else self._slices.columns(),
            first=self._first,
            tally=self.tally.take(),
        )
        return made, lines


# A unit may be a whole file of any size: what it adds up to is handed on after so many records or bytes of lines.
_RECORDS_A_BLOCK = 1024
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
        return Collector(run.infos, first, by=job.by, with_lines=job.with_lines)

    now = collector()
    # A function may turn out to be a check.
    run.on_check = lambda name, info: now.tally.read_checks()
    try:
        for case in run:
            item = latest.pop()
            now.add(case, item)
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

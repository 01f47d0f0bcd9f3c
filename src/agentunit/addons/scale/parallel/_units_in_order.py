"""The units of a job done by worker processes, and their results taken in the order of the input."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import IO, NamedTuple

from agentunit.addons.scale.parallel._spools import Spool
from agentunit.addons.scale.parallel.folder import JobFolder
from agentunit.addons.scale.parallel.pool import Pool, WorkerDied, leave_if_orphaned
from agentunit.addons.scale.parallel.scored_items import pool_of
from agentunit.addons.scale.parallel.units import BLOCK_BYTES, FileUnit, Unit, file_units, trace_units
from agentunit.addons.scale.parallel.work import Job, Lines, SpoolFiles, UnitEnd, notes_from_data, work_on_unit
from agentunit.core.results import InputError
from agentunit.core.score_block import Block
from agentunit.engine.scoring.records import WorkFailed
from agentunit.traces.limits import read_limits
from agentunit.traces.line_ranges import LineRange
from agentunit.traces.reading import TraceFiles
from agentunit.urls import is_remote, open_binary, shown_source

# Which place in the input each record has, when others before it are still being worked on.


class Forecast:
    """The place of each unit's first record, guessed before it is done.

    A worker that knows it writes lines as they are to be. Every line of a file is taken for a record, and every trace;
    where one is none, the lines of the units that were begun meanwhile are numbered anew.
    """

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._n_done = 0
        self._ahead: dict[int, int] = {}
        self._n_ahead = 0

    def begin(self, number: int, unit: Unit) -> int:
        """Go on with the next unit: where its first record will stand."""
        first = self._n_done + self._n_ahead
        self._ahead[number] = self._guess(unit)
        self._n_ahead += self._ahead[number]
        return first

    def finish(self, number: int, n_records: int) -> None:
        """A unit was taken, after all before it."""
        self._n_done += n_records
        self._n_ahead -= self._ahead.pop(number, 0)

    def _guess(self, unit: Unit) -> int:
        if not isinstance(unit, FileUnit):
            return len(unit.traces)
        if is_remote(unit.path) or unit.n_bytes > self._block_bytes:
            return 0
        try:
            with open(unit.path, "rb", buffering=0) as raw:
                return (unit.lines or LineRange(0, unit.n_bytes)).n_begun(raw)
        except OSError:
            return 0


def numbered_lines(data: bytes, first: int, was_first: int, missing_ids: Sequence[int]) -> list[bytes]:
    """Score lines with their right places in the input, which are not what was guessed.

    >>> numbered_lines(b'{"index":6,"case_id":"q7"}\\n{"index":7,"case_id":"case-8"}\\n', 9, 6, [1])
    [b'{"index":9,"case_id":"q7"}', b'{"index":10,"case_id":"case-11"}']
    """
    without_id = frozenset(missing_ids)
    lines = data.split(b"\n")
    lines.pop()
    for place, line in enumerate(lines):
        start = _line_start(was_first + place, place in without_id)
        lines[place] = _line_start(first + place, place in without_id) + line[len(start) :]
    return lines


def _line_start(index: int, without_id: bool) -> bytes:
    return b'{"index":%d,"case_id":"case-%d"' % (index, index + 1) if without_id else b'{"index":%d' % index


class StrictJobRefused(Exception):
    """A strict job met something that cannot be read, which was taken as its last error."""


class UnitsInOrder:
    """A job on the files of a source: ``take`` gets every block, ``take_error`` what cannot be read.

    Beside the block it gets a file that stands at its lines, all of which it must read. What is noticed on the way is
    added to the notes of the source.
    """

    def __init__(
        self,
        source: TraceFiles,
        job: Job,
        folder: JobFolder,
        *,
        jobs: int | None,
        engine: str | None = None,
        take: Callable[[Block, IO[bytes]], None],
        take_error: Callable[[InputError], None],
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._source = source
        self._job = job
        self._folder = folder
        self._jobs = jobs
        self._engine = engine
        self._take = take
        self._take_error = take_error
        self._block_bytes = block_bytes
        self._spools: dict[int, Spool] = {}
        self._seen: set[int] | None = set() if job.with_ids else None
        self._file = _FileSoFar()
        self._forecast = Forecast(block_bytes)
        self._n_records = 0
        self._n_bytes = self._n_bytes_done = 0

    def fraction(self) -> float | None:
        """How much of the work is done."""
        return self._n_bytes_done / self._n_bytes if self._n_bytes else None

    def work(self) -> Iterator[None]:
        """Do everything; yields after each unit."""
        files = file_units(self._source.files, self._job.format, self._block_bytes)
        self._n_bytes = sum(unit.n_bytes for unit in files)
        with self._pool() as pool:
            yield from self._accepted(pool, 0, files)
            traces = list(trace_units(self._spools.items(), self._block_bytes))
            # From here on units say where their spans lie; what each is sent beside that is how they are packed.
            self._spools = {number: Spool([], spool.packings) for number, spool in self._spools.items()}
            self._n_bytes += sum(unit.n_bytes for unit in traces)
            yield from self._accepted(pool, len(files), traces)

    def _pool(self) -> Pool:
        work = partial(do_unit if self._engine is None else do_unit_there, self._job, self._folder)
        return pool_of(self._engine, self._jobs, work, getattr(self._job, "metrics", ()))

    def _accepted(self, pool: Pool, first: int, units: Sequence[Unit]) -> Iterator[None]:
        """Have units done, unless they are already, and take each result once, in order."""
        numbered = list(enumerate(units, first))
        to_do = [(number, unit) for number, unit in numbered if not self._folder.is_done(number)]
        waiting = {number for number, _ in to_do}
        results = pool.in_order(self._tasks(numbered, waiting))
        for number, unit in numbered:
            result = next(results)[1] if number in waiting else None
            n_before = self._n_records
            self._accept(number, unit, result)
            self._forecast.finish(number, self._n_records - n_before)
            self._n_bytes_done += unit.n_bytes
            yield

    def _tasks(self, units: Iterable[tuple[int, Unit]], to_do: set[int]) -> Iterator[UnitTask]:
        for number, unit in units:
            first = self._forecast.begin(number, unit)
            if number in to_do:
                yield UnitTask(number, unit, self._spools_of(unit), first)

    def _spools_of(self, unit: Unit) -> dict[int, Spool]:
        return {} if isinstance(unit, FileUnit) else {number: self._spools[number] for number in unit.spools}

    def _accept(self, number: int, unit: Unit, result: WorkerDied | None) -> None:
        self._file.begin(unit)
        if self._file.is_cut_off:
            return
        if isinstance(result, WorkerDied):
            self._file.n_bad += 1
            self._take_error(_death(unit, result))
            return
        try:
            end = self._folder.end(number)
        except FileNotFoundError:
            raise WorkFailed(
                f"{self._folder.path} is not the same folder on all machines: it lacks unit {number}"
            ) from None
        if self._file.n_bad and self._file.n_bad + end.n_bad > read_limits().bad_items:
            # Too much of the file is bad: the unit is read again up to where one process would have stopped.
            do_unit(self._job, self._folder, UnitTask(number, unit, {}, self._n_records), self._file.n_bad)
            end = self._folder.end(number)
        self._file.n_bad += end.n_bad
        self._file.is_cut_off = end.is_cut_off
        with self._folder.open(number, "lines") as lines:
            for part in self._folder.blocks(number):
                if isinstance(part, Block):
                    self._take_block(part, lines)
        self._finish_unit(number, end)

    def _take_block(self, block: Block, lines: IO[bytes]) -> None:
        self._n_records += block.n_records
        if self._seen is not None:
            for case_id in block.case_ids:
                self._source.note_repeated(case_id, self._seen)
        for error in block.errors:
            self._take_error(self._file.placed(error))
        self._take(block, lines)

    def _finish_unit(self, number: int, end: UnitEnd) -> None:
        notes = notes_from_data(end.notes)
        for what, problem in end.passed_over.items():
            n_times = notes.problems.pop(problem, 0)
            notes.problems[self._source.passed_over.setdefault(what, problem)] += n_times
        self._source.notes.add(notes)
        if self._source.expected is not None and end.expected is not None:
            self._source.expected.add_use(end.expected)
        if end.spool is not None:
            self._spools[number] = end.spool
        if end.is_refused:
            raise StrictJobRefused


class _FileSoFar:
    """The file whose units are being taken: what of it was bad, and how many lines came before."""

    def __init__(self) -> None:
        self.n_bad = 0
        self.is_cut_off = False
        self._unit: Unit | None = None
        self._counted = 0
        self._n_lines = 0

    def begin(self, unit: Unit) -> None:
        """Go on with a unit, of this file or of another."""
        if not isinstance(unit, FileUnit) or unit.lines is None or unit.lines.start == 0:
            self.n_bad, self.is_cut_off, self._counted, self._n_lines = 0, False, 0, 0
        self._unit = unit

    def placed(self, error: InputError) -> InputError:
        """An error of the unit, with its line counted from the start of the file.

        Lines are counted only where an error asks for it: most files have none.
        """
        unit = self._unit
        if error.line is None or not isinstance(unit, FileUnit) or unit.lines is None:
            return error
        if self._counted < unit.lines.start:
            with open_binary(unit.path) as raw:
                self._n_lines += LineRange(self._counted, unit.lines.start).n_lines(raw)
            self._counted = unit.lines.start
        return InputError(error.source, error.line + self._n_lines, error.reason)


class UnitTask(NamedTuple):
    """A unit to do: its number, where the spans are that it needs, and where its first record will stand."""

    number: int
    unit: Unit
    spools: dict[int, Spool]
    first: int


def do_unit(job: Job, folder: JobFolder, task: UnitTask, bad_before: int = 0) -> None:
    """In a worker: do a job on a unit, and keep what it comes to in the folder."""
    number, unit, spools, first = task
    with ExitStack() as stack:
        others = {each: (stack.enter_context(folder.open(each, "spans")), spool) for each, spool in spools.items()}

        def parts(own: IO[bytes]) -> Iterator[tuple[Block, Lines] | UnitEnd]:
            for part in work_on_unit(job, unit, SpoolFiles(own, others), first, bad_before):
                leave_if_orphaned()
                yield part

        folder.write(number, parts)


def do_unit_there(job: Job, folder: JobFolder, task: UnitTask) -> None:
    """On a machine that may be another: do a unit, if what it needs can be seen from there."""
    unit = task.unit
    if isinstance(unit, FileUnit) and not is_remote(unit.path) and not os.path.exists(unit.path):
        raise WorkFailed(f"there is no {unit.path}: inputs must be URLs, or on a file system that all machines share")
    if not folder.is_there():
        raise WorkFailed(f"there is no {folder.path}: --out must be a URL, or on a file system that all machines share")
    do_unit(job, folder, task)


def _death(unit: Unit, died: WorkerDied) -> InputError:
    reason = f"killed two workers ({died.how}), and what it holds is not scored"
    if not isinstance(unit, FileUnit):
        return InputError(str(unit), None, f"this part {reason}")
    what = "this file" if unit.lines is None else f"bytes {unit.lines.start:,} to {unit.lines.end:,}"
    return InputError(shown_source(unit.path), None, f"{what} {reason}")

"""Files scored by several processes, to the same figures and lines as by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import IO, Any, Protocol

from agentunit.core.codec import RecordError
from agentunit.core.results import InputError, RunSummary
from agentunit.engine.aggregate import MetricAggregate
from agentunit.engine.columns import Block
from agentunit.engine.parallel.folder import JobFolder
from agentunit.engine.parallel.pool import WorkerDied, WorkerPool
from agentunit.engine.parallel.units import BLOCK_BYTES, FileUnit, Unit, file_units, trace_units
from agentunit.engine.parallel.work import ScoringJob, SpoolFiles, UnitEnd, notes_from_data, score_unit
from agentunit.engine.scorer import now
from agentunit.engine.scoring import RunTotals
from agentunit.engine.slices import Slices
from agentunit.metrics.base import describe
from agentunit.traces.limits import read_limits
from agentunit.traces.line_ranges import LineRange
from agentunit.traces.reading import TraceFiles, note_repeated
from agentunit.traces.spools import Spool

_NO_ID = b',"case_id":""'


class ScoreSink(Protocol):
    """Where score lines go, in the order of the input."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Take lines, each without its end."""
        ...


class ParallelScoring(RunTotals):
    """The files of a source scored by ``jobs`` processes; the units of work and their results lie in a folder.

    What workers send is added up in the order of the input, by the same code that adds up the scores of one process.
    ``sink`` gets the lines, ``on_error`` what cannot be read.
    """

    def __init__(
        self,
        source: TraceFiles,
        job: ScoringJob,
        folder: JobFolder,
        *,
        jobs: int,
        sink: ScoreSink | None = None,
        slices: Slices | None = None,
        on_error: Callable[[InputError], None] = lambda error: None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        super().__init__(job.metrics)
        self._source = source
        self._job = job
        self._folder = folder
        self._jobs = jobs
        self._sink = sink
        self._slices = slices
        self._on_error = on_error
        self._block_bytes = block_bytes
        self._infos = [(metric.name, describe(metric)) for metric in job.metrics]
        self._by_metric = [MetricAggregate(name, info) for name, info in self._infos]
        self._spools: dict[int, Spool] = {}
        self._seen: set[int] | None = set() if job.with_ids else None
        self._file = _FileSoFar()
        self._n_bytes = self._n_bytes_done = 0
        self._n_cases_done = 0

    def _aggregates(self) -> Sequence[MetricAggregate]:
        return self._by_metric

    def fraction(self) -> float | None:
        """How much of the work is done."""
        return self._n_bytes_done / self._n_bytes if self._n_bytes else None

    def work(self, on_progress: Callable[[int], None] = lambda n_cases: None) -> RunSummary:
        """Score everything; ``on_progress`` is called with the number of cases after each unit."""
        start = now()
        files = file_units(self._source.files, self._job.format, self._block_bytes)
        self._n_bytes = sum(unit.n_bytes for unit in files)
        with WorkerPool(self._jobs, partial(do_unit, self._job, self._folder)) as pool:
            for _ in chain(self._accepted(pool, 0, files), self._accepted_traces(pool, len(files))):
                self._elapsed_s = now() - start
                on_progress(self.n_cases)
        return self._summary()

    def _accepted_traces(self, pool: WorkerPool[Any, None], first: int) -> Iterator[None]:
        traces = list(trace_units(self._spools.items(), self._block_bytes))
        # What is done with a span after it was read takes several times as long as reading it.
        self._n_bytes += sum(unit.n_bytes for unit in traces)
        yield from self._accepted(pool, first, traces)

    def _accepted(self, pool: WorkerPool[Any, None], first: int, units: Sequence[Unit]) -> Iterator[None]:
        """Have units done, unless they are already, and take each result once, in order."""
        numbered = list(enumerate(units, first))
        to_do = [(number, unit) for number, unit in numbered if not self._folder.is_done(number)]
        waiting = {number for number, _ in to_do}
        tasks = ((number, unit, self._spools_of(unit)) for number, unit in to_do)
        results = pool.in_order(tasks)
        for number, unit in numbered:
            result = next(results)[1] if number in waiting else None
            self._accept(number, unit, result)
            self._n_bytes_done += unit.n_bytes
            yield

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
        end = self._folder.end(number)
        if self._file.n_bad and self._file.n_bad + end.n_bad > read_limits().bad_items:
            # Too much of the file is bad: the unit is read again up to where one process would have stopped.
            do_unit(self._job, self._folder, (number, unit, {}), self._file.n_bad)
            end = self._folder.end(number)
        self._file.n_bad += end.n_bad
        self._file.is_cut_off = end.is_cut_off
        with self._folder.open(number, "lines") as lines:
            for part in self._folder.blocks(number):
                if isinstance(part, Block):
                    self._take(part, lines.read(part.n_line_bytes))
        self._finish_unit(number, end)

    def _take(self, block: Block, lines: bytes) -> None:
        before = self.n_cases

        def case_id(place: int, own_id: str) -> str:
            return own_id or f"case-{before + place + 1}"

        for aggregate, columns in zip(self._by_metric, block.metrics, strict=True):
            aggregate.add_columns(columns, block.n_records, case_id)
        if self._slices is not None and block.slices is not None:
            self._slices.add_columns(block.slices, self._infos)
        if self._seen is not None:
            for each in block.case_ids or ():
                note_repeated(each, self._seen, self._source.notes)
        for error in block.errors:
            self._take_error(self._file.placed(error))
        self.n_cases += block.n_records
        self.n_without_content += block.n_without_content
        self.n_user_failed += block.n_user_failed
        if self._sink is not None and lines:
            self._sink.write(numbered_lines(lines, before, block.missing_ids))

    def _take_error(self, error: InputError) -> None:
        self._keep_error(error)
        self._on_error(error)

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
            raise RecordError(str(self.input_errors[-1]))


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
            with open(unit.path, "rb") as raw:
                self._n_lines += LineRange(self._counted, unit.lines.start).n_lines(raw)
            self._counted = unit.lines.start
        return InputError(error.source, error.line + self._n_lines, error.reason)


def do_unit(job: ScoringJob, folder: JobFolder, task: tuple[int, Unit, dict[int, Spool]], bad_before: int = 0) -> None:
    """In a worker: score a unit, and keep what it comes to in the folder."""
    number, unit, spools = task
    with ExitStack() as stack:
        others = {each: (stack.enter_context(folder.open(each, "spans")), spool) for each, spool in spools.items()}

        def parts(own: IO[bytes]) -> Iterator[tuple[Block, bytes] | UnitEnd]:
            return score_unit(job, unit, SpoolFiles(own, others), bad_before)

        folder.write(number, parts)


def numbered_lines(data: bytes, first: int, missing_ids: Sequence[int]) -> list[bytes]:
    """Score lines with their place in the input, and an id for records that have none.

    >>> numbered_lines(b',"case_id":"q7"}\\n,"case_id":""}\\n', 6, [1])
    [b'{"index":6,"case_id":"q7"}', b'{"index":7,"case_id":"case-8"}']
    """
    lines = data.split(b"\n")
    lines.pop()
    for place in missing_ids:
        lines[place] = b',"case_id":"case-%d"' % (first + place + 1) + lines[place][len(_NO_ID) :]
    return [b'{"index":%d%s' % (number, line) for number, line in enumerate(lines, first)]


def _death(unit: Unit, died: WorkerDied) -> InputError:
    reason = f"killed two workers ({died.how}), and what it holds is not scored"
    if isinstance(unit, FileUnit) and unit.lines is not None:
        return InputError(unit.path, None, f"bytes {unit.lines.start:,} to {unit.lines.end:,} {reason}")
    return InputError(str(unit), None, f"this {'file' if isinstance(unit, FileUnit) else 'part'} {reason}")

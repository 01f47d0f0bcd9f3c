"""Files scored by several processes, to the same figures and lines as by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Protocol

from agentunit.addons.scale.parallel._units_in_order import StrictJobRefused, UnitsInOrder, numbered_lines
from agentunit.addons.scale.parallel.folder import JobFolder
from agentunit.addons.scale.parallel.units import BLOCK_BYTES
from agentunit.addons.scale.parallel.work import ScoringJob
from agentunit.core.codec import RecordError
from agentunit.core.results import InputError, RunSummary
from agentunit.core.score_block import Block
from agentunit.engine.deciding.run_findings import CaseTally
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.engine.scoring.records import RunTotals
from agentunit.engine.scoring.scorer import now
from agentunit.engine.scoring.slices import Slices
from agentunit.metrics.base import describe
from agentunit.traces.reading import TraceFiles


class ScoreLines(Protocol):
    """Where score lines go, in the order of the input."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Take lines, each without its end."""
        ...

    def append(self, lines: IO[bytes], n_bytes: int) -> None:
        """Take the lines that so many bytes of a file are, from where it stands."""
        ...


class ParallelScoring(RunTotals):
    """The files of a source scored by ``jobs`` processes, or so many tasks of an ``engine`` at once.

    The units of work and their results lie in a folder.

    What workers send is added up in the order of the input, by the same code that adds up the scores of one process.
    ``sink`` gets the lines, ``on_error`` what cannot be read.
    """

    def __init__(
        self,
        source: TraceFiles,
        job: ScoringJob,
        folder: JobFolder,
        *,
        jobs: int | None,
        engine: str | None = None,
        sink: ScoreLines | None = None,
        slices: Slices | None = None,
        on_error: Callable[[InputError], None] = lambda error: None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        super().__init__(job.metrics)
        self._units = UnitsInOrder(
            source,
            job,
            folder,
            jobs=jobs,
            engine=engine,
            take=self._take,
            take_error=self._take_error,
            block_bytes=block_bytes,
        )
        self._sink = sink
        self._slices = slices
        self._on_error = on_error
        self._infos = [(metric.name, describe(metric)) for metric in job.metrics]
        self.tally = CaseTally(dict(self._infos))
        self._by_metric = [MetricAggregate(name, info) for name, info in self._infos]
        self.fraction = self._units.fraction

    def _aggregates(self) -> Sequence[MetricAggregate]:
        return self._by_metric

    def work(self, on_progress: Callable[[int], None] = lambda n_cases: None) -> RunSummary:
        """Score everything; ``on_progress`` is called with the number of cases after each unit."""
        start = now()
        try:
            for _ in self._units.work():
                self._elapsed_s = now() - start
                on_progress(self.n_cases)
        except StrictJobRefused:
            raise RecordError(str(self.input_errors[-1])) from None
        return self._summary()

    def _take(self, block: Block, lines: IO[bytes]) -> None:
        before = self.n_cases

        def case_id_at(position: int, repeat: int) -> str:
            return block.case_ids[position - before] or f"case-{position + 1}"

        for aggregate, scores in zip(self._by_metric, block.scores, strict=True):
            scores.positions = range(before, before + block.n_records)
            scores.repeats = [0] * block.n_records
            aggregate.add_block(scores, case_id_at)
        if self._slices is not None and block.slices is not None:
            self._slices.add_blocks(block.slices, block.scores, self._infos)
        if self.tally is not None and block.tally is not None:
            self.tally.merge(block.tally, _numbered(block, before))
        self.n_cases += block.n_records
        self.n_without_content += block.n_without_content
        self.n_user_failed += block.n_user_failed
        if self._sink is None or not block.n_line_bytes:
            return
        if block.first == before:
            self._sink.append(lines, block.n_line_bytes)
        else:
            without_id = [place for place, case_id in enumerate(block.case_ids) if not case_id]
            self._sink.write(numbered_lines(lines.read(block.n_line_bytes), before, block.first, without_id))

    def _take_error(self, error: InputError) -> None:
        self._keep_error(error)
        self._on_error(error)


def _numbered(block: Block, before: int) -> dict[str, str]:
    """The ids of cases without one, as the worker guessed their numbers and as they are."""
    if block.first == before:
        return {}
    unnamed = [place for place, case_id in enumerate(block.case_ids) if not case_id]
    return {f"case-{block.first + place + 1}": f"case-{before + place + 1}" for place in unnamed}

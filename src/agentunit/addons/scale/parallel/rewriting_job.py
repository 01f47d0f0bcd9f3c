"""Records of files written again by several processes, in the order of one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from agentunit.addons.scale.parallel._units_in_order import UnitsInOrder
from agentunit.addons.scale.parallel.folder import Identity, JobFolder
from agentunit.addons.scale.parallel.scored_items import batches
from agentunit.addons.scale.parallel.work import Job, UnitCounts
from agentunit.cli.options import InputFailure
from agentunit.cli.outputs import Output
from agentunit.cli.rewriting import RECORDS_AT_ONCE, RewritesBlock, Rewritten
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.score_block import Block, MaskedValues
from agentunit.engine.scoring.records import WorkFailed
from agentunit.reports.progress import Progress
from agentunit.traces.reading import TraceFiles

_BATCHES_A_BLOCK = 64


@dataclass(frozen=True)
class RewritingJob(Job):
    """A job that writes records as ``rewritten`` gives them back."""

    rewritten: RewritesBlock | None = None

    def blocks(self, found: Iterator[Record | InputError], counts: UnitCounts) -> Iterator[tuple[Block, bytes]]:
        """The records, one per line, and what was masked in them."""
        if self.rewritten is None:
            raise ValueError("RewritingJob: rewritten must be given; received None")
        for some in _blocks_of(found):
            lines, masked = self.rewritten(some)
            data = b"".join(line + b"\n" for line in lines)
            ids = [record.case.id for record in some] if self.with_ids else []
            yield Block(len(some), [], counts.take_errors(), 0, 0, len(data), ids, masked=masked), data


def _blocks_of(found: Iterator[Record | InputError]) -> Iterator[list[Record]]:
    """The records of each block; the last is empty, and tells what could not be read after the last record."""
    yield from batches((each for each in found if isinstance(each, Record)), RECORDS_AT_ONCE * _BATCHES_A_BLOCK)
    yield []


def rewrite_in_processes(
    source: TraceFiles,
    out: str,
    rewritten: RewritesBlock,
    jobs: int,
    format_name: str | None,
    final: Callable[[MaskedValues, bytes], bytes] | None,
) -> Rewritten:
    """Write the records of files as ``cli.rewriting`` asks for it."""
    errors: list[InputError] = []
    n_records = 0
    several = len(source.files) > 1
    job = RewritingJob(source.files[0][0], format_name, source.expected, with_ids=several, rewritten=rewritten)
    with tempfile.TemporaryDirectory(prefix="agentunit-blocks-") as folder, Output(out) as output:

        def take(block: Block, lines: IO[bytes]) -> None:
            nonlocal n_records
            n_records += block.n_records
            if final is None or block.masked is None:
                output.append(lines, block.n_line_bytes)
            else:
                output.stream.write(final(block.masked, lines.read(block.n_line_bytes)))

        kept = JobFolder(folder, Identity({}, {}, {}), resume=False)
        units = UnitsInOrder(source, job, kept, jobs=jobs, take=take, take_error=errors.append)
        progress = Progress("records", fraction=units.fraction, failures=lambda: len(errors))
        tick = progress.ticker()
        try:
            for _ in units.work():
                tick(n_records)
        except WorkFailed as error:
            raise InputFailure(str(error)) from None
        finally:
            progress.clear()
        output.finish(keep=n_records > 0)
    return Rewritten(n_records, errors)

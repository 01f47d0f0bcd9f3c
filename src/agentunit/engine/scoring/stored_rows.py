"""The scores and records of a long run: read from its store each time that they are asked for, never all in memory."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

from agentunit.core.conversation import USER_FAILED
from agentunit.core.score_block import Place, ScoreBlock, ScoreRow, block_of_rows
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.engine.scoring.judging import block_with_models, shared_backends
from agentunit.metrics.inputs import NO_CONTENT
from agentunit.store.run_store import RunStore
from agentunit.store.runs import FIRST_AGAIN, RecordRow, is_again

# A run of this many records is small enough to be held as a whole, about 1 kB each.
MOST_HELD = 20_000


class Told:
    """What one pass over the scores of a metric tells."""

    def __init__(self) -> None:
        self.n_scores = 0
        self.n_errors = 0
        self.user_failed: set[Place] = set()
        """Where the simulated user failed."""
        self.without_content: set[Place] = set()
        """Where a record holds neither an answer nor an event."""

    def add_reason(self, reason: str, place: Place) -> None:
        """Note what the reason of one score says."""
        if reason == NO_CONTENT:
            self.without_content.add(place)
        elif reason.startswith(USER_FAILED):
            self.user_failed.add(place)


class StoredRows(Sequence[ScoreRow]):
    """The scores of one metric of a run, in dataset order, without tries again."""

    def __init__(
        self, store: RunStore, run_id: str, metric: str, amount_key: str | None, records: StoredRecords
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._metric = metric
        self._amount_key = amount_key
        self._records = records

    def __iter__(self) -> Iterator[ScoreRow]:
        for block in self.blocks():
            yield from block.rows(self._records.ids_of_block(block))

    def blocks(self) -> Iterator[ScoreBlock]:
        """The same, block by block."""
        for block in self._kept_blocks():
            # Only where a judge was asked, all scores must be looked at for the models that judged.
            shared = self._shared_backends if block.judged else ()
            yield block_with_models(block, shared) if shared else block

    def _kept_blocks(self) -> Iterator[ScoreBlock]:
        with self._store.reopened() as reader:
            for block in reader.blocks(self._run_id, self._metric, self._amount_key):
                if planned := planned_rows(block):
                    yield planned

    @cached_property
    def _shared_backends(self) -> set[str]:
        """The backends for which several models judged."""
        return shared_backends(
            (block.producer(number)[1], judged)
            for block in self._kept_blocks()
            for number, judged in block.judged.items()
        )

    def add_to(self, aggregate: MetricAggregate) -> None:
        """Add all scores up."""
        with self._store.reopened() as reader:
            for block in self.blocks():
                aggregate.add_block(block, lambda *place: reader.case_id(self._run_id, *place))
            aggregate.settle()

    @cached_property
    def told(self) -> Told:
        """What a pass over all blocks tells."""
        told = Told()
        for block in self._kept_blocks():
            told.n_scores += len(block)
            for producer in block.producer_numbers():
                told.n_errors += block.producers[producer][0] == "error"
            for number, reason in block.reasons.items():
                told.add_reason(reason, (block.positions[number], block.repeats[number]))
        return told

    def __len__(self) -> int:
        return self.told.n_scores

    @overload
    def __getitem__(self, index: int) -> ScoreRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[ScoreRow]: ...

    def __getitem__(self, index: int | slice) -> ScoreRow | list[ScoreRow]:
        return list(self)[index]


class StoredRecords(Sequence[RecordRow]):
    """The finished cases of a run, in dataset order, without their records and without tries again."""

    def __init__(self, store: RunStore, run_id: str, n_records: int, n_repeats: int) -> None:
        self._store = store
        self._run_id = run_id
        self._n_records = n_records
        self.n_repeats = n_repeats

    @cached_property
    def _columns(self) -> tuple[array[int], array[int], list[str]]:
        """Position, repeat and case of each record, as columns: a long run has hundreds of thousands."""
        positions, repeats = array("q"), array("q")
        case_ids: list[str] = []
        for row in self:
            positions.append(row.position)
            repeats.append(row.repeat)
            case_ids.append(sys.intern(row.case_id))
        return positions, repeats, case_ids

    @property
    def case_ids(self) -> Sequence[str]:
        """The id of each record's case; whoever looks at single scores needs them, and at those of several metrics."""
        return self._columns[2]

    def ids_of_block(self, block: ScoreBlock) -> dict[Place, str]:
        """The ids of the cases between the first and the last place of a block."""
        positions, repeats, case_ids = self._columns
        first = bisect_left(positions, block.positions[0])
        end = bisect_right(positions, block.positions[-1])
        places = zip(positions[first:end], repeats[first:end], strict=True)
        return dict(zip(places, case_ids[first:end], strict=True))

    def __iter__(self) -> Iterator[RecordRow]:
        with self._store.reopened() as reader:
            yield from reader.record_rows(self._run_id, again=False)

    def __len__(self) -> int:
        return self._n_records

    @overload
    def __getitem__(self, index: int) -> RecordRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[RecordRow]: ...

    def __getitem__(self, index: int | slice) -> RecordRow | list[RecordRow]:
        return list(self)[index]


def planned_rows(block: ScoreBlock) -> ScoreBlock | None:
    """A block without tries again; ``None`` where nothing is left."""
    if max(block.repeats, default=0) < FIRST_AGAIN:
        return block
    planned = [number for number, repeat in enumerate(block.repeats) if not is_again(repeat)]
    return block.of_rows(planned) if planned else None


def add_up(rows: Sequence[ScoreRow], aggregate: MetricAggregate) -> None:
    """Add the scores of a metric of a run up, wherever they are."""
    if isinstance(rows, StoredRows):
        rows.add_to(aggregate)
    elif rows:
        case_ids = {row.place: row.case_id for row in rows}
        aggregate.add_block(block_of_rows(aggregate.name, rows), lambda *place: case_ids[place])


def blocks_of(metric: str, rows: Sequence[ScoreRow]) -> Iterable[ScoreBlock]:
    """The scores of a metric of a run block by block, wherever they are."""
    if isinstance(rows, StoredRows):
        return rows.blocks()
    return [block_of_rows(metric, rows)] if rows else []


def versions_of(rows: Iterable[ScoreRow]) -> set[str]:
    """The versions of a metric that gave a value, wherever its scores are."""
    if not isinstance(rows, StoredRows):
        return {row.version for row in rows if row.value is not None}
    versions: set[str] = set()
    for block in rows.blocks():
        made = {
            number for number, value in zip(block.producer_numbers(), block.values, strict=True) if value is not None
        }
        versions.update(block.producers[number][2] for number in made)
    return versions


def n_repeats_of(records: Sequence[RecordRow]) -> int:
    """How often a case was run at most."""
    if isinstance(records, StoredRecords):
        return records.n_repeats
    return max((record.repeat + 1 for record in records), default=1)


def told_by(rows: Sequence[ScoreRow]) -> Told:
    """What the scores of a metric tell, wherever they are."""
    if isinstance(rows, StoredRows):
        return rows.told
    told = Told()
    told.n_scores = len(rows)
    for row in rows:
        told.n_errors += row.status == "error"
        if row.reason is not None:
            told.add_reason(row.reason, row.place)
    return told

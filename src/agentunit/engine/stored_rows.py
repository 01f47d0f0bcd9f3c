"""The scores and records of a long run: read from its store each time that they are asked for, never all in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, overload

from agentunit.core.conversation import USER_FAILED
from agentunit.engine.aggregate import MetricAggregate
from agentunit.metrics.inputs import NO_CONTENT
from agentunit.store.protocol import RunStore
from agentunit.store.runs import RecordRow, ScoreRow
from agentunit.store.score_blocks import Place, ScoreColumns

# A run of this many records is small enough to be held as a whole, about 1 kB each.
MOST_HELD = 20_000


class _Told(NamedTuple):
    """What one pass over the columns tells."""

    n_scores: int
    n_errors: int
    user_failed: frozenset[Place]
    without_content: frozenset[Place]


class StoredRows(Sequence[ScoreRow]):
    """The scores of one metric of a run, in dataset order."""

    def __init__(
        self, store: RunStore, run_id: str, metric: str, amount_key: str | None, records: StoredRecords
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._metric = metric
        self._amount_key = amount_key
        self._records = records

    def __iter__(self) -> Iterator[ScoreRow]:
        for columns in self.columns():
            yield from columns.rows(self._records.case_ids)

    def columns(self) -> Iterator[ScoreColumns]:
        """The same, column by column."""
        with self._store.reopened() as reader:
            yield from reader.score_columns(self._run_id, self._metric, self._amount_key)

    def add_to(self, aggregate: MetricAggregate) -> None:
        """Add the scores of a run without repeats up."""
        with self._store.reopened() as reader:
            for columns in reader.score_columns(self._run_id, self._metric, self._amount_key):
                aggregate.add_columns(columns, lambda *place: reader.case_id(self._run_id, *place))

    @cached_property
    def _told(self) -> _Told:
        n_scores = n_errors = 0
        user_failed: set[Place] = set()
        without_content: set[Place] = set()
        for columns in self.columns():
            n_scores += len(columns.values)
            for number, (status, _, _) in enumerate(columns.producers):
                if status == "error":
                    which = columns.producer_of
                    n_errors += len(columns.values) if which is None else which.count(number)
            for number, reason in columns.reasons.items():
                if reason == NO_CONTENT:
                    without_content.add((columns.positions[number], columns.repeats[number]))
                elif reason.startswith(USER_FAILED):
                    user_failed.add((columns.positions[number], columns.repeats[number]))
        return _Told(n_scores, n_errors, frozenset(user_failed), frozenset(without_content))

    def __len__(self) -> int:
        return self._told.n_scores

    @overload
    def __getitem__(self, index: int) -> ScoreRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[ScoreRow]: ...

    def __getitem__(self, index: int | slice) -> ScoreRow | list[ScoreRow]:
        return list(self)[index]


class StoredRecords(Sequence[RecordRow]):
    """The finished cases of a run, in dataset order, without their records."""

    def __init__(self, store: RunStore, run_id: str, n_records: int, n_repeats: int) -> None:
        self._store = store
        self._run_id = run_id
        self._n_records = n_records
        self.n_repeats = n_repeats

    @cached_property
    def case_ids(self) -> dict[Place, str]:
        """The id of each case; whoever looks at single scores needs them, and at those of several metrics."""
        return {(row.position, row.repeat): row.case_id for row in self}

    def __iter__(self) -> Iterator[RecordRow]:
        with self._store.reopened() as reader:
            yield from reader.record_rows(self._run_id)

    def __len__(self) -> int:
        return self._n_records

    @overload
    def __getitem__(self, index: int) -> RecordRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[RecordRow]: ...

    def __getitem__(self, index: int | slice) -> RecordRow | list[RecordRow]:
        return list(self)[index]


def n_repeats_of(records: Sequence[RecordRow]) -> int:
    """How often a case was run at most."""
    if isinstance(records, StoredRecords):
        return records.n_repeats
    return max((record.repeat + 1 for record in records), default=1)


def n_errors_of(rows: Sequence[ScoreRow]) -> int:
    """How many scores are errors."""
    return rows._told.n_errors if isinstance(rows, StoredRows) else sum(row.status == "error" for row in rows)


def user_failed_in(rows: Sequence[ScoreRow]) -> frozenset[Place]:
    """Where the simulated user failed."""
    if isinstance(rows, StoredRows):
        return rows._told.user_failed
    return frozenset(
        (row.position, row.repeat) for row in rows if row.reason is not None and row.reason.startswith(USER_FAILED)
    )


def without_content_in(rows: Sequence[ScoreRow]) -> frozenset[Place]:
    """Where a record holds neither an answer nor an event."""
    if isinstance(rows, StoredRows):
        return rows._told.without_content
    return frozenset((row.position, row.repeat) for row in rows if row.reason == NO_CONTENT)

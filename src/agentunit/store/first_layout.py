"""Scores as the first two versions of the tables kept them, one row a score: how they are read, and moved to blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from agentunit.core.judged import judged_of
from agentunit.core.results import EVIDENCE_NOTE, INFORMATIONAL_NOTE
from agentunit.store.database import Reader, Row
from agentunit.store.score_blocks import (
    BLOCK_SIZE,
    INSERT_BLOCK,
    Place,
    ScoreBlock,
    WrittenScore,
    block_from,
    block_values,
    by_metric,
    reason_in,
)

_COLUMNS = "run_id, metric, position, repeat, value, status, backend, version, elapsed_s, detail"


class Statements(Protocol):
    """A connection that a migration runs on."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Iterable[Any]:
        """Run a statement."""


def blocks(reader: Reader, run_id: str, metric: str, within: Place | None) -> Iterator[ScoreBlock]:
    """The scores of a metric in dataset order, as blocks; ``within`` only those of these positions."""
    query = f"SELECT {_COLUMNS} FROM scores WHERE run_id = ? AND metric = ?"
    values: list[str | int] = [run_id, metric]
    if within is not None:
        query += " AND position >= ? AND position <= ?"
        values += within
    rows = reader.stream(f"{query} ORDER BY position, repeat", values)
    while some := list(islice(rows, BLOCK_SIZE)):
        yield block_from([_written(row) for row in some])


def move_scores(connection: Statements) -> None:
    """Move all scores to blocks."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM scores ORDER BY run_id, position, repeat")
    places = groupby(rows, key=itemgetter(0, 2, 3))
    while some := [_written(row) for _, of_place in islice(places, BLOCK_SIZE) for row in of_place]:
        for of_metric in by_metric(some).values():
            connection.execute(INSERT_BLOCK, block_values(of_metric))


def _written(row: Row) -> WrittenScore:
    run_id, metric, position, repeat, value, status, backend, version, elapsed_s, detail = row
    written = WrittenScore(
        run_id, metric, position, repeat, value, (status, backend, version), elapsed_s, detail.encode()
    )
    # Details are long, and only these tell more than the columns.
    named = (EVIDENCE_NOTE, INFORMATIONAL_NOTE)
    if value is None or "judge" in backend or "ragas" in backend or any(key in detail for key in named):
        decoded = msgspec.json.decode(detail)
        written.reason = reason_in(value, decoded)
        written.judged = judged_of(decoded, nested=True)
    return written

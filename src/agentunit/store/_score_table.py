"""The table of scores: blocks of one metric that follow each other and never overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from agentunit.core.judged import judged_of
from agentunit.core.results import EVIDENCE_NOTE, INFORMATIONAL_NOTE, Score
from agentunit.core.score_block import BlockBuilder, Place, ScoreBlock, ScoreRow, number_in, reason_in
from agentunit.store.database import Database, Reader, Row
from agentunit.store.score_blocks import (
    BLOCK_SIZE,
    INSERT_BLOCK,
    READ_COLUMNS,
    ScoreBuffer,
    block_of,
    block_values,
    in_order,
    pieces,
)

_JOINED_UP_TO = 32
_OF_METRIC = "FROM score_blocks WHERE run_id = ? AND metric = ?"
_DATASET_ORDER = "ORDER BY first_position, first_repeat"


class ScoreTable:
    """What a store does with its scores (``RunStore``)."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._in_blocks = database.has_table("score_blocks")

    def add_scores(self, run_id: str, position: int, repeat: int, scores: Mapping[str, Score]) -> None:
        """Keep the scores of one case, in place of earlier ones of the same metrics."""
        buffer = ScoreBuffer()
        buffer.add(position, repeat, scores)
        self.add_blocks(run_id, buffer.take())

    def add_blocks(self, run_id: str, blocks: Sequence[ScoreBlock]) -> None:
        """Keep scores of any number of cases at once, with their details, all of them or none."""
        if not blocks:
            return
        with self.database.transaction():
            self.database.lock_scores(run_id)
            for block in blocks:
                self._add(run_id, in_order([block]))

    def _add(self, run_id: str, new: ScoreBlock) -> None:
        first, last = (new.positions[0], new.repeats[0]), (new.positions[-1], new.repeats[-1])
        earlier = self._blocks_between(run_id, new.metric, first, last, joined=_JOINED_UP_TO - len(new))
        if earlier:
            self._delete(run_id, earlier)
            new = in_order([*earlier, new])
        self._insert(run_id, new)

    def _remove_scores(self, run_id: str, places: Set[Place]) -> None:
        """In a transaction: remove all scores of these places."""
        self.database.lock_scores(run_id)
        for metric in self.metrics_scored(run_id):
            # One by one: together they could reach over a block between them.
            for block in self._blocks_between(run_id, metric, min(places), max(places)):
                kept = [number for number, place in enumerate(block.places()) if place not in places]
                if len(kept) == len(block):
                    continue
                self._delete(run_id, [block])
                if kept:
                    self._insert(run_id, block.of_rows(kept))

    def _blocks_between(
        self, run_id: str, metric: str, first: Place, last: Place, *, joined: int = 0
    ) -> list[ScoreBlock]:
        """The blocks that hold places from first to last; also the one before them, if it is small enough to join."""
        before = self.database.execute(
            f"SELECT last_position, last_repeat, n_scores, first_position, first_repeat {_OF_METRIC}"
            " AND (first_position, first_repeat) <= (?, ?) ORDER BY first_position DESC, first_repeat DESC LIMIT 1",
            (run_id, metric, *first),
        )
        start = first
        for last_position, last_repeat, n_scores, *begin in before:
            if (last_position, last_repeat) >= first or n_scores <= joined:
                start = (begin[0], begin[1])
        rows = self.database.execute(
            f"SELECT {READ_COLUMNS}, details {_OF_METRIC} AND (first_position, first_repeat) >= (?, ?)"
            f" AND (first_position, first_repeat) <= (?, ?) {_DATASET_ORDER}",
            (run_id, metric, *start, *last),
        )
        return [block_of(metric, row) for row in rows]

    def _delete(self, run_id: str, blocks: Sequence[ScoreBlock]) -> None:
        sql = "DELETE FROM score_blocks WHERE run_id = ? AND metric = ? AND first_position = ? AND first_repeat = ?"
        keys = [(run_id, block.metric, block.positions[0], block.repeats[0]) for block in blocks]
        if keys:
            self.database.change_many(sql, keys)

    def _insert(self, run_id: str, block: ScoreBlock) -> None:
        for piece in pieces(block):
            self.database.change(INSERT_BLOCK, block_values(run_id, piece))

    def metrics_scored(self, run_id: str) -> list[str]:
        """The metrics of which a run has scores, by name."""
        table = "score_blocks" if self._in_blocks else "scores"
        rows = self.database.execute(f"SELECT DISTINCT metric FROM {table} WHERE run_id = ?", (run_id,))
        # Databases do not agree on the order of texts.
        return sorted(metric for (metric,) in rows)

    def _blocks(
        self, reader: Reader, run_id: str, metric: str, *, details: bool = False, within: Place | None = None
    ) -> Iterator[ScoreBlock]:
        """The blocks of a metric in dataset order; ``within`` only those that hold these positions."""
        if not self._in_blocks:
            yield from blocks_of_rows(reader, run_id, metric, within)
            return
        which = _OF_METRIC
        values: list[str | int] = [run_id, metric]
        if within is not None:
            which += " AND last_position >= ? AND first_position <= ?"
            values += within
        columns = f"{READ_COLUMNS}, details" if details else READ_COLUMNS
        for row in reader.stream(f"SELECT {columns} {which} {_DATASET_ORDER}", values):
            yield block_of(metric, row)

    def _scored_places(self, reader: Reader, run_id: str, metric: str) -> Iterator[Place]:
        """Where a metric has scores, in dataset order."""
        for block in self._blocks(reader, run_id, metric):
            yield from block.places()

    def n_blocks(self, run_id: str) -> int:
        """In how many pieces the scores of a run are kept: another number where scores were added."""
        table = "score_blocks" if self._in_blocks else "scores"
        ((found,),) = self.database.execute(f"SELECT count(*) FROM {table} WHERE run_id = ?", (run_id,))
        return int(found)

    def is_pass_fail(self, run_id: str, metric: str) -> bool:
        """Whether all values of a metric are 0 or 1; the database looks, so that a long run is answered at once."""
        if not self._in_blocks:
            return all(value in (None, 0.0, 1.0) for block in self.blocks(run_id, metric) for value in block.values)
        left = "score_values"
        for part in ("null", "0.0", "1.0", ",", "[", "]"):
            left = f"replace({left}, '{part}', '')"
        return not self.database.execute(f"SELECT 1 {_OF_METRIC} AND {left} <> '' LIMIT 1", (run_id, metric))

    def blocks(
        self, run_id: str, metric: str, amount_key: str | None = None, within: Place | None = None
    ) -> Iterator[ScoreBlock]:
        """The scores of a metric in dataset order, without their details.

        ``amount_key`` names the number in the details that is wanted too; ``within`` a first and a last position, and
        only the blocks that hold some between them.
        """
        with self.database.reading() as reader:
            yield from self._with_amounts(reader, run_id, metric, amount_key, within)

    def _with_amounts(
        self, reader: Reader, run_id: str, metric: str, amount_key: str | None, within: Place | None = None
    ) -> Iterator[ScoreBlock]:
        for block in self._blocks(reader, run_id, metric, within=within):
            if amount_key != block.amount_key:
                block.amounts = None
                if amount_key is not None:
                    block.amounts = self._amounts(reader, run_id, block, amount_key)
                block.amount_key = amount_key
            yield block

    def _amounts(self, reader: Reader, run_id: str, wanted: ScoreBlock, key: str) -> list[float | None]:
        """Amounts that were not asked for when the scores were written: only the details have them."""
        within = (wanted.positions[0], wanted.positions[-1])
        mark = f'"{key}"'.encode()
        found: dict[Place, float | None] = {}
        for block in self._blocks(reader, run_id, wanted.metric, details=True, within=within):
            for place, detail in zip(block.places(), block.details, strict=True):
                # A look at the text spares decoding the details that have no such key.
                if mark in bytes(detail):
                    found[place] = number_in(msgspec.json.decode(detail), key)
        return [found.get(place) for place in wanted.places()]

    def score_rows(self, run_id: str) -> Iterator[tuple[str, ScoreRow]]:
        """Every score of a run with its metric's name, metric by metric in dataset order, without the details."""
        for metric in self.metrics_scored(run_id):
            for row in self.metric_rows(run_id, metric):
                yield metric, row

    def metric_rows(self, run_id: str, metric: str, amount_key: str | None = None) -> Iterator[ScoreRow]:
        """The scores of a metric in dataset order, without their details."""
        with self.database.reading() as reader:
            for block in self._with_amounts(reader, run_id, metric, amount_key):
                yield from block.rows(_case_ids(reader, run_id, block))

    def case_id(self, run_id: str, position: int, repeat: int) -> str:
        """The id of the case at a place of a run."""
        ((case_id,),) = self.database.execute(
            "SELECT case_id FROM records WHERE run_id = ? AND position = ? AND repeat = ?", (run_id, position, repeat)
        )
        return str(case_id)

    def scores(
        self, run_id: str, *, case_id: str | None = None, places: Set[Place] | None = None
    ) -> Iterator[tuple[Place, dict[str, Score]]]:
        """The scores of a run, of one of its cases or of these places, place by place in dataset order."""
        within = None
        if places is not None:
            if not places:
                return
            within = (min(places)[0], max(places)[0])
        if case_id is not None:
            rows = self.database.execute(
                "SELECT position, repeat FROM records WHERE run_id = ? AND case_id = ?", (run_id, case_id)
            )
            places = {(position, repeat) for position, repeat in rows}
            if not places:
                return
            within = (min(places)[0], max(places)[0])
        metrics = self.metrics_scored(run_id)
        with self.database.reading() as reader:
            of_metrics = [self._scored(reader, run_id, metric, within, places) for metric in metrics]
            merged = merge(*of_metrics, key=itemgetter(0))
            for place, of_place in groupby(merged, key=itemgetter(0)):
                yield place, {metric: score for _, metric, score in of_place}

    def scores_at(self, run_id: str, position: int, repeat: int) -> dict[str, Score]:
        """The scores of one record."""
        found = dict(self.scores(run_id, places={(position, repeat)}))
        return found.get((position, repeat), {})

    def _scored(
        self, reader: Reader, run_id: str, metric: str, within: Place | None, places: Set[Place] | None
    ) -> Iterator[tuple[Place, str, Score]]:
        """The scores of a metric with their details; those of places without a case are left out."""
        for block in self._blocks(reader, run_id, metric, details=True, within=within):
            case_ids = _case_ids(reader, run_id, block)
            for number, place in enumerate(block.places()):
                if place in case_ids and (places is None or place in places):
                    yield place, metric, block.score(number)


def _case_ids(reader: Reader, run_id: str, block: ScoreBlock) -> dict[Place, str]:
    """The ids of the cases between the first and the last place of a block."""
    rows = reader.execute(
        "SELECT position, repeat, case_id FROM records WHERE run_id = ? AND position >= ? AND position <= ?",
        (run_id, block.positions[0], block.positions[-1]),
    )
    return {(position, repeat): case_id for position, repeat, case_id in rows}


# Scores as the first two versions of the tables kept them, one row a score: how they are read, and moved to blocks.

_ROW_COLUMNS = "run_id, metric, position, repeat, value, status, backend, version, elapsed_s, detail"


class Statements(Protocol):
    """A connection that a migration runs on."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Iterable[Any]:
        """Run a statement."""


def blocks_of_rows(reader: Reader, run_id: str, metric: str, within: Place | None) -> Iterator[ScoreBlock]:
    """The scores of a metric in dataset order, as blocks; ``within`` only those of these positions."""
    query = f"SELECT {_ROW_COLUMNS} FROM scores WHERE run_id = ? AND metric = ?"
    values: list[str | int] = [run_id, metric]
    if within is not None:
        query += " AND position >= ? AND position <= ?"
        values += within
    rows = reader.stream(f"{query} ORDER BY position, repeat", values)
    while some := list(islice(rows, BLOCK_SIZE)):
        yield _blocks_of(some)[run_id, metric]


def move_scores(connection: Statements) -> None:
    """Move all scores to blocks."""
    rows = connection.execute(f"SELECT {_ROW_COLUMNS} FROM scores ORDER BY run_id, position, repeat")
    places = groupby(rows, key=itemgetter(0, 2, 3))
    while some := [row for _, of_place in islice(places, BLOCK_SIZE) for row in of_place]:
        for (run_id, _), block in _blocks_of(some).items():
            connection.execute(INSERT_BLOCK, block_values(run_id, in_order([block])))


def _blocks_of(rows: Iterable[Row]) -> dict[tuple[str, str], ScoreBlock]:
    """Rows of the old table as blocks, by run and metric."""
    builders: dict[tuple[str, str], BlockBuilder] = {}
    for run_id, metric, position, repeat, value, status, backend, version, elapsed_s, detail in rows:
        builder = builders.setdefault((run_id, metric), BlockBuilder(metric))
        # Details are long, and only these tell more than the columns.
        named = (EVIDENCE_NOTE, INFORMATIONAL_NOTE)
        reason = judged = None
        if value is None or "judge" in backend or "ragas" in backend or any(key in detail for key in named):
            decoded = msgspec.json.decode(detail)
            reason, judged = reason_in(value, decoded), judged_of(decoded, nested=True)
        builder.add_row((position, repeat), value, (status, backend, version), reason, judged)
        builder.add_detail(elapsed_s, detail.encode())
    return {key: builder.block() for key, builder in builders.items()}


# Scores that come one by one, as a judge gives them, join the block before them up to this size.

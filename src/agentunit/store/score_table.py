"""The table of scores: blocks of one metric that follow each other and never overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import merge
from operator import attrgetter

import msgspec

from agentunit.core.results import Score
from agentunit.store import first_layout
from agentunit.store.database import Database, Reader
from agentunit.store.runs import ScoreRow, StoredScore
from agentunit.store.score_blocks import (
    BLOCK_SIZE,
    INSERT_BLOCK,
    READ_COLUMNS,
    Place,
    ScoreBlock,
    ScoreColumns,
    WrittenScore,
    block_of,
    block_values,
    by_metric,
    in_order,
    number_in,
    written_scores,
)

# Scores that come one by one, as a judge gives them, join the block before them up to this size.
_JOINED_UP_TO = 32
_OF_METRIC = "FROM score_blocks WHERE run_id = ? AND metric = ?"
_DATASET_ORDER = "ORDER BY first_position, first_repeat"


class ScoreTable:
    """What a store does with its scores (``protocol.RunStore``)."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._in_blocks = database.has_table("score_blocks")

    def add_scores(self, run_id: str, position: int, repeat: int, scores: Mapping[str, Score]) -> None:
        """Keep the scores of one case, in place of earlier ones of the same metrics."""
        self.add_written_scores(written_scores(run_id, position, repeat, scores))

    def add_written_scores(self, rows: Sequence[WrittenScore]) -> None:
        """Keep scores of any number of cases at once (``written_scores`` writes them), all of them or none."""
        grouped = by_metric(rows)
        with self.database.transaction():
            # In one order, so that two writers never wait for each other.
            for run_id in sorted({run_id for run_id, _ in grouped}):
                self.database.lock_scores(run_id)
            for (run_id, metric), new in grouped.items():
                self._add(run_id, metric, new)

    def _add(self, run_id: str, metric: str, new: list[WrittenScore]) -> None:
        first, last = new[0], new[-1]
        earlier = self._blocks_between(
            run_id,
            metric,
            (first.position, first.repeat),
            (last.position, last.repeat),
            joined=_JOINED_UP_TO - len(new),
        )
        if earlier:
            old = [row for block in earlier for row in block.written(run_id, metric)]
            self._delete(run_id, metric, earlier)
            new = in_order(old + new)
        self._insert(new)

    def _remove_scores(self, run_id: str, places: Set[Place]) -> None:
        """In a transaction: remove all scores of these places."""
        self.database.lock_scores(run_id)
        for metric in self.metrics_scored(run_id):
            found = self._blocks_between(run_id, metric, min(places), max(places))
            # One by one: together they could reach over a block between them.
            for block in found:
                if not places.isdisjoint(block.columns.places()):
                    self._delete(run_id, metric, [block])
                    rows = block.written(run_id, metric)
                    self._insert([row for row in rows if (row.position, row.repeat) not in places])

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
        return [block_of(row) for row in rows]

    def _delete(self, run_id: str, metric: str, blocks: Sequence[ScoreBlock]) -> None:
        sql = "DELETE FROM score_blocks WHERE run_id = ? AND metric = ? AND first_position = ? AND first_repeat = ?"
        keys = [(run_id, metric, block.columns.positions[0], block.columns.repeats[0]) for block in blocks]
        if keys:
            self.database.change_many(sql, keys)

    def _insert(self, rows: Sequence[WrittenScore]) -> None:
        for start in range(0, len(rows), BLOCK_SIZE):
            self.database.change(INSERT_BLOCK, block_values(rows[start : start + BLOCK_SIZE]))

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
            yield from first_layout.blocks(reader, run_id, metric, within)
            return
        which = _OF_METRIC
        values: list[str | int] = [run_id, metric]
        if within is not None:
            which += " AND last_position >= ? AND first_position <= ?"
            values += within
        columns = f"{READ_COLUMNS}, details" if details else READ_COLUMNS
        for row in reader.stream(f"SELECT {columns} {which} {_DATASET_ORDER}", values):
            yield block_of(row)

    def _scored_places(self, reader: Reader, run_id: str, metric: str) -> Iterator[Place]:
        """Where a metric has scores, in dataset order."""
        for block in self._blocks(reader, run_id, metric):
            yield from block.columns.places()

    def n_blocks(self, run_id: str) -> int:
        """In how many pieces the scores of a run are kept: another number where scores were added."""
        table = "score_blocks" if self._in_blocks else "scores"
        ((found,),) = self.database.execute(f"SELECT count(*) FROM {table} WHERE run_id = ?", (run_id,))
        return int(found)

    def is_pass_fail(self, run_id: str, metric: str) -> bool:
        """Whether all values of a metric are 0 or 1; the database looks, so that a long run is answered at once."""
        if not self._in_blocks:
            return all(
                value in (None, 0.0, 1.0) for each in self.score_columns(run_id, metric) for value in each.values
            )
        left = "score_values"
        for part in ("null", "0.0", "1.0", ",", "[", "]"):
            left = f"replace({left}, '{part}', '')"
        return not self.database.execute(f"SELECT 1 {_OF_METRIC} AND {left} <> '' LIMIT 1", (run_id, metric))

    def score_columns(
        self, run_id: str, metric: str, amount_key: str | None = None, within: Place | None = None
    ) -> Iterator[ScoreColumns]:
        """The scores of a metric in dataset order, column by column, without their details.

        ``amount_key`` names the number in the details that is wanted too; ``within`` a first and a last position, and
        only the blocks that hold some between them.
        """
        with self.database.reading() as reader:
            yield from self._columns(reader, run_id, metric, amount_key, within)

    def _columns(
        self, reader: Reader, run_id: str, metric: str, amount_key: str | None, within: Place | None = None
    ) -> Iterator[ScoreColumns]:
        for block in self._blocks(reader, run_id, metric, within=within):
            columns = block.columns
            if amount_key != block.amount_key:
                columns.amounts = None
                if amount_key is not None:
                    columns.amounts = self._amounts(reader, run_id, metric, columns, amount_key)
            yield columns

    def _amounts(self, reader: Reader, run_id: str, metric: str, columns: ScoreColumns, key: str) -> list[float | None]:
        """Amounts that were not asked for when the scores were written: only the details have them."""
        within = (columns.positions[0], columns.positions[-1])
        found = {
            (row.position, row.repeat): number_in(msgspec.json.decode(row.detail), key)
            for block in self._blocks(reader, run_id, metric, details=True, within=within)
            if block.names(key)
            for row in block.written(run_id, metric)
        }
        return [found.get(place) for place in columns.places()]

    def score_rows(self, run_id: str, amounts: Mapping[str, str] | None = None) -> Iterator[tuple[str, ScoreRow]]:
        """Every score of a run with its metric's name, metric by metric in dataset order, without the details.

        ``amounts`` names, for some metrics, the key of the detail whose number is wanted too.
        """
        for metric in self.metrics_scored(run_id):
            for row in self.metric_rows(run_id, metric, (amounts or {}).get(metric)):
                yield metric, row

    def metric_rows(self, run_id: str, metric: str, amount_key: str | None = None) -> Iterator[ScoreRow]:
        """The scores of a metric in dataset order, without their details."""
        with self.database.reading() as reader:
            for columns in self._columns(reader, run_id, metric, amount_key):
                yield from columns.rows(_case_ids(reader, run_id, columns))

    def case_id(self, run_id: str, position: int, repeat: int) -> str:
        """The id of the case at a place of a run."""
        ((case_id,),) = self.database.execute(
            "SELECT case_id FROM records WHERE run_id = ? AND position = ? AND repeat = ?", (run_id, position, repeat)
        )
        return str(case_id)

    def scores(self, run_id: str, *, case_id: str | None = None) -> Iterator[StoredScore]:
        """The scores of a run (or of one of its cases), in dataset order."""
        within = None
        if case_id is not None:
            ((first, last),) = self.database.execute(
                "SELECT min(position), max(position) FROM records WHERE run_id = ? AND case_id = ?", (run_id, case_id)
            )
            if first is None:
                return
            within = (first, last)
        metrics = self.metrics_scored(run_id)
        with self.database.reading() as reader:
            of_metrics = [self._stored(reader, run_id, metric, within) for metric in metrics]
            for each in merge(*of_metrics, key=attrgetter("position", "repeat")):
                if case_id is None or each.case_id == case_id:
                    yield each

    def scores_at(self, run_id: str, position: int, repeat: int) -> list[StoredScore]:
        """The scores of one record."""
        with self.database.reading() as reader:
            return [
                each
                for metric in self.metrics_scored(run_id)
                for each in self._stored(reader, run_id, metric, (position, position))
                if each.repeat == repeat
            ]

    def _stored(self, reader: Reader, run_id: str, metric: str, within: Place | None) -> Iterator[StoredScore]:
        for block in self._blocks(reader, run_id, metric, details=True, within=within):
            case_ids = _case_ids(reader, run_id, block.columns)
            for row in block.written(run_id, metric):
                case_id = case_ids.get((row.position, row.repeat))
                if case_id is not None and (within is None or within[0] <= row.position <= within[1]):
                    yield StoredScore(row.position, row.repeat, case_id, metric, row.score)


def _case_ids(reader: Reader, run_id: str, columns: ScoreColumns) -> dict[Place, str]:
    """The ids of the cases between the first and the last place of a block."""
    rows = reader.execute(
        "SELECT position, repeat, case_id FROM records WHERE run_id = ? AND position >= ? AND position <= ?",
        (run_id, columns.positions[0], columns.positions[-1]),
    )
    return {(position, repeat): case_id for position, repeat, case_id in rows}

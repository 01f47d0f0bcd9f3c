"""The table of records: one row a finished case, with the record as it was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NoReturn

from agentunit.core.codec import decode_record
from agentunit.core.records import Record
from agentunit.core.score_block import Place
from agentunit.store._score_table import ScoreTable
from agentunit.store.database import Reader, Row
from agentunit.store.runs import FIRST_AGAIN, RecordRow, RunSize, StoredRecord, WrittenRecord, is_again
from agentunit.store.schema import DAMAGE, raise_damaged
from agentunit.store.score_blocks import packed, unpacked

_ROWS_A_STATEMENT = 64
_COLUMNS = "(run_id, position, repeat, case_id, failed, elapsed_s, record)"
_VALUES = "(?, ?, ?, ?, ?, ?, ?)"
_REPLACE = (
    " ON CONFLICT (run_id, position, repeat) DO UPDATE SET case_id = excluded.case_id, failed = excluded.failed,"
    " elapsed_s = excluded.elapsed_s, record = excluded.record"
)
_PLANNED = f"run_id = ? AND repeat < {FIRST_AGAIN}"
# From this size on a record is compressed: below it that costs more time than writing it does.
_COMPRESSED_FROM_BYTES = 4096


class RecordTable(ScoreTable):
    """What a store does with its records (``RunStore``)."""

    def add_lines(self, rows: Sequence[WrittenRecord]) -> None:
        """Keep finished cases that are written already (``core.codec.encode_record``), all that ended together."""
        for start in range(0, len(rows), _ROWS_A_STATEMENT):
            self._add_some(rows[start : start + _ROWS_A_STATEMENT])

    def _add_some(self, rows: Sequence[WrittenRecord]) -> None:
        kept = [
            row if len(row[6]) < _COMPRESSED_FROM_BYTES else (*row[:6], packed(row[6], _COMPRESSED_FROM_BYTES))
            for row in rows
        ]
        # One statement is a transaction by itself.
        values = ", ".join([_VALUES] * len(kept))
        n_new = self.database.change(
            f"INSERT INTO records {_COLUMNS} VALUES {values} ON CONFLICT (run_id, position, repeat) DO NOTHING",
            list(chain.from_iterable(kept)),
        )
        if n_new == len(kept):
            return
        # Some are there already: only then they can have scores.
        with self.database.transaction():
            for run_id in {row[0] for row in rows}:
                self._remove_scores(run_id, {(row[1], row[2]) for row in rows if row[0] == run_id})
            self.database.change_many(f"INSERT INTO records {_COLUMNS} VALUES {_VALUES}{_REPLACE}", kept)

    def delete_records(self, run_id: str, places: Set[Place]) -> None:
        """Remove records of a run, by position and repeat, with their scores."""
        if not places:
            return
        with self.database.transaction():
            self._remove_scores(run_id, places)
            self.database.change_many(
                "DELETE FROM records WHERE run_id = ? AND position = ? AND repeat = ?",
                [(run_id, *place) for place in sorted(places)],
            )

    def finished(self, run_id: str, *, failed: bool | None = None) -> set[Place]:
        """Position and repeat of every case that is done; with ``failed`` only those that did or did not fail."""
        rows = self.database.execute(
            f"SELECT position, repeat FROM records WHERE run_id = ?{_and_failed(failed)}", (run_id,)
        )
        return {(position, repeat) for position, repeat in rows}

    def size(self, run_id: str) -> RunSize:
        """How many cases, records and repeats of a case are done, and how many of them failed, without tries again."""
        ((n_records, n_failed, last_repeat),) = self.database.execute(
            f"SELECT count(*), coalesce(sum(failed), 0), coalesce(max(repeat), 0) FROM records WHERE {_PLANNED}",
            (run_id,),
        )
        n_cases = n_records
        if last_repeat:
            ((n_cases,),) = self.database.execute(
                f"SELECT count(DISTINCT position) FROM records WHERE {_PLANNED}", (run_id,)
            )
        return RunSize(n_cases, n_records, int(n_failed), last_repeat + 1)

    def records(
        self,
        run_id: str,
        *,
        unscored_by: Sequence[str] | None = None,
        failed: bool | None = None,
        known: Mapping[Place, Record] | None = None,
    ) -> Iterator[StoredRecord]:
        """The finished cases in dataset order (``RunStore``)."""
        column = "NULL" if known else "record"
        query = (
            f"SELECT position, repeat, case_id, failed, elapsed_s, {column} FROM records"
            f" WHERE run_id = ?{_and_failed(failed)} ORDER BY position, repeat"
        )
        with self.database.reading() as reader:
            rows = reader.stream(query, (run_id,))
            if unscored_by is not None:
                rows = self._lacking(reader, rows, run_id, unscored_by)
            for position, repeat, case_id, has_failed, elapsed_s, line in rows:
                record = known.get((position, repeat)) if known else None
                if record is None:
                    line = line or _line_of(reader, run_id, position, repeat)
                    record = self._record(run_id, position, repeat, case_id, line)
                yield StoredRecord(position, repeat, case_id, bool(has_failed), elapsed_s, record)

    def n_records(self, run_id: str, *, unscored_by: Sequence[str] | None = None) -> int:
        """How many ``records`` would give."""
        with self.database.reading() as reader:
            rows = reader.stream(
                "SELECT position, repeat FROM records WHERE run_id = ? ORDER BY position, repeat", (run_id,)
            )
            return sum(1 for _ in (rows if unscored_by is None else self._lacking(reader, rows, run_id, unscored_by)))

    def _lacking(self, reader: Reader, rows: Iterator[Row], run_id: str, metrics: Sequence[str]) -> Iterator[Row]:
        """Of rows that begin with position and repeat, those without a score of one of these metrics."""
        # Records and scores come in the same order, so one pass over each is enough.
        scored = [self._scored_places(reader, run_id, metric) for metric in metrics]
        waiting = [next(places, None) for places in scored]
        for row in rows:
            place: Place = (row[0], row[1])
            lacks = False
            for number, places in enumerate(scored):
                ahead = waiting[number]
                while ahead is not None and ahead < place:
                    ahead = next(places, None)
                waiting[number] = ahead
                lacks = lacks or ahead != place
            if lacks:
                yield row

    def record_rows(self, run_id: str, *, again: bool | None = None) -> Iterator[RecordRow]:
        """Every finished case in dataset order, without its record; ``again`` asks for tries again or planned ones."""
        which = "" if again is None else f" AND repeat {'>=' if again else '<'} {FIRST_AGAIN}"
        query = f"SELECT position, repeat, case_id, failed FROM records WHERE run_id = ?{which}"
        with self.database.reading() as reader:
            for position, repeat, case_id, failed in reader.stream(f"{query} ORDER BY position, repeat", (run_id,)):
                yield RecordRow(position, repeat, case_id, bool(failed))

    def bounds(self, run_id: str) -> Place | None:
        """The first and the last position of a run; ``None`` where nothing is done yet."""
        ends = (f"(SELECT {end}(position) FROM records WHERE run_id = ?)" for end in ("min", "max"))
        ((first, last),) = self.database.execute(f"SELECT {', '.join(ends)}", (run_id, run_id))
        return None if first is None else (first, last)

    def lines(self, run_id: str, places: Iterable[Place] | None = None) -> Iterator[WrittenRecord]:
        """The finished cases as they were written, in dataset order, or those of these places."""
        query = "SELECT run_id, position, repeat, case_id, failed, elapsed_s, record FROM records WHERE run_id = ?"
        with self.database.reading() as reader:
            for *facts, line in self._lines(reader, query, run_id, places):
                try:
                    written = (*facts, unpacked(line))
                except DAMAGE as error:
                    self._raise_damaged(run_id, facts[1], facts[2], facts[3], error)
                yield written

    @staticmethod
    def _lines(reader: Reader, query: str, run_id: str, places: Iterable[Place] | None) -> Iterator[Row]:
        if places is None:
            yield from reader.stream(f"{query} ORDER BY position, repeat", (run_id,))
            return
        wanted = list(places)
        first, last = (end((position for position, _ in wanted), default=0) for end in (min, max))
        if last - first < 2 * len(wanted):
            # Neighbors are one question.
            between = reader.execute(f"{query} AND position >= ? AND position <= ?", (run_id, first, last))
            found = {(row[1], row[2]): row for row in between}
            yield from (found[place] for place in wanted if place in found)
            return
        for place in wanted:
            yield from reader.execute(f"{query} AND position = ? AND repeat = ?", (run_id, *place))

    def case(self, run_id: str, case_id: str) -> list[StoredRecord]:
        """All repeats of one case."""
        rows = self.database.execute(
            "SELECT position, repeat, case_id, failed, elapsed_s, record FROM records"
            " WHERE run_id = ? AND case_id = ? ORDER BY position, repeat",
            (run_id, case_id),
        )
        return [
            StoredRecord(
                *(position, repeat, case_id, bool(failed), elapsed_s),
                self._record(run_id, position, repeat, case_id, line),
            )
            for position, repeat, case_id, failed, elapsed_s, line in rows
        ]

    def record_of(self, written: WrittenRecord) -> Record:
        """The record of a line that ``lines`` gave."""
        run_id, position, repeat, case_id, _, _, line = written
        return self._record(run_id, position, repeat, case_id, line)

    def _record(self, run_id: str, position: int, repeat: int, case_id: str, line: bytes) -> Record:
        try:
            return decode_record(unpacked(line))
        except DAMAGE as error:
            self._raise_damaged(run_id, position, repeat, case_id, error)

    def _raise_damaged(self, run_id: str, position: int, repeat: int, case_id: str, error: Exception) -> NoReturn:
        number = "" if repeat == 0 else f", repeat {repeat + 1}" if not is_again(repeat) else ", tried again"
        what = f"the record of case {case_id!r:.80} (position {position}{number}) of run {run_id}"
        raise_damaged(self.database.address, what, error, run_id)

    def case_ids(self, run_id: str) -> list[str]:
        """The ids of the finished cases, in dataset order."""
        rows = self.database.execute(
            "SELECT case_id FROM records WHERE run_id = ? GROUP BY case_id ORDER BY min(position)", (run_id,)
        )
        return [case_id for (case_id,) in rows]


def _line_of(reader: Reader, run_id: str, position: int, repeat: int) -> bytes:
    query = "SELECT record FROM records WHERE run_id = ? AND position = ? AND repeat = ?"
    ((line,),) = reader.execute(query, (run_id, position, repeat))
    return bytes(line)


def _and_failed(failed: bool | None) -> str:
    return "" if failed is None else f" AND failed = {int(failed)}"

"""Erasing what a store holds of somebody, and the log of it, which names nobody."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agentunit.core.codec import decode_record
from agentunit.core.records import Record
from agentunit.store.database import Database
from agentunit.store.followed import erase_cases, erase_older
from agentunit.store.labels import subject_of
from agentunit.store.packing import unpacked
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import Place
from agentunit.store.score_table import ScoreTable

Kind = Literal["user", "session", "case", "older"]
KINDS: tuple[Kind, ...] = ("user", "session", "case", "older")
_TABLE = "erasures"
_CREATE = f"""CREATE TABLE IF NOT EXISTS {_TABLE} (
    erased_at REAL NOT NULL,
    kind TEXT NOT NULL,
    n_records INTEGER NOT NULL,
    n_runs INTEGER NOT NULL,
    n_labels INTEGER NOT NULL
)"""
_AGE = re.compile(r"([0-9]{1,5})\s*(d|w|h|days?|weeks?|hours?)")
_SECONDS = {"h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
# Under these names traces and cases keep who asked, and in which conversation.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "user": ("user_id", "user", "customer_id", "userId"),
    "session": ("session_id", "session", "conversation_id", "thread_id", "sessionId"),
}


class Whom(NamedTuple):
    """What is to be erased: the records of a user, a session or a case, or all runs older than some seconds.

    ``masked_as`` are the pseudonyms that stand for the value in a store that keeps masked text.
    """

    kind: Kind
    value: str
    masked_as: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The age beyond which runs are erased."""
        found = _AGE.fullmatch(self.value.strip().lower())
        if found is None:
            raise StoreError(f"an age is a number of hours, days or weeks, such as 30d; received {self.value!r:.40}")
        return int(found[1]) * _SECONDS[found[2][0]]

    def is_in(self, record: Record) -> bool:
        """Whether a record is of this user, session or case.

        >>> from agentunit.core.case import DatasetCase
        >>> Whom("user", "u-7").is_in(Record(DatasetCase("q1", "Hi", metadata={"user_id": "u-7"})))
        True
        """
        is_case = record.case.id in (self.value, *self.masked_as)
        if self.kind == "case" or (self.kind == "session" and is_case):
            return is_case
        trace = record.trace.metadata if record.trace is not None else {}
        held: Iterator[Any] = (
            found.get(name)
            for found in (record.case.metadata, trace)
            if isinstance(found, Mapping)
            for name in _FIELDS.get(self.kind, ())
        )
        return any(str(each) in (self.value, *self.masked_as) for each in held if each is not None)


class Erasure(NamedTuple):
    """What was erased, when and by what, without saying whose it was."""

    erased_at: float
    kind: str
    n_records: int
    n_runs: int
    n_labels: int


def whom(text: str) -> Whom:
    """What ``user=ID``, ``session=ID``, ``case=ID`` or ``older=AGE`` means.

    >>> whom("older=30d").seconds
    2592000.0
    """
    kind, found, value = text.partition("=")
    known = next((each for each in KINDS if each == kind.strip()), None)
    if known is None or not found or not value.strip():
        raise StoreError(f"what to erase is user=ID, session=ID, case=ID or older=30d; received {kind!r:.40}")
    asked = Whom(known, value.strip())
    if known == "older":
        _ = asked.seconds
    return asked


class ErasureTable(ScoreTable):
    """What a store does to forget (``protocol.RunStore``)."""

    database: Database

    def erase(self, which: Whom) -> Erasure:
        """Erase records with their scores and labels, so that nothing of them is left in the files; and log it."""
        with self.database.transaction():
            erased = self._erase_runs(which.seconds) if which.kind == "older" else self._erase_records(which)
            self.database.change(_CREATE)
            self.database.change(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?)", erased)
        self.database.compact()
        return erased

    def erasures(self) -> list[Erasure]:
        """What was erased so far, the last first."""
        if not self.database.has_table(_TABLE):
            return []
        columns = ", ".join(Erasure._fields)
        return [
            Erasure(*row) for row in self.database.execute(f"SELECT {columns} FROM {_TABLE} ORDER BY erased_at DESC")
        ]

    def _erase_records(self, which: Whom) -> Erasure:
        found: dict[str, set[Place]] = {}
        subjects: set[str] = set()
        case_ids = {which.value, *which.masked_as} if which.kind == "case" else set()
        query, values = "SELECT run_id, position, repeat, record FROM records", ()
        with self.database.reading() as reader:
            for run_id, position, repeat, line in reader.stream(query, values):
                record = decode_record(unpacked(line))
                if which.is_in(record):
                    found.setdefault(run_id, set()).add((position, repeat))
                    subjects.add(subject_of(record))
                    case_ids.add(record.case.id)
        erase_cases(self.database, case_ids)
        for run_id, places in found.items():
            self._remove_scores(run_id, places)
            self.database.change_many(
                "DELETE FROM records WHERE run_id = ? AND position = ? AND repeat = ?",
                [(run_id, *place) for place in sorted(places)],
            )
        n_labels = self._erase_labels("subject", sorted(subjects))
        if which.kind == "case":
            n_labels += self._erase_labels("case_id", [which.value, *which.masked_as])
        return Erasure(time.time(), which.kind, sum(map(len, found.values())), len(found), n_labels)

    def _erase_runs(self, older_than_s: float) -> Erasure:
        before = time.time() - older_than_s
        erase_older(self.database, before)
        doomed = [run_id for (run_id,) in self.database.execute("SELECT id FROM runs WHERE created_at < ?", (before,))]
        n_records = 0
        for run_id in doomed:
            ((n_here,),) = self.database.execute("SELECT count(*) FROM records WHERE run_id = ?", (run_id,))
            n_records += int(n_here)
            self.database.change("DELETE FROM runs WHERE id = ?", (run_id,))
        n_labels = self.database.change("DELETE FROM labels WHERE made_at < ?", (before,))
        return Erasure(time.time(), "older", n_records, len(doomed), n_labels)

    def _erase_labels(self, column: str, values: Sequence[str]) -> int:
        return sum(self.database.change(f"DELETE FROM labels WHERE {column} = ?", (value,)) for value in values)

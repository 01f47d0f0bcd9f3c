"""Erasing what a store holds of somebody, and the log of it, which names nobody."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from agentunit.core.records import Record
from agentunit.core.results import encode_json
from agentunit.core.score_block import Place
from agentunit.store.database import Database
from agentunit.store.labels import subject_of
from agentunit.store.run_store import RunStore
from agentunit.store.runs import HISTORY
from agentunit.store.schema import DAMAGE, StoreError, raise_damaged
from agentunit.store.score_blocks import unpacked

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


def erase_from(store: RunStore, which: Whom) -> Erasure:
    """Erase records with their scores and labels, so that nothing of them is left in the files; and log it."""
    database = store.database
    which = which._replace(masked_as=store.masking.pseudonyms_of(which.value))
    with database.transaction():
        erased = _erase_runs(database, which.seconds) if which.kind == "older" else _erase_records(store, which)
        database.change(_CREATE)
        database.change(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?)", erased)
    database.compact()
    return erased


def erasures_of(store: RunStore) -> list[Erasure]:
    """What was erased so far, the last first; nobody is named."""
    if not store.database.has_table(_TABLE):
        return []
    columns = ", ".join(Erasure._fields)
    return [Erasure(*row) for row in store.database.execute(f"SELECT {columns} FROM {_TABLE} ORDER BY erased_at DESC")]


def _erase_records(store: RunStore, which: Whom) -> Erasure:
    found: dict[str, set[Place]] = {}
    subjects: set[str] = set()
    case_ids = {which.value, *which.masked_as} if which.kind == "case" else set()
    database = store.database
    query = "SELECT run_id, position, repeat, case_id, failed, elapsed_s, record FROM records"
    with database.reading() as reader:
        for row in reader.stream(query):
            run_id, position, repeat = row[:3]
            record = store.record_of(row)
            if which.is_in(record):
                found.setdefault(run_id, set()).add((position, repeat))
                subjects.add(subject_of(record))
                case_ids.add(record.case.id)
    _erase_followed_cases(database, case_ids)
    for run_id, places in found.items():
        store.delete_records(run_id, places)
    _erase_decisions(database, found, case_ids)
    n_labels = _erase_labels(database, "subject", sorted(subjects))
    if which.kind == "case":
        n_labels += _erase_labels(database, "case_id", [which.value, *which.masked_as])
    return Erasure(time.time(), which.kind, sum(map(len, found.values())), len(found), n_labels)


def _erase_followed_cases(database: Database, case_ids: Iterable[str]) -> None:
    """Take the ids of erased cases out of what ``score --follow`` keeps in the same database: alerts and series."""
    if not database.has_table("follow_alerts"):
        return
    for case_id in sorted(set(case_ids)):
        quoted = encode_json(case_id).decode()
        for table, column in (("follow_alerts", "alert"), ("follow_series", "state")):
            database.change(f"UPDATE {table} SET {column} = replace({column}, ?, '\"(erased)\"')", (quoted,))


def _erase_decisions(database: Database, run_ids: Collection[str], case_ids: Iterable[str]) -> None:
    """Erase the decisions about these runs, which quote answers, and those that name these cases.

    What the runs were told of earlier tries of their cases goes with them.
    """
    quoted = [encode_json(case_id) for case_id in sorted(case_ids)]
    for run_id, number, decision in database.execute("SELECT run_id, number, decision FROM decisions"):
        try:
            is_named = run_id in run_ids or any(name in unpacked(decision) for name in quoted)
        except DAMAGE as error:
            raise_damaged(database.address, f"a decision of run {run_id}", error, run_id)
        if is_named:
            database.change("DELETE FROM decisions WHERE run_id = ? AND number = ?", (run_id, number))
    for run_id in run_ids:
        ((written,),) = database.execute("SELECT settings FROM runs WHERE id = ?", (run_id,))
        try:
            settings = msgspec.json.decode(written, type=dict[str, Any])
        except DAMAGE as error:
            raise_damaged(database.address, f"what describes run {run_id}", error, run_id)
        if settings.pop(HISTORY, None) is not None:
            changed = encode_json(settings).decode()
            database.change("UPDATE runs SET settings = ? WHERE id = ?", (changed, run_id))


def _erase_runs(database: Database, older_than_s: float) -> Erasure:
    before = time.time() - older_than_s
    if database.has_table("follow_alerts"):
        database.change("DELETE FROM follow_alerts WHERE raised_at < ?", (before,))
        database.change("DELETE FROM follow_hours WHERE hour < ?", (int(before // 3600),))
    doomed = [run_id for (run_id,) in database.execute("SELECT id FROM runs WHERE created_at < ?", (before,))]
    n_records = 0
    for run_id in doomed:
        ((n_here,),) = database.execute("SELECT count(*) FROM records WHERE run_id = ?", (run_id,))
        n_records += int(n_here)
        database.change("DELETE FROM runs WHERE id = ?", (run_id,))
    n_labels = database.change("DELETE FROM labels WHERE made_at < ?", (before,))
    return Erasure(time.time(), "older", n_records, len(doomed), n_labels)


def _erase_labels(database: Database, column: str, values: Sequence[str]) -> int:
    return sum(database.change(f"DELETE FROM labels WHERE {column} = ?", (value,)) for value in values)

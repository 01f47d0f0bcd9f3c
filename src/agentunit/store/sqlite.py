"""The default store: one SQLite file. What it has taken in survives a killed process."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentunit.core.codec import decode_record, encode_record
from agentunit.core.judged import Judged, judged_of
from agentunit.core.records import Record
from agentunit.core.results import MetricResult, Score, Status, encode_json
from agentunit.core.sqlite import SqliteFile, transaction
from agentunit.store.labels import StoredLabel, insert_labels, select_labels, withdraw_label
from agentunit.store.run_lock import is_being_recorded
from agentunit.store.schema import StoreError, bring_up_to_date, check_version, has_sequence

DEFAULT_PATH = ".agentunit/runs.db"

WrittenRecord = tuple[str, int, int, str, int, float, bytes]
"""A row of the table of records: run, position, repeat, case id, whether it failed, seconds, the line itself."""

_OWN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-([0-9a-f]{4})")
_RECORD_VALUES = "(?, ?, ?, ?, ?, ?, ?)"
_ROWS_A_STATEMENT = 64

RunStatus = Literal["running", "finished", "stopped", "interrupted"]
"""``interrupted``: the run is not finished, and the process that recorded it ended without saying so."""


class RunHeader(Struct):
    """What is known about a run as a whole. ``n_planned`` counts cases times repeats."""

    id: str
    name: str
    created_at: float
    finished_at: float | None
    status: RunStatus
    n_planned: int | None
    agentunit_version: str
    settings: dict[str, Any]
    n_done: int = 0
    n_failed: int = 0

    @property
    def label(self) -> str:
        """What a run is called for a person: its name and, as runs of one suite share it, the end of its id."""
        made_here = _OWN_ID.fullmatch(self.id)
        short = made_here[1] if made_here else self.id
        return short if self.name in ("", self.id) else f"{self.name} ({short})"

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a run. It may come from a file: what is no tag is left out."""
        tags = self.settings.get("tags")
        return {str(key): str(value) for key, value in tags.items()} if isinstance(tags, Mapping) else {}

    @property
    def is_foreign(self) -> bool:
        """Whether the run came from a file. Paths in its settings were written by somebody else: open none of them."""
        return bool(self.settings.get("foreign"))


class StoredRecord(Struct):
    """One finished case of a run. ``failed`` says that the agent raised, hung or returned nonsense."""

    position: int
    repeat: int
    case_id: str
    failed: bool
    elapsed_s: float
    record: Record


class RecordRow(Struct):
    """A finished case without its record: what deciding needs."""

    position: int
    repeat: int
    case_id: str
    failed: bool


class ScoreRow(Struct):
    """One score of a run without its detail: what deciding needs. ``reason`` says why there is no value, ``amount`` is
    what tables show in its place, ``judged`` what it took of a judge."""

    position: int
    repeat: int
    case_id: str
    value: float | None
    status: Status
    backend: str
    version: str
    reason: str | None = None
    amount: float | None = None
    judged: Judged | None = None


class StoredScore(Struct):
    """One score of a run."""

    position: int
    repeat: int
    case_id: str
    metric: str
    score: Score


class Store:
    """Runs in a SQLite file. Every ``add_*`` is durable when it returns: a kill -9 after it loses nothing.

    With ``read_only`` the file is neither made nor changed, and may lie where nothing can be written.
    """

    def __init__(self, path: str | os.PathLike[str] = DEFAULT_PATH, *, read_only: bool = False) -> None:
        self.path = os.fspath(path)
        # An agent may change the folder it runs in; the store stays where it is.
        self.file = os.path.abspath(self.path)
        try:
            self._opened = SqliteFile(self.file, read_only=read_only)
            if read_only:
                self._connection = self._opened.connect()
                check_version(self._connection, self.path)
            else:
                self._connection = self._opened.connect_to_write()
                self._connection.execute("PRAGMA foreign_keys = ON")
                bring_up_to_date(self._connection, self.path)
            self._newest_first = "created_at DESC, id DESC"
            if has_sequence(self._connection):
                self._newest_first = f"sequence DESC, {self._newest_first}"
        except sqlite3.DatabaseError as error:
            if "readonly" in str(error):
                reason = "the file or its folder is read-only; --store FILE names another"
                raise StoreError(f"{self.path} cannot be written: {reason}") from None
            raise StoreError(f"{self.path} cannot be used as a store: {error}") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        self._opened.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written within it, or nothing; one within another is part of it."""
        try:
            with transaction(self._connection):
                yield
        except sqlite3.Error as error:
            reason = f"{error} (--store FILE names another)" if "readonly" in str(error) else error
            raise StoreError(f"{self.path} cannot be written: {reason}") from error

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for a long read: it sees the store as it was, whatever is written meanwhile."""
        # A reader that was interrupted is closed by the garbage collector, in whatever thread it runs.
        connection = self._opened.connect(any_thread=True)
        try:
            yield connection
        finally:
            connection.close()

    # Runs

    def create_run(
        self,
        name: str,
        *,
        agentunit_version: str,
        settings: Mapping[str, Any],
        n_planned: int | None = None,
        run_id: str | None = None,
        created_at: float | None = None,
        by_date: bool = False,
    ) -> RunHeader:
        """Begin a run. It is the newest, whatever the clock says; ``by_date`` puts it among the others by its date."""
        created_at = time.time() if created_at is None else created_at
        stamp = datetime.fromtimestamp(created_at, timezone.utc).strftime("%Y%m%d-%H%M%S")
        header = RunHeader(
            run_id or f"{stamp}-{secrets.token_hex(2)}",
            name,
            created_at,
            None,
            "running",
            n_planned,
            agentunit_version,
            dict(settings),
        )
        place = "coalesce(max(sequence), 0) + 1 FROM runs"
        if by_date:
            place = "coalesce(max(sequence), 0) FROM runs WHERE created_at <= ?3"
        self._connection.execute(
            "INSERT INTO runs (id, name, created_at, status, n_planned, agentunit_version, settings, sequence)"
            f" SELECT ?1, ?2, ?3, 'running', ?4, ?5, ?6, {place}",
            (header.id, name, created_at, n_planned, agentunit_version, encode_json(header.settings).decode()),
        )
        return header

    def set_status(self, run_id: str, status: RunStatus, *, finished_at: float | None = None) -> None:
        """Say how a run stands."""
        if status == "finished" and finished_at is None:
            finished_at = time.time()
        self._connection.execute(
            "UPDATE runs SET status = ?, finished_at = ? WHERE id = ?", (status, finished_at, run_id)
        )

    def update_run(self, run_id: str, settings: Mapping[str, Any], *, n_planned: int | None) -> None:
        """Replace what a run says about how it is made."""
        self._connection.execute(
            "UPDATE runs SET settings = ?, n_planned = ? WHERE id = ?",
            (encode_json(dict(settings)).decode(), n_planned, run_id),
        )

    def runs(self) -> list[RunHeader]:
        """All runs, the one begun last first, with how many of their cases are done and failed."""
        return [self._header_of(run_id) for run_id, _ in self._listed()]

    def _listed(self) -> list[tuple[str, str]]:
        rows = self._connection.execute(f"SELECT id, name FROM runs ORDER BY {self._newest_first}").fetchall()
        return [(str(run_id), str(name)) for run_id, name in rows]

    def _header_of(self, run_id: str) -> RunHeader:
        row = self._connection.execute(
            "SELECT r.id, r.name, r.created_at, r.finished_at, r.status, r.n_planned, r.agentunit_version, r.settings,"
            # The index holds all that is counted, so the records themselves are not read.
            " (SELECT count(*) FROM records INDEXED BY records_by_case WHERE run_id = r.id),"
            " (SELECT coalesce(sum(failed), 0) FROM records INDEXED BY records_by_case WHERE run_id = r.id)"
            " FROM runs r WHERE r.id = ?",
            (run_id,),
        ).fetchone()
        header = _header(row)
        if header.status == "running" and not is_being_recorded(self.file, run_id):
            header.status = "interrupted"
        return header

    def find_run(self, reference: str) -> RunHeader:
        """The run of an id, its beginning or last part, a name (the newest of it), ``last`` or ``last~N``."""
        return self._header_of(self._find_id(reference))

    def _find_id(self, reference: str) -> str:
        listed = self._listed()
        if not listed:
            raise StoreError(f"{self.path} holds no runs yet")
        if reference == "last" or (reference.startswith("last~") and reference[5:].isdigit()):
            back = int(reference[5:] or 0)
            if back >= len(listed):
                raise StoreError(f"{self.path} holds {len(listed)} runs; received {reference!r}")
            return listed[back][0]
        ids = [run_id for run_id, _ in listed]
        if reference in ids:
            return reference
        found = [run_id for run_id, name in listed if name == reference][:1]
        found = found or [run_id for run_id in ids if run_id.startswith(reference)]
        found = found or [run_id for run_id in ids if run_id.endswith(f"-{reference}")]
        if len(found) == 1:
            return found[0]
        if found:
            raise StoreError(f"{reference!r} is a part of the ids of {len(found)} runs: {', '.join(found[:5])}")
        raise StoreError(f"no run is called {reference!r}; the newest is {ids[0]} ('agentunit runs' lists them)")

    def delete_run(self, run_id: str) -> None:
        """Remove a run with its records and scores."""
        self._connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    # Records

    def add_record(
        self,
        run_id: str,
        position: int,
        repeat: int,
        record: Record,
        *,
        failed: bool,
        elapsed_s: float,
    ) -> None:
        """Keep a finished case. One that is there already is replaced, and its scores with it."""
        line = encode_record(record)
        self.add_line(run_id, position, repeat, record.case.id, line, failed=failed, elapsed_s=elapsed_s)

    def add_line(
        self, run_id: str, position: int, repeat: int, case_id: str, line: bytes, *, failed: bool, elapsed_s: float
    ) -> None:
        """Keep a finished case that is written already (``core.codec.encode_record``)."""
        self.add_lines([(run_id, position, repeat, case_id, int(failed), elapsed_s, line)])

    def add_lines(self, rows: Sequence[WrittenRecord]) -> None:
        """Keep finished cases that are written already, all that ended together."""
        for start in range(0, len(rows), _ROWS_A_STATEMENT):
            self._add_some_lines(rows[start : start + _ROWS_A_STATEMENT])

    def _add_some_lines(self, rows: Sequence[WrittenRecord]) -> None:
        try:
            # One statement is a transaction by itself.
            values = ", ".join([_RECORD_VALUES] * len(rows))
            self._connection.execute(f"INSERT INTO records VALUES {values}", [each for row in rows for each in row])
            return
        except sqlite3.IntegrityError:
            # One of them is there already: only then it can have scores.
            pass
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be written: {error}") from error
        with self.transaction():
            places = [row[:3] for row in rows]
            self._connection.executemany("DELETE FROM scores WHERE run_id = ? AND position = ? AND repeat = ?", places)
            self._connection.executemany(f"INSERT OR REPLACE INTO records VALUES {_RECORD_VALUES}", rows)

    def finished(self, run_id: str, *, failed: bool | None = None) -> set[tuple[int, int]]:
        """Position and repeat of every case that is done; with ``failed`` only those that did or did not fail."""
        query, values = "SELECT position, repeat FROM records WHERE run_id = ?", [run_id]
        if failed is not None:
            query += f" AND failed = {int(failed)}"
        return set(self._connection.execute(query, values).fetchall())

    def records(
        self,
        run_id: str,
        *,
        unscored_by: Sequence[str] | None = None,
        failed: bool | None = None,
        known: Mapping[tuple[int, int], Record] | None = None,
    ) -> Iterator[StoredRecord]:
        """The finished cases in dataset order.

        With ``unscored_by`` only those lacking one of these metrics' scores, with ``failed`` only those in which the
        agent did or did not fail. Records that are ``known``, by position and repeat, are not read again.
        """
        which, values = _finished(run_id, unscored_by)
        if failed is not None:
            which += f" AND failed = {int(failed)}"
        line = "NULL" if known else "record"
        query = f"SELECT position, repeat, case_id, failed, elapsed_s, {line} {which} ORDER BY position, repeat"
        with self._reading() as connection:
            for position, repeat, case_id, failed, elapsed_s, line in connection.execute(query, values):
                record = known.get((position, repeat)) if known else None
                if record is None:
                    record = decode_record(line or _line_of(connection, run_id, position, repeat))
                yield StoredRecord(position, repeat, case_id, bool(failed), elapsed_s, record)

    def n_records(self, run_id: str, *, unscored_by: Sequence[str] | None = None) -> int:
        """How many ``records`` would give."""
        which, values = _finished(run_id, unscored_by)
        (n,) = self._connection.execute(f"SELECT count(*) {which}", values).fetchone()
        return int(n)

    def record_rows(self, run_id: str) -> Iterator[RecordRow]:
        """Every finished case in dataset order, without its record."""
        # The index holds all of it; by itself SQLite would walk over the records because they lie in the right order.
        query = (
            "SELECT position, repeat, case_id, failed FROM records INDEXED BY records_by_case"
            " WHERE run_id = ? ORDER BY position, repeat"
        )
        for position, repeat, case_id, failed in self._connection.execute(query, (run_id,)).fetchall():
            yield RecordRow(position, repeat, case_id, bool(failed))

    def case(self, run_id: str, case_id: str) -> list[StoredRecord]:
        """All repeats of one case."""
        rows = self._connection.execute(
            "SELECT position, repeat, case_id, failed, elapsed_s, record FROM records INDEXED BY records_by_case"
            " WHERE run_id = ? AND case_id = ? ORDER BY position, repeat",
            (run_id, case_id),
        ).fetchall()
        return [StoredRecord(p, r, c, bool(f), e, decode_record(line)) for p, r, c, f, e, line in rows]

    def case_ids(self, run_id: str) -> list[str]:
        """The ids of the finished cases, in dataset order."""
        rows = self._connection.execute(
            "SELECT case_id FROM records WHERE run_id = ? GROUP BY case_id ORDER BY min(position)", (run_id,)
        )
        return [case_id for (case_id,) in rows]

    # Scores

    def add_scores(self, run_id: str, position: int, repeat: int, scores: Mapping[str, Score]) -> None:
        """Keep the scores of one case, in place of earlier ones of the same metrics."""
        self.add_written_scores(written_scores(run_id, position, repeat, scores))

    def add_written_scores(self, rows: Sequence[WrittenScore]) -> None:
        """Keep scores of any number of cases at once (``written_scores`` writes them), all of them or none."""
        with self.transaction():
            self._connection.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def score_rows(self, run_id: str, amounts: Mapping[str, str] | None = None) -> Iterator[tuple[str, ScoreRow]]:
        """Every score of a run with its metric's name, in dataset order, without the details.

        ``amounts`` names, for some metrics, the key of the detail whose number is wanted too.
        """
        keys = dict(amounts or {})
        query = (
            "SELECT s.metric, s.position, s.repeat, r.case_id, s.value, s.status, s.backend, s.version,"
            # Details are long, and only these are looked at.
            f" CASE WHEN s.value IS NULL OR s.metric IN ({', '.join('?' * len(keys))})"
            " OR s.backend LIKE '%judge%' OR s.backend LIKE '%ragas%' THEN s.detail END"
            " FROM scores s JOIN records r USING (run_id, position, repeat) WHERE s.run_id = ?"
            " ORDER BY s.position, s.repeat"
        )
        with self._reading() as connection:
            for found in connection.execute(query, (*keys, run_id)):
                metric, position, repeat, case_id, value, status, backend, version, detail = found
                row = ScoreRow(position, repeat, case_id, value, status, backend, version)
                if detail is not None:
                    told = msgspec.json.decode(detail)
                    row.reason = str(told.get("reason") or "") or None if value is None else None
                    amount = told.get(keys[metric]) if metric in keys else None
                    row.amount = float(amount) if isinstance(amount, (int, float)) else None
                    row.judged = judged_of(told, nested=True)
                yield metric, row

    def scores(self, run_id: str, *, case_id: str | None = None) -> Iterator[StoredScore]:
        """The scores of a run (or of one of its cases), in dataset order."""
        query = (
            "SELECT s.position, s.repeat, r.case_id, s.metric, s.value, s.status, s.backend, s.version, s.elapsed_s,"
            " s.detail FROM scores s JOIN records r USING (run_id, position, repeat) WHERE s.run_id = ?"
        )
        values = [run_id]
        if case_id is not None:
            query += " AND r.case_id = ?"
            values.append(case_id)
        with self._reading() as connection:
            for row in connection.execute(query + " ORDER BY s.position, s.repeat", values):
                position, repeat, case, metric, value, status, backend, version, elapsed_s, detail = row
                result = MetricResult(metric, value, msgspec.json.decode(detail))
                yield StoredScore(position, repeat, case, metric, Score(result, status, backend, version, elapsed_s))

    # Labels

    def add_labels(self, labels: Sequence[StoredLabel]) -> int:
        """Keep labels, all of them or none; each takes the place of what its rater said of the same answer before.

        One that is there already is left alone. Returns how many were not.
        """
        with self.transaction():
            return insert_labels(self._connection, labels)

    def withdraw_label(self, label_id: str) -> None:
        """Take back a label. It stays in the store, and stands no more."""
        with self.transaction():
            withdraw_label(self._connection, label_id, time.time())

    def labels(self, metric: str | None = None, *, withdrawn: bool = False) -> list[StoredLabel]:
        """The labels that stand, of one metric or of all, oldest first; with ``withdrawn`` also those taken back."""
        return select_labels(self._connection, metric, withdrawn=withdrawn)


WrittenScore = tuple[str, int, int, str, float | None, str, str, str, float, str]
"""A row of the table of scores."""


def written_scores(run_id: str, position: int, repeat: int, scores: Mapping[str, Score]) -> list[WrittenScore]:
    """The scores of one case as the store keeps them: nothing that changes afterwards changes them."""
    return [
        (
            run_id,
            position,
            repeat,
            metric,
            score.result.value,
            score.status,
            score.backend,
            score.version,
            score.elapsed,
            encode_json(score.result.detail).decode(),
        )
        for metric, score in scores.items()
    ]


def _line_of(connection: sqlite3.Connection, run_id: str, position: int, repeat: int) -> bytes:
    query = "SELECT record FROM records WHERE run_id = ? AND position = ? AND repeat = ?"
    (line,) = connection.execute(query, (run_id, position, repeat)).fetchone()
    return bytes(line)


def _finished(run_id: str, unscored_by: Sequence[str] | None) -> tuple[str, list[Any]]:
    """The part of a query that says which finished cases are meant, and its values."""
    which, values = "FROM records r WHERE run_id = ?", [run_id]
    if unscored_by is None:
        return which, values
    which += (
        " AND (SELECT count(*) FROM scores s WHERE s.run_id = r.run_id AND s.position = r.position"
        f" AND s.repeat = r.repeat AND s.metric IN ({', '.join('?' * len(unscored_by))})) < ?"
    )
    return which, [*values, *unscored_by, len(unscored_by)]


def _header(row: tuple[Any, ...]) -> RunHeader:
    run_id, name, created_at, finished_at, status, n_planned, version, settings, n_done, n_failed = row
    decoded = msgspec.json.decode(settings)
    return RunHeader(
        run_id, name, created_at, finished_at, status, n_planned, version, decoded, n_done=n_done, n_failed=n_failed
    )

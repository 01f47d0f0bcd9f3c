"""A store for teams: runs in a PostgreSQL database, in a schema of its own called ``agentunit``.

Needs the extra ``postgres``. What was acknowledged is committed there, so neither a killed client nor a killed server
loses it. A run that is being recorded is held by an advisory lock of a session, which ends with its process. That needs
connections that are sessions: a pooler must pool sessions, not transactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agentunit.core.sqlite import UnknownSchema
from agentunit.installation import install_command
from agentunit.store import schema
from agentunit.store.database import Reader, Row
from agentunit.store.opening import shown_address
from agentunit.store.runs import RunTaken
from agentunit.store.schema import StoreError
from agentunit.store.sql_store import SqlStore

if TYPE_CHECKING:
    import psycopg

_SCHEMA = "agentunit"
# Two that open an empty database at once: one makes the tables, the other waits for this lock.
_MIGRATION_LOCK = 0x6167656E74756E69
_CONNECT_TIMEOUT_S = "10"
_MOST_IDLE = 2
_ROWS_FETCHED = 100

_OTHER_WORDS = re.compile(r"\b(?:BLOB|REAL|INTEGER|WITHOUT ROWID)\b|[?%]")
_IN_POSTGRES = {
    "BLOB": "BYTEA",
    "REAL": "DOUBLE PRECISION",
    "INTEGER": "BIGINT",
    "WITHOUT ROWID": "",
    "?": "%s",
    "%": "%%",
}


class PostgresStore(SqlStore):
    """Runs in a PostgreSQL database, named by a URL. Every ``add_*`` is durable when it returns."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        super().__init__(PostgresDatabase(url, read_only=read_only))


@cache
def in_postgres(sql: str) -> str:
    """A statement in the words of PostgreSQL.

    >>> in_postgres("CREATE TABLE t (a REAL, b BLOB) WITHOUT ROWID"), in_postgres("SELECT b FROM t WHERE a = ?")
    ('CREATE TABLE t (a DOUBLE PRECISION, b BYTEA) ', 'SELECT b FROM t WHERE a = %s')
    """
    return _OTHER_WORDS.sub(lambda found: _IN_POSTGRES[found[0]], sql)


class PostgresDatabase:
    """A PostgreSQL database as a ``Database``."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.address = shown_address(url)
        self._url = url
        self._read_only = read_only
        self._psycopg = _psycopg()
        self._idle: list[psycopg.Connection[Row]] = []
        self._connection = self._connect()
        try:
            with self._failing("used as a store"):
                self.version = self._version()
                if self.version > len(schema.MIGRATIONS):
                    unknown = UnknownSchema(self.version, len(schema.MIGRATIONS))
                    raise StoreError(f"{self.address} was written by a newer AgentUnit: {unknown}; upgrade")
                if read_only and not self.version:
                    raise StoreError(f"{self.address} holds no runs yet")
                if not read_only and self.version < len(schema.MIGRATIONS):
                    self._migrate()
        except BaseException:
            self._connection.close()
            raise

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a statement gives."""
        with self._failing("read"):
            cursor = self._connection.execute(in_postgres(sql), _values(values))
            return cursor.fetchall() if cursor.description else []

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement has changed."""
        with self._failing("written"):
            return int(self._connection.execute(in_postgres(sql), _values(values)).rowcount)

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of these values."""
        with self._failing("written"), self._connection.cursor() as cursor:
            cursor.executemany(in_postgres(sql), [_values(row) for row in rows])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is changed within it, or nothing; one within another is part of it."""
        if self._connection.info.transaction_status != self._psycopg.pq.TransactionStatus.IDLE:
            yield
            return
        with self._failing("written"), self._connection.transaction():
            yield

    def lock_scores(self, run_id: str) -> None:
        """In a transaction: let no other one change the scores of a run until this one ends."""
        # Records may be added meanwhile: they only need the run to stay.
        self.execute("SELECT 1 FROM runs WHERE id = ? FOR NO KEY UPDATE", (run_id,))

    def compact(self) -> None:
        """Write the tables anew without what was deleted; what the server keeps elsewhere is its own affair."""
        for table in ("records", "score_blocks", "labels", "runs"):
            self.execute(f"VACUUM (FULL) {table}")

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """A connection of its own for a long read."""
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            with self._failing("read"):
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _PostgresReader(self, connection)
        finally:
            with suppress(self._psycopg.Error):
                connection.execute("ROLLBACK")
            if connection.closed or len(self._idle) >= _MOST_IDLE:
                connection.close()
            else:
                self._idle.append(connection)

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        return self.execute("SELECT to_regclass(?)", (f"{_SCHEMA}.{name}",)) != [(None,)]

    @contextmanager
    def recording(self, run_id: str) -> Iterator[None]:
        """Hold a run for this process, by a lock of a session of its own."""
        holder = self._connect()
        try:
            with self._failing("used to hold a run"):
                found = holder.execute("SELECT pg_try_advisory_lock(%s)", (_lock_key(run_id),)).fetchone()
            if found != (True,):
                raise RunTaken(run_id)
            try:
                yield
            finally:
                # Said, and not left to the end of the session, of which the server hears a moment later.
                with suppress(self._psycopg.Error):
                    holder.execute("SELECT pg_advisory_unlock(%s)", (_lock_key(run_id),))
        finally:
            holder.close()

    def is_being_recorded(self, run_id: str) -> bool:
        """Whether a process holds a run."""
        found = self.execute(
            "SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database WHERE locktype = 'advisory' AND granted"
            " AND objsubid = 1 AND d.datname = current_database() AND (classid::bigint << 32 | objid::bigint) = ?",
            (_lock_key(run_id),),
        )
        return bool(found)

    def reopened(self) -> PostgresDatabase:
        """The same database once more, to read."""
        return PostgresDatabase(self._url, read_only=True)

    def close(self) -> None:
        """End the sessions."""
        for connection in (*self._idle, self._connection):
            connection.close()
        self._idle.clear()

    def _connect(self) -> psycopg.Connection[Row]:
        with self._failing("reached"):
            known = self._psycopg.conninfo.conninfo_to_dict(self._url)
            connection: psycopg.Connection[Row] = self._psycopg.connect(
                self._url,
                autocommit=True,
                fallback_application_name="agentunit",
                connect_timeout=known.get("connect_timeout", _CONNECT_TIMEOUT_S),
            )
            connection.execute(f"SET search_path TO {_SCHEMA}")
            if self._read_only:
                connection.execute("SET default_transaction_read_only TO on")
            return connection

    def _version(self) -> int:
        if not self.has_table("schema_version"):
            return 0
        ((version,),) = self.execute("SELECT coalesce(max(version), 0) FROM schema_version")
        return int(version)

    def _migrate(self) -> None:
        with self.transaction():
            self.execute("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))
            self.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
            self.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY)")
            # Another process may have migrated while this one waited for the lock.
            for number, steps in enumerate(schema.MIGRATIONS[self._version() :], self._version() + 1):
                for step in steps:
                    if callable(step):
                        step(self)
                    else:
                        self.execute(step)
                self.execute("INSERT INTO schema_version (version) VALUES (?)", (number,))
            self.version = self._version()

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """What the server refuses, as one sentence that quotes no password."""
        try:
            yield
        except self._psycopg.Error as error:
            reason = shown_address(" ".join(str(error).replace(self._url, self.address).split()))
            raise StoreError(f"{self.address} cannot be {what}: {reason}") from None


class _PostgresReader:
    """Reads in one transaction; cursors of the server keep long answers there."""

    def __init__(self, database: PostgresDatabase, connection: psycopg.Connection[Row]) -> None:
        self._database = database
        self._connection = connection
        self._names = count()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._database._failing("read"):
            return list(self._connection.execute(in_postgres(sql), _values(values)).fetchall())

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        with self._database._failing("read"), self._connection.cursor(f"rows_{next(self._names)}") as cursor:
            cursor.itersize = _ROWS_FETCHED
            cursor.execute(in_postgres(sql), _values(values))
            yield from cursor


def _values(values: Sequence[Any]) -> list[Any]:
    """Values as PostgreSQL takes them: its texts cannot hold a NUL, and a case's id or a reason may quote one."""
    return [each.replace("\0", "\u2400") if isinstance(each, str) else each for each in values]


def _lock_key(run_id: str) -> int:
    return int.from_bytes(sha256(run_id.encode()).digest()[:8], "big", signed=True)


def _psycopg() -> ModuleType:
    try:
        package = import_module("psycopg")
        import_module("psycopg.conninfo")
    except ImportError as error:
        hint = install_command("postgres")
        raise StoreError(f"a store in PostgreSQL needs the package psycopg ({error}): {hint}") from None
    return package

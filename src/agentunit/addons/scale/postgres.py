"""A store for teams: runs in a PostgreSQL database, in a schema of its own called ``agentunit``.

Needs the extra ``postgres``. What was acknowledged is committed there, so neither a killed client nor a killed server
loses it. A run that is being recorded is held by an advisory lock of a session, which ends with its process. That needs
connections that are sessions: a pooler must pool sessions, not transactions.

A server that gives no answer is waited for only so long: that is said, and Ctrl-C ends the wait. A connection that was
dropped between two transactions is made again; within one, what was written is not known, and that is an error.
"""

from __future__ import annotations

import re
import selectors
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import count
from math import inf, isinf
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from agentunit.core.sqlite import UnknownSchema
from agentunit.engine.recording.end_signals import END_SIGNALS, heard_by
from agentunit.installation import install_command
from agentunit.store import schema
from agentunit.store.database import Reader, Row
from agentunit.store.opening import shown_address
from agentunit.store.runs import RunTaken
from agentunit.store.schema import StoreError

if TYPE_CHECKING:
    import psycopg

_SCHEMA = "agentunit"
# Two that open an empty database at once: one makes the tables, the other waits for this lock.
_MIGRATION_LOCK = 0x6167656E74756E69
_CONNECT_TIMEOUT_S = "10"
_ANSWER_TIMEOUT_S = 30.0
# After Ctrl-C, which must not wait for a server that gives no answer. No connection is waited for shorter.
_GOODBYE_S = 2.0
_RECONNECT_FOR_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 4.0
_LOOK_EVERY_S = 0.1
_TOLD_AFTER_S = 2.0
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


_Result = TypeVar("_Result")


class _Patience:
    """How long the connections of a database wait for an answer. Who waits for longer than a moment is told."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.seconds = _ANSWER_TIMEOUT_S
        self.is_interrupted = False

    def interrupt(self) -> None:
        """Ctrl-C was pressed while one of them waited."""
        self.seconds, self.is_interrupted = _GOODBYE_S, True

    def tell(self, more_s: float) -> None:
        """Say that there is no answer, and how long there will be further tries."""
        with suppress(OSError, ValueError):
            print(
                f"{self.address} does not answer; trying for another {more_s:.0f} s (Ctrl-C ends that)",
                file=sys.stderr,
                flush=True,
            )

    @contextmanager
    def hearing_ctrl_c(self, *, ends_at_once: bool = False) -> Iterator[None]:
        """Within it, the first Ctrl-C counts, which a run takes for a wish to end between two cases."""
        asked_before = {number: signal.getsignal(number) for number in END_SIGNALS}

        def ask(number: int, frame: Any) -> None:
            self.interrupt()
            before = asked_before[number]
            if callable(before):
                before(number, frame)
            if ends_at_once:
                raise KeyboardInterrupt

        with heard_by(ask, [number for number, before in asked_before.items() if callable(before)]):
            yield


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
        self._holders: dict[str, psycopg.Connection[Row]] = {}
        self._in_transaction = self._is_lost = False
        self._patience = _Patience(self.address)
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

        def rows(connection: psycopg.Connection[Row]) -> list[Row]:
            cursor = connection.execute(in_postgres(sql), _values(values))
            return cursor.fetchall() if cursor.description else []

        return self._done("read", rows)

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement has changed."""
        return self._done(
            "written", lambda connection: int(connection.execute(in_postgres(sql), _values(values)).rowcount)
        )

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of these values."""

        def run_all(connection: psycopg.Connection[Row]) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(in_postgres(sql), [_values(row) for row in rows])

        self._done("written", run_all)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is changed within it, or nothing; one within another is part of it."""
        if self._in_transaction:
            yield
            return
        with self._failing("written"), ExitStack() as ending:
            begun = self._done("written", _begin)
            self._in_transaction = True
            ending.callback(setattr, self, "_in_transaction", False)
            ending.push(begun)
            yield

    def lock_scores(self, run_id: str) -> None:
        """In a transaction: let no other one change the scores of a run until this one ends."""
        # Records may be added meanwhile: they only need the run to stay.
        self.execute("SELECT 1 FROM runs WHERE id = ? FOR NO KEY UPDATE", (run_id,))

    def compact(self) -> None:
        """Write the tables anew without what was deleted; what the server keeps elsewhere is its own affair."""
        with self._patient():
            for table in ("records", "score_blocks", "labels", "decisions", "runs"):
                self.execute(f"VACUUM (FULL) {table}")

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """A connection of its own for a long read."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            with self._failing("read"):
                try:
                    connection.execute(begin)
                except self._psycopg.OperationalError:
                    if not connection.closed:
                        raise
                    # It was dropped while nobody used it.
                    connection = self._connect()
                    connection.execute(begin)
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
        self._holders[run_id] = self._hold(run_id)
        try:
            yield
        finally:
            holder = self._holders.pop(run_id)
            # Said, and not left to the end of the session, of which the server hears a moment later.
            with suppress(self._psycopg.Error):
                holder.execute("SELECT pg_advisory_unlock(%s)", (_lock_key(run_id),))
            holder.close()

    def _hold(self, run_id: str) -> psycopg.Connection[Row]:
        """A session that holds a run."""
        holder = self._connect()
        try:
            with self._failing("used to hold a run"):
                found = holder.execute("SELECT pg_try_advisory_lock(%s)", (_lock_key(run_id),)).fetchone()
            if found != (True,):
                raise RunTaken(run_id)
        except BaseException:
            holder.close()
            raise
        return holder

    def is_being_recorded(self, run_id: str) -> bool:
        """Whether a process holds a run."""
        found = self.execute(
            "SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database WHERE locktype = 'advisory' AND granted"
            " AND objsubid = 1 AND d.datname = current_database() AND (classid::bigint << 32 | objid::bigint) = ?",
            (_lock_key(run_id),),
        )
        return bool(found)

    def reopened(self, *, read_only: bool = True) -> PostgresDatabase:
        """The same database once more, with a connection of its own."""
        return PostgresDatabase(self._url, read_only=read_only)

    def close(self) -> None:
        """End the sessions."""
        for connection in (*self._idle, self._connection):
            connection.close()
        self._idle.clear()

    def _done(self, what: str, work: Callable[[psycopg.Connection[Row]], _Result]) -> _Result:
        """What comes of some work, by a new connection where the one there is was dropped outside of a transaction."""
        with self._failing(what):
            try:
                return work(self._connection)
            except self._psycopg.OperationalError:
                is_over = self._is_lost and self._patience.is_interrupted
                if self._in_transaction or is_over or not self._connection.closed:
                    raise
            with self._patience.hearing_ctrl_c(ends_at_once=True):
                self._reconnect()
            return work(self._connection)

    def _reconnect(self) -> None:
        """Connect again, to a server that may be starting, and hold again what this process holds."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        # One that was waited for in vain is not waited for again.
        is_waited_for = not (self._is_lost or self._patience.is_interrupted)
        ends_at, pause_s = time.monotonic() + (_RECONNECT_FOR_S if is_waited_for else 0.0), _FIRST_PAUSE_S
        is_told = not is_waited_for
        while True:
            try:
                self._connection = self._connect()
                for run_id, holder in self._holders.items():
                    try:
                        holder.execute("SELECT 1")
                    except self._psycopg.Error:
                        holder.close()
                        self._holders[run_id] = self._hold(run_id)
                self._is_lost = False
                return
            except (StoreError, RunTaken):
                # A server that still sees the old session lets go of its lock a moment later.
                if time.monotonic() + pause_s > ends_at:
                    self._is_lost = True
                    raise
            if not is_told:
                self._patience.tell(ends_at - time.monotonic())
                is_told = True
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """Within it, answers are waited for as long as they take."""
        self._patience.seconds = inf
        try:
            yield
        finally:
            self._patience.seconds = _ANSWER_TIMEOUT_S

    def _connect(self) -> psycopg.Connection[Row]:
        with self._failing("reached"):
            known = self._psycopg.conninfo.conninfo_to_dict(self._url)
            usual_s = known.get("connect_timeout", _CONNECT_TIMEOUT_S)
            connection: Any = _connection_class().connect(
                self._url,
                autocommit=True,
                fallback_application_name="agentunit",
                connect_timeout=int(_GOODBYE_S) if self._patience.is_interrupted else usual_s,
            )
            connection.patience = self._patience
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
        with self._patient(), self.transaction():
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


def _begin(connection: psycopg.Connection[Row]) -> Any:
    """A transaction that was begun, to be ended by its ``__exit__``."""
    begun = connection.transaction()
    begun.__enter__()
    return begun


@cache
def _connection_class() -> Any:
    psycopg = _psycopg()

    class Connection(psycopg.Connection):  # type: ignore[misc, name-defined]
        """A connection whose waits have an end: after some time, or with Ctrl-C. It is closed then."""

        patience = _Patience("PostgreSQL")

        def wait(self, generator: Generator[int, int, Any], *_: Any, **__: Any) -> Any:
            try:
                return _waited(generator, self.pgconn.socket, self.patience)
            except TimeoutError as error:
                self.pgconn.finish()
                raise psycopg.OperationalError(str(error)) from None
            except KeyboardInterrupt:
                # Psycopg would ask the server to break off, and wait for its answer.
                self.patience.interrupt()
                self.pgconn.finish()
                raise

    return Connection


def _waited(generator: Generator[int, int, Any], socket: int, patience: _Patience) -> Any:
    """What comes of an exchange with the server, whose generator yields and takes what its socket is ready for."""
    began_at, was_interrupted, is_told = time.monotonic(), patience.is_interrupted, isinf(patience.seconds)
    with ExitStack() as hearing:
        is_heard = False
        try:
            wanted = next(generator)
            while True:
                left_s = began_at + patience.seconds - time.monotonic()
                with selectors.DefaultSelector() as selector:
                    selector.register(socket, wanted)
                    ready = selector.select(min(_LOOK_EVERY_S, max(0.0, left_s)))
                if ready:
                    wanted = generator.send(ready[0][1])
                    continue
                if left_s <= 0:
                    if patience.is_interrupted and not was_interrupted:
                        raise KeyboardInterrupt
                    raise TimeoutError(f"the server has given no answer for {patience.seconds:g} s")
                if not is_heard:
                    hearing.enter_context(patience.hearing_ctrl_c())
                    is_heard = True
                if not is_told and time.monotonic() - began_at >= _TOLD_AFTER_S:
                    patience.tell(left_s)
                    is_told = True
        except StopIteration as done:
            return done.value


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

"""The default store: one SQLite file. What it has taken in survives a killed process."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

from agentunit.core.sqlite import SqliteFile, schema_version, transaction
from agentunit.store.database import Reader, Row
from agentunit.store.opening import DEFAULT_PATH
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunTaken
from agentunit.store.schema import StoreError, bring_up_to_date, check_version

# Several records of usual size share a page; of 4096 bytes each would have one to itself.
_PAGE_BYTES = 8192
# What SQLite says of a file in which bytes have changed.
_DAMAGED = ("malformed", "decode to UTF-8", "disk I/O", "not a database")
# How often the lock of a run is asked for.
_ATTEMPTS = 5
_RETRY_AFTER_S = 0.02


class Store(RunStore):
    """Runs in a SQLite file. Every ``add_*`` is durable when it returns: a kill -9 after it loses nothing.

    With ``read_only`` the file is neither made nor changed, and may lie where nothing can be written.
    """

    def __init__(self, path: str | os.PathLike[str] = DEFAULT_PATH, *, read_only: bool = False) -> None:
        opened = SqliteDatabase(os.fspath(path), read_only=read_only)
        self.file = opened.file
        super().__init__(opened)


class SqliteDatabase:
    """A SQLite file as a ``Database``."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.address = path
        # An agent may change the folder it runs in; the store stays where it is.
        self.file = os.path.abspath(path)
        try:
            self._opened = SqliteFile(self.file, read_only=read_only)
            if read_only:
                self._connection = self._opened.connect()
                check_version(self._connection, path)
            else:
                # In a notebook, a run is recorded in another thread while this one waits.
                self._connection = self._opened.connect_to_write(any_thread=True, page_bytes=_PAGE_BYTES)
                bring_up_to_date(self._connection, path)
                # Not before: a migration may drop a table that others refer to, which must not take them along.
                self._connection.execute("PRAGMA foreign_keys = ON")
            self.version = schema_version(self._connection)
        except sqlite3.DatabaseError as error:
            if "readonly" in str(error):
                reason = "the file or its folder is read-only; --store FILE names another"
                raise StoreError(f"{path} cannot be written: {reason}") from None
            way_out = " (--store FILE names another)" if "not a database" in str(error) else ""
            raise StoreError(f"{path} cannot be used as a store: {error}{way_out}") from None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a statement gives."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _not_read(self.address, error) from error

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement has changed."""
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise self._not_written(error) from error

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of these values."""
        try:
            self._connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._not_written(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is changed within it, or nothing; one within another is part of it."""
        try:
            with transaction(self._connection):
                yield
        except sqlite3.Error as error:
            raise self._not_written(error) from error

    def lock_scores(self, run_id: str) -> None:
        """Nothing to do: a transaction has the whole file for itself."""

    def compact(self) -> None:
        """Write the file anew without what was deleted, and empty its log."""
        try:
            self._connection.execute("VACUUM")
            ((is_busy, _, _),) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise self._not_written(error) from error
        if is_busy:
            raise StoreError(
                f"what was deleted is still in the file {self.address}, because another process reads it: "
                "end that process, then erase once more"
            )

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """A connection of its own for a long read."""
        # A reader that was interrupted is closed by the garbage collector, in whatever thread it runs.
        connection = self._opened.connect(any_thread=True)
        try:
            connection.execute("BEGIN")
            yield _SqliteReader(connection, self.address)
        finally:
            connection.close()

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    @contextmanager
    def recording(self, run_id: str) -> Iterator[None]:
        """Hold a run for this process, by a lock of the operating system, which releases it however the process ends.

        One that another process holds is a ``RunTaken``.
        """
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield
            return
        path = lock_path(self.file, run_id)
        with open(path, "wb") as file:
            for attempt in range(_ATTEMPTS):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    # Whoever lists the runs holds it for a moment, to see whether anybody does.
                    if attempt == _ATTEMPTS - 1:
                        raise RunTaken(run_id) from None
                    time.sleep(_RETRY_AFTER_S)
            # Whoever held it may have removed the file since it was opened here: such a lock holds nobody.
            if not os.path.exists(path) or not os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                raise RunTaken(run_id)
            try:
                yield
            finally:
                with suppress(OSError):
                    os.unlink(path)

    def is_being_recorded(self, run_id: str) -> bool:
        """Whether a process holds a run's lock; true where that cannot be known."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            return True
        try:
            with open(lock_path(self.file, run_id), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def reopened(self, *, read_only: bool = True) -> SqliteDatabase:
        """The same file once more, with a connection of its own."""
        return SqliteDatabase(self.file, read_only=read_only)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        self._opened.close()

    def _not_written(self, error: sqlite3.Error) -> StoreError:
        reason = f"{error} (--store FILE names another)" if "readonly" in str(error) else error
        return StoreError(f"{self.address} cannot be written: {reason}")


class _SqliteReader:
    def __init__(self, connection: sqlite3.Connection, address: str) -> None:
        self._connection = connection
        self._address = address

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return list(self.stream(sql, values))

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        try:
            # Not "yield from": that would close a cursor whose connection is closed, when nobody reads to the end.
            for row in self._connection.execute(sql, values):  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            raise _not_read(self._address, error) from error


def _not_read(address: str, error: sqlite3.Error) -> StoreError:
    is_damaged = any(words in str(error) for words in _DAMAGED)
    way_out = f": put a copy of it in its place; 'sqlite3 {address} .recover' saves what is left" if is_damaged else ""
    # SQLite quotes the text that it cannot decode, all of it.
    reason = str(error).partition(" with text ")[0]
    return StoreError(f"{address} cannot be read: {reason}{way_out}")


def why_damaged(file: str) -> str | None:
    """What SQLite finds wrong with a file, for an error that nothing else explains; ``None`` where that is nothing."""
    try:
        with closing(SqliteFile(file, read_only=True)) as opened, closing(opened.connect()) as connection:
            ((found,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    except (sqlite3.Error, OSError) as error:
        found = str(error)
    return None if found == "ok" else " ".join(str(found).split())


def lock_path(store_file: str, run_id: str) -> str:
    """The file that the process which records a run holds locked."""
    return f"{store_file}.{run_id}.lock"

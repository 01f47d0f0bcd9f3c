"""The default store: one SQLite file. What it has taken in survives a killed process."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from agentunit.core.sqlite import SqliteFile, schema_version, transaction
from agentunit.store.database import Reader, Row
from agentunit.store.opening import DEFAULT_PATH
from agentunit.store.run_lock import hold_run, is_being_recorded
from agentunit.store.schema import StoreError, bring_up_to_date, check_version
from agentunit.store.sql_store import SqlStore

# Several records of usual size share a page; of 4096 bytes each would have one to itself.
_PAGE_BYTES = 8192


class Store(SqlStore):
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
                self._connection = self._opened.connect_to_write(page_bytes=_PAGE_BYTES)
                bring_up_to_date(self._connection, path)
                # Not before: a migration may drop a table that others refer to, which must not take them along.
                self._connection.execute("PRAGMA foreign_keys = ON")
            self.version = schema_version(self._connection)
        except sqlite3.DatabaseError as error:
            if "readonly" in str(error):
                reason = "the file or its folder is read-only; --store FILE names another"
                raise StoreError(f"{path} cannot be written: {reason}") from None
            raise StoreError(f"{path} cannot be used as a store: {error}") from None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a statement gives."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.address} cannot be read: {error}") from error

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

    def recording(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run for this process, by a lock of the operating system."""
        return hold_run(self.file, run_id)

    def is_being_recorded(self, run_id: str) -> bool:
        """Whether a process holds a run; true where that cannot be known."""
        return is_being_recorded(self.file, run_id)

    def reopened(self) -> SqliteDatabase:
        """The same file once more, to read."""
        return SqliteDatabase(self.file, read_only=True)

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
            raise StoreError(f"{self._address} cannot be read: {error}") from error

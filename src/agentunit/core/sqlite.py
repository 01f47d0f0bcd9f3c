"""SQLite files: how they are opened, kept at a version of their tables, and written in transactions.

Several processes may use a file at once, and what was committed survives a killed process. Files hold what users asked
and agents answered, so only their owner can read them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# One process waits for another's transaction, which takes well under a millisecond.
_WAIT_FOR_LOCK_S = 60.0
_RETRY_AFTER_S = 0.02
_WAL_ENDING = "-wal"
_CACHE_KIB = 16 << 10
_LOG_BYTES = 32 << 20


Step = str | Callable[[Any], None]
"""A part of a migration: a statement, or what does with a connection that statements alone cannot."""


class UnknownSchema(Exception):
    """The tables of a file are of a version that this code does not know: ``found``, where it knows up to ``known``."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"its tables are of version {found}, this one knows {known}")
        self.found = found
        self.known = known


class SqliteFile:
    """A SQLite file and the address it is opened by. One that is only read is never changed or created."""

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, wait_s: float = _WAIT_FOR_LOCK_S
    ) -> None:
        file = os.path.abspath(path)
        self._wait_s = wait_s
        self._copy: TemporaryDirectory[str] | None = None
        if read_only:
            self._address = self._readable_address(file)
            return
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        # Made before SQLite does, so that nobody else can read it from its first byte on.
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._address = _address(file, "rw")

    def connect(self, *, any_thread: bool = False) -> sqlite3.Connection:
        """A new connection, for reading. Transactions begin only where they are written down."""
        return sqlite3.connect(
            self._address,
            uri=True,
            timeout=self._wait_s,
            isolation_level=None,
            check_same_thread=not any_thread,
        )

    def connect_to_write(self, *, any_thread: bool = False, page_bytes: int = 4096) -> sqlite3.Connection:
        """A new connection that may write while others read. ``page_bytes`` is for a file that is still empty."""
        connection = self.connect(any_thread=any_thread)
        try:
            connection.execute(f"PRAGMA page_size = {page_bytes}")
            self._use_write_ahead_log(connection)
            # In WAL mode NORMAL keeps every commit through a killed process; only a power cut could undo the last.
            connection.execute("PRAGMA synchronous = NORMAL")
            # Pages that are changed again and again, as those of indexes, are then written to the file less often.
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_bytes}")
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Remove what reading needed."""
        if self._copy is not None:
            self._copy.cleanup()

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        # Changing the journal does not wait for a lock as everything else does, so two that open a new file meet here.
        ends_at = time.monotonic() + min(self._wait_s, 5.0)
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > ends_at:
                    raise
                time.sleep(_RETRY_AFTER_S)

    def _readable_address(self, file: str) -> str:
        plain = _address(file, "ro")
        try:
            with closing(sqlite3.connect(plain, uri=True, timeout=self._wait_s)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return plain
        except sqlite3.OperationalError:
            # The folder cannot be written, so SQLite cannot make the files in which readers and writers coordinate.
            log = file + _WAL_ENDING
            if not os.path.exists(log) or not os.path.getsize(log):
                return plain + "&immutable=1"
        # A process that was killed left commits in the log, which SQLite reads only where it may write.
        self._copy = TemporaryDirectory(prefix="agentunit-sqlite-")
        copied = os.path.join(self._copy.name, os.path.basename(file))
        shutil.copyfile(file, copied)
        shutil.copyfile(log, copied + _WAL_ENDING)
        return _address(copied, "ro")


def _address(file: str, mode: str) -> str:
    return f"{Path(file).as_uri()}?mode={mode}"


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is written within it, or nothing; one within another is part of it."""
    if connection.in_transaction:
        yield connection
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # SQLite may have rolled back by itself (a full disk): what went wrong first is what counts.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def schema_version(connection: sqlite3.Connection) -> int:
    """The version of the tables in a file: how many migrations it has had. 0: it has no tables."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def check_schema(connection: sqlite3.Connection, migrations: Sequence[Sequence[Step]]) -> int:
    """The version of the tables; one that these migrations do not lead to is an ``UnknownSchema``."""
    found = schema_version(connection)
    if not 0 <= found <= len(migrations):
        raise UnknownSchema(found, len(migrations))
    return found


def migrate(connection: sqlite3.Connection, migrations: Sequence[Sequence[Step]]) -> None:
    """Bring a file to the newest version of its tables, in one transaction.

    ``migrations`` has the steps of one version each, oldest first; none is ever changed, only followed.
    """
    if check_schema(connection, migrations) == len(migrations):
        return
    with transaction(connection):
        # Another process may have migrated while this one waited for the lock.
        for steps in migrations[check_schema(connection, migrations) :]:
            for step in steps:
                if callable(step):
                    step(connection)
                else:
                    connection.execute(step)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")

"""How the file of a store is opened: for writing, or for reading wherever it lies."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

# Two processes may write at once: one waits for the other's transaction, which takes well under a millisecond.
_WAIT_FOR_LOCK_S = 60.0
_WAL_ATTEMPTS = 250
_WAL_ENDING = "-wal"


class StoreFile:
    """A SQLite file and the address it is opened by. A store that is only read is never changed or created."""

    def __init__(self, file: str, *, read_only: bool) -> None:
        self._copy: TemporaryDirectory[str] | None = None
        if read_only:
            self._address = self._readable_address(file)
            return
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        # Records hold what users asked and agents answered: nobody else's business.
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._address = _address(file, "rw")

    def connect(self) -> sqlite3.Connection:
        """A new connection."""
        return sqlite3.connect(self._address, uri=True, timeout=_WAIT_FOR_LOCK_S, isolation_level=None)

    def close(self) -> None:
        """Remove what reading needed."""
        if self._copy is not None:
            self._copy.cleanup()

    def _readable_address(self, file: str) -> str:
        plain = _address(file, "ro")
        try:
            _try_reading(plain)
            return plain
        except sqlite3.OperationalError:
            # The folder cannot be written, so SQLite cannot make the files in which readers and writers coordinate.
            log = file + _WAL_ENDING
            if not os.path.exists(log) or not os.path.getsize(log):
                return plain + "&immutable=1"
        # A process that was killed left commits in the log, which SQLite reads only where it may write.
        self._copy = TemporaryDirectory(prefix="agentunit-store-")
        copied = os.path.join(self._copy.name, os.path.basename(file))
        shutil.copyfile(file, copied)
        shutil.copyfile(log, copied + _WAL_ENDING)
        return _address(copied, "ro")


def _address(file: str, mode: str) -> str:
    return f"{Path(file).as_uri()}?mode={mode}"


def _try_reading(address: str) -> None:
    with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_FOR_LOCK_S)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let one process write while others read."""
    # Changing the journal does not wait for a lock as everything else does, so two that open a new file meet here.
    for attempt in range(_WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _WAL_ATTEMPTS - 1:
                raise
            time.sleep(0.02)

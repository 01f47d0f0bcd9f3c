"""What was handed in as a batch, kept on disk before anything is sent: a run that is killed finds its batches again."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from agentunit.core.sqlite import SqliteFile, transaction

_FILE = "judge-batches-1.sqlite"
_KEPT_S = 30 * 86_400.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    number INTEGER PRIMARY KEY, place TEXT NOT NULL, n_requests INTEGER NOT NULL, created_at REAL NOT NULL,
    input_file TEXT, batch_id TEXT
);
CREATE TABLE IF NOT EXISTS requests (custom_id TEXT PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    custom_id TEXT PRIMARY KEY, status INTEGER NOT NULL, body BLOB NOT NULL, created_at REAL NOT NULL
) WITHOUT ROWID;
"""


class OpenBatch(NamedTuple):
    """A batch whose results are not there yet; without an id, whether the server has it is not known."""

    number: int
    n_requests: int
    created_at: float
    input_file: str | None
    batch_id: str | None


class Result(NamedTuple):
    """The response to one request of a batch."""

    custom_id: str
    status: int
    body: bytes


class BatchJournal:
    """The batches and results of a folder; used by one thread, and by any number of processes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._connection = SqliteFile(folder / _FILE).connect_to_write(any_thread=True)
        # A power cut must not forget a batch that is paid for.
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_SCHEMA)
        self._connection.execute("DELETE FROM results WHERE created_at < ?", (time.time() - _KEPT_S,))

    def begin(self, place: str, custom_ids: Sequence[str]) -> OpenBatch:
        """Note that a batch of these requests is about to be handed in."""
        now_s = time.time()
        with transaction(self._connection):
            row = (place, len(custom_ids), now_s)
            cursor = self._connection.execute(
                "INSERT INTO batches (place, n_requests, created_at) VALUES (?, ?, ?)", row
            )
            number = int(cursor.lastrowid or 0)
            named = [(each, number) for each in custom_ids]
            self._connection.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?)", named)
        return OpenBatch(number, len(custom_ids), now_s, None, None)

    def name_file(self, number: int, input_file: str) -> None:
        """Note under which name the server has the requests of a batch."""
        self._connection.execute("UPDATE batches SET input_file = ? WHERE number = ?", (input_file, number))

    def name_batch(self, number: int, batch_id: str) -> None:
        """Note under which name the server has a batch."""
        self._connection.execute("UPDATE batches SET batch_id = ? WHERE number = ?", (batch_id, number))

    def finish(self, number: int, results: Iterable[Result]) -> None:
        """Keep the results of a batch, which is then done."""
        now_s = time.time()
        with transaction(self._connection):
            rows = ((each.custom_id, each.status, each.body, now_s) for each in results)
            self._connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", rows)
            self._forget(number)

    def drop(self, number: int) -> None:
        """Forget a batch that the server does not have."""
        with transaction(self._connection):
            self._forget(number)

    def _forget(self, number: int) -> None:
        self._connection.execute("DELETE FROM requests WHERE batch = ?", (number,))
        self._connection.execute("DELETE FROM batches WHERE number = ?", (number,))

    def open_batches(self, place: str | None = None) -> list[OpenBatch]:
        """The batches that are not done, of one place or of all."""
        columns = "number, n_requests, created_at, input_file, batch_id"
        query = f"SELECT {columns} FROM batches WHERE place = COALESCE(?, place) ORDER BY number"
        return [OpenBatch(*row) for row in self._connection.execute(query, (place,))]

    def batch_of(self, custom_id: str) -> int | None:
        """The number of the open batch that a request is in."""
        row = self._connection.execute("SELECT batch FROM requests WHERE custom_id = ?", (custom_id,)).fetchone()
        return None if row is None else int(row[0])

    def requests_of(self, number: int) -> set[str]:
        """The requests of an open batch."""
        rows = self._connection.execute("SELECT custom_id FROM requests WHERE batch = ?", (number,))
        return {str(row[0]) for row in rows}

    def result_of(self, custom_id: str) -> Result | None:
        """The response to a request, if it is there."""
        query = "SELECT custom_id, status, body FROM results WHERE custom_id = ?"
        row = self._connection.execute(query, (custom_id,)).fetchone()
        return None if row is None else Result(*row)

    def discard(self, custom_ids: Iterable[str]) -> None:
        """Delete results that were used."""
        with transaction(self._connection):
            self._connection.executemany("DELETE FROM results WHERE custom_id = ?", [(each,) for each in custom_ids])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def open_batches_in(folder: Path) -> list[OpenBatch]:
    """The batches of a folder that are not done; none where there is no journal."""
    if not (folder / _FILE).exists():
        return []
    try:
        journal = BatchJournal(folder)
    except (OSError, sqlite3.Error):
        return []
    try:
        return journal.open_batches()
    finally:
        journal.close()

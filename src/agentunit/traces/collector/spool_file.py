"""The SQLite file of a spool: its tables, and the lock that keeps a second process out."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

_VERSION = 1
_TABLES = """
CREATE TABLE spans (trace_id TEXT NOT NULL, span_id TEXT NOT NULL, span BLOB NOT NULL, PRIMARY KEY (trace_id, span_id));
CREATE TABLE logs (
    trace_id TEXT NOT NULL, span_id TEXT NOT NULL, digest BLOB NOT NULL, copy INTEGER NOT NULL, event BLOB NOT NULL,
    PRIMARY KEY (trace_id, span_id, digest, copy)
);
CREATE TABLE traces (
    trace_id TEXT PRIMARY KEY,
    day TEXT NOT NULL,
    last_at REAL NOT NULL,
    has_root INTEGER NOT NULL,
    n_spans INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    written INTEGER NOT NULL,
    file TEXT,
    problem TEXT
) WITHOUT ROWID;
CREATE INDEX unwritten ON traces (last_at, n_spans) WHERE revision > written;
"""


class SpoolError(RuntimeError):
    """A spool that cannot be used or written; the message says why and what to do."""


def hold_folder(folder: Path) -> sqlite3.Connection:
    """Keep other processes out of a spool for as long as the connection is open.

    It is a lock of the operating system, by way of SQLite's: it ends with the process, however that ends.
    """
    holder = sqlite3.connect(folder / "lock", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        holder.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        holder.close()
        if "locked" in str(error):
            raise SpoolError(
                f"another 'agentunit collect' is writing to {folder.parent}: stop it, or name another folder"
            ) from None
        raise SpoolError(f"{folder / 'lock'} cannot be used: {error}") from None
    return holder


def open_spool_file(path: Path) -> sqlite3.Connection:
    """The connection to a spool's file, which is made if it is not there."""
    # Spans hold what users asked and agents answered: nobody else's business.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise SpoolError(f"{path} cannot be used as a spool: {error}") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # In WAL mode NORMAL keeps every commit through a killed process; only a power cut could undo the last.
    connection.execute("PRAGMA synchronous = NORMAL")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        connection.executescript(f"BEGIN;{_TABLES}PRAGMA user_version = {_VERSION};COMMIT;")
    elif version != _VERSION:
        raise SpoolError(
            f"{path} was written by another version of AgentUnit (its tables are of version {version}, this one knows "
            f"{_VERSION}): collect into another folder"
        )
    # A record that could not be made may succeed now, with another version of AgentUnit.
    connection.execute("UPDATE traces SET written = 0, problem = NULL WHERE problem IS NOT NULL")

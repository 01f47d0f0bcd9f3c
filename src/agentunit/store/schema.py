"""The tables of a store, and how an older file becomes a newer one."""

from __future__ import annotations

import sqlite3

from agentunit.core.sqlite import UnknownSchema, check_schema, migrate, schema_version

# One entry a version, oldest first; an entry is never changed once released, only followed by another.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            created_at REAL NOT NULL,
            finished_at REAL,
            status TEXT NOT NULL,
            n_planned INTEGER,
            agentunit_version TEXT NOT NULL,
            settings TEXT NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE records (
            run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            repeat INTEGER NOT NULL,
            case_id TEXT NOT NULL,
            failed INTEGER NOT NULL,
            elapsed_s REAL NOT NULL,
            record BLOB NOT NULL,
            PRIMARY KEY (run_id, position, repeat)
        ) WITHOUT ROWID""",
        "CREATE INDEX records_by_case ON records (run_id, case_id, repeat, failed)",
        """CREATE TABLE scores (
            run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            repeat INTEGER NOT NULL,
            metric TEXT NOT NULL,
            value REAL,
            status TEXT NOT NULL,
            backend TEXT NOT NULL,
            version TEXT NOT NULL,
            elapsed_s REAL NOT NULL,
            detail TEXT NOT NULL,
            PRIMARY KEY (run_id, position, repeat, metric)
        ) WITHOUT ROWID""",
    ),
    # The order in which runs were begun, which a clock that was set back does not change. Older runs go by their date.
    ("ALTER TABLE runs ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0",),
    # Labels belong to answers, not to runs: deleting a run leaves them.
    (
        """CREATE TABLE labels (
            id TEXT PRIMARY KEY,
            subject TEXT NOT NULL,
            metric TEXT NOT NULL,
            case_id TEXT NOT NULL,
            rater TEXT NOT NULL,
            made_at REAL NOT NULL,
            withdrawn_at REAL,
            label TEXT NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX labels_by_subject ON labels (subject, metric, rater)",
    ),
)
SCHEMA_VERSION = len(MIGRATIONS)


class StoreError(RuntimeError):
    """A store that cannot be used; the message says why and what to do."""


def bring_up_to_date(connection: sqlite3.Connection, path: str) -> None:
    """Bring a store to this version's tables; a newer store is refused."""
    try:
        migrate(connection, MIGRATIONS)
    except UnknownSchema as error:
        raise _is_newer(path, error) from None


def check_version(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a store that this version cannot read; an older one is read as it is."""
    try:
        found = check_schema(connection, MIGRATIONS)
    except UnknownSchema as error:
        raise _is_newer(path, error) from None
    if found == 0:
        raise StoreError(f"{path} holds no runs yet")


def has_sequence(connection: sqlite3.Connection) -> bool:
    """Whether a store knows the order in which its runs were begun."""
    return schema_version(connection) >= 2


def _is_newer(path: str, error: UnknownSchema) -> StoreError:
    return StoreError(f"{path} was written by a newer AgentUnit: {error}; upgrade")

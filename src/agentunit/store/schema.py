"""The tables of a store, and how an older file becomes a newer one."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentunit.core.sqlite import Step, UnknownSchema, check_schema, migrate


class StoreError(RuntimeError):
    """A store that cannot be used; the message says why and what to do."""


def move_scores(connection: Any) -> None:
    """Move scores from one row each to blocks (``first_layout``)."""
    from agentunit.store import first_layout  # it needs what is defined here

    first_layout.move_scores(connection)


# One entry a version, oldest first; an entry is never changed once released, only followed by another.
MIGRATIONS: tuple[tuple[Step, ...], ...] = (
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
    # Records in a plain table, because WITHOUT ROWID gives each row of more than a kilobyte a page of its own, and
    # scores in blocks (score_blocks.py).
    (
        """CREATE TABLE records_anew (
            run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            repeat INTEGER NOT NULL,
            case_id TEXT NOT NULL,
            failed INTEGER NOT NULL,
            elapsed_s REAL NOT NULL,
            record BLOB NOT NULL,
            PRIMARY KEY (run_id, position, repeat)
        )""",
        "INSERT INTO records_anew (run_id, position, repeat, case_id, failed, elapsed_s, record)"
        " SELECT run_id, position, repeat, case_id, failed, elapsed_s, record FROM records"
        " ORDER BY run_id, position, repeat",
        "DROP TABLE records",
        "ALTER TABLE records_anew RENAME TO records",
        # It holds all that is counted or looked for without reading the records.
        "CREATE INDEX records_by_case ON records (run_id, case_id, position, repeat, failed)",
        """CREATE TABLE score_blocks (
            run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
            metric TEXT NOT NULL,
            first_position INTEGER NOT NULL,
            first_repeat INTEGER NOT NULL,
            last_position INTEGER NOT NULL,
            last_repeat INTEGER NOT NULL,
            n_scores INTEGER NOT NULL,
            positions TEXT,
            repeats TEXT,
            score_values TEXT NOT NULL,
            producers TEXT NOT NULL,
            producer_of TEXT,
            reasons TEXT,
            amount_key TEXT,
            amounts TEXT,
            judged TEXT,
            details BLOB NOT NULL,
            PRIMARY KEY (run_id, metric, first_position, first_repeat)
        )""",
        move_scores,
        "DROP TABLE scores",
    ),
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
        )""",
        "CREATE INDEX labels_by_subject ON labels (subject, metric, rater)",
    ),
)
SCHEMA_VERSION = len(MIGRATIONS)


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


def _is_newer(path: str, error: UnknownSchema) -> StoreError:
    return StoreError(f"{path} was written by a newer AgentUnit: {error}; upgrade")

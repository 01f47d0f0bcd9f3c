"""The tables of a store, and how an older file becomes a newer one."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgenerator
from typing import Any, NoReturn, Protocol, TypeVar

import msgspec

from agentunit.core.sqlite import Step, UnknownSchema, check_schema, migrate


class StoreError(RuntimeError):
    """A store that cannot be used; the message says why and what to do."""


def move_scores(connection: Any) -> None:
    """Move scores from one row each to blocks (``score_table``)."""
    from agentunit.store import _score_table as score_table  # it needs what is defined here

    score_table.move_scores(connection)


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
    # The decision itself is the last column, so that a list of verdicts does not read its pages.
    (
        """CREATE TABLE decisions (
            run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            made_at REAL NOT NULL,
            made_by TEXT NOT NULL,
            verdict TEXT,
            headline TEXT NOT NULL,
            decision BLOB NOT NULL,
            PRIMARY KEY (run_id, number)
        )""",
    ),
    # Behind the details of a block stand the sentences why its scores are what they are. Nothing is moved: an earlier
    # version, which cannot read them, must say so.
    (),
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


# What a store holds and cannot be decoded: a bit has changed on the disk, or somebody has written to the file.
#
# The error names the store and, where they are known, the run and the record, and says what can be done.

DAMAGE = (msgspec.MsgspecError, zlib.error, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What decoding raises of bytes that nobody wrote so."""

_LONGEST_REASON = 120
_Method = TypeVar("_Method", bound=Callable[..., Any])


class _Held(Protocol):
    @property
    def address(self) -> str: ...


def raise_damaged(address: str, what: str, error: BaseException, run_id: str | None = None) -> NoReturn:
    """Say that something in a store is damaged, with the way out; what says so already is left as it is."""
    if isinstance(error, StoreError):
        raise error
    reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
    remove = "" if run_id is None else f", or remove the run ('agentunit runs --delete {run_id}')"
    raise StoreError(
        f"{address}: {what} is damaged and cannot be read ({reason}): put a copy of the store in its place{remove}"
    ) from error


def names_damage(what: str) -> Callable[[_Method], _Method]:
    """A method of a store, whose first argument is a run, that says which run's ``what`` is damaged."""

    def guard(method: _Method) -> _Method:
        @wraps(method)
        def guarded(store: _Held, run_id: str, *args: Any, **options: Any) -> Any:
            of_run = f"{what} of run {run_id}"
            try:
                read = method(store, run_id, *args, **options)
            except DAMAGE as error:
                raise_damaged(store.address, of_run, error, run_id)
            return _guarded(read, store.address, of_run, run_id) if isgenerator(read) else read

        return guarded  # type: ignore[return-value]  # it takes what the method takes

    return guard


def _guarded(read: Iterator[Any], address: str, what: str, run_id: str) -> Iterator[Any]:
    try:
        yield from read
    except DAMAGE as error:
        raise_damaged(address, what, error, run_id)

"""What a store needs of a database. Statements are written once, with ``?`` for values and the types of SQLite.

``SqliteDatabase`` runs them as they are, ``PostgresDatabase`` in the words of PostgreSQL. They keep to what both
understand: ``INSERT … ON CONFLICT``, comparisons of rows, TEXT, INTEGER, REAL and BLOB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Reader(Protocol):
    """Something that can be asked."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a query gives, where they are few."""

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows that a query gives, as they come: a long answer is never in memory as a whole."""


class Database(Protocol):
    """A connection to where runs are kept. What it refuses is a ``StoreError`` that names ``address``.

    ``version`` counts the migrations that its tables have had.
    """

    address: str
    version: int

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a statement gives."""

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement has changed."""

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of these values."""

    def transaction(self) -> AbstractContextManager[None]:
        """All that is changed within it, or nothing; one within another is part of it."""

    def lock_scores(self, run_id: str) -> None:
        """In a transaction: let no other one change the scores of a run until this one ends."""

    def compact(self) -> None:
        """Leave nothing of deleted rows in the files."""

    def reading(self) -> AbstractContextManager[Reader]:
        """A reader that sees everything as it was when it began, whatever is written meanwhile."""

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""

    def recording(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run for this process, which is a ``RunTaken`` where another one does. A process that ends lets go."""

    def is_being_recorded(self, run_id: str) -> bool:
        """Whether a process holds a run; true where that cannot be known."""

    def reopened(self, *, read_only: bool = True) -> Database:
        """The same database once more, with a connection of its own."""

    def close(self) -> None:
        """Let go of it."""

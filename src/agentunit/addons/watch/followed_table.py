"""What following a source has come to: how far each file was read, what was scored, aggregates, alerts.

All of it is written in one transaction, so a killed process neither loses nor doubles a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from agentunit.store.database import Database

_TABLES = (
    """CREATE TABLE IF NOT EXISTS follows (
        id TEXT PRIMARY KEY, source TEXT NOT NULL, started_at REAL NOT NULL, state TEXT NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS follow_files (
        follow_id TEXT NOT NULL, file TEXT NOT NULL, progress TEXT NOT NULL, PRIMARY KEY (follow_id, file)
    )""",
    """CREATE TABLE IF NOT EXISTS follow_seen (
        follow_id TEXT NOT NULL, digest INTEGER NOT NULL, day INTEGER NOT NULL, PRIMARY KEY (follow_id, digest)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS follow_series (
        follow_id TEXT NOT NULL, series TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (follow_id, series)
    )""",
    """CREATE TABLE IF NOT EXISTS follow_hours (
        follow_id TEXT NOT NULL, series TEXT NOT NULL, hour INTEGER NOT NULL,
        n INTEGER NOT NULL, total REAL NOT NULL, PRIMARY KEY (follow_id, series, hour)
    )""",
    """CREATE TABLE IF NOT EXISTS follow_alerts (
        follow_id TEXT NOT NULL, number INTEGER NOT NULL, raised_at REAL NOT NULL, alert TEXT NOT NULL,
        is_delivered INTEGER NOT NULL, PRIMARY KEY (follow_id, number)
    )""",
)
_ASKED_AT_ONCE = 500


class HourRow(Struct):
    """What one series came to in one hour, counted from 1970: how many values, and their sum."""

    series: str
    hour: int
    n: int
    total: float


class StoredAlert(Struct):
    """An alert as it is kept; ``alert`` is JSON."""

    number: int
    raised_at: float
    alert: str
    is_delivered: bool = False


class FollowChanges(Struct):
    """What is written together: the state, and only those parts of the rest that have changed. Texts are JSON."""

    state: str
    files: dict[str, str | None] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    day: int = 0
    series: dict[str, str] = field(default_factory=dict)
    hours: list[HourRow] = field(default_factory=list)
    alerts: list[StoredAlert] = field(default_factory=list)


class Followed:
    """The tables of one followed source in a store. They are made when they are first needed."""

    def __init__(self, database: Database, follow_id: str) -> None:
        self.id = follow_id
        self._database = database

    def begin(self, source: str, now: float) -> str | None:
        """Make the tables where they are missing; the state that was kept last, or ``None`` for a new source."""
        for statement in _TABLES:
            self._database.change(statement)
        rows = self._database.execute("SELECT state FROM follows WHERE id = ?", (self.id,))
        if rows:
            return str(rows[0][0])
        self._database.change("INSERT INTO follows VALUES (?, ?, ?, '')", (self.id, source, now))
        return None

    def files(self) -> list[str]:
        """How far each file was read."""
        rows = self._database.execute("SELECT progress FROM follow_files WHERE follow_id = ?", (self.id,))
        return [str(progress) for (progress,) in rows]

    def series(self) -> dict[str, str]:
        """The state of each series."""
        rows = self._database.execute("SELECT series, state FROM follow_series WHERE follow_id = ?", (self.id,))
        return {str(name): str(state) for name, state in rows}

    def seen(self, digests: Sequence[int]) -> set[int]:
        """Those of some traces that were counted before."""
        found: set[int] = set()
        for start in range(0, len(digests), _ASKED_AT_ONCE):
            some = digests[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(some))
            query = f"SELECT digest FROM follow_seen WHERE follow_id = ? AND digest IN ({marks})"
            found.update(int(digest) for (digest,) in self._database.execute(query, (self.id, *some)))
        return found

    def keep(self, changes: FollowChanges) -> None:
        """Write what has changed, all of it or nothing."""
        database, own = self._database, self.id
        with database.transaction():
            database.change("UPDATE follows SET state = ? WHERE id = ?", (changes.state, own))
            database.change_many(
                "INSERT INTO follow_files VALUES (?, ?, ?)"
                " ON CONFLICT (follow_id, file) DO UPDATE SET progress = excluded.progress",
                [(own, file, progress) for file, progress in changes.files.items() if progress is not None],
            )
            gone = [(own, file) for file, progress in changes.files.items() if progress is None]
            database.change_many("DELETE FROM follow_files WHERE follow_id = ? AND file = ?", gone)
            database.change_many(
                "INSERT INTO follow_seen VALUES (?, ?, ?) ON CONFLICT (follow_id, digest) DO NOTHING",
                [(own, digest, changes.day) for digest in changes.seen],
            )
            database.change_many(
                "INSERT INTO follow_series VALUES (?, ?, ?)"
                " ON CONFLICT (follow_id, series) DO UPDATE SET state = excluded.state",
                [(own, name, state) for name, state in changes.series.items()],
            )
            database.change_many(
                "INSERT INTO follow_hours VALUES (?, ?, ?, ?, ?) ON CONFLICT (follow_id, series, hour) DO UPDATE SET"
                " n = follow_hours.n + excluded.n, total = follow_hours.total + excluded.total",
                [(own, row.series, row.hour, row.n, row.total) for row in changes.hours],
            )
            database.change_many(
                "INSERT INTO follow_alerts VALUES (?, ?, ?, ?, ?) ON CONFLICT (follow_id, number) DO NOTHING",
                [(own, each.number, each.raised_at, each.alert, int(each.is_delivered)) for each in changes.alerts],
            )

    def hours(self, since_hour: int) -> list[HourRow]:
        """The hourly aggregates since an hour."""
        rows = self._database.execute(
            "SELECT series, hour, n, total FROM follow_hours WHERE follow_id = ? AND hour >= ? ORDER BY hour",
            (self.id, since_hour),
        )
        return [HourRow(*row) for row in rows]

    def alerts(self, *, undelivered: bool = False, most: int = 100) -> list[StoredAlert]:
        """The newest alerts, the last one first; only those that nobody was told of, if asked for."""
        wanted = " AND is_delivered = 0" if undelivered else ""
        rows = self._database.execute(
            f"SELECT number, raised_at, alert, is_delivered FROM follow_alerts WHERE follow_id = ?{wanted}"
            " ORDER BY number DESC LIMIT ?",
            (self.id, most),
        )
        return [StoredAlert(number, raised_at, alert, bool(done)) for number, raised_at, alert, done in rows]

    def mark_delivered(self, numbers: Iterable[int]) -> None:
        """Somebody was told of these alerts, or nobody can be."""
        self._database.change_many(
            "UPDATE follow_alerts SET is_delivered = 1 WHERE follow_id = ? AND number = ?",
            [(self.id, number) for number in numbers],
        )

    def forget(self, *, seen_before_day: int, before_hour: int) -> None:
        """Forget which traces came before a day, and the hours before an hour."""
        self._database.change("DELETE FROM follow_seen WHERE follow_id = ? AND day < ?", (self.id, seen_before_day))
        self._database.change("DELETE FROM follow_hours WHERE follow_id = ? AND hour < ?", (self.id, before_hour))

"""Spans on their way from the network into record files: kept in SQLite, so that a killed process loses none."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from agentunit.addons.watch.collector.request_limits import spool_full
from agentunit.core.sqlite import SqliteFile, UnknownSchema, migrate, transaction
from agentunit.traces.spans import LogEvent, Span, SpanEvent

# Spans and log records as the rows of a spool.

_Kept = TypeVar("_Kept", Span, SpanEvent)

_OPENS_JSON = b"{"


def encode_kept(kept: Span | SpanEvent) -> bytes:
    """A span or an event as it is kept."""
    try:
        return msgspec.msgpack.encode(kept)
    except (OverflowError, UnicodeError):
        # A number of more than 64 bits, or a lone surrogate: rare, but no reason to lose a span.
        return json.dumps(msgspec.to_builtins(kept)).encode()


def decode_kept(data: bytes, kind: type[_Kept]) -> _Kept:
    """A span or an event that was kept."""
    if data.startswith(_OPENS_JSON):
        return msgspec.convert(json.loads(data), kind)
    return msgspec.msgpack.decode(data, type=kind)


def rows_of_logs(logs: Sequence[LogEvent]) -> dict[str, list[tuple[str, str, bytes, int, bytes]]]:
    """Log records have no id: a retry is known by its content, and equal ones within a request by their number."""
    rows: dict[str, list[tuple[str, str, bytes, int, bytes]]] = {}
    copies: Counter[tuple[str, str, bytes]] = Counter()
    for trace_id, span_id, event in logs:
        data = encode_kept(event)
        key = (trace_id, span_id, hashlib.blake2b(data, digest_size=16).digest())
        rows.setdefault(trace_id, []).append((*key, copies[key], data))
        copies[key] += 1
    return rows


FOLDER = ".spool"

_MIGRATIONS = (
    (
        """CREATE TABLE spans (
            trace_id TEXT NOT NULL, span_id TEXT NOT NULL, span BLOB NOT NULL, PRIMARY KEY (trace_id, span_id)
        )""",
        """CREATE TABLE logs (
            trace_id TEXT NOT NULL, span_id TEXT NOT NULL, digest BLOB NOT NULL, copy INTEGER NOT NULL,
            event BLOB NOT NULL, PRIMARY KEY (trace_id, span_id, digest, copy)
        )""",
        """CREATE TABLE traces (
            trace_id TEXT PRIMARY KEY,
            day TEXT NOT NULL,
            last_at REAL NOT NULL,
            has_root INTEGER NOT NULL,
            n_spans INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            written INTEGER NOT NULL,
            file TEXT,
            problem TEXT
        ) WITHOUT ROWID""",
        "CREATE INDEX unwritten ON traces (last_at, n_spans) WHERE revision > written",
    ),
    (
        """CREATE TABLE outgoing (
            id INTEGER PRIMARY KEY, signal TEXT NOT NULL, media_type TEXT NOT NULL, body BLOB NOT NULL,
            is_masked INTEGER NOT NULL
        )""",
    ),
    ("CREATE INDEX outgoing_signals ON outgoing (signal, id)",),
)
_OPEN = "revision > written AND n_spans > 0"
_USED_BYTES = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)
_WAIT_FOR_LOCK_S = 5.0
_NEARLY_FULL = 0.9
_TOKEN_BYTES = 24


class SpoolError(RuntimeError):
    """A spool that cannot be used or written; the message says why and what to do."""


class Added(NamedTuple):
    """What one request brought. Spans that were there already, as in a retry, are in neither of the first two."""

    n_new: int
    n_replaced: int
    n_new_logs: int


class Outgoing(Struct, frozen=True):
    """A request to forward, as it came. ``is_masked``: only with its personal data masked."""

    signal: str
    media_type: str
    body: bytes
    is_masked: bool = False


class CollectedTrace(Struct):
    """All that is kept of one trace, at one moment. ``file`` is where its record lies or will lie, if that is fixed."""

    trace_id: str
    day: str
    file: str | None
    revision: int
    spans: list[Span]
    n_loose_logs: int


class SpanSpool:
    """The spool of one folder, for one process at a time. What ``add`` took in survives a kill -9 after it returns.

    Beyond ``max_bytes`` nothing is added. All methods may be called from any thread.
    """

    def __init__(self, out: str | os.PathLike[str], *, max_bytes: float = inf) -> None:
        self.max_bytes = max_bytes
        self.folder = Path(out) / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "spans.db"
        self._lock = threading.Lock()
        self._holder = _hold_folder(self.folder)
        try:
            self._connection = _open_file(self.path)
        except BaseException:
            self._holder.close()
            raise

    def __enter__(self) -> SpanSpool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def token(self) -> str:
        """What senders beyond this machine have to know: the same at every start."""
        path = self.folder / "token"
        known = path.read_text() if path.exists() else ""
        if len(known) < _TOKEN_BYTES:  # none yet, or its process was killed
            path.unlink(missing_ok=True)
            known = secrets.token_urlsafe(_TOKEN_BYTES)
            with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(known)
        return known

    def close(self) -> None:
        """Let go of the folder."""
        with self._lock:
            self._connection.close()
            self._holder.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                with transaction(self._connection):
                    yield self._connection
            except sqlite3.Error as error:
                raise SpoolError(f"{self.path} cannot be written: {error}") from error

    def _change(self, statement: str, *values: object) -> None:
        with self._transaction() as connection:
            connection.execute(statement, values)

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise SpoolError(f"{self.path} cannot be read: {error}") from error

    # What comes in

    def add(
        self,
        spans: Sequence[Span],
        logs: Sequence[LogEvent] = (),
        *,
        forward: Outgoing | None = None,
        now: float | None = None,
    ) -> Added:
        """Keep what one request brought, all of it or (with a ``SpoolError``) nothing; ``forward`` waits to be sent.

        A span that is there already is kept once; if it came with other content, the newer one is kept.
        """
        now = time.time() if now is None else now
        day = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%d")
        span_rows: dict[str, list[tuple[str, str, bytes]]] = {}
        rooted = set()
        for span in spans:
            row = (span.trace_id, span.span_id, encode_kept(span))
            span_rows.setdefault(span.trace_id, []).append(row)
            if span.parent_id is None:
                rooted.add(span.trace_id)
        log_rows = rows_of_logs(logs)
        n_new = n_replaced = n_new_logs = 0
        with self._transaction() as connection:
            if connection.execute(_USED_BYTES).fetchone()[0] > self.max_bytes:
                raise SpoolError(spool_full(self.max_bytes))
            if forward is not None:
                connection.execute(
                    "INSERT INTO outgoing (signal, media_type, body, is_masked) VALUES (?, ?, ?, ?)",
                    (forward.signal, forward.media_type, forward.body, forward.is_masked),
                )
            for trace_id in span_rows.keys() | log_rows.keys():
                new, replaced = _add_spans(connection, span_rows.get(trace_id, []))
                new_logs = _changed(
                    connection, "INSERT OR IGNORE INTO logs VALUES (?, ?, ?, ?, ?)", log_rows.get(trace_id, [])
                )
                # A retry brings nothing new, and must not make the record be written again.
                if new or replaced or new_logs:
                    connection.execute(
                        "INSERT INTO traces VALUES (?, ?, ?, ?, ?, 1, 0, NULL, NULL) ON CONFLICT DO UPDATE SET"
                        " last_at = excluded.last_at, has_root = max(has_root, excluded.has_root),"
                        " n_spans = n_spans + excluded.n_spans, revision = revision + 1",
                        (trace_id, day, now, int(trace_id in rooted), new),
                    )
                n_new, n_replaced, n_new_logs = n_new + new, n_replaced + replaced, n_new_logs + new_logs
        return Added(n_new, n_replaced, n_new_logs)

    def is_nearly_full(self) -> bool:
        """Whether it is time to let go of what can be spared."""
        ((n_bytes,),) = self._rows(_USED_BYTES)
        return bool(n_bytes > _NEARLY_FULL * self.max_bytes)

    # What is forwarded

    def outgoing(self, most: int, signal: str) -> list[tuple[int, Outgoing]]:
        """The requests of a signal that have waited longest, each with its number."""
        query = "SELECT id, signal, media_type, body, is_masked FROM outgoing WHERE signal = ? ORDER BY id LIMIT ?"
        rows = self._rows(query, signal, most)
        return [(number, Outgoing(*fields)) for number, *fields in rows]

    def remove_outgoing(self, number: int) -> None:
        """Forget a request that was forwarded, or cannot be."""
        self._change("DELETE FROM outgoing WHERE id = ?", number)

    def n_outgoing(self) -> int:
        """How many requests wait to be forwarded."""
        return int(self._rows("SELECT count(*) FROM outgoing")[0][0])

    # What is recorded

    def due(self, *, rooted_before: float, rootless_before: float, most: int) -> list[str]:
        """Traces to write: quiet since these times, with and without their root. The longest quiet come first."""
        query = f"SELECT trace_id FROM traces WHERE {_OPEN}"
        query += " AND last_at <= CASE WHEN has_root THEN ? ELSE ? END ORDER BY last_at LIMIT ?"
        return [trace_id for (trace_id,) in self._rows(query, rooted_before, rootless_before, most)]

    def trace(self, trace_id: str) -> CollectedTrace:
        """All spans of a trace, with the log records that belong to them as their events."""
        # The revision is read first: what comes in meanwhile only makes the record be written once more.
        ((day, file, revision),) = self._rows("SELECT day, file, revision FROM traces WHERE trace_id = ?", trace_id)
        span_rows = self._rows("SELECT span FROM spans WHERE trace_id = ? ORDER BY rowid", trace_id)
        log_rows = self._rows("SELECT span_id, event FROM logs WHERE trace_id = ? ORDER BY rowid", trace_id)
        spans = [decode_kept(data, Span) for (data,) in span_rows]
        by_id = {span.span_id: span for span in spans}
        joined = [(by_id[span_id], data) for span_id, data in log_rows if span_id in by_id]
        for span, data in joined:
            span.events.append(decode_kept(data, SpanEvent))
        for span in {span.span_id: span for span, _ in joined}.values():
            span.events.sort(key=lambda event: inf if event.timestamp is None else event.timestamp)
        return CollectedTrace(trace_id, day, file, revision, spans, len(log_rows) - len(joined))

    def size(self, trace_id: str) -> tuple[int, int]:
        """The revision of a trace, and how many bytes it has in the spool."""
        ((revision, n_bytes),) = self._rows(
            "SELECT revision, (SELECT coalesce(sum(length(span)), 0) FROM spans WHERE trace_id = ?1)"
            " + (SELECT coalesce(sum(length(event)), 0) FROM logs WHERE trace_id = ?1)"
            " FROM traces WHERE trace_id = ?1",
            trace_id,
        )
        return revision, n_bytes

    def fix_file(self, trace_id: str, file: str) -> None:
        """Say where the record of a trace will lie, before it is written: so it is the same place after a crash."""
        self._change("UPDATE traces SET file = ? WHERE trace_id = ?", file, trace_id)

    def mark_written(self, trace_id: str, revision: int, *, problem: str | None = None) -> None:
        """The record of a trace as it was at ``revision`` is written, or cannot be made for this reason."""
        self._change("UPDATE traces SET written = ?, problem = ? WHERE trace_id = ?", revision, problem, trace_id)

    def remove_recorded(self, *, before: float, spanless_before: float | None = None) -> int:
        """Forget traces that are recorded and quiet since ``before``; says how many. Others stay.

        Log records whose spans have not come by ``spanless_before`` are in no record, but they are not waited for
        longer either.
        """
        gone = "trace_id IN (SELECT trace_id FROM traces WHERE problem IS NULL"
        gone += " AND last_at < CASE WHEN n_spans = 0 THEN ? WHEN revision = written THEN ? END)"
        times = (before if spanless_before is None else spanless_before, before)
        with self._transaction() as connection:
            removed = [
                connection.execute(f"DELETE FROM {table} WHERE {gone}", times) for table in ("spans", "logs", "traces")
            ]
        return removed[-1].rowcount

    def n_open(self) -> int:
        """How many traces have spans that are in no record yet."""
        return int(self._rows(f"SELECT count(*) FROM traces WHERE {_OPEN}")[0][0])


def _hold_folder(folder: Path) -> sqlite3.Connection:
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


def _open_file(path: Path) -> sqlite3.Connection:
    """The connection to a spool's file, which is made if it is not there."""
    connection: sqlite3.Connection | None = None
    try:
        connection = SqliteFile(path, wait_s=_WAIT_FOR_LOCK_S).connect_to_write(any_thread=True)
        migrate(connection, _MIGRATIONS)
        # A record that could not be made may succeed now, with another version of AgentUnit.
        connection.execute("UPDATE traces SET written = 0, problem = NULL WHERE problem IS NOT NULL")
        return connection
    except (sqlite3.Error, UnknownSchema) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, UnknownSchema):
            reason = f"was written by another version of AgentUnit ({error}): collect into another folder"
        else:
            reason = f"cannot be used as a spool: {error}"
        raise SpoolError(f"{path} {reason}") from None


def _changed(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> int:
    before = connection.total_changes
    connection.executemany(statement, rows)
    return connection.total_changes - before


def _add_spans(connection: sqlite3.Connection, rows: Sequence[tuple[str, str, bytes]]) -> tuple[int, int]:
    n_new = _changed(connection, "INSERT OR IGNORE INTO spans VALUES (?, ?, ?)", rows)
    if n_new == len(rows):
        return n_new, 0
    changed = [(data, trace_id, span_id, data) for trace_id, span_id, data in rows]
    replace = "UPDATE spans SET span = ? WHERE trace_id = ? AND span_id = ? AND span <> ?"
    return n_new, _changed(connection, replace, changed)

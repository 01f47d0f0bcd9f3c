"""Replies kept on disk by the content of their request: one SQLite file, shared by processes.

The file holds digests of requests, and replies; no request, no key, no address. Replies may quote what was judged, so
only the user can read it. A cache that cannot be used makes calls, never errors. Replies are written by a thread of the
cache's own, some at a time: a slow disk must not hold up the calls. Beyond a size limit, those that were not used for
the longest time give way.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from agentunit.addons.judge._level_chances import Position
from agentunit.addons.judge.settings import JudgeSettings, configured_values
from agentunit.core.sqlite import SqliteFile, transaction

_FILE = "judge-replies-1.sqlite"
_WAIT_FOR_LOCK_S = 5.0
_BETWEEN_WRITES_S = 0.05
# Where the limit is reached, so large a share of the replies goes at once.
_EVICTED_SHARE = 0.1
# The time of a reply is when it was last used; the name of its column is older than that.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    digest BLOB PRIMARY KEY, reply BLOB NOT NULL, checksum BLOB NOT NULL, created_at REAL NOT NULL
) WITHOUT ROWID
"""

_T = TypeVar("_T")


class KeptReply(NamedTuple):
    """A reply as it is kept."""

    text: str
    model: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    positions: tuple[Position, ...] | None = None


def cache_folder(setting: str) -> Path:
    """The folder that a setting stands for."""
    if setting != "default":
        return Path(setting).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "agentunit" / "judge"


class ReplyCache:
    """Keeps replies. ``problem`` says why it cannot, once that has been seen; then it keeps and finds nothing.

    A reply is found at once after ``keep``, and is on disk within a moment, or when ``close`` returns.
    """

    def __init__(self, folder: Path, max_bytes: int | None = None) -> None:
        self.problem: str | None = None
        self._file = folder / _FILE
        self._max_bytes = max_bytes
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._reading: sqlite3.Connection | None = None
        # What is not on disk yet; None: to be deleted there.
        self._pending: dict[bytes, bytes | None] = {}
        self._used: set[bytes] = set()
        self._has_pending = threading.Event()
        self._is_closing = threading.Event()
        self._writer: threading.Thread | None = None

    def find(self, digest: bytes) -> KeptReply | None:
        """The reply to a request; an entry that is damaged counts as not there."""
        self._check_process()
        with self._lock:
            if digest in self._pending:
                data = self._pending[digest]
            else:
                row = self._attempt(lambda: self._row(digest))
                data = row[0] if row is not None and _checksum(digest, row[0]) == row[1] else None
                if data is not None:
                    # Noted on disk with the next replies that are written, or when the cache is closed.
                    self._used.add(digest)
        try:
            return None if data is None else msgspec.json.decode(data, type=KeptReply)
        except msgspec.DecodeError:
            return None

    def keep(self, digest: bytes, reply: KeptReply) -> None:
        """Keep a reply, in the place of an older one."""
        self._change(digest, msgspec.json.encode(reply))

    def forget(self, digest: bytes) -> None:
        """Keep no reply to this request."""
        self._change(digest, None)

    def close(self) -> None:
        """Write what is left, and close the file. The cache can be used again."""
        if self._pid == os.getpid():
            if self._used and self.problem is None:
                self._start_writer()
            self._is_closing.set()
            self._has_pending.set()
            if self._writer is not None:
                self._writer.join()
            if self._reading is not None:
                self._reading.close()
        self._begin()

    def _check_process(self) -> None:
        """A forked process has no writer, and must not use its parent's connection."""
        if self._pid != os.getpid():
            self._inherited = self._reading
            self._begin()

    def _change(self, digest: bytes, data: bytes | None) -> None:
        self._check_process()
        if self.problem is not None:
            return
        with self._lock:
            self._pending[digest] = data
            self._start_writer()
        self._has_pending.set()

    def _start_writer(self) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_on, name="agentunit-judge-cache", daemon=True)
            self._writer.start()

    def _row(self, digest: bytes) -> tuple[bytes, bytes] | None:
        if self._reading is None:
            self._reading = self._opened()
        row = self._reading.execute("SELECT reply, checksum FROM replies WHERE digest = ?", (digest,)).fetchone()
        return row if row is not None and isinstance(row[0], bytes) else None

    def _write_on(self) -> None:
        connection = self._attempt(self._opened)
        while True:
            self._has_pending.wait()
            self._has_pending.clear()
            is_last = self._is_closing.is_set()
            with self._lock:
                batch = dict(self._pending)
                used, self._used = self._used, set()
            if connection is not None and (batch or used):
                writing = connection
                self._attempt(lambda: _write(writing, batch, used))  # noqa: B023  # done before they change
                self._attempt(lambda: _evict(writing, self._max_bytes))  # noqa: B023
            with self._lock:
                for digest, data in batch.items():
                    if self._pending.get(digest, data) is data:
                        self._pending.pop(digest, None)
            if is_last:
                break
            self._is_closing.wait(_BETWEEN_WRITES_S)
        if connection is not None:
            connection.close()

    def _attempt(self, action: Callable[[], _T]) -> _T | None:
        if self.problem is not None:
            return None
        try:
            return action()
        except (sqlite3.Error, OSError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            self.problem = f"the cache {self._file} cannot be used, so replies are not kept: {reason.lower()}"
            return None

    def _opened(self) -> sqlite3.Connection:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = SqliteFile(self._file, wait_s=_WAIT_FOR_LOCK_S).connect_to_write(any_thread=True)
        try:
            connection.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection


def _write(connection: sqlite3.Connection, batch: dict[bytes, bytes | None], used: Iterable[bytes]) -> None:
    now_s = time.time()
    kept = [(digest, data, _checksum(digest, data), now_s) for digest, data in batch.items() if data is not None]
    gone = [(digest,) for digest, data in batch.items() if data is None]
    with transaction(connection):
        connection.executemany(
            "UPDATE replies SET created_at = ? WHERE digest = ?", [(now_s, digest) for digest in used]
        )
        connection.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", kept)
        connection.executemany("DELETE FROM replies WHERE digest = ?", gone)


def _evict(connection: sqlite3.Connection, max_bytes: int | None) -> None:
    """Delete the replies that were not used for the longest time while there is more than the limit allows."""
    while max_bytes is not None and _n_bytes(connection) > max_bytes:
        (n_replies,) = connection.execute("SELECT COUNT(*) FROM replies").fetchone()
        if not n_replies:
            return
        n_evicted = max(1, int(n_replies * _EVICTED_SHARE))
        with transaction(connection):
            connection.execute(
                "DELETE FROM replies WHERE digest IN (SELECT digest FROM replies ORDER BY created_at LIMIT ?)",
                (n_evicted,),
            )


def _n_bytes(connection: sqlite3.Connection) -> int:
    """What the replies take; pages that are free are used again."""
    page_bytes, n_pages, n_free = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_size", "page_count", "freelist_count")
    )
    return page_bytes * (n_pages - n_free)


class CacheContents(NamedTuple):
    """What a cache holds; the times are those of the replies that were used first and last, in seconds since 1970."""

    file: Path
    n_replies: int = 0
    n_bytes: int = 0
    oldest_s: float | None = None
    newest_s: float | None = None


def cache_contents(folder: Path) -> CacheContents:
    """What the cache of a folder holds; ``OSError`` or ``sqlite3.Error`` when that cannot be read."""
    file = folder / _FILE
    if not file.exists():
        return CacheContents(file)
    connection = SqliteFile(file, wait_s=_WAIT_FOR_LOCK_S).connect_to_write(any_thread=True)
    try:
        connection.execute(_SCHEMA)
        row = connection.execute("SELECT COUNT(*), MIN(created_at), MAX(created_at) FROM replies").fetchone()
        return CacheContents(file, row[0], _n_bytes(connection) if row[0] else 0, row[1], row[2])
    finally:
        connection.close()


def folder_in_force() -> Path | None:
    """The folder of the cache by the settings in force; ``None`` where nothing is kept."""
    try:
        setting = configured_values().get("cache", JudgeSettings.cache)
    except ValueError:  # a judge that is not set up as it should be has kept nothing, and must not hinder
        return None
    return None if setting is None else cache_folder(str(setting)).resolve()


def n_kept_replies(folder: Path) -> int:
    """How many replies the cache of a folder holds; none where that cannot be read."""
    try:
        return cache_contents(folder).n_replies
    except (OSError, sqlite3.Error):
        return 0


def clear_cache(folder: Path) -> int:
    """Delete all replies that the cache of a folder holds, and say how many there were."""
    file = folder / _FILE
    if not file.exists():
        return 0
    connection = SqliteFile(file, wait_s=_WAIT_FOR_LOCK_S).connect_to_write(any_thread=True)
    try:
        connection.execute(_SCHEMA)
        n_deleted = connection.execute("DELETE FROM replies").rowcount
        connection.commit()
        connection.execute("VACUUM")
        return int(n_deleted)
    finally:
        connection.close()


def _checksum(digest: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(digest + data, digest_size=16).digest()

"""What a worker process and its parent say to each other: kind, length, body."""

from __future__ import annotations

import os
import pickle
import struct
import threading

from agentunit.core.case import DatasetCase
from agentunit.core.codec import as_case
from agentunit.core.results import encode_json
from agentunit.probes.settings import ProbeSettings

REQUEST, RESULT, EVENT, SPAN, LAST_RESULT = range(5)
# A worker sends its LAST_RESULT when the case left something behind that would disturb the next one.

_HEAD = struct.Struct("<BI")
HEAD_BYTES = _HEAD.size
_READ_BYTES = 1 << 18


def framed(kind: int, body: bytes) -> bytes:
    """One frame."""
    return _HEAD.pack(kind, len(body)) + body


class FrameReader:
    """Frames out of bytes as they come in.

    >>> reader = FrameReader()
    >>> data = framed(EVENT, b"first") + framed(RESULT, b"second")
    >>> reader.feed(data[:7]), reader.feed(data[7:])
    ([], [(2, b'first'), (1, b'second')])
    """

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending = bytearray()

    @property
    def announced(self) -> int:
        """How long the frame is that has begun."""
        return int(_HEAD.unpack_from(self._pending)[1]) if len(self._pending) >= HEAD_BYTES else 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take in bytes; the frames that are complete now."""
        self._pending += data
        frames: list[tuple[int, bytes]] = []
        start = 0
        while len(self._pending) - start >= HEAD_BYTES:
            kind, length = _HEAD.unpack_from(self._pending, start)
            end = start + HEAD_BYTES + length
            if len(self._pending) < end:
                break
            frames.append((kind, bytes(self._pending[start + HEAD_BYTES : end])))
            start = end
        del self._pending[:start]
        return frames


class Link:
    """The worker's end of the line. Only the process that opened it may speak: an agent's forks inherit it."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._reader = FrameReader()
        self._waiting: list[tuple[int, bytes]] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def receive(self) -> tuple[int, bytes] | None:
        """The next frame; ``None`` when the parent is gone."""
        while not self._waiting:
            data = os.read(self._read_fd, _READ_BYTES)
            if not data:
                return None
            self._waiting = self._reader.feed(data)
        return self._waiting.pop(0)

    def send(self, kind: int, body: bytes, *, wait: bool = True) -> bool:
        """Send a frame; without ``wait``, only if nobody is in the middle of sending one."""
        if os.getpid() != self._process or not self._lock.acquire(blocking=wait):
            return False
        try:
            rest = memoryview(framed(kind, body))
            while rest:
                rest = rest[os.write(self._write_fd, rest) :]
        finally:
            self._lock.release()
        return True


def request(case: DatasetCase, seed: int | None, timeout_s: float | None, probes: ProbeSettings | None = None) -> bytes:
    """A case as a frame for a worker. What pickle cannot carry travels as the JSON that a record would hold."""
    try:
        body = pickle.dumps((case, seed, timeout_s, probes), protocol=5)
    except Exception:  # noqa: BLE001 - an object in the case may raise anything
        body = pickle.dumps((encode_json(case), seed, timeout_s, probes), protocol=5)
    return framed(REQUEST, body)


def opened_request(body: bytes) -> tuple[DatasetCase, int | None, float | None, ProbeSettings | None]:
    """The case, seed, timeout and probes of a request."""
    case, seed, timeout_s, probes = pickle.loads(body)
    return as_case(_plain(case)) if isinstance(case, bytes) else case, seed, timeout_s, probes


def _plain(data: bytes) -> object:
    import msgspec

    return msgspec.json.decode(data)

"""Processes that decode pictures: threads alone cannot keep a GPU busy, because only one of them runs Python at a time.

They also stand between us and the pictures: one that takes for ever, or brings its decoder down, costs a process.
Pictures go there a few at a time, and their squares come back through shared memory: every turn of a thread that has
to wait, and take Python back from the others, costs more than the copying.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from mmap import mmap
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import Any

from agentunit.backends.clip.preprocessing import bytes_of_square
from agentunit.backends.clip.settings import ClipSettings
from agentunit.backends.media.limits import MediaLimits

DECODED_TOGETHER = 8
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from agentunit.backends.clip.decoder_process import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)
_MOST_START_S = 60.0
_PIPE_BYTES = 2**20


class DecoderProcess:
    """One such process. It is started with the first picture, and anew after one that it did not survive."""

    def __init__(self, settings: ClipSettings, limits: MediaLimits) -> None:
        self._settings, self._limits = settings, limits
        self._n_bytes = bytes_of_square(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._shared: mmap | None = None

    def decode_into(self, contents: Sequence[bytes], rooms: Sequence[memoryview]) -> list[str | None]:
        """Write the squares of at most ``DECODED_TOGETHER`` pictures into rooms of ``side`` × ``side`` × 3 bytes.

        The answer says of each why it has no square; ``None`` when it has one.
        """
        try:
            return self._decoded_into(contents, rooms)
        except TimeoutError:
            reason = f"must be decoded within {self._limits.most_decode_s:g} s; it was not"
        except (EOFError, OSError, ValueError):
            reason = "cannot be decoded: it brought its decoder down"
        self.stop()
        if len(contents) == 1:
            return [reason]
        # One of them did it; the others shall not suffer for it.
        return [self.decode_into([one], [room])[0] for one, room in zip(contents, rooms, strict=True)]

    def _decoded_into(self, contents: Sequence[bytes], rooms: Sequence[memoryview]) -> list[str | None]:
        process, shared = self._started()
        deadline = time.monotonic() + self._limits.most_decode_s
        _write(process, b"".join((json.dumps([*map(len, contents)]).encode(), b"\n", *contents)), deadline)
        reasons: list[str | None] = json.loads(_line(process, deadline))
        squares = memoryview(shared)
        for at, (reason, room) in enumerate(zip(reasons, rooms, strict=True)):
            if reason is None:
                room[:] = squares[at * self._n_bytes : (at + 1) * self._n_bytes]
        return reasons

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _started(self) -> tuple[subprocess.Popen[bytes], mmap]:
        if self._process is None or self._shared is None:
            with _file_in_memory() as file:
                file.truncate(DECODED_TOGETHER * self._n_bytes)
                self._shared = mmap(file.fileno(), 0)
                command = [sys.executable, "-I", "-c", _START, json.dumps(sys.path)]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, pass_fds=[file.fileno()]
                )
                for pipe in (self._process.stdin, self._process.stdout):
                    if pipe is not None:
                        os.set_blocking(pipe.fileno(), False)
                        _widen(pipe.fileno())
                told = {key: getattr(self._settings, key) for key in ("resize_to", "side", "resample")}
                line = json.dumps({**told, "limits": asdict(self._limits), "shared": file.fileno()}) + "\n"
            deadline = time.monotonic() + _MOST_START_S
            _write(self._process, line.encode(), deadline)
            _line(self._process, deadline)
        return self._process, self._shared


class DecoderProcesses:
    """Several of them, lent out one at a time. They end with this object, or with the program."""

    def __init__(self, n_processes: int, settings: ClipSettings, limits: MediaLimits) -> None:
        self.limits = limits
        self._made_in = os.getpid()
        self._idle: SimpleQueue[DecoderProcess] = SimpleQueue()
        all_of_them = [DecoderProcess(settings, limits) for _ in range(n_processes)]
        for each in all_of_them:
            self._idle.put(each)
        self.close = weakref.finalize(self, _stop_all, all_of_them, self._made_in)

    @property
    def ours(self) -> bool:
        """Whether they belong to this process; after a fork they are the parent's."""
        return os.getpid() == self._made_in

    @contextmanager
    def borrowed(self) -> Iterator[DecoderProcess]:
        """A decoder that nobody else uses meanwhile."""
        decoder = self._idle.get()
        try:
            yield decoder
        finally:
            self._idle.put(decoder)


def _stop_all(decoders: list[DecoderProcess], made_in: int) -> None:
    if os.getpid() == made_in:
        for each in decoders:
            each.stop()


def _file_in_memory() -> Any:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("agentunit"), "r+b", buffering=0)
    return TemporaryFile(buffering=0)


def _widen(descriptor: int) -> None:
    """A pipe that holds a whole picture, where the system lets it: fewer turns for both ends."""
    try:
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)  # type: ignore[attr-defined,unused-ignore]
    except (ImportError, AttributeError, OSError):
        return


def _write(process: subprocess.Popen[bytes], content: bytes, deadline: float) -> None:
    pipe: Any = process.stdin
    left = memoryview(content)
    while left:
        try:
            left = left[os.write(pipe.fileno(), left) :]
        except BlockingIOError:
            _wait(pipe, deadline, writing=True)


def _line(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """The one line that is on its way."""
    pipe: Any = process.stdout
    line = b""
    while not line.endswith(b"\n"):
        try:
            some = os.read(pipe.fileno(), _PIPE_BYTES)
        except BlockingIOError:
            _wait(pipe, deadline, writing=False)
            continue
        if not some:
            raise EOFError
        line += some
    return line


def _wait(pipe: Any, deadline: float, *, writing: bool) -> None:
    left_s = deadline - time.monotonic()
    waiting: tuple[list[Any], list[Any]] = ([], [pipe]) if writing else ([pipe], [])
    if left_s <= 0 or not any(select.select(*waiting, [], left_s)):
        raise TimeoutError

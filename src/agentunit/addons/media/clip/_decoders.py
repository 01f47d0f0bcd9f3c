"""The other end of ``decoders``: a process that turns pictures into the squares that a model sees.

Reads from standard input: a line of JSON with settings and limits, then each picture as its length (8 bytes) and its
bytes. Answers on standard output with one byte: 0, or 1, a length (4 bytes) and the reason. The pixels go into memory
that both share, which has room for two pictures in turns: one is fetched while the next is made.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from queue import SimpleQueue
from typing import Any, BinaryIO

from agentunit.addons.media._images import decode_image
from agentunit.addons.media.clip.clip_settings import ClipSettings, cropped
from agentunit.backends.media_sources import MediaLimits, MediaProblem

LENGTH, REASON_LENGTH = struct.Struct("<Q"), struct.Struct("<I")
DONE, REFUSED, READY = b"\0", b"\1", b"\2"
_TURNS = 2


def serve(requests: BinaryIO, answers: BinaryIO, shared: int) -> None:
    """Decode what comes until nothing comes any more. ``shared`` is the file of the shared memory."""
    # What a decoder only warns of is neither here nor there.
    warnings.simplefilter("ignore")
    asked = json.loads(requests.readline())
    settings = ClipSettings(resize_to=asked["resize_to"], side=asked["side"], resample=asked["resample"])
    limits = MediaLimits(**asked["limits"])
    square = settings.side * settings.side * 3
    room = mmap.mmap(shared, _TURNS * square)
    turn = 0
    answers.write(READY)
    answers.flush()
    while header := requests.read(LENGTH.size):
        content = requests.read(LENGTH.unpack(header)[0])
        try:
            pixels = cropped(decode_image(content, limits), settings).tobytes()
        except MediaProblem as problem:
            reason = str(problem).encode("utf-8", "replace")
            answers.write(REFUSED + REASON_LENGTH.pack(len(reason)) + reason)
        else:
            room[turn * square : (turn + 1) * square] = pixels
            answers.write(DONE)
        turn = (turn + 1) % _TURNS
        answers.flush()


_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from agentunit.addons.media.clip._decoders import serve; "
    "serve(sys.stdin.buffer, sys.stdout.buffer, int(sys.argv[2]))"
)
_MOST_START_S = 60.0
_PIPE_BYTES = 2**20


class DecoderProcess:
    """One such process. It is started with the first picture, and anew after one that it did not survive."""

    def __init__(self, settings: ClipSettings, limits: MediaLimits) -> None:
        self._settings, self._limits = settings, limits
        self._square = settings.side * settings.side * 3
        self._process: subprocess.Popen[bytes] | None = None
        self._room: memoryview | None = None
        self._n_answered = 0

    def decode(self, contents: Sequence[bytes]) -> Iterator[memoryview | MediaProblem]:
        """The square of each picture, as bytes that hold until the next is asked for, or why there is none."""
        n_sent = n_answered = 0
        answer: memoryview | MediaProblem
        try:
            while n_answered < len(contents):
                try:
                    process = self._started()
                    deadline = time.monotonic() + self._limits.most_decode_s
                    # The next one is there before this one is done, so that the process never waits.
                    while n_sent < min(n_answered + _TURNS, len(contents)):
                        _write(process, [LENGTH.pack(len(contents[n_sent])), contents[n_sent]], deadline)
                        n_sent += 1
                    answer = self._answer(process, deadline)
                except TimeoutError:
                    self.stop()
                    answer = MediaProblem(f"must be decoded within {self._limits.most_decode_s:g} s; it was not")
                except (EOFError, OSError):
                    self.stop()
                    answer = MediaProblem("cannot be decoded: it brought its decoder down")
                n_answered += 1
                if self._process is None:
                    n_sent = n_answered
                yield answer
        finally:
            if n_sent > n_answered:
                self.stop()

    def _answer(self, process: subprocess.Popen[bytes], deadline: float) -> memoryview | MediaProblem:
        status = _read(process, 1, deadline)
        turn = self._n_answered % _TURNS
        self._n_answered += 1
        if status == REFUSED:
            reason = _read(process, REASON_LENGTH.unpack(_read(process, REASON_LENGTH.size, deadline))[0], deadline)
            return MediaProblem(reason.decode("utf-8", "replace"))
        if status != DONE or self._room is None:
            raise EOFError
        return self._room[turn * self._square : (turn + 1) * self._square]

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process, self._room = self._process, None, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            with _shared_file(_TURNS * self._square) as shared:
                number = shared.fileno()
                self._room = memoryview(mmap.mmap(number, _TURNS * self._square))
                self._n_answered = 0
                command = [sys.executable, "-I", "-c", _START, json.dumps(sys.path), str(number)]
                # Apart from our group: a Ctrl-C is ours to hear, and it ends with its pipe.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    bufsize=0,
                    pass_fds=[number],
                    start_new_session=True,
                )
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
                    _widen(pipe.fileno())
            settings = {key: getattr(self._settings, key) for key in ("resize_to", "side", "resample")}
            line = json.dumps({**settings, "limits": asdict(self._limits)}) + "\n"
            deadline = time.monotonic() + _MOST_START_S
            _write(self._process, [line.encode()], deadline)
            if _read(self._process, 1, deadline) != READY:
                raise EOFError
        return self._process


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


def _shared_file(n_bytes: int) -> BinaryIO:
    """A file without a name; in memory where the system has such."""
    anonymous = getattr(os, "memfd_create", None)
    file: Any = open(anonymous("agentunit"), "r+b") if anonymous else tempfile.TemporaryFile()  # noqa: SIM115
    file.truncate(n_bytes)
    return file  # type: ignore[no-any-return]


def _widen(descriptor: int) -> None:
    """A pipe that holds a whole picture, where the system lets it: fewer turns for both ends."""
    try:
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)  # type: ignore[attr-defined,unused-ignore]
    except (ImportError, AttributeError, OSError):
        return


def _write(process: subprocess.Popen[bytes], parts: Sequence[bytes], deadline: float) -> None:
    pipe: Any = process.stdin
    left = [memoryview(part) for part in parts if part]
    while left:
        try:
            n_written = os.writev(pipe.fileno(), left)
        except BlockingIOError:
            _wait(pipe, deadline, writing=True)
            continue
        while left and n_written >= len(left[0]):
            n_written -= len(left.pop(0))
        if n_written:
            left[0] = left[0][n_written:]


def _read(process: subprocess.Popen[bytes], n_bytes: int, deadline: float) -> bytes:
    content = bytearray(n_bytes)
    _read_into(process, memoryview(content), deadline)
    return bytes(content)


def _read_into(process: subprocess.Popen[bytes], room: memoryview, deadline: float) -> None:
    pipe: Any = process.stdout
    while room:
        # An answer is hardly ever there at once.
        _wait(pipe, deadline, writing=False)
        n_read = os.readv(pipe.fileno(), [room])
        if not n_read:
            raise EOFError
        room = room[n_read:]


def _wait(pipe: Any, deadline: float, *, writing: bool) -> None:
    left_s = deadline - time.monotonic()
    waiting: tuple[list[Any], list[Any]] = ([], [pipe]) if writing else ([pipe], [])
    if left_s <= 0 or not any(select.select(*waiting, [], left_s)):
        raise TimeoutError

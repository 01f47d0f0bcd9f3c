"""Inside a worker process: take a case, call the agent, send back all that happens. Everything here ends in ``_exit``.

Worker and parent exchange frames: kind, length, body. The events of a trace are sent when they are recorded, so that a
worker that is killed or dies leaves its trace behind. A worker that is about to be killed for taking too long is asked
first (SIGTERM) for the whole of it and for the place where it hangs; code that hangs outside of Python does not react,
and only the events are left.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import io
import os
import pickle
import signal
import struct
import sys
import threading
import time
from collections.abc import Coroutine, Iterable
from types import FrameType
from typing import Any, NoReturn, SupportsIndex

import msgspec

from agentunit.adapters._call import AgentCall
from agentunit.adapters._prints import forget_captures
from agentunit.adapters.bound_function import CANCEL_GRACE_S, BoundFunction, perform
from agentunit.adapters.failures import describe_error, place_in
from agentunit.core.case import AskedCase, DatasetCase
from agentunit.core.codec import as_case
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceEvent
from agentunit.probes import probe_settings as probes
from agentunit.probes.probe_settings import ProbeSettings
from agentunit.traces.spans import Span

REQUEST, RESULT, EVENT, SPAN, LAST_RESULT = range(5)
# A worker sends its LAST_RESULT when the case left something behind that would disturb the next one.

_HEAD = struct.Struct("<BI")
HEAD_BYTES = _HEAD.size
_READ_BYTES = 1 << 18
# A share of a case's time: the parent's clock for it runs a little ahead of the worker's.
_SURELY_EARLY = 0.75


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


class WorkerLine:
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


def _decoded_case(body: bytes) -> DatasetCase:
    plain = msgspec.json.decode(body)
    said = plain.pop("messages", None)
    case: DatasetCase = as_case(plain)
    if said is None:
        return case
    return AskedCase(case.id, case.query, None, case.tools, case.context, case.metadata, case.extra, messages=said)


MAX_SENT_SPANS_BYTES = 16 * 1024 * 1024
"""What is sent of a call's spans while it runs: of use only if the process dies, and held in memory until then."""
MAX_LEFT_THREADS = 64
"""A worker in which agents left more threads running is replaced; fewer may be those of clients and pools in use."""
_parents_streams: list[Any] = []


class Server:
    """Answers the parent's requests, one after the other."""

    def __init__(
        self, function: BoundFunction, link: WorkerLine, streams: tuple[io.TextIOWrapper, io.TextIOWrapper]
    ) -> None:
        self._function = function
        self._link = link
        self._streams = streams
        # Synchronous calls of many frameworks run in the current loop, which must not be the parent's running one.
        # One for all cases: clients that the agent keeps are bound to the loop they were first used in.
        self._loop = asyncio.new_event_loop()
        self._loop_is_broken = False
        self._n_threads = threading.active_count()
        self._call: AgentCall | None = None
        self._timeout_s: float | None = None
        self._began_s = 0.0

    def serve(self) -> NoReturn:
        """Until the parent is gone."""
        signal.signal(signal.SIGTERM, self._on_terminate)
        while True:
            frame = self._link.receive()
            if frame is None:
                os._exit(0)
            self._answer(frame[1])

    def _answer(self, body: bytes) -> None:
        # The agent of the case before may have put others in their place; asyncio.run puts none in that of the loop.
        sys.stdout, sys.stderr = self._streams
        asyncio.set_event_loop(self._loop)
        events, spans = _SentEvents(self._link), _SentSpans(self._link)
        call = self._call = AgentCall(events, spans.send)
        self._began_s = time.perf_counter()
        try:
            case, seed, self._timeout_s, wanted = pickle.loads(body)
            case = _decoded_case(case) if isinstance(case, bytes) else case
            probes.wanted.set(wanted)
        except Exception as error:  # noqa: BLE001 - classes that cannot be imported here, and the like
            call.fail("raised", f"the case cannot be handed to the worker process: {describe_error(error)}")
        else:
            perform(self._function, case, seed, call, self._run_async)
        self._call = None
        # A thread that the agent left behind must not speak in the next case.
        events.link = spans.link = None
        self._flush()
        self._link.send(RESULT if self._is_fit() else LAST_RESULT, call.sealed())

    def _run_async(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] | None = None
        try:
            task = self._loop.create_task(work)
            self._loop.run_until_complete(task)
        finally:
            if task is None:
                # The agent closed the loop.
                work.close()
            elif not task.done() or task.cancelled():
                # It stopped the loop, or canceled the task it runs in.
                self._loop_is_broken = True
            self._end_tasks()

    def _end_tasks(self) -> None:
        """Cancel what an asynchronous agent left running: it would go on in the next case."""
        try:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                _, running = self._loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_GRACE_S))
                self._loop_is_broken = self._loop_is_broken or bool(running)
        except BaseException:  # noqa: BLE001 - an exit in one of them, or a closed loop
            self._loop_is_broken = True

    def _is_fit(self) -> bool:
        """Whether the next case finds this process in order."""
        return not (
            self._loop_is_broken
            or self._loop.is_closed()
            or asyncio._get_running_loop() is not None
            or threading.active_count() - self._n_threads > MAX_LEFT_THREADS
        )

    def _on_terminate(self, signum: int, frame: FrameType | None) -> None:
        call = self._call
        if call is None:
            # The answer is on its way or was sent: the parent decides.
            return
        self._flush()
        if self._timeout_s is None or time.perf_counter() - self._began_s < _SURELY_EARLY * self._timeout_s:
            # The parent asks when the time is up: this comes from the agent or from outside, and ends the process.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        call.timed_out(self._timeout_s, place_in(frame))
        call.end_probe()
        self._link.send(LAST_RESULT, call.sealed(), wait=False)
        # Not the end: the parent kills this process with its children, and finds them only while it is there.
        while True:
            time.sleep(60)

    def _flush(self) -> None:
        for stream in self._streams:
            try:
                stream.flush()
            except (OSError, ValueError, RuntimeError):
                # Closed by the agent, or interrupted in the middle of a write: what was printed before is out.
                continue


class _SentEvents(list[TraceEvent]):
    """The events of a trace, each sent to the parent when it is added."""

    def __init__(self, link: WorkerLine) -> None:
        super().__init__()
        self.link: WorkerLine | None = link

    def append(self, event: TraceEvent) -> None:
        super().append(event)
        self._send(event)

    def insert(self, index: SupportsIndex, event: TraceEvent) -> None:
        super().insert(index, event)
        self._send(event)

    def extend(self, events: Iterable[TraceEvent]) -> None:
        for event in events:
            self.append(event)

    def __iadd__(self, events: Iterable[TraceEvent]) -> _SentEvents:  # type: ignore[override,misc]
        self.extend(events)
        return self

    def _send(self, event: TraceEvent) -> None:
        link = self.link
        if link is None:
            return
        try:
            body = encode_json(event)
        except Exception:  # noqa: BLE001 - what cannot be written is sorted out at the end of the call
            return
        link.send(EVENT, body)


class _SentSpans:
    """The spans of a call, each sent to the parent when it starts and when it ends, up to a limit."""

    def __init__(self, link: WorkerLine) -> None:
        self.link: WorkerLine | None = link
        self._room = MAX_SENT_SPANS_BYTES

    def send(self, span: Span) -> None:
        link = self.link
        if link is None or self._room <= 0:
            return
        body = encode_json(span)
        self._room -= len(body)
        link.send(SPAN, body)


def serve(function: BoundFunction, link: WorkerLine, stdout_fd: int, stderr_fd: int) -> NoReturn:
    """The life of a worker, from its fork on."""
    # Unreachable leftovers of the parent must not be collected here: their destructors would act twice.
    gc.freeze()
    _forget_the_parents_loop_and_signals()
    forget_captures()
    empty = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((empty, 0), (stdout_fd, 1), (stderr_fd, 2)):
        os.dup2(source, target)
        if source > 2:
            os.close(source)
    # Kept, for a stream that is collected closes its descriptor, which is ours now.
    _parents_streams.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__))
    streams = (_text_stream(1), _text_stream(2))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.FileIO(0, closefd=False))  # type: ignore[misc]
    sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]
    if faulthandler.is_enabled():
        faulthandler.enable(2)
    Server(function, link, streams).serve()


def _text_stream(fd: int) -> io.TextIOWrapper:
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)


def _forget_the_parents_loop_and_signals() -> None:
    asyncio._set_running_loop(None)
    # The parent's loop listens at this descriptor: our signals are none of its business.
    signal.set_wakeup_fd(-1)
    for each in signal.valid_signals():
        if callable(signal.getsignal(each)):
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)

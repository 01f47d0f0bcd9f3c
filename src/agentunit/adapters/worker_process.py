"""Inside a worker process: take a case, call the agent, send back all that happens. Everything here ends in ``_exit``.

The events of a trace are sent when they are recorded, so that a worker that is killed or dies leaves its trace behind.
A worker that is about to be killed for taking too long is asked first (SIGTERM) for the whole of it and for the place
where it hangs; code that hangs outside of Python never hears the question, and then the events stand alone.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Iterable
from types import FrameType
from typing import Any, NoReturn, SupportsIndex

from agentunit.adapters.call import Call
from agentunit.adapters.capture import forget_captures
from agentunit.adapters.failures import describe_error, place_in
from agentunit.adapters.frames import EVENT, LAST_RESULT, RESULT, SPAN, Link, opened_request
from agentunit.adapters.invocation import perform
from agentunit.adapters.parameters import BoundFunction
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceEvent
from agentunit.probes import settings as probes
from agentunit.traces.spans import Span

MAX_SENT_SPANS_BYTES = 16 * 1024 * 1024
"""What is sent of a call's spans while it runs: of use only if the process dies, and held in memory until then."""
MAX_LEFT_THREADS = 16
"""A worker in which agents left more threads running is replaced. Fewer may be a client's or a pool's, in good use."""
_CANCEL_GRACE_S = 0.5
_parents_streams: list[Any] = []


class Server:
    """Answers the parent's requests, one after the other."""

    def __init__(self, function: BoundFunction, link: Link, streams: tuple[io.TextIOWrapper, io.TextIOWrapper]) -> None:
        self._function = function
        self._link = link
        self._streams = streams
        # Synchronous calls of many frameworks run in the current loop, which must not be the parent's running one.
        # One for all cases: clients that the agent keeps are bound to the loop they were first used in.
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._loop_is_broken = False
        self._n_threads = threading.active_count()
        self._call: Call | None = None
        self._timeout_s: float | None = None

    def serve(self) -> NoReturn:
        """Until the parent is gone."""
        signal.signal(signal.SIGTERM, self._on_terminate)
        while True:
            frame = self._link.receive()
            if frame is None:
                os._exit(0)
            self._answer(frame[1])

    def _answer(self, body: bytes) -> None:
        # The agent of the case before may have put others in their place.
        sys.stdout, sys.stderr = self._streams
        events, spans = _SentEvents(self._link), _SentSpans(self._link)
        call = self._call = Call(events, spans.send)
        try:
            case, seed, self._timeout_s, wanted = opened_request(body)
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
                # It stopped the loop, or cancelled the task it runs in.
                self._loop_is_broken = True
            self._end_tasks()

    def _end_tasks(self) -> None:
        """Cancel what an asynchronous agent left running: it would go on in the next case."""
        try:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                _, running = self._loop.run_until_complete(asyncio.wait(tasks, timeout=_CANCEL_GRACE_S))
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
        if self._timeout_s is not None:
            call.timed_out(self._timeout_s, place_in(frame))
        call.end_probe()
        self._link.send(RESULT, call.sealed(), wait=False)
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

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.link: Link | None = link

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

    def __init__(self, link: Link) -> None:
        self.link: Link | None = link
        self._room = MAX_SENT_SPANS_BYTES

    def send(self, span: Span) -> None:
        link = self.link
        if link is None or self._room <= 0:
            return
        body = encode_json(span)
        self._room -= len(body)
        link.send(SPAN, body)


def serve(function: BoundFunction, link_fd: int, stdout_fd: int, stderr_fd: int) -> NoReturn:
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
    Server(function, Link(link_fd, link_fd), streams).serve()


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

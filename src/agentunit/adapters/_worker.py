"""A worker process as its parent sees it: how it is forked, sent a case, listened to, and killed."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import select
import signal
import sys
import threading
import warnings
from typing import Literal, NoReturn

import msgspec

from agentunit.adapters._call import AgentCall
from agentunit.adapters._prints import BoundedText, Prints
from agentunit.adapters._worker_process import EVENT, LAST_RESULT, RESULT, SPAN, FrameReader, WorkerLine, serve
from agentunit.adapters.base import MAX_REPLY_BYTES
from agentunit.adapters.bound_function import BoundFunction
from agentunit.adapters.threads_and_processes import Child
from agentunit.core.codec import RecordError, as_trace
from agentunit.traces.live.captured import Captured, write_into
from agentunit.traces.spans import Span

Ending = Literal["answered", "timeout", "died", "too_much"]


class CaseExchange:
    """What one case has sent back so far."""

    __slots__ = ("_decoders", "_size", "done", "events", "prints", "reply", "reusable", "spans")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.done: asyncio.Future[Ending] = loop.create_future()
        self.events: list[bytes] = []
        self.spans: list[bytes] = []
        self.reply: bytes | None = None
        self.reusable = True
        self.prints = Prints()
        self._size = 0
        self._decoders: dict[BoundedText, codecs.IncrementalDecoder] = {}

    def settle(self, ending: Ending) -> None:
        """The exchange is over, if it was not before."""
        if not self.done.done():
            self.done.set_result(ending)

    def on_frame(self, kind: int, body: bytes) -> None:
        """Take in a frame."""
        if kind in (RESULT, LAST_RESULT):
            self.reply = body
            self.reusable = kind == RESULT
            self.settle("answered")
        elif kind == EVENT:
            self.events.append(body)
            self.on_size(len(body))
        elif kind == SPAN:
            self.spans.append(body)

    def on_size(self, size: int) -> None:
        """More bytes are here or announced."""
        self._size += size
        if self._size > MAX_REPLY_BYTES:
            self.settle("too_much")

    def on_print(self, stream: BoundedText, data: bytes) -> None:
        """Take in what was printed to ``prints.stdout`` or ``prints.stderr``."""
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        stream.write(decoder.decode(data))

    def recorded(self) -> AgentCall:
        """A call with the trace as far as it was sent."""
        call = AgentCall()
        for body in self.events:
            with contextlib.suppress(RecordError):
                call.trace.events.extend(as_trace([msgspec.json.decode(body)]).events)
        if self.spans:
            # A span that ended was sent twice: the second says more.
            spans = {span.span_id: span for span in (msgspec.json.decode(body, type=Span) for body in self.spans)}
            write_into(call.trace, Captured(list(spans.values())))
        return call


_READ_BYTES = 1 << 18
# Of every worker of this process. A sibling that inherited one would keep its pipe open after its end.
_our_ends: set[int] = set()
# Nor must it inherit the other end, of a worker that another thread is about to fork.
_forking = threading.Lock()


class Worker:
    """A worker process. The event loop reads and writes its pipes; no thread is between."""

    def __init__(self, function: BoundFunction) -> None:
        with _forking:
            self._start(function)

    def _start(self, function: BoundFunction) -> None:
        # Pipes: a socket pair takes twice the processor time.
        their_requests, self._requests = os.pipe()
        self._fd, their_replies = os.pipe()
        stdout, their_stdout = os.pipe()
        stderr, their_stderr = os.pipe()
        self._printed = {stdout: "stdout", stderr: "stderr"}
        # Never written to: it breaks when this process ends, however it ends.
        their_lifeline, self._lifeline = os.pipe()
        self._reader = FrameReader()
        self._exchange: CaseExchange | None = None
        # The loop that listens to it, also between cases: to register anew for each would cost a third of its time.
        self.home: asyncio.AbstractEventLoop | None = None
        self._unsent = memoryview(b"")
        self._ends = {self._requests, self._fd, stdout, stderr, self._lifeline}
        _our_ends.update(self._ends)
        for fd in (self._requests, self._fd, stdout, stderr):
            os.set_blocking(fd, False)
        # One look at all of them takes less than a read of each.
        self._unread = select.poll()
        for fd in (self._fd, stdout, stderr):
            self._unread.register(fd, select.POLLIN)
        for stream in (sys.stdout, sys.stderr):
            # What is buffered now would be written by the child a second time.
            with contextlib.suppress(Exception):
                stream.flush()
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python warns about forks beside threads. The child touches nothing that another thread may have locked.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        theirs = their_requests, their_replies, their_stdout, their_stderr, their_lifeline
        if pid == 0:
            _live(function, theirs, parent)
        self.child = Child(pid)
        self._exit_fd = _exit_notice(pid)
        for fd in theirs:
            os.close(fd)

    def is_ready(self) -> bool:
        """Whether it can be given a case: a worker that waits for one has nothing to say.

        What was printed since the last case, by something that it left running, is thrown away.
        """
        unread = [fd for fd, _ in self._unread.poll(0)]
        for fd in unread:
            if fd != self._fd:
                _drained(fd)
        return self._fd not in unread and not self.child.ended

    def start(self, exchange: CaseExchange, request: bytes) -> None:
        """Give it a case; what comes back goes to the exchange."""
        loop = asyncio.get_running_loop()
        if self.home is not loop:
            self.home = loop
            loop.add_reader(self._fd, self._on_link)
            for fd in self._printed:
                loop.add_reader(fd, self._on_print, fd)
            if self._exit_fd is not None:
                loop.add_reader(self._exit_fd, self._on_exit)
        self._exchange = exchange
        self._unsent = memoryview(request)
        self._send()
        if self._unsent:
            loop.add_writer(self._requests, self._on_writable)

    def stop(self) -> None:
        """The case is over; what was printed until now belongs to it."""
        for fd, _ in self._unread.poll(0):
            if fd in self._printed:
                self._on_print(fd)
        self._exchange = None

    def ask_for_last_words(self) -> None:
        """Its time is up: ask for the trace it has."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.child.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it and all that it started."""
        fds = self._ends if self._exit_fd is None else self._ends | {self._exit_fd}
        self._unregister(*fds)
        self.child.kill()
        for fd in fds:
            os.close(fd)
        _our_ends.difference_update(self._ends)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._requests, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = memoryview(b"")
            self._end()

    def _on_writable(self) -> None:
        self._send()
        if not self._unsent and self.home is not None:
            self.home.remove_writer(self._requests)

    def _on_link(self) -> bool:
        """Take in what the worker sent; whether there may be more."""
        exchange = self._exchange
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._end()
            return False
        for kind, body in self._reader.feed(data):
            # Without an exchange it is a last word of a thread that the agent left behind: its case has ended.
            if exchange is not None:
                exchange.on_frame(kind, body)
        if exchange is not None and self._reader.announced > MAX_REPLY_BYTES:
            exchange.on_size(self._reader.announced)
        return True

    def _on_exit(self) -> None:
        """It is dead. The link may not say so: a process that the agent forked holds the other end as well."""
        while self._on_link():
            pass
        self._unregister(self._exit_fd or 0)
        self._end()

    def _on_print(self, fd: int) -> None:
        data = _drained(fd)
        if data and self._exchange is not None:
            self._exchange.on_print(getattr(self._exchange.prints, self._printed[fd]), data)
        elif data is None:
            self._unregister(fd)

    def _unregister(self, *fds: int) -> None:
        if self.home is not None and not self.home.is_closed():
            for fd in fds:
                self.home.remove_reader(fd)
            self.home.remove_writer(self._requests)

    def _end(self) -> None:
        self._unregister(self._fd)
        if self._exchange is not None:
            self._exchange.settle("died")


def _exit_notice(pid: int) -> int | None:
    """A descriptor that can be read when the process has ended, where the system has such (Linux)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _drained(fd: int) -> bytes | None:
    """What there is to read now, at most a pipe full; ``None`` at the end."""
    try:
        return os.read(fd, _READ_BYTES) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def _live(function: BoundFunction, fds: tuple[int, int, int, int, int], parent: int) -> NoReturn:
    """The child's side of the fork: whatever happens, it never returns into the parent's code."""
    global _forking
    try:
        requests_fd, replies_fd, stdout_fd, stderr_fd, lifeline_fd = fds
        os.setsid()
        _forking = threading.Lock()
        for fd in _our_ends:
            os.close(fd)
        _our_ends.clear()
        _die_with_parent(lifeline_fd, parent)
        serve(function, WorkerLine(requests_fd, replies_fd), stdout_fd, stderr_fd)
    finally:
        os._exit(1)


def _die_with_parent(lifeline_fd: int, parent: int) -> None:
    """Have the system kill this whole process group when the parent's end of the pipe closes.

    A worker that waits for a case sees its parent's end by itself; one whose agent hangs would stay for ever. Only
    Linux can be asked for this.
    """
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(lifeline_fd, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline_fd, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline_fd, fcntl.F_SETFL, fcntl.fcntl(lifeline_fd, fcntl.F_GETFL) | os.O_ASYNC)
    if os.getppid() != parent:
        os._exit(0)

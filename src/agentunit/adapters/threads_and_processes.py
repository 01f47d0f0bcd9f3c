"""Threads that cannot hold up a run, and processes that are killed with all that they started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

_NOTHING = nullcontext()

_T = TypeVar("_T")
_Job = Callable[[], Callable[[], None]]


class DaemonThreads:
    """As many threads as there are calls at once, reused from call to call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._closed = False

    def submit(self, function: Callable[[], _T]) -> asyncio.Future[_T]:
        """Call a function, which must not raise, in a thread. A future that is given up leaves it to itself."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()

        def job() -> Callable[[], None]:
            result = function()

            def report() -> None:
                # The loop may be closed by the time a call comes to its end that nobody waits for any more.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(settle, future, result)

            return report

        self._closed = False
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put(job)
        return future

    def close(self) -> None:
        """Send idle threads home; a busy one goes when it is done."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _work(self, inbox: SimpleQueue[_Job | None]) -> None:
        while (job := inbox.get()) is not None:
            report = job()
            # Idle before it reports: the next call, which the report sets off, finds this thread free.
            if not self._closed:
                self._idle.append(inbox)
            report()
            del job, report
            if self._closed:
                return


def settle(future: asyncio.Future[Any], result: Any) -> None:
    """Set a future's result, unless it has one."""
    if not future.done():
        future.set_result(result)


# A killed process is gone after a millisecond; one with much memory to give back is collected later.
_LOOK_EVERY_S = 0.0005
_MOST_LOOKS = 20


def kill_tree(pid: int) -> None:
    """Kill a process that leads its own group, its group, and descendants that left the group.

    A daemon that cut every tie to its ancestors (new session, parent gone) cannot be found this way.
    """
    strays = _descendants(pid)
    kill_group(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    for stray in strays:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(stray, signal.SIGKILL)


class Child:
    """A process of ours: whether it has ended, and how, however often one asks."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = False
        self.exit_code: int | None = None

    def has_ended(self) -> bool:
        """Collect it if it has ended. The exit code stays ``None`` if somebody else collected it."""
        if not self.ended:
            try:
                found, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.ended = True
            else:
                self.ended = found != 0
                self.exit_code = os.waitstatus_to_exitcode(status) if found else None
        return self.ended

    async def wait(self, wait_s: float) -> bool:
        """Wait for its end, but not for ever: a process in the kernel's hands may not come back."""
        pause_s, deadline = 0.0005, time.monotonic() + wait_s
        while not self.has_ended() and time.monotonic() < deadline:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.02)
        return self.ended

    def kill(self) -> None:
        """End it and all that it started."""
        if self.ended:
            # Its number may belong to somebody else by now, but its group lives on while a child of it does.
            kill_group(self.pid)
        else:
            kill_tree(self.pid)
        for _ in range(_MOST_LOOKS):
            if self.has_ended():
                break
            time.sleep(_LOOK_EVERY_S)
        else:
            _ending.append(self)
        _ending[:] = [child for child in _ending if not child.has_ended()]


# Killed, but not collected yet; collected when the next one is killed.
_ending: list[Child] = []


def kill_group(pid: int) -> None:
    """Kill what is left of the group that a process led, also when itself is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def describe_exit(code: int | None) -> str:
    """An exit code in words.

    >>> describe_exit(7), describe_exit(-11)
    ('exit code 7', 'signal SIGSEGV')
    """
    if code is None:
        return "exit code unknown"
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"signal {name}" + (" (often: the system ran out of memory)" if name == "SIGKILL" else "")


def _descendants(pid: int) -> list[int]:
    """All processes below this one, where the system says so (Linux); those of the group are found anyway."""
    found, pending = [], [pid]
    while pending:
        parent = pending.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{parent}/task/{thread}/children") as listing:
                children = [int(child) for child in listing.read().split()]
                found.extend(children)
                pending.extend(children)
    return found


def outside_loops(call: Callable[[], _T], *, while_waiting: AbstractContextManager[Any] = _NOTHING) -> _T:
    """Call a function that runs an event loop: here, or in another thread where this one runs a loop.

    This thread is ``while_waiting`` for the other one.

    >>> async def answer():
    ...     return 42
    >>> async def cell():
    ...     return outside_loops(lambda: asyncio.run(answer()))
    >>> asyncio.run(cell())
    42
    """
    # What the call raises must not look as if it came of there being no loop, so nothing is being handled here.
    if not _in_a_loop():
        return call()
    # The loop of this thread waits for us, and two loops cannot run in one thread.
    with while_waiting, ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentunit-loop") as thread:
        return thread.submit(copy_context().run, call).result()


def _in_a_loop() -> bool:
    """Whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

"""Daemon threads of our own: one that is stuck holds up neither the run nor the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

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
                    loop.call_soon_threadsafe(_settle, future, result)

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


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)

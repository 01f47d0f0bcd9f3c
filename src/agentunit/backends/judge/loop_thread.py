"""An event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_LONGEST_GOODBYE_S = 5.0


class LoopThread:
    """Runs coroutines that any thread hands in; ends with the process, whatever they do."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Start a coroutine; ``RuntimeError`` after ``close``."""
        with self._lock:
            if not self._is_closed:
                return asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        coroutine.close()
        raise RuntimeError("the judge's client was closed")

    def close(self, last: Callable[[], None], *, wait: bool = True) -> None:
        """Cancel what is under way, do ``last`` in the loop, and end the thread; without ``wait``, return at once."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            # Whatever was handed in before stands before this in the loop's queue, so nobody waits in vain.
            asyncio.run_coroutine_threadsafe(self._cancel_all(last), self.loop)
        if wait and threading.current_thread() is not self._thread:
            self._thread.join(_LONGEST_GOODBYE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    async def _cancel_all(self, last: Callable[[], None]) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=_LONGEST_GOODBYE_S)
        last()
        # Aborted connections get a round of the loop to let go of their sockets.
        await asyncio.sleep(0)
        self.loop.call_soon(self.loop.stop)

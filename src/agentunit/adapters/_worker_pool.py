"""A pool of worker processes: started when needed, reused, and killed with all that they started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import weakref
from collections import deque

from agentunit.adapters._worker import CaseExchange, Ending, Worker
from agentunit.adapters._worker_process import request
from agentunit.adapters.base import TOO_MUCH, AgentResult, opened
from agentunit.adapters.bound_function import BoundFunction
from agentunit.adapters.threads_and_processes import describe_exit, settle
from agentunit.core.case import DatasetCase
from agentunit.probes import probe_settings as probes

LAST_WORDS_S = 0.25
"""How long a worker whose time is up may take to send the trace it has."""
_TO_DIE_S = 0.5


class CasePool:
    """At most ``size`` worker processes, each with one case at a time."""

    def __init__(self, function: BoundFunction, size: int) -> None:
        self._function = function
        self._size = size
        self._idle: list[Worker] = []
        self._all: list[Worker] = []
        self._n_taken = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._lock = threading.Lock()
        # For pools that nobody closes: when they are collected, or when the process ends.
        weakref.finalize(self, _kill_left, self._all, os.getpid())

    async def run(self, case: DatasetCase, *, timeout_s: float | None, seed: int | None) -> AgentResult:
        """Ask one case in a worker. Waiting for a free one does not count as the agent's time."""
        data = request(case, seed, timeout_s, probes.wanted.get())
        worker = await self._take()
        reusable = False
        try:
            result, reusable = await self._ask(worker, data, timeout_s)
            return result
        finally:
            self._give_back(worker, reusable)

    def kill(self) -> None:
        """End all workers, busy ones too."""
        self._idle.clear()
        for worker in list(self._all):
            self._discard(worker)

    async def _ask(self, worker: Worker, data: bytes, timeout_s: float | None) -> tuple[AgentResult, bool]:
        loop = asyncio.get_running_loop()
        exchange, started = CaseExchange(loop), time.perf_counter()
        timer = None if timeout_s is None else loop.call_later(timeout_s, exchange.settle, "timeout")
        worker.start(exchange, data)
        try:
            ending = await exchange.done
            if ending == "answered" and exchange.reply is not None:
                result = opened(exchange.reply)
            else:
                result = await _cut_short(worker, exchange, ending, timeout_s or 0.0)
                result.elapsed_s = time.perf_counter() - started
        finally:
            if timer is not None:
                timer.cancel()
            worker.stop()
        exchange.prints.add_to(result.trace.metadata)
        return result, ending == "answered" and exchange.reusable

    async def _take(self) -> Worker:
        while True:
            with self._lock:
                if self._n_taken < self._size:
                    self._n_taken += 1
                    break
                loop = asyncio.get_running_loop()
                turn: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, turn))
            try:
                await turn
            except asyncio.CancelledError:
                self._call_next()
                raise
        try:
            with self._lock:
                worker = self._idle_worker()
            if worker is None:
                worker = Worker(self._function)
                self._all.append(worker)
            return worker
        except BaseException:
            with self._lock:
                self._n_taken -= 1
            self._call_next()
            raise

    def _idle_worker(self) -> Worker | None:
        here = asyncio.get_running_loop()
        foreign: list[Worker] = []
        found: Worker | None = None
        while self._idle and found is None:
            worker = self._idle.pop()
            if worker.home is not None and worker.home is not here and not worker.home.is_closed():
                foreign.append(worker)
            elif worker.is_ready():
                found = worker
            else:
                self._discard(worker)
        if foreign and found is None and len(self._all) >= self._size:
            self._discard(foreign.pop())
        self._idle.extend(foreign)
        return found

    def _give_back(self, worker: Worker, reusable: bool) -> None:
        with self._lock:
            self._n_taken -= 1
            reusable = reusable and worker in self._all
            if reusable:
                self._idle.append(worker)
        if not reusable:
            self._discard(worker)
        self._call_next()

    def _discard(self, worker: Worker) -> None:
        """End a worker, in the loop that listens to it: others do not know what it is doing with it."""
        home = worker.home
        if home is not None and home.is_running() and home is not asyncio._get_running_loop():
            # If that loop ends before it comes to this, the worker is still among all of them, and ended with them.
            with contextlib.suppress(RuntimeError):
                home.call_soon_threadsafe(self._end, worker)
                return
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        with contextlib.suppress(ValueError):
            self._all.remove(worker)
            worker.kill()

    def _call_next(self) -> None:
        while self._waiting:
            loop, turn = self._waiting.popleft()
            if turn.done():
                continue
            # Pools may be shared by loops in several threads, and outlive a loop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, turn, None)
                return


async def _cut_short(worker: Worker, exchange: CaseExchange, ending: Ending, timeout_s: float) -> AgentResult:
    """The result of a case that did not come to its own end."""
    if ending == "timeout" and not worker.child.has_ended():
        return await _timed_out(worker, exchange, timeout_s)
    call = exchange.recorded()
    if ending == "too_much":
        call.fail("raised", TOO_MUCH.format("the agent's answer and trace"))
    elif await worker.child.wait(_TO_DIE_S):
        call.fail("died", f"the agent's process died ({describe_exit(worker.child.exit_code)})")
    else:
        call.fail("died", "the agent closed the connection of its worker process")
    return call.result()


async def _timed_out(worker: Worker, exchange: CaseExchange, timeout_s: float) -> AgentResult:
    exchange.done = asyncio.get_running_loop().create_future()
    worker.ask_for_last_words()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(exchange.done, LAST_WORDS_S)
    if exchange.reply is None:
        call = exchange.recorded()
    else:
        result = opened(exchange.reply)
        if result.failure == "timeout":
            return result
        # It answered in the very moment its time was up.
        call = exchange.recorded()
        call.trace = result.trace
    call.timed_out(timeout_s)
    return call.result()


def _kill_left(workers: list[Worker], process: int) -> None:
    # A process forked by somebody else has the same objects, but no say in this.
    if os.getpid() == process:
        while workers:
            workers.pop().kill()

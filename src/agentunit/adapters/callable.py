"""A Python callable as an agent.

Where it runs:

- ``async def`` and asynchronous generators: in the runner's event loop.
- Everything else, without a timeout: in daemon threads of this process.
- Everything else, with a timeout: in worker processes, since nothing but the end of a process really ends code that
  hangs. A worker is reused from case to case, but what an agent keeps in global variables is each worker's own.

Workers are forked where the system can (on macOS only if the agent cannot be imported by name, as its own libraries do
not survive a fork). Without fork they are new processes, for agents that can be imported; for the rest threads remain,
and a case whose time is up is given up: its thread goes on until it ends by itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Literal

from agentunit.adapters.async_calls import AsyncCalls
from agentunit.adapters.base import AgentResult
from agentunit.adapters.call import Call
from agentunit.adapters.capture import Capture
from agentunit.adapters.failures import describe_error, place_in
from agentunit.adapters.forked import ForkedWorker
from agentunit.adapters.invocation import perform
from agentunit.adapters.parameters import BoundFunction, copied_case
from agentunit.adapters.spawned import SpawnedWorker, importable_form
from agentunit.adapters.threads import DaemonThreads
from agentunit.adapters.workers import WorkerPool
from agentunit.core.case import DatasetCase

StartMethod = Literal["auto", "fork", "spawn", "thread"]


class CallableAgent:
    """An agent that is a Python callable; see the module for where it runs.

    ``start_method`` forces a place: ``fork`` or ``spawn`` call even an asynchronous agent in worker processes,
    ``thread`` calls a synchronous one in threads even with a timeout.
    """

    def __init__(self, agent: Callable[..., Any], *, workers: int = 4, start_method: StartMethod = "auto") -> None:
        if start_method not in ("auto", "fork", "spawn", "thread"):
            raise ValueError(
                f"CallableAgent: start_method must be auto, fork, spawn or thread; received {start_method!r}"
            )
        self._function = BoundFunction(agent)
        self._always_in_workers = start_method in ("fork", "spawn")
        self._async = AsyncCalls(self._function) if self._function.is_async and not self._always_in_workers else None
        self._threads = DaemonThreads(f"agentunit-{self._function.name}")
        start_worker = None if self._async is not None else _worker_starter(self._function, start_method)
        self._workers = None if start_worker is None else WorkerPool(start_worker, workers)
        self.concurrency_hint: int | None = workers if self._async is None else None

    def __repr__(self) -> str:
        return f"CallableAgent({self._function.name})"

    @property
    def runs_in_loop(self) -> bool:
        """Whether the agent's own code runs in the runner's event loop."""
        return self._async is not None

    async def run(self, case: DatasetCase, *, timeout_s: float | None = None, seed: int | None = None) -> AgentResult:
        """Ask one case, and end the call when the time is up."""
        try:
            if self._async is not None:
                return await self._async.run(case, timeout_s=timeout_s, seed=seed)
            if self._workers is not None and (timeout_s is not None or self._always_in_workers):
                return await self._workers.run(case, timeout_s=timeout_s, seed=seed)
            return await self._run_in_thread(case, timeout_s, seed)
        except Exception as error:  # noqa: BLE001 - no more processes, no more threads: the case says so
            call = Call()
            call.fail("raised", f"the agent could not be called: {describe_error(error)}")
            return call.result()

    async def close(self) -> None:
        """End workers, and what asynchronous agents left running."""
        if self._workers is not None:
            self._workers.kill()
        if self._async is not None:
            await self._async.close()
        self._threads.close()

    async def _run_in_thread(self, case: DatasetCase, timeout_s: float | None, seed: int | None) -> AgentResult:
        call, capture = Call(), Capture()
        own_case, context = copied_case(case), copy_context()
        thread_id: list[int] = []

        def in_thread() -> None:
            thread_id.append(threading.get_ident())
            context.run(capture.begin)
            try:
                context.run(perform, self._function, own_case, seed, call)
            finally:
                capture.end()

        future = self._threads.submit(in_thread)
        try:
            if timeout_s is None:
                await future
            else:
                await asyncio.wait({future}, timeout=timeout_s)
        except BaseException:
            capture.given_up = True
            raise
        if timeout_s is not None and not future.done():
            capture.given_up = True
            place = place_in(sys._current_frames().get(thread_id[0])) if thread_id else None
            call = _given_up(call, timeout_s, place)
        result = call.result()
        capture.prints.add_to(result.trace.metadata)
        return result


def _given_up(running: Call, timeout_s: float, place: str | None) -> Call:
    """A call of its own for what the running one has so far: its thread may go on writing into that."""
    running.end_probe()
    call = Call()
    call.started, call.pieces = running.started, list(running.pieces)
    call.trace, call.spans = running.trace, running.spans
    call.timed_out(timeout_s, place, "; its thread cannot be ended and was left to itself")
    return call


def _worker_starter(function: BoundFunction, method: StartMethod) -> Callable[[], Any] | None:
    """How to start a worker for this agent; ``None`` where threads must do."""
    if method == "thread":
        return None
    can_fork = hasattr(os, "fork")
    if method == "fork" and not can_fork:
        raise ValueError("CallableAgent: start_method must be one that this system has; received 'fork'")
    if method == "fork" or (method == "auto" and can_fork and sys.platform != "darwin"):
        return lambda: ForkedWorker(function)
    importable = importable_form(function.function)
    if importable is not None:
        return lambda: SpawnedWorker(importable)
    if method == "spawn":
        raise ValueError(
            f"CallableAgent: with start_method 'spawn' the agent must be importable by name; received {function.name}"
        )
    return (lambda: ForkedWorker(function)) if can_fork else None

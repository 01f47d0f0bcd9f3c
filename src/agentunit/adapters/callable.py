"""A Python callable as an agent.

Where it runs with ``isolation="auto"``:

- ``async def`` and asynchronous generators: in the runner's event loop.
- Everything else, without a timeout: in daemon threads of this process.
- Everything else, with a timeout: in worker processes, since only the end of a process ends code that hangs. On macOS
  and Windows in threads: a case whose time is up is given up, and its thread goes on until it ends by itself.

A worker is reused from case to case; what an agent keeps in global variables is each worker's own. Workers are forked:
the agent need not be importable, and a start takes milliseconds. Windows has no fork; on macOS, whose system libraries
do not survive one, it must be asked for.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from agentunit.adapters.async_calls import AsyncCalls
from agentunit.adapters.base import ISOLATIONS, AgentResult, Isolation, can_fork_safely
from agentunit.adapters.call import Call
from agentunit.adapters.capture import Capture
from agentunit.adapters.failures import describe_error, place_in
from agentunit.adapters.invocation import perform
from agentunit.adapters.parameters import BoundFunction, copied_case
from agentunit.adapters.threads import DaemonThreads
from agentunit.adapters.workers import WorkerPool
from agentunit.core.case import DatasetCase


class CallableAgent:
    """An agent that is a Python callable; see the module for where it runs.

    ``isolation="process"`` calls it in worker processes, also an asynchronous one and one without a timeout;
    ``isolation="thread"`` keeps it in this process.
    """

    def __init__(self, agent: Callable[..., Any], *, workers: int = 4, isolation: Isolation = "auto") -> None:
        if isolation not in ISOLATIONS:
            raise ValueError(f"CallableAgent: isolation must be auto, process or thread; received {isolation!r}")
        if isolation == "process" and not hasattr(os, "fork"):
            raise ValueError("CallableAgent: isolation 'process' needs fork, which this system does not have")
        self._function = BoundFunction(agent)
        self._always_in_workers = isolation == "process"
        in_loop = self._function.is_async and not self._always_in_workers
        self._async = AsyncCalls(self._function) if in_loop else None
        self._threads = DaemonThreads(f"agentunit-{self._function.name}")
        with_workers = self._always_in_workers or (isolation == "auto" and not in_loop and can_fork_safely())
        self._workers = WorkerPool(self._function, workers) if with_workers else None
        self.concurrency_hint: int | None = None if in_loop else workers

    def __repr__(self) -> str:
        return f"CallableAgent({self._function.name})"

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
            done, _ = await asyncio.wait({future}, timeout=timeout_s)
        except BaseException:
            capture.given_up = True
            raise
        if not done and timeout_s is not None:
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

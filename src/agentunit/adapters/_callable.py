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
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from typing import Any

from agentunit.adapters._call import AgentCall
from agentunit.adapters._loop_guard import GuardedRun, LoopHeldUp, TaskExit, current_run, guard_of, protect
from agentunit.adapters._prints import Capture
from agentunit.adapters._worker_pool import CasePool
from agentunit.adapters.base import ISOLATIONS, AgentResult, Isolation, can_fork_safely
from agentunit.adapters.bound_function import CANCEL_GRACE_S, BoundFunction, copied_case, finish_async, perform
from agentunit.adapters.failures import describe_error, place_in, place_of
from agentunit.adapters.threads_and_processes import DaemonThreads
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
        self.settable = tuple(self._function.settable)
        self._always_in_workers = isolation == "process"
        in_loop = self._function.is_async and not self._always_in_workers
        self._async = AsyncCalls(self._function) if in_loop else None
        self.runs_in_loop = in_loop
        """Whether the agent's own code runs in the runner's event loop."""
        self.runs_in_process = not self._always_in_workers
        """Whether the agent's own code may run in this process, which it can end."""
        self._threads = DaemonThreads(f"agentunit-{self._function.name}")
        with_workers = self._always_in_workers or (isolation == "auto" and not in_loop and can_fork_safely())
        self._workers = CasePool(self._function, workers) if with_workers else None
        self.concurrency_hint: int | None = None if in_loop else workers

    def __repr__(self) -> str:
        return f"CallableAgent({self._function.name})"

    def call_before_steps(self, action: Callable[[], None] | None) -> None:
        """Have something done whenever the agent's own code is about to go on in the runner's event loop."""
        if self._async is not None:
            self._async.before_step = action

    async def run(self, case: DatasetCase, *, timeout_s: float | None = None, seed: int | None = None) -> AgentResult:
        """Ask one case, and end the call when the time is up."""
        try:
            if self._async is not None:
                return await self._async.run(case, timeout_s=timeout_s, seed=seed)
            if self._workers is not None and (timeout_s is not None or self._always_in_workers):
                return await self._workers.run(case, timeout_s=timeout_s, seed=seed)
            return await self._run_in_thread(case, timeout_s, seed)
        except Exception as error:  # noqa: BLE001 - no more processes, no more threads: the case says so
            call = AgentCall()
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
        call, capture = AgentCall(), Capture()
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


def _given_up(running: AgentCall, timeout_s: float, place: str | None) -> AgentCall:
    """A call of its own for what the running one has so far: its thread may go on writing into that."""
    running.end_probe()
    call = AgentCall()
    call.started, call.pieces = running.started, list(running.pieces)
    call.trace, call.spans = running.trace, running.spans
    call.timed_out(timeout_s, place, "; its thread cannot be ended and was left to itself")
    return call


_abandoned: set[asyncio.Task[Any]] = set()


class AsyncCalls:
    """Calls of one asynchronous agent."""

    def __init__(self, function: BoundFunction) -> None:
        self._function = function
        self.before_step: Callable[[], None] | None = None
        self._left_over: set[asyncio.Task[Any]] = set()

    async def run(self, case: DatasetCase, *, timeout_s: float | None, seed: int | None) -> AgentResult:
        """Ask one case."""
        loop = asyncio.get_running_loop()
        call, capture, run = AgentCall(), Capture(), GuardedRun(timeout_s, self.before_step)
        context = copy_context()
        context.run(capture.begin)
        context.run(current_run.set, run)
        context.run(call.begin_spans)
        call.begin_probe()
        guard = guard_of(loop)
        guard.enter(run)
        task = context.run(loop.create_task, self._call(copied_case(case), seed, call, run))
        protect(task, run)
        try:
            await asyncio.wait({task}, timeout=timeout_s)
            while not task.done() and not run.times_held_up and (left_s := run.time_left_s() or 0.0) > 0:
                # Others held up the loop, and with it this case.
                await asyncio.wait({task}, timeout=left_s)
            elapsed_s = (call.elapsed_s or 0.0) - run.lost_s
            if timeout_s is not None and (not task.done() or run.times_held_up or elapsed_s > timeout_s):
                await _end({task, *run.tasks}, context, run.answer)
                call.timed_out(timeout_s, _place_stopped(run), _why(task, run))
            elif run.trespass is not None and call.failure is None:
                call.fail("raised", run.trespass)
            elif task.cancelled() and call.failure is None:
                place = _place_stopped(run)
                where = f" ({place})" if place else ""
                call.fail("raised", f"CancelledError: the agent canceled the task it runs in{where}")
            elif call.failure is None and (error := task.exception()) is not None:
                call.raised(error)
        except BaseException:
            # The run itself is being stopped.
            await _end({task, *run.tasks}, context, run.answer)
            raise
        finally:
            guard.leave(run)
            call.end_probe()
            context.run(call.end_spans)
            capture.end()
            self._keep(run)
        result = call.result()
        capture.prints.add_to(result.trace.metadata)
        return result

    async def close(self) -> None:
        """End what agents left running: a task that refuses to end would hold up the end of the loop."""
        here = asyncio.get_running_loop()
        await _end({task for task in self._left_over if task.get_loop() is here}, copy_context())
        self._left_over.clear()

    async def _call(self, case: DatasetCase, seed: int | None, call: AgentCall, run: GuardedRun) -> None:
        process = os.getpid()
        try:
            run.answer = self._function(case, call.trace, seed)
            await finish_async(run.answer, call)
        except (asyncio.CancelledError, LoopHeldUp) as error:
            run.stopped_by = error
            raise
        except (GeneratorExit, KeyboardInterrupt):
            raise
        except TaskExit as error:
            call.raised(error.__cause__ or SystemExit(*error.args))
        except BaseException as error:  # noqa: BLE001 - an exit of the agent's is no exit of ours
            call.raised(error)
        finally:
            if os.getpid() != process:
                # The agent forked, and this is the child that came back from it: the run is its parent's.
                os._exit(0)

    def _keep(self, run: GuardedRun) -> None:
        for task in run.tasks:
            if not task.done():
                self._left_over.add(task)
                task.add_done_callback(self._left_over.discard)


def _place_stopped(run: GuardedRun) -> str | None:
    return None if run.stopped_by is None else place_of(run.stopped_by.__traceback__)


def _why(task: asyncio.Task[Any], run: GuardedRun) -> str:
    if run.times_held_up:
        return "; it held up the event loop with blocking code"
    return "" if task.done() else "; it ignores its cancellation and was given up"


async def _end(tasks: Iterable[asyncio.Task[Any]], context: Context, answer: Any = None) -> None:
    """Cancel tasks, wait a moment, and cut loose those that go on all the same."""
    pending = {task for task in tasks if not task.done() and task not in _abandoned}
    for task in pending:
        task.cancel()
    if pending:
        _, pending = await asyncio.wait(pending, timeout=CANCEL_GRACE_S)
    for task in pending:
        # One that catches cancellation may not catch this. In its context: it may block, and is watched there.
        with contextlib.suppress(Exception, GeneratorExit, SystemExit, LoopHeldUp):
            context.run(task.get_coro().close)
        task.cancel()
    if pending:
        _, pending = await asyncio.wait(pending, timeout=0.01)
    for task in pending:
        _abandon(task)
    if getattr(answer, "cr_frame", None) is not None:
        _keep_for_ever(answer)
    for task in tasks:
        # Whatever it raised is known or of no interest; unread, the loop would report it.
        if task.done() and not task.cancelled():
            task.exception()


def _abandon(task: asyncio.Task[Any]) -> None:
    _abandoned.add(task)
    task.add_done_callback(_forget)
    # Or the end of the loop would wait for it, and complain about it.
    asyncio._unregister_task(task)
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    _keep_for_ever(task)


def _keep_for_ever(stubborn: object) -> None:
    """Never destroy a coroutine that refuses to end.

    It would refuse that too: an endless loop around ``except BaseException`` would hang the interpreter when it ends
    and takes its objects apart.
    """
    with contextlib.suppress(ImportError, AttributeError):
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(stubborn))


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()

"""Asynchronous agents: in the runner's own event loop, cancelled when their time is up, given up if they refuse."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from contextvars import Context, copy_context
from typing import Any

from agentunit.adapters.base import AgentResult
from agentunit.adapters.call import Call
from agentunit.adapters.capture import Capture
from agentunit.adapters.failures import place_of
from agentunit.adapters.invocation import finish_async
from agentunit.adapters.loop_guard import GuardedRun, LoopHeldUp, TaskExit, current_run, guard_of, protect
from agentunit.adapters.parameters import BoundFunction, copied_case
from agentunit.core.case import DatasetCase

CANCEL_GRACE_S = 0.5
"""How long a cancelled agent may take to clean up."""

_given_up: set[asyncio.Task[Any]] = set()


class AsyncCalls:
    """Calls of one asynchronous agent."""

    def __init__(self, function: BoundFunction) -> None:
        self._function = function
        self._left_over: set[asyncio.Task[Any]] = set()

    async def run(self, case: DatasetCase, *, timeout_s: float | None, seed: int | None) -> AgentResult:
        """Ask one case."""
        loop = asyncio.get_running_loop()
        call, capture, run = Call(), Capture(), GuardedRun(timeout_s)
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
            if timeout_s is not None and (not task.done() or run.times_held_up or _took(call) > timeout_s):
                await _end({task, *run.tasks}, context, run.answer)
                place = None if run.stopped_by is None else place_of(run.stopped_by.__traceback__)
                call.timed_out(timeout_s, place, _why(task, run))
            elif run.trespass is not None and call.failure is None:
                call.fail("raised", run.trespass)
            elif task.cancelled() and call.failure is None:
                place = None if run.stopped_by is None else place_of(run.stopped_by.__traceback__)
                where = f" ({place})" if place else ""
                call.fail("raised", f"CancelledError: the agent cancelled the task it runs in{where}")
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

    async def _call(self, case: DatasetCase, seed: int | None, call: Call, run: GuardedRun) -> None:
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


def _took(call: Call) -> float:
    return call.elapsed_s or 0.0


def _why(task: asyncio.Task[Any], run: GuardedRun) -> str:
    if run.times_held_up:
        return "; it held up the event loop with blocking code"
    return "" if task.done() else "; it ignores its cancellation and was given up"


async def _end(tasks: Iterable[asyncio.Task[Any]], context: Context, answer: Any = None) -> None:
    """Cancel tasks, wait a moment, and cut loose those that go on all the same."""
    pending = {task for task in tasks if not task.done() and task not in _given_up}
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
        _give_up(task)
    if getattr(answer, "cr_frame", None) is not None:
        _keep_for_ever(answer)
    for task in tasks:
        # Whatever it raised is known or of no interest; unread, the loop would report it.
        if task.done() and not task.cancelled():
            task.exception()


def _give_up(task: asyncio.Task[Any]) -> None:
    _given_up.add(task)
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
    _given_up.discard(task)
    if not task.cancelled():
        task.exception()

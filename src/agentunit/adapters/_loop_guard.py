"""What keeps an asynchronous agent from taking the event loop down with it.

While asynchronous cases run, three things are in place. Tasks that an agent's code starts are known, and a ``sys.exit``
in one of them ends the case instead of the loop. An agent sees the tasks of its own case only: canceling a task of
the run or of another case, and stopping the loop, raise an error in the agent's code. And an alarm of the system looks
every few milliseconds whether the loop still turns: code of a case that holds it up past the case's deadline
(``time.sleep``, a busy loop) gets an exception raised inside it.

The alarm needs a Unix process whose loop runs in the main thread and that does not use SIGALRM itself. Elsewhere, and
for C code that never comes back to Python, a blocking asynchronous agent can only be ended in a worker process:
``CallableAgent(agent, isolation="process")``.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from types import FrameType
from typing import Any, NoReturn

_LOOK_EVERY_S = 0.05
# A loop that did not turn for as many looks is held up.
_LOOKS = 2.5
_POLITE_TIMES = 3


class LoopHeldUp(BaseException):
    """Raised inside code that keeps the event loop from turning after its time is up."""


class TaskExit(BaseException):
    """A ``sys.exit`` in a task of an agent. As ``SystemExit`` it would end the loop, and the run with it."""


class LoopTrespass(RuntimeError):
    """Raised in an agent's code that would end the run, or another case, along with its own."""


class GuardedRun:
    """One asynchronous case: its deadline, its tasks, what the agent handed back, and how it was interrupted.

    ``trespass`` says what the agent did to the loop that it shares with the run. ``lost_s`` is how long the code of
    others kept the loop from turning: that is not this case's time, and its deadline comes as much later.
    ``before_step`` is called before the agent's code goes on.
    """

    __slots__ = (
        *("__weakref__", "answer", "before_step", "deadline", "lost_s", "stopped_by", "tasks", "times_held_up"),
        "trespass",
    )

    def __init__(self, timeout_s: float | None, before_step: Callable[[], None] | None = None) -> None:
        self.before_step = before_step
        self.deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self.times_held_up = 0
        self.lost_s = 0.0
        self.answer: Any = None
        self.stopped_by: BaseException | None = None
        self.trespass: str | None = None

    def time_left_s(self) -> float | None:
        """How long until the deadline as it is by now."""
        return None if self.deadline is None else self.deadline - time.monotonic()

    def refuse(self, sentence: str) -> NoReturn:
        """Raise an error in the agent's code; the case fails even if the agent catches it."""
        self.trespass = sentence
        raise LoopTrespass(sentence)


current_run: ContextVar[GuardedRun | None] = ContextVar("agentunit_run", default=None)


class LoopGuard:
    """The guard of one event loop, in place while asynchronous cases run in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._n_runs = 0
        # The cases with a deadline, and those whose code was seen while the loop did not turn.
        self._timed: set[GuardedRun] = set()
        self._holding: set[GuardedRun] = set()
        self._factory: Any = None
        self._tick: asyncio.TimerHandle | None = None
        self._ticked_at = 0.0
        self._trace_before: Any = None

    def enter(self, run: GuardedRun) -> None:
        """A case begins."""
        self._n_runs += 1
        if self._n_runs == 1:
            self._factory = self._loop.get_task_factory()
            self._loop.set_task_factory(self._make_task)
            for task in _all_tasks(self._loop):
                protect(task, None)
            self._guard_stop()
            _show_own_tasks(+1)
        if run.deadline is not None:
            self._timed.add(run)
            if len(self._timed) == 1:
                self._start_alarm()

    def leave(self, run: GuardedRun) -> None:
        """A case is over."""
        if run.times_held_up > _POLITE_TIMES:
            sys.settrace(self._trace_before)
            self._trace_before = None
        if run.deadline is not None:
            self._timed.discard(run)
            if not self._timed:
                self._stop_alarm()
        self._n_runs -= 1
        if self._n_runs == 0:
            if self._loop.get_task_factory() == self._make_task:
                self._loop.set_task_factory(self._factory)
            vars(self._loop).pop("stop", None)
            _show_own_tasks(-1)

    def _guard_stop(self) -> None:
        stop = self._loop.stop

        def guarded() -> None:
            run = current_run.get()
            if run is not None:
                run.refuse("the agent stopped the run's event loop (loop.stop)")
            stop()

        # A loop written in C takes no such attribute.
        with suppress(AttributeError):
            self._loop.stop = guarded  # type: ignore[method-assign]

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        run = current_run.get()
        if run is not None and inspect.iscoroutine(coroutine):
            coroutine = _WithoutExit(coroutine, run.before_step)
        if self._factory is None:
            task = asyncio.Task(coroutine, loop=loop, **options)
        else:
            task = self._factory(loop, coroutine, **options)
        if run is not None:
            run.tasks.add(task)
        return task

    def _start_alarm(self) -> None:
        if not _alarm_is_free():
            return
        signal.signal(signal.SIGALRM, self._on_alarm)
        signal.setitimer(signal.ITIMER_REAL, _LOOK_EVERY_S, _LOOK_EVERY_S)
        self._ticked_at = time.monotonic()
        self._holding.clear()
        self._on_tick()

    def _stop_alarm(self) -> None:
        if self._tick is None:
            return
        self._tick.cancel()
        self._tick = None
        # An agent may have taken the alarm for itself meanwhile; then it is not ours to give back.
        if signal.getsignal(signal.SIGALRM) == self._on_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _on_tick(self) -> None:
        # Before the timeouts that have come meanwhile: they are due later than this was.
        now = time.monotonic()
        lost_s = now - self._ticked_at - _LOOK_EVERY_S
        if lost_s > _LOOKS * _LOOK_EVERY_S:
            for run in self._timed - self._holding:
                run.lost_s += lost_s
                run.deadline = None if run.deadline is None else run.deadline + lost_s
        self._holding.clear()
        self._ticked_at = now
        self._tick = self._loop.call_later(_LOOK_EVERY_S, self._on_tick)

    def _on_alarm(self, signum: int, frame: FrameType | None) -> None:
        # A handler runs in the context of the code it interrupts, and so knows whose code that is.
        run, now = current_run.get(), time.monotonic()
        if run is None or now - self._ticked_at <= _LOOKS * _LOOK_EVERY_S:
            return
        self._holding.add(run)
        if run.deadline is not None and now >= run.deadline:
            run.times_held_up += 1
            if run.times_held_up > _POLITE_TIMES:
                self._trace_before = self._trace_before or sys.gettrace()
                _raise_in_next_line(run, frame)
            raise LoopHeldUp


_protected: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()


def protect(task: asyncio.Task[Any], owner: GuardedRun | None) -> None:
    """Let no agent cancel this task but the one whose case it is."""
    if task in _protected:
        return
    _protected.add(task)
    cancel = task.cancel

    def guarded(msg: Any = None) -> bool:
        run = current_run.get()
        if run is not None and run is not owner:
            run.refuse("the agent canceled the tasks of the run's event loop, which are not its own")
        return cancel() if msg is None else cancel(msg)

    task.cancel = guarded  # type: ignore[method-assign]


_all_tasks = asyncio.all_tasks
_n_guarded = 0


def _own_tasks(loop: asyncio.AbstractEventLoop | None = None) -> set[asyncio.Task[Any]]:
    """``asyncio.all_tasks`` while cases run: in the code of an agent, the tasks of its own case."""
    run = current_run.get()
    found = _all_tasks(loop)
    return found if run is None else found & set(run.tasks)


def _show_own_tasks(change: int) -> None:
    global _n_guarded
    _n_guarded += change
    shown = _own_tasks if _n_guarded else _all_tasks
    asyncio.all_tasks = asyncio.tasks.all_tasks = shown


def _raise_in_next_line(run: GuardedRun, frame: FrameType | None) -> None:
    """For code that catches even what is raised in it: raise again where it handles that, outside of its ``try``."""

    def in_line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and current_run.get() is run:
            # An exception in here also takes the trace function out.
            raise LoopHeldUp
        return in_line

    sys.settrace(in_line)
    while frame is not None and frame.f_code.co_filename != __file__:
        frame.f_trace = in_line
        frame = frame.f_back


_guards: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopGuard] = weakref.WeakKeyDictionary()


def guard_of(loop: asyncio.AbstractEventLoop) -> LoopGuard:
    """The one guard of a loop."""
    guard = _guards.get(loop)
    if guard is None:
        guard = _guards[loop] = LoopGuard(loop)
    return guard


def _alarm_is_free() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    )


class _WithoutExit(Coroutine[Any, Any, Any]):
    """A coroutine in which ``SystemExit`` is another exception.

    Not a coroutine function: of a task that is canceled before it starts, the inner one would never be awaited, and
    Python would complain.
    """

    __slots__ = ("_before_step", "_inner")

    def __init__(self, inner: Coroutine[Any, Any, Any], before_step: Callable[[], None] | None) -> None:
        self._inner = inner
        self._before_step = before_step

    def send(self, value: Any) -> Any:
        if self._before_step is not None:
            self._before_step()
        try:
            return self._inner.send(value)
        except SystemExit as error:
            raise TaskExit(*error.args) from error

    def throw(self, *error: Any) -> Any:
        try:
            return self._inner.throw(*error)
        except SystemExit as exit_:
            raise TaskExit(*exit_.args) from exit_

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Any:
        return self._inner.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

"""Worker processes: each does one task at a time; what a dead one had is done again by another."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from agentunit.backends.media_sources import configure_media_root, configured_media_root
from agentunit.engine.scoring.records import WorkFailed
from agentunit.metrics.base import describe_error
from agentunit.metrics.registry import load_files, loaded_files

Task = TypeVar("Task")
Result = TypeVar("Result")

# A task that has killed so many workers is not handed out again.
MOST_DEATHS = 2
_ENDING_S = 1.0
_OF_THE_GROUP = ("SIGINT", "SIGHUP")  # Windows has no SIGHUP
# Numerical libraries that a worker loads later read these; many threads in each of many processes only wait.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "AGENTUNIT_LOCAL_THREADS",
)


@dataclass(frozen=True)
class _HandedOver:
    """Work for a process that is started anew, with what it needs of this one: settings, and files that were loaded."""

    work: bytes
    files: dict[str, str]
    media_root: Path | None

    def taken(self) -> Callable[[Any], Any]:
        configure_media_root(self.media_root)
        load_files(self.files)
        return pickle.loads(self.work)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class WorkerDied:
    """What stands in place of the result of a task that killed its workers."""

    how: str


class _Worker:
    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.number: int | None = None

    def end(self) -> str:
        """End it if it lives; how it ended."""
        self.connection.close()
        if self.process.pid is None:
            return "not started"
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        code = self.process.exitcode or 0
        return f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"


class Pool(Protocol):
    """What does tasks at once: worker processes of this machine, or the tasks of an engine."""

    def __enter__(self) -> Pool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def in_order(self, tasks: Iterable[Any], ahead: int | None = None) -> Iterator[tuple[Any, Any]]:
        """The result of each task, in the order of the tasks; ``WorkerDied`` for one that killed its workers."""


class WorkerPool(Generic[Task, Result]):
    """``n_workers`` processes that do ``work``. Use it as a context manager: leaving it ends them.

    Workers are forked, so that what ``work`` holds need not be written down. Where that cannot be, or where threads of
    other code run that a fork would lack (a model was loaded), they are started anew and ``work`` is pickled.

    It is not the pool that agents run in (``adapters.worker_pool.CasePool``): an agent has a time limit for each case,
    may leave processes behind, and is asked from a loop of asyncio; here a task never hangs, and results come in order.
    """

    def __init__(self, n_workers: int, work: Callable[[Task], Result]) -> None:
        self._context: Any = get_context("fork" if _can_fork() else "spawn")
        self._n_workers = n_workers
        self._work = work
        self._workers: list[_Worker] = []

    def __enter__(self) -> WorkerPool[Task, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._workers:
            self._workers.pop().end()

    def in_order(self, tasks: Iterable[Task], ahead: int | None = None) -> Iterator[tuple[Task, Result | WorkerDied]]:
        """The result of each task, in the order of the tasks.

        At most ``ahead`` tasks are begun before the first of them is done, so that results do not pile up.
        """
        ahead = ahead or 64 + 4 * self._n_workers
        source = iter(tasks)
        known: dict[int, Task] = {}
        results: dict[int, Result | WorkerDied] = {}
        again: deque[int] = deque()
        deaths: dict[int, int] = {}
        n_begun = n_yielded = 0
        ended = False

        def next_number() -> int | None:
            nonlocal n_begun, ended
            if again:
                return again.popleft()
            if ended or n_begun - n_yielded >= ahead:
                return None
            for task in source:
                known[n_begun] = task
                n_begun += 1
                return n_begun - 1
            ended = True
            return None

        while True:
            while self._has_room() and (number := next_number()) is not None:
                if not self._hand_out(self._idle_worker(), number, known[number]):
                    again.append(number)
            if n_yielded in results:
                n_yielded += 1
                yield known.pop(n_yielded - 1), results.pop(n_yielded - 1)
                continue
            busy = [worker for worker in self._workers if worker.number is not None]
            if not busy and not again and ended:
                return
            for connection in wait([worker.connection for worker in busy]) if busy else ():
                worker = next(each for each in busy if each.connection is connection)
                number = worker.number
                if number is None:
                    continue
                worker.number = None
                try:
                    is_done, result = worker.connection.recv()
                except (EOFError, OSError):
                    self._workers.remove(worker)
                    # Its pipe may be closed a moment before it has ended, as it will by itself.
                    worker.process.join(_ENDING_S)
                    how = worker.end()
                    deaths[number] = deaths.get(number, 0) + 1
                    if deaths[number] < MOST_DEATHS:
                        again.append(number)
                    else:
                        results[number] = WorkerDied(how)
                    continue
                if not is_done:
                    raise WorkFailed(result)
                results[number] = result

    def _has_room(self) -> bool:
        return sum(worker.number is not None for worker in self._workers) < self._n_workers

    def _idle_worker(self) -> _Worker:
        """A worker without a task, which is started if there is none."""
        for worker in self._workers:
            if worker.number is None:
                return worker
        return self._start()

    def _hand_out(self, worker: _Worker, number: int, task: Task) -> bool:
        try:
            worker.connection.send(task)
        except (BrokenPipeError, ConnectionResetError):
            # It died while it had nothing to do, which is not the fault of the task.
            self._workers.remove(worker)
            worker.end()
            return False
        worker.number = number
        return True

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        # A worker that kept our ends of other pipes would not let their workers see that we are gone.
        inherited = [ours, *(worker.connection for worker in self._workers)]
        arguments: tuple[Any, ...] = (theirs, self._work, inherited)
        if self._context.get_start_method() != "fork":
            arguments = (theirs, self._handed_over(), [])
        process = self._context.Process(target=_serve, args=arguments, daemon=True, name="agentunit-worker")
        worker = _Worker(process, ours)
        # Before it starts: what is on this list is ended, whenever a Ctrl-C comes.
        self._workers.append(worker)
        with _signals_wait(self._context):
            process.start()
        theirs.close()
        return worker

    def _handed_over(self) -> _HandedOver:
        try:
            return _HandedOver(pickle.dumps(self._work), loaded_files(), configured_media_root())
        except Exception as error:
            raise WorkFailed(_not_handed_over(error)) from error


def _refuse(why: str, task: Any) -> None:
    raise WorkFailed(why)


def _not_handed_over(error: Exception) -> str:
    return f"the work cannot be handed to another process: {describe_error(error)}"


_parent: int | None = None


def leave_if_orphaned() -> None:
    """End this process if it is a worker whose parent is gone: nobody would take what it makes."""
    if _parent is not None and os.getppid() != _parent:
        os._exit(1)


def _can_fork() -> bool:
    if sys.platform == "darwin" or "fork" not in get_all_start_methods():
        return False
    # Runtimes of models have threads that Python knows nothing of; a fork that needs them would wait for ever.
    tasks = "/proc/self/task"
    n_threads = len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()
    return n_threads - sum(each.name == "agentunit-progress" for each in threading.enumerate()) <= 1


def _waiting() -> set[signal.Signals]:
    return {getattr(signal, name) for name in (*_OF_THE_GROUP, "SIGTERM")}


@contextmanager
def _signals_wait(context: Any) -> Iterator[None]:
    """While a worker starts: it has the handlers of its parent until it sets its own, and must not act by them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    if context.get_start_method() == "spawn":
        from multiprocessing import resource_tracker  # not everywhere

        # Python starts this beside the first of them, and from then on signals would not wait.
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _waiting())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, given: Callable[[Any], Any] | _HandedOver, inherited: list[Connection]) -> None:
    """Do one task after the other until nobody is there any more to hand them out."""
    global _parent
    _parent = os.getppid()
    for each in inherited:
        each.close()
    # Ctrl-C and a closed terminal reach the whole group of processes; the one that started us decides what they mean.
    for name in _OF_THE_GROUP:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _waiting())
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    sys.stdout = sys.stderr
    try:
        work = given.taken() if isinstance(given, _HandedOver) else given
    except Exception as error:  # noqa: BLE001  # the border of a process
        work = partial(_refuse, _not_handed_over(error))
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = (True, work(task))
        except Exception as error:  # noqa: BLE001  # the border of a process
            answer = (False, str(error) if isinstance(error, WorkFailed) else describe_error(error))
        try:
            connection.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            return

"""The units of a job as tasks of Ray: one task a unit, on this machine or on a cluster that the user named.

There are no data sets of Ray: a task waits for nothing but a free processor, and for models where actors hold them
(``ray_models``). What a unit comes to lies in the job's folder; all that travels back is that it does.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import signal
import socket
import sys
import sysconfig
import tempfile
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType, TracebackType
from typing import Any, Generic, NamedTuple

from msgspec import Struct

import agentunit
from agentunit.addons.scale.parallel.pool import MOST_DEATHS, THREAD_VARIABLES, Result, Task, WorkerDied
from agentunit.backends.media_sources import configure_media_root, configured_media_root
from agentunit.backends.quality import QualityBackend, installed_backends, load_backend
from agentunit.engine.scoring.records import WorkFailed
from agentunit.installation import usable_processors
from agentunit.metrics.base import CompositeMetric, describe_error
from agentunit.metrics.functions import FunctionMetric

# Settings that change scores travel with the work. Keys of judges, stores and salts do not, and those of the node are
# taken away: a metric that asks no judge here must not ask one there.
_OWN_SETTINGS = "AGENTUNIT_"
_SENT_SETTINGS = (
    "AGENTUNIT_BACKEND",
    "AGENTUNIT_CLIP",
    "AGENTUNIT_LOCAL_DEVICE",
    "AGENTUNIT_LOCAL_MODEL",
    "AGENTUNIT_MAX_",
)
# Packages whose version scores depend on.
_PACKAGES = ("agentunit-local", "dp-accounting", "ecologits", "genai-prices", "onnxruntime", "spacy")
# Ray's smallest: nothing but the work itself lies in it.
_OBJECT_STORE_BYTES = 80 << 20
# Ray's errors hold whole tracebacks and logs.
_MOST_SAID = 300
_MOST_NODE_DEATHS = 5
_MOST_WAIT_S = 60.0
_MOST_CONNECTIONS = 3


class _Surroundings(Struct):
    """What work finds around it: the folder that paths begin at, settings, and the versions of packages."""

    folder: str
    media_root: str | None
    settings: dict[str, str]
    versions: dict[str, str | None]

    @classmethod
    def here(cls) -> _Surroundings:
        root = configured_media_root()
        settings = {name: value for name, value in os.environ.items() if name.startswith(_SENT_SETTINGS)}
        return cls(os.getcwd(), None if root is None else str(root), settings, _versions())

    def take(self) -> None:
        """Make them those of this process, which is a worker's."""
        for name, theirs in _versions().items():
            if theirs != self.versions.get(name):
                raise WorkFailed(f"{name} is {theirs} there and {self.versions.get(name)} here, so scores may differ")
        # What is not there is missed by name, and not taken from another folder.
        os.chdir(self.folder if os.path.isdir(self.folder) else os.sep)
        if self.folder not in sys.path:
            sys.path.append(self.folder)
        for name in [name for name in os.environ if name.startswith(_OWN_SETTINGS)]:
            del os.environ[name]
        os.environ.update(self.settings, **dict.fromkeys(THREAD_VARIABLES, "1"))
        configure_media_root(self.media_root)
        sys.stdout = sys.stderr


class RayPool(Generic[Task, Result]):
    """Does ``work`` as ``WorkerPool`` does, by tasks of Ray. ``engine`` is ``ray``, or the address of a cluster.

    ``n_workers`` tasks are under way at once; without a number, as many as there are processors. The code of
    ``metrics`` that are not installed is sent along.
    """

    def __init__(
        self, engine: str, n_workers: int | None, work: Callable[[Task], Result], metrics: Sequence[Any] = ()
    ) -> None:
        self._address = engine if "://" in engine else None
        self._n_workers = n_workers or 0
        self._work = work
        self._metrics = metrics
        self._stack = ExitStack()
        self._begin: Callable[[Task], Any]

    def __enter__(self) -> RayPool[Task, Result]:
        with ExitStack() as started:
            try:
                with _own_signals():
                    self._start(started)
            except WorkFailed:
                raise
            except Exception as error:
                said = _said(error)
                if self._address is None:
                    raise WorkFailed(f"Ray cannot be started on this machine: {said}") from error
                hint = "does it listen there, and does it ask for a token (RAY_AUTH_MODE=token, RAY_AUTH_TOKEN)?"
                raise WorkFailed(f"{self._address} cannot be used: {said}; {hint}") from error
            self._stack = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        # Ray reports how it is used unless it is told not to.
        environment = {"RAY_USAGE_STATS_ENABLED": "0"}
        if self._address is None:
            # Ray listens on loopback alone where it takes clusters for impossible. A token of our own keeps the other
            # users of this machine out, and Ray from writing one into the home folder.
            environment |= {
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN": secrets.token_hex(32),
            }
        stack.enter_context(_environment(environment))
        import ray

        quiet = {"log_to_driver": False, "logging_level": "error"}
        if self._address is None:
            self._n_workers = self._n_workers or usable_processors()
            files = tempfile.mkdtemp(prefix="agentunit-ray-")
            stack.callback(shutil.rmtree, files, ignore_errors=True)
            stack.callback(ray.shutdown)
            ray.init(
                "local",
                num_cpus=self._n_workers,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _temp_dir=files,
                **quiet,
            )
        else:
            stack.callback(ray.shutdown)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what fails is raised, too
                _connect(ray, self._address, quiet)
            self._n_workers = self._n_workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        surroundings = _Surroundings.here()
        names = held_backends(self._metrics)
        actors = start_models(names, surroundings.take)
        for each in actors:
            stack.callback(ray.kill, each)
        held = _Held([ray.put(_pickled(self._work, self._metrics))], names, actors)
        do = ray.remote(num_cpus=1, max_retries=0)(_do)
        self._begin = partial(do.remote, secrets.token_hex(8), surroundings, held)

    def in_order(self, tasks: Iterable[Task], ahead: int | None = None) -> Iterator[tuple[Task, Result | WorkerDied]]:
        """The result of each task, in the order of the tasks; at most ``ahead`` are begun before the first is done."""
        import ray
        from ray.exceptions import NodeDiedError, OutOfMemoryError, WorkerCrashedError

        ahead = ahead or 64 + 4 * self._n_workers
        source = enumerate(tasks)
        known: dict[int, Task] = {}
        results: dict[int, Result | WorkerDied] = {}
        running: dict[Any, int] = {}
        again: deque[int] = deque()
        deaths: Counter[int] = Counter()
        node_deaths: Counter[int] = Counter()
        n_yielded = 0

        def next_number() -> int | None:
            if again:
                return again.popleft()
            for number, task in source if len(known) < ahead else ():
                known[number] = task
                return number
            return None

        while True:
            while len(running) < self._n_workers and (number := next_number()) is not None:
                running[self._begin(known[number])] = number
            if n_yielded in results:
                n_yielded += 1
                yield known.pop(n_yielded - 1), results.pop(n_yielded - 1)
                continue
            if not running:
                return
            for reference in ray.wait(list(running))[0]:
                number = running.pop(reference)
                try:
                    is_done, result = ray.get(reference)
                except (WorkerCrashedError, OutOfMemoryError) as error:
                    deaths[number] += 1
                    if deaths[number] < MOST_DEATHS:
                        again.append(number)
                    else:
                        self._refuse_dead_ray()
                        results[number] = WorkerDied(f"{type(error).__name__} of Ray")
                    continue
                except NodeDiedError as error:
                    # Not the fault of the task, as far as one can tell; so it is never given up as that of a worker is.
                    node_deaths[number] += 1
                    if node_deaths[number] >= _MOST_NODE_DEATHS:
                        raise WorkFailed(f"Ray: {_said(error)}") from error
                    again.append(number)
                    continue
                except Exception as error:
                    raise WorkFailed(f"Ray: {_said(error)}") from error
                if not is_done:
                    raise WorkFailed(result)
                results[number] = result

    def _refuse_dead_ray(self) -> None:
        """Raise if nothing can be done any more: then it is not the task that killed its workers."""
        import ray

        try:
            ray.get(ray.remote(num_cpus=0, max_retries=0)(_versions).remote(), timeout=_MOST_WAIT_S)
        except Exception as error:
            raise WorkFailed(f"Ray: {_said(error)}") from error


def _connect(ray: ModuleType, address: str, options: dict[str, Any]) -> None:
    """Become a client of a cluster. The process that is to serve it may die as Ray starts it (Ray's issue 63202)."""
    for attempt in range(_MOST_CONNECTIONS):
        try:
            ray.init(address, **options)
            return
        except ConnectionAbortedError as error:
            if attempt == _MOST_CONNECTIONS - 1 or "Ray client server failed" not in str(error):
                raise
            ray.shutdown()


_latest: tuple[str, Callable[[Any], Any]] | None = None


class _Held(NamedTuple):
    """What Ray holds for all tasks: the work, and the actors with the models of some backends."""

    work: list[Any]
    backends: list[str]
    actors: list[Any]


def _do(token: str, surroundings: _Surroundings, held: _Held, task: Any) -> tuple[bool, Any]:
    """In a worker: do one task. The work is unpacked once a process, so that a model is loaded once."""
    global _latest
    try:
        if _latest is None or _latest[0] != token:
            import ray
            from ray import cloudpickle

            surroundings.take()
            ask_models(held.backends, held.actors)
            _latest = (token, cloudpickle.loads(ray.get(held.work[0])))
        return True, _latest[1](task)
    except Exception as error:  # noqa: BLE001  # the border of a process
        said = str(error) if isinstance(error, WorkFailed) else describe_error(error)
        return False, f"on {socket.gethostname()}: {said}"


def _said(error: Exception) -> str:
    return " ".join(describe_error(error).split())[:_MOST_SAID]


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"AgentUnit": agentunit.__version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _pickled(work: Callable[[Any], Any], metrics: Sequence[Any]) -> bytes:
    """The work, with the code of metrics that no package holds."""
    from ray import cloudpickle

    with ExitStack() as stack:
        for module in _modules_sent(metrics):
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return bytes(cloudpickle.dumps(work))
        except Exception as error:
            raise WorkFailed(f"the work cannot be handed to another process: {describe_error(error)}") from error


def _modules_sent(metrics: Sequence[Any]) -> list[ModuleType]:
    installed = tuple(sysconfig.get_path(kind) + os.sep for kind in ("purelib", "platlib", "stdlib"))
    found = {}
    for metric in metrics:
        source = metric.function if isinstance(metric, FunctionMetric) else type(metric)
        module = sys.modules.get(getattr(source, "__module__", None) or "")
        path = None if module is None else getattr(module, "__file__", None)
        if module is None or path is None or module.__name__.split(".")[0].startswith("agentunit"):
            continue
        if not os.path.abspath(path).startswith(installed):
            found[module.__name__] = module
    return list(found.values())


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables that hold while Ray is there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray sets what a polite request to end does; here it stays what it was."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if is_main else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Models on the GPUs of a Ray cluster: one actor a GPU holds them, and tasks send it what must be read.
#
# Actors take no processor, and wait for nobody: tasks, which read and wait for actors, can always go on, however many
# there are of either. A model that dies is opened again by Ray and asked again: its answer depends on nothing else.


_DEVICE_VARIABLE, _CLUSTER = "AGENTUNIT_LOCAL_DEVICE", "cluster"
_AT_ONCE = 4
_MOST_RESTARTS = 3
_MOST_START_S = 300.0


def held_backends(metrics: Sequence[Any]) -> list[str]:
    """The backends of metrics whose models another process can hold, by name."""
    parts = [part for metric in metrics for part in _parts(metric)]
    names = {getattr(part, "current_backend", None) for part in parts} & set(installed_backends())
    return sorted(name for name in names if name is not None and _can_hold(load_backend(name)))


def start_models(names: Sequence[str], take_surroundings: Callable[[], None]) -> list[Any]:
    """An actor for each GPU that is free, with the models of these backends; none where there is no GPU."""
    import ray

    if not names:
        return []
    n_gpus = int(ray.cluster_resources().get("GPU", 0))
    if not n_gpus and os.environ.get(_DEVICE_VARIABLE) == _CLUSTER:
        raise WorkFailed(
            f"{_DEVICE_VARIABLE}={_CLUSTER} needs a cluster of Ray with GPUs; this one has none; "
            "the backend 'local' runs on the processors"
        )
    if not n_gpus:
        return []
    n_free = int(ray.available_resources().get("GPU", 0))
    options = {"num_cpus": 0, "num_gpus": 1, "max_restarts": _MOST_RESTARTS, "max_task_retries": _MOST_RESTARTS}
    actor = ray.remote(max_concurrency=_AT_ONCE, **options)(HeldModels)
    actors = [actor.remote(list(names), take_surroundings) for _ in range(max(1, n_free))]
    try:
        ray.get([each.ready.remote() for each in actors], timeout=_MOST_START_S)
    except ray.exceptions.GetTimeoutError:
        raise WorkFailed(
            f"Ray: none of the {n_gpus} GPUs of the cluster was free within {_MOST_START_S:.0f} s; "
            "end what holds them, or score with the backend 'local', which needs none"
        ) from None
    return actors


def ask_models(names: Sequence[str], actors: Sequence[Any]) -> None:
    """In a task: from now on, backends ask the models of these actors, one after the other."""
    turns = itertools.cycle(actors)
    for name in names if actors else ():
        backend: Any = load_backend(name)
        backend.ask_elsewhere(partial(_ask, name, turns))


class HeldModels:
    """In an actor: the models of backends, opened when they are first asked."""

    def __init__(self, names: Sequence[str], take_surroundings: Callable[[], None]) -> None:
        take_surroundings()
        backends: dict[str, Any] = {name: load_backend(name) for name in names}
        for name, backend in backends.items():
            if isinstance(backend, str):
                raise WorkFailed(f"backend {name!r} is not there: {backend}")
        self._answers = {name: backend.hold_models() for name, backend in backends.items()}

    def ready(self) -> bool:
        """That it has its GPU."""
        return True

    def answer(self, name: str, request: Any) -> Any:
        """What a backend's models say."""
        return self._answers[name](request)


def _ask(name: str, turns: Any, request: Any) -> Callable[[], Any]:
    import ray

    reference = next(turns).answer.remote(name, request)
    return lambda: ray.get(reference)


def _parts(metric: Any) -> list[Any]:
    return [one for part in metric.metrics for one in _parts(part)] if isinstance(metric, CompositeMetric) else [metric]


def _can_hold(backend: QualityBackend | str) -> bool:
    return hasattr(backend, "hold_models") and hasattr(backend, "ask_elsewhere")

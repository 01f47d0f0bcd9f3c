"""Models on the GPUs of a Ray cluster: one actor a GPU holds them, and tasks send it what must be read.

Actors take no processor, and wait for nobody: tasks, which read and wait for actors, can always go on, however many
there are of either. A model that dies is opened again by Ray and asked again: what it answers depends on nothing else.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agentunit.backends.quality import QualityBackend, installed_backends, load_backend
from agentunit.engine.scoring.records import WorkFailed
from agentunit.metrics.base import CompositeMetric

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

"""Records that one process reads and several score: for what is in memory, or can only be read from its start."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from agentunit.addons.scale.parallel.pool import Pool, WorkerDied, WorkerPool
from agentunit.core.results import Score
from agentunit.engine.scoring.records import Run
from agentunit.metrics.inputs import Item

Scores = dict[str, Score]
T = TypeVar("T")

# Enough that a message costs little a record, few enough that a slow model keeps all workers busy to the end.
RECORDS_A_TASK = 32


def score_items(
    items: Iterable[Item], metrics: Sequence[Any], *, jobs: int | None, batch_size: int, engine: str | None = None
) -> Iterator[tuple[Item, Scores | WorkerDied]]:
    """Each item with its scores, in order. Items that cannot be sent to another process are scored here.

    They are scored by ``jobs`` processes, or that many tasks of an ``engine``, by default one per processor. An item
    that kills the processes that score it has no scores; those beside it have.
    """
    work = partial(score_pickled, metrics, batch_size)
    wanted = [0, *(int(getattr(metric, "batch_items", 0)) for metric in metrics)]
    waiting: list[list[Item]] = []

    def tasks() -> Iterator[bytes | None]:
        for some in batches(items, max(min(batch_size, RECORDS_A_TASK), *wanted)):
            waiting.append(some)
            yield _pickled([(item.case, item.trace, item.outcome) for item in some])

    with pool_of(engine, jobs, work, metrics) as pool:
        for task, result in pool.in_order(tasks(), ahead=4 * jobs if jobs else None):
            some = waiting.pop(0)
            if isinstance(result, WorkerDied):
                yield from zip(some, _one_by_one(work, some, result), strict=True)
            elif task is None or result is None:
                yield from zip(some, score_parts(metrics, batch_size, some), strict=True)
            else:
                yield from zip(some, pickle.loads(result), strict=True)


def pool_of(engine: str | None, jobs: int | None, work: Callable[[Any], Any], metrics: Sequence[Any]) -> Pool:
    """What does work at once: processes of this machine, or tasks of an engine."""
    if engine is None:
        return WorkerPool(jobs or 1, work)
    # Imported here: without an engine nobody needs it.
    from agentunit.addons.scale.ray_pool import RayPool

    return RayPool(engine, jobs, work, metrics)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Some items at a time.

    >>> list(batches("abc", 2))
    [['a', 'b'], ['c']]
    """
    source = iter(items)
    while some := list(islice(source, size)):
        yield some


def score_pickled(metrics: Sequence[Any], batch_size: int, parts: bytes | None) -> bytes | None:
    """In a worker: the scores of cases, traces and outcomes; ``None`` when they cannot be sent."""
    return None if parts is None else _pickled(score_parts(metrics, batch_size, pickle.loads(parts)))


def score_parts(metrics: Sequence[Any], batch_size: int, parts: Sequence[Any]) -> list[Scores]:
    """The scores of items, or of their cases, traces and outcomes."""
    records = [(each.case, each.trace, each.outcome) if isinstance(each, Item) else each for each in parts]
    return [case.scores for case in Run(records, metrics, batch_size=batch_size, aggregated=False)]


def _one_by_one(work: Any, items: Sequence[Item], died: WorkerDied) -> Iterator[Scores | WorkerDied]:
    with WorkerPool(1, work) as alone:
        tasks = [_pickled([(item.case, item.trace, item.outcome)]) for item in items]
        for _, result in alone.in_order(tasks, ahead=1):
            yield result if isinstance(result, WorkerDied) else pickle.loads(result)[0] if result else died


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001  # a user's own object may fail in any way when it is written down
        return None

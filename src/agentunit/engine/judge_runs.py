"""When a run begins, for a judge: its totals, its time and what it may spend count from there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agentunit.backends.quality import load_backend
from agentunit.engine.judging import judged_metrics

_MOST_CASES = 512
_FEWEST_CASES = 16
_CASES_OF_A_BATCH = 10_000
_TURNS = 8
_lock = threading.Lock()
_n_open = 0


@contextmanager
def judge_run(metrics: Sequence[Any] | None = None, *, plays_users: bool = False) -> Iterator[None]:
    """Within it, everything asked of a judge is one run. One within another, or beside it, is part of that.

    With ``metrics``, only if one of them asks a judge, or a judge ``plays_users``; without, whatever is scored within.
    """
    global _n_open
    if metrics is not None and not judged_metrics(metrics) and not plays_users:
        yield
        return
    with _lock:
        if _n_open == 0 and metrics is not None:
            _begin()
        _n_open += 1
    try:
        yield
    finally:
        with _lock:
            _n_open -= 1


def cases_under_way(metrics: Sequence[Any]) -> int:
    """How many cases may wait for an answer together.

    Several times what a judge is asked at once, so that a slow answer at the front of the row does not leave it idle;
    not more than that, because the first case would be done only when all of them have had their turn.
    """
    settings = [getattr(each, "settings", None) for each in (_clients() if judged_metrics(metrics) else ())]
    if any(getattr(each, "batch", False) for each in settings):
        return _CASES_OF_A_BATCH
    at_once = max((getattr(each, "concurrency", 0) for each in settings), default=0) or None
    return min(_MOST_CASES, max(_FEWEST_CASES, _TURNS * at_once)) if isinstance(at_once, int) else _MOST_CASES


def judge_problems(metrics: Sequence[Any]) -> list[str]:
    """Sentences about the judge's run as a whole, such as a cache that cannot be written."""
    usages = [getattr(each, "usage", None) for each in (_clients() if judged_metrics(metrics) else ())]
    return list(dict.fromkeys(sentence for usage in usages for sentence in getattr(usage, "problems", ())))


def _begin() -> None:
    for client in _clients():
        begin = getattr(client, "begin_run", None)
        if callable(begin):
            begin()


def _clients() -> list[Any]:
    """The clients of all judges, which RAGAS uses too; none when they cannot be had: that is told when one is asked."""
    try:
        backend = load_backend("judge")
        return list(getattr(backend, "clients", None) or [backend.client])  # type: ignore[union-attr]
    except (AttributeError, KeyError, RuntimeError, ValueError):
        return []

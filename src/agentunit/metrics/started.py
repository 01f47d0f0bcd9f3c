"""A batch that a service is answering while the engine goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any

from agentunit.core.results import MetricResult

# Waiting without an end cannot be interrupted on every system.
_TICK_S = 0.5


class StartedBatch:
    """What ``start_batch`` of a metric returns: the service's answers to come, and how they become results.

    >>> answers = Future()
    >>> batch = StartedBatch(answers, lambda values: [MetricResult("mine", value) for value in values])
    >>> batch.done()
    False
    >>> answers.set_result([0.5])
    >>> batch.result()
    [MetricResult(name='mine', value=0.5, detail={})]
    """

    def __init__(self, answers: Future[Any], finish: Callable[[Any], Sequence[MetricResult]]) -> None:
        self._answers = answers
        self._finish = finish

    def done(self) -> bool:
        """Whether the service has answered."""
        return self._answers.done()

    def result(self) -> Sequence[MetricResult]:
        """Wait for the answers; what the service raised is raised here."""
        # Asked for only when it is there: a timeout of the service's own is then told from one of waiting.
        while not self._answers.done():
            wait([self._answers], timeout=_TICK_S)
        return self._finish(self._answers.result())

    def cancel(self) -> None:
        """Nobody waits any more: what has not been sent yet need not be."""
        self._answers.cancel()

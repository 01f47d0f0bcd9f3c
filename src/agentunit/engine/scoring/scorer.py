"""One metric as the engine calls it: case by case, in batches, or in batches of which several are under way."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from agentunit.core.results import INFORMATIONAL_NOTE, MetricResult, Score, Status
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.formulas.statistics import LARGEST_MAGNITUDE
from agentunit.metrics.base import (
    CompositeMetric,
    ItemMetric,
    describe,
    describe_error,
    evaluate_item,
    fresh,
    unscored,
    why_not_asked,
    without_content,
)
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.sentences import LONGEST, sentence

now = time.perf_counter


class BatchUnderWay(Protocol):
    """A batch under way: what a metric's ``start_batch`` returns."""

    def result(self) -> Sequence[MetricResult | Exception]:
        """Wait for the results, one for each item; an exception is the failure of its item."""
        ...

    def done(self) -> bool:
        """Whether ``result`` would return at once."""
        ...

    def cancel(self) -> Any:
        """Nobody will ask for the result any more."""
        ...


class Scorer:
    """One metric over a run: in batches where it gains from them, in order where it keeps state."""

    def __init__(self, metric: Any) -> None:
        metric = fresh(metric)
        self.name: str = metric.name
        self._metric = metric
        self._info = describe(metric)
        self._informational, self._version = self._info.informational, self._info.version
        self.aggregate = MetricAggregate(self.name, self._info)
        self._composite = isinstance(metric, CompositeMetric)
        self._declares_why = "why" in self._info.detail_keys
        # A result of theirs for an input that cannot be used is made here: one call less a score.
        self._is_own = isinstance(metric, ItemMetric) and type(metric).measure is ItemMetric.measure
        self._evaluate = metric.score_item if self._is_own else _item_evaluator(metric)
        self._evaluate_batch = _batch_method(metric, "evaluate_batch", "gains_from_batches")
        self._start_batch = _batch_method(metric, "start_batch", "starts_batches")
        self._ready: list[Score] | None = None

    @property
    def is_stateful(self) -> bool:
        """Whether it counts from case to case."""
        return self._info.stateful

    @property
    def starts(self) -> bool:
        """Whether batches can be started and left to run: a service answers while the next cases are read."""
        return self._start_batch is not None

    @property
    def batched(self) -> bool:
        """Whether it wants many cases at once."""
        return self.starts or self._evaluate_batch is not None

    @property
    def batch_items(self) -> int:
        """How many cases it wants at once, at least; 0 where any number is as good."""
        return 0 if self._evaluate_batch is None else int(getattr(self._metric, "batch_items", 0))

    def start(self, items: Sequence[Item]) -> BatchUnderWay | Exception | None:
        """Set a batch going, if this metric can; what it raises is kept for the batch's scores."""
        items = [item for item in items if self._why_not_asked(item) is None]
        if self._start_batch is None or not items:
            return None
        try:
            started: BatchUnderWay = self._start_batch(items)
            return started
        except Exception as error:  # noqa: BLE001  # the border of a fault: it becomes a record
            return error

    def begin(self, items: Sequence[Item], started: BatchUnderWay | Exception | None) -> None:
        """Have the scores of a batch ready, if this metric works in batches.

        A batch that fails is left to be scored one by one. One that was started asked a service: asking again would
        be paid for twice, so its failure is the failure of each of its cases.
        """
        self._ready = None
        blank = [self._why_not_asked(item) for item in items]
        kept = [item for item, why in zip(items, blank, strict=True) if why is None]
        made = self._made(kept, started) if kept else []
        if made is not None:
            scores = iter(made)
            self._ready = [next(scores) if why is None else self._without_content(why) for why in blank]

    def _made(self, items: Sequence[Item], started: BatchUnderWay | Exception | None) -> list[Score] | None:
        start = now()
        if started is not None:
            return self._of_started(items, started, start)
        if self._evaluate_batch is None:
            return None
        try:
            results = _of_length(self._evaluate_batch(items), items, "evaluate_batch")
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException:  # noqa: BLE001  # one bad item must not take its batch along
            return None
        elapsed = (now() - start) / len(items)
        return [self._finish(result, elapsed) for result in results]

    def _of_started(self, items: Sequence[Item], started: BatchUnderWay | Exception, start: float) -> list[Score]:
        try:
            if isinstance(started, Exception):
                raise started
            results = _of_length(started.result(), items, "start_batch")
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  # the border of a fault: it becomes a record
            elapsed = (now() - start) / len(items)
            return [self.failed(error, elapsed) for _ in items]
        # Batches overlap, so what one took is what the run had to wait for it.
        elapsed = (now() - start) / len(items)
        return [
            self.failed(result, elapsed) if isinstance(result, Exception) else self._finish(result, elapsed)
            for result in results
        ]

    def score(self, item: Item, position: int) -> Score:
        """The score of one item, whatever the metric does."""
        if self._ready is not None:
            return self._ready[position]
        if not item.is_open and (why := self._why_not_asked(item)) is not None:
            return self._without_content(why)
        start = now()
        try:
            result = self._evaluate(item)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except InputProblem as problem:
            if not self._is_own:
                return self.failed(problem, now() - start)
            result = self._metric.unscored(str(problem), error=problem)
        except BaseException as error:  # noqa: BLE001  # the border of a fault: it becomes a record
            return self.failed(error, now() - start)
        elapsed = now() - start
        # The usual result, checked at a glance; ``_finish`` looks closely at any other.
        if result.__class__ is MetricResult and result.value.__class__ is float and not self._composite:
            detail = result.detail
            backend = detail.get("backend") if detail.__class__ is dict else None
            if backend.__class__ is str and -LARGEST_MAGNITUDE < result.value < LARGEST_MAGNITUDE:
                status: Status = "ok"
                if backend in self._informational or INFORMATIONAL_NOTE in detail:
                    status = "informational"
                return Score(result, status, backend, self._version, elapsed, self._why(detail))
        return self._finish(result, elapsed)

    def _why_not_asked(self, item: Item) -> str | None:
        return why_not_asked(self._metric, self._info, item)

    def _without_content(self, why: str) -> Score:
        return self._finish(without_content(self._metric, why), 0.0)

    def failed(self, error: BaseException, elapsed: float = 0.0) -> Score:
        """The score of a case on which the metric failed."""
        result = failure(self.name, error)
        backend = getattr(self._metric, "current_backend", self._info.backend)
        result.detail = {**dict.fromkeys(self._info.detail_keys), "backend": backend, **result.detail}
        return Score(result, "error", backend, self._info.version, elapsed)

    def _finish(self, result: Any, elapsed: float) -> Score:
        info = self._info
        problem = _problem_with(result)
        if problem is not None:
            return self.failed(TypeError(problem), elapsed)
        detail = result.detail
        backend = detail.get("backend")
        if not isinstance(backend, str):
            backend = info.backend
        if result.value is None:
            failed = "error" in detail and not self._composite
            return Score(result, "error" if failed else "not_applicable", backend, info.version, elapsed)
        result.value = float(result.value)
        informational = backend in info.informational or INFORMATIONAL_NOTE in detail
        why = self._why(detail)
        if self._composite:
            backend, informational = self._metric.provenance(result)
            result = MetricResult(result.name, result.value, detail)
            why = None
        return Score(result, "informational" if informational else "ok", backend, info.version, elapsed, why)

    def _why(self, detail: dict[str, Any]) -> str | None:
        """The sentence that a metric hands over in its detail. It stays there only where it is declared."""
        why = detail.get("why") if self._declares_why else detail.pop("why", None)
        if not isinstance(why, str) or not why:
            return None
        # Our own metrics have cut theirs already.
        return why if len(why) <= LONGEST and why.isprintable() else sentence(why)


def failure(name: str, error: BaseException) -> MetricResult:
    """What an exception in a metric becomes: no value, and its type, message and place."""
    frames = traceback.extract_tb(error.__traceback__)
    result = unscored(name, describe_error(error), error=error)
    if frames:
        last = frames[-1]
        result.detail["error"]["place"] = f"{last.filename}:{last.lineno} in {last.name}"
        result.detail["reason"] += f" ({os.path.basename(last.filename)}:{last.lineno})"
    return result


def _of_length(results: Any, items: Sequence[Item], maker: str) -> list[Any]:
    made = list(results)
    if len(made) != len(items):
        raise ValueError(f"{maker} returned {len(made)} results for {len(items)} items")
    return made


def _item_evaluator(metric: Any) -> Callable[[Item], Any]:
    return metric.measure if isinstance(metric, ItemMetric) else partial(evaluate_item, metric)


def _batch_method(metric: Any, name: str, wanted: str) -> Callable[[Sequence[Item]], Any] | None:
    """A method of a metric that takes a batch, where it has one and does not say that it is not ``wanted``."""
    method = getattr(metric, name, None)
    # A stateful metric must meet each case exactly once, in order: a failed batch could not be repeated.
    if not callable(method) or describe(metric).stateful or not getattr(metric, wanted, True):
        return None
    return method  # type: ignore[no-any-return]


def _problem_with(result: Any) -> str | None:
    if not isinstance(result, MetricResult):
        return f"a metric must return a MetricResult; received {_shown(result)}"
    if not isinstance(result.detail, dict):
        return f"a metric's detail must be a dict; received {_shown(result.detail)}"
    value = result.value
    if value is None or (value.__class__ is float and -LARGEST_MAGNITUDE < value < LARGEST_MAGNITUDE):
        return None
    try:
        # The comparison is false for NaN and infinities. Text is not a number, though float() would read it.
        if not isinstance(value, (str, bytes)) and -LARGEST_MAGNITUDE < float(value) < LARGEST_MAGNITUDE:
            return None
    except Exception:  # noqa: BLE001  # whatever a strange number raises, it is no number to us
        return f"a metric's value must be a finite number or None; received {_shown(value)}"
    return f"a metric's value must be a finite number or None; received {_shown(value)}"


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001  # an object that cannot even be shown is named by its type
        return f"an object of type {type(value).__name__}"

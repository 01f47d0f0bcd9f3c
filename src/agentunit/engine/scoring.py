"""``agentunit.score``: any iterable of records through any metrics, streamed."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from agentunit.core.codec import RecordError, as_record
from agentunit.core.results import CaseScores, InputError, MetricResult, RunSummary, Score
from agentunit.engine.aggregate import MetricAggregate
from agentunit.formulas.statistics import LARGEST_MAGNITUDE
from agentunit.metrics.base import CompositeMetric, ItemMetric, MetricInfo, describe, fresh, spoken_error, unscored
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import resolve_metrics

_INPUT_ERRORS_KEPT = 1000
_now = time.perf_counter


def score(
    records: Iterable[Any],
    metrics: Iterable[Any] | Any | None = None,
    *,
    batch_size: int = 64,
    strict: bool = False,
) -> Run:
    """Score records with metrics, as a stream.

    ``records`` is any iterable of records, dicts in the shape of records, or ``(case, trace, outcome)``. ``metrics``
    are names, classes or instances (default: the standard set). Nothing is read before the run is iterated or
    summarised. A metric that raises gives that case a score of status ``error``; the run goes on. A record that
    cannot be read is collected in ``Run.input_errors``; with ``strict`` it raises ``RecordError``. Metrics that work
    in batches see up to ``batch_size`` cases at once.

    >>> run = score([{"case": {"id": "q1", "expected_output": "4"}, "outcome": "4"}], ["answer_correctness"])
    >>> [(case.case_id, case.scores["answer_correctness"].value) for case in run]
    [('q1', 1.0)]
    >>> run.summary().metrics[0].mean
    1.0
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"score: batch_size must be a whole number of at least 1; received {batch_size!r}")
    if isinstance(records, (str, bytes, dict)) or not isinstance(records, Iterable):
        raise TypeError(
            f"score: records must be an iterable of records; received {type(records).__name__}"
            + (" (agentunit.read_records opens a file)" if isinstance(records, str) else "")
        )
    return Run(records, resolve_metrics(metrics), batch_size=batch_size, strict=strict)


class Run:
    """A run of metrics over records. Iterating yields each case's scores as they are made, once."""

    def __init__(self, records: Iterable[Any], metrics: Sequence[Any], *, batch_size: int, strict: bool) -> None:
        self.metrics = list(metrics)
        self.input_errors: list[InputError] = []
        self.n_input_errors = 0
        self.n_cases = 0
        self._n_read = 0
        self._batch_size = batch_size
        self._strict = strict
        self._scorers = [_Scorer(metric) for metric in metrics]
        self._elapsed_s = 0.0
        self._stream = self._score_all(iter(records))

    def __iter__(self) -> Iterator[CaseScores]:
        return self._stream

    @property
    def n_score_errors(self) -> int:
        """How many scores so far are errors."""
        return sum(scorer.aggregate.n_errors for scorer in self._scorers)

    def summary(self) -> RunSummary:
        """The aggregate over all cases; scores those that have not been iterated yet."""
        for _ in self._stream:
            pass
        return RunSummary(
            n_cases=self.n_cases,
            metrics=[row for scorer in self._scorers for row in scorer.aggregate.rows()],
            unscored=[entry for scorer in self._scorers for entry in scorer.aggregate.unscored()],
            n_input_errors=self.n_input_errors,
            input_errors=list(self.input_errors),
            n_score_errors=self.n_score_errors,
            elapsed_s=self._elapsed_s,
        )

    def _score_all(self, records: Iterator[Any]) -> Iterator[CaseScores]:
        start = _now()
        # Without a metric that gains from batches, each case is done before the next is read: scores come at once,
        # and what a case needs in memory is still warm.
        batched = [scorer for scorer in self._scorers if scorer.batched]
        size = self._batch_size if batched else 1
        scorers = [(scorer.name, scorer.score, scorer.aggregate.add) for scorer in self._scorers]
        while chunk := list(islice(records, size)):
            items, refused = self._items(chunk)
            for scorer in batched:
                scorer.begin([item for _, item in items])
            for position, (case_id, item) in enumerate(items):
                case_id = case_id or f"case-{self.n_cases + 1}"
                scores = {}
                for name, score_item, add in scorers:
                    each = scores[name] = score_item(item, position)
                    add(case_id, each)
                index = self.n_cases
                self.n_cases += 1
                self._elapsed_s = _now() - start
                yield CaseScores(index, case_id, scores)
            if refused is not None:
                raise refused

    def _items(self, chunk: Sequence[Any]) -> tuple[list[tuple[str, Item]], RecordError | None]:
        """What can be read of a chunk, each with its case id; and, when strict, the first thing that cannot."""
        items: list[tuple[str, Item]] = []
        for given in chunk:
            self._n_read += 1
            try:
                items.append(_read(given))
            except RecordError as error:
                self.n_input_errors += 1
                if len(self.input_errors) < _INPUT_ERRORS_KEPT:
                    place = given if isinstance(given, InputError) else InputError("records", self._n_read, str(error))
                    self.input_errors.append(place)
                if self._strict:
                    return items, error
        return items, None


def _read(given: Any) -> tuple[str, Item]:
    if isinstance(given, InputError):
        raise RecordError(str(given))
    try:
        record = as_record(given)
        item = Item(record.case, record.trace, record.outcome)
        return str(getattr(item.case, "id", None) or ""), item
    except RecordError:
        raise
    except Exception as error:  # a user's own object may fail in any way when it is looked at
        raise RecordError(f"the record cannot be looked at: {spoken_error(error)}") from error


class _Scorer:
    """One metric as the engine calls it: in batches where it gains from them, in order where it keeps state."""

    def __init__(self, metric: Any) -> None:
        metric = fresh(metric)
        self.name: str = metric.name
        self._metric = metric
        self._info = describe(metric)
        self.aggregate = MetricAggregate(self.name, self._info)
        self._composite = isinstance(metric, CompositeMetric)
        self._evaluate = _item_evaluator(metric)
        self._evaluate_batch = _batch_evaluator(metric, self._info)
        self.batched = self._evaluate_batch is not None
        self._ready: list[Score] | None = None

    def begin(self, items: Sequence[Item]) -> None:
        """Score a batch ahead, if this metric works in batches; a batch that fails is left to be scored one by one."""
        self._ready = None
        if self._evaluate_batch is None or not items:
            return
        start = _now()
        try:
            results = list(self._evaluate_batch(items))
            if len(results) != len(items):
                raise ValueError(f"evaluate_batch returned {len(results)} results for {len(items)} items")
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException:  # noqa: BLE001  # one bad item must not take its batch along
            return
        elapsed = (_now() - start) / len(items)
        self._ready = [self._finish(result, elapsed) for result in results]

    def score(self, item: Item, position: int) -> Score:
        """The score of one item, whatever the metric does."""
        if self._ready is not None:
            return self._ready[position]
        start = _now()
        try:
            result = self._evaluate(item)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  # the border of a fault: it becomes a record
            return self._failed(error, _now() - start)
        return self._finish(result, _now() - start)

    def _failed(self, error: BaseException, elapsed: float) -> Score:
        result = failure(self.name, error)
        backend = getattr(self._metric, "current_backend", self._info.backend)
        result.detail = {**dict.fromkeys(self._info.detail_keys), "backend": backend, **result.detail}
        return Score(result, "error", backend, self._info.version, elapsed)

    def _finish(self, result: Any, elapsed: float) -> Score:
        problem = _problem_with(result)
        if problem is not None:
            return self._failed(TypeError(problem), elapsed)
        info = self._info
        detail = result.detail
        backend = detail.get("backend")
        if not isinstance(backend, str):
            backend = info.backend
        if result.value is None:
            failed = "error" in detail and not self._composite
            return Score(result, "error" if failed else "not_applicable", backend, info.version, elapsed)
        result.value = float(result.value)
        informational = backend in info.informational
        if self._composite:
            backend, informational = self._metric.provenance(result)
            result = MetricResult(result.name, result.value, detail)
        return Score(result, "informational" if informational else "ok", backend, info.version, elapsed)


def failure(name: str, error: BaseException) -> MetricResult:
    """What an exception in a metric becomes: no value, and its type, message and place."""
    frames = traceback.extract_tb(error.__traceback__)
    result = unscored(name, spoken_error(error), error=error)
    if frames:
        last = frames[-1]
        result.detail["error"]["place"] = f"{last.filename}:{last.lineno} in {last.name}"
        result.detail["reason"] += f" ({os.path.basename(last.filename)}:{last.lineno})"
    return result


def _item_evaluator(metric: Any) -> Callable[[Item], Any]:
    if isinstance(metric, ItemMetric):
        return metric.measure
    evaluate = metric.evaluate
    return lambda item: evaluate(item.case, item.trace, item.outcome)


def _batch_evaluator(metric: Any, info: MetricInfo) -> Callable[[Sequence[Item]], Any] | None:
    batch = getattr(metric, "evaluate_batch", None)
    # A stateful metric must meet each case exactly once, in order: a failed batch could not be repeated.
    if not callable(batch) or info.stateful or not getattr(metric, "gains_from_batches", True):
        return None
    return batch  # type: ignore[no-any-return]


def _problem_with(result: Any) -> str | None:
    if not isinstance(result, MetricResult):
        return f"a metric must return a MetricResult; received {_shown(result)}"
    if not isinstance(result.detail, dict):
        return f"a metric's detail must be a dict; received {_shown(result.detail)}"
    value = result.value
    if value is None or (value.__class__ is float and -LARGEST_MAGNITUDE < value < LARGEST_MAGNITUDE):
        return None
    try:
        # The comparison is false for NaN and infinities. Text is no number, though float() would read it.
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

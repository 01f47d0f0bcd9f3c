"""``agentunit.score``: any iterable of records through any metrics, streamed."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import GEN_CLOSED, getgeneratorstate, isgenerator
from itertools import islice, repeat
from typing import Any, Literal

from agentunit.core.codec import RecordError, as_record
from agentunit.core.conversation import user_failure
from agentunit.core.records import LooseRecord, Record
from agentunit.core.results import CaseScores, InputError, RunSummary, Score
from agentunit.doors import part
from agentunit.engine.deciding.run_findings import CaseTally
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.engine.scoring.judging import cases_under_way, judge_problems, judge_run, judged_metrics, total_spend
from agentunit.engine.scoring.score_rows import ScoreRows, TableRow, case_rows
from agentunit.engine.scoring.scorer import BatchUnderWay, Scorer, now
from agentunit.installation import engine_problem, usable_processors
from agentunit.metrics.base import MetricInfo, describe, describe_error
from agentunit.metrics.functions import note_checks
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import resolve_metrics
from agentunit.public import publish
from agentunit.traces.native import misspelled_fields

_INPUT_ERRORS_KEPT = 1000
_SLIPS_TOLD = 20


class WorkFailed(RuntimeError):
    """A task raised: not its data, which every task takes care of, but its surroundings, such as a full disk."""


def score(
    records: Iterable[Any],
    metrics: Iterable[Any] | Any | None = None,
    *,
    batch_size: int = 64,
    strict: bool = False,
    jobs: int | Literal["auto"] | None = None,
    engine: str | None = None,
) -> Run:
    """Score records with metrics, as a stream.

    ``records`` is any iterable of records, dicts in the shape of records, or ``(case, trace, outcome)``. ``metrics``
    are names, classes or instances (default: the standard set). Nothing is read before the run is iterated or
    summarized. A metric that raises gives that case a score of status ``error``; the run continues. A record that
    cannot be read is collected in ``Run.input_errors``; with ``strict`` it raises ``RecordError``. A field whose name
    is probably misspelled is warned of. Metrics that work in batches see up to ``batch_size`` cases at once.

    With ``jobs``, this many processes score (``"auto"``: one per processor), which pays where metrics are slow.
    With ``engine``, ``"ray"`` or the address of a cluster (``"ray://HOST:PORT"``, extra ``ray``), tasks of Ray
    score. Metrics that count from case to case stay here; where one asks a judge, all do.

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
    if engine is not None and (problem := engine_problem(engine)) is not None:
        raise ValueError(f"score: engine {problem}")
    resolved = resolve_metrics(metrics)
    run = Run(records, resolved, batch_size=batch_size, strict=strict, jobs=_n_jobs(jobs), engine=engine)
    run._slips = set()
    return run


def _n_jobs(jobs: int | Literal["auto"] | None) -> int | None:
    if jobs == "auto":
        return usable_processors()
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"score: jobs must be a whole number of at least 1, or 'auto'; received {jobs!r}")
    return jobs


class RunTotals:
    """What a run of metrics has come to so far, whoever scores."""

    def __init__(self, metrics: Sequence[Any]) -> None:
        self.metrics = list(metrics)
        self.input_errors: list[InputError] = []
        self.n_input_errors = 0
        self.n_cases = 0
        self.n_without_content = 0
        self.n_user_failed = 0
        self.judge_problems: list[str] = []
        self.tally: CaseTally | None = None
        self._elapsed_s = 0.0

    def _aggregates(self) -> Sequence[MetricAggregate]:
        raise NotImplementedError

    @property
    def n_score_errors(self) -> int:
        """How many scores so far are errors."""
        return sum(aggregate.n_errors for aggregate in self._aggregates())

    def _keep_error(self, error: InputError) -> None:
        self.n_input_errors += 1
        if len(self.input_errors) < _INPUT_ERRORS_KEPT:
            self.input_errors.append(error)

    def _summary(self) -> RunSummary:
        aggregates = self._aggregates()
        return RunSummary(
            n_cases=self.n_cases,
            metrics=[row for aggregate in aggregates for row in aggregate.rows()],
            unscored=[entry for aggregate in aggregates for entry in aggregate.unscored()],
            n_input_errors=self.n_input_errors,
            input_errors=list(self.input_errors),
            n_score_errors=self.n_score_errors,
            elapsed_s=self._elapsed_s,
            judge=total_spend((aggregate.judge_spend for aggregate in aggregates), self.judge_problems),
            n_records=self.n_cases,
            n_without_content=self.n_without_content,
            n_user_failed=self.n_user_failed,
            counts=None if self.tally is None else self.tally.counts(),
            findings=[] if self.tally is None else self.tally.findings(),
        )


class Run(RunTotals, ScoreRows):
    """A run of metrics over records. Iterating yields each case's scores as they are made, once.

    ``to_rows``, ``to_pandas`` and ``to_polars`` give all scores at once, instead of iterating.

    One that is not ``aggregated`` only yields scores: its summary says nothing about its metrics. ``on_scored`` is
    called with each item and its scores. ``infos`` are what its metrics say about themselves. A function turns out to
    be a check when it returns a bool: ``on_check`` is called with its name and info before that score comes out.
    """

    def __init__(
        self,
        records: Iterable[Any],
        metrics: Sequence[Any],
        *,
        batch_size: int = 64,
        strict: bool = False,
        aggregated: bool = True,
        jobs: int | None = None,
        engine: str | None = None,
    ) -> None:
        super().__init__(metrics)
        self.infos = {metric.name: describe(metric) for metric in metrics}
        self.on_scored: Callable[[Item, dict[str, Score]], None] | None = None
        self.on_check: Callable[[str, MetricInfo], None] | None = None
        if aggregated:
            self.tally = CaseTally(self.infos)
        self._may_turn_out_checks = any(info.family == "custom" for info in self.infos.values())
        self._n_read = 0
        # Misspelled fields that were warned of; None: whoever reads the records says so.
        self._slips: set[str] | None = None
        self._batch_size = batch_size
        self._strict = strict
        self._aggregated = aggregated
        self._scorers = [Scorer(metric) for metric in metrics]
        self._kept_rows: list[TableRow] | None = None
        alone = (jobs is None and engine is None) or bool(judged_metrics(metrics))
        self._stream = self._score_all(iter(records)) if alone else self._score_elsewhere(iter(records), jobs, engine)

    def __iter__(self) -> Iterator[CaseScores]:
        return self._stream

    def _aggregates(self) -> Sequence[MetricAggregate]:
        return [scorer.aggregate for scorer in self._scorers]

    def _rows(self) -> list[TableRow]:
        if self._kept_rows is None:
            if self.n_cases:
                raise RuntimeError(
                    f"Run: the scores of {self.n_cases} cases were iterated or summarized and are not kept; "
                    "ask for the table before, or score again"
                )
            self._kept_rows = [row for case in self for row in case_rows(case, None, self.infos)]
        return self._kept_rows

    def summary(self) -> RunSummary:
        """The aggregate over all cases; scores those that have not been iterated yet."""
        for _ in self._stream:
            pass
        summary = self._summary()
        vars(summary)["infos"] = self.infos
        return summary

    @property
    def _is_open(self) -> bool:
        """Whether there may be cases that are not scored yet: showing a run must not score them, which may cost."""
        return isgenerator(self._stream) and getgeneratorstate(self._stream) != GEN_CLOSED

    def __repr__(self) -> str:
        printed = import_module("agentunit.reports.printed")
        if self._is_open:
            return str(printed.unscored_text(self.n_cases))
        return str(printed.summary_text(self._summary(), self.infos))

    def _repr_html_(self) -> str:
        # For notebooks; the reports stand above the engine and load only when one asks.
        notebook = import_module("agentunit.reports.notebook")
        if self._is_open:
            return str(notebook.unscored_html(self.n_cases))
        return str(notebook.summary_html(self._summary(), self.infos))

    def _score_all(self, records: Iterator[Any]) -> Iterator[CaseScores]:
        start = now()
        aggregated = self._aggregated
        batched = [scorer for scorer in self._scorers if scorer.batched]
        scorers = [(scorer.name, scorer.score, scorer.aggregate.add) for scorer in self._scorers]
        # Without a metric that gains from batches, each case is done before the next is read: scores come at once, and
        # what a case needs in memory is still warm.
        read = self._read_in_chunks(records, batched) if batched else zip(repeat(0), self._read_each(records))
        with judge_run(self.metrics):
            for position, (case_id, item) in read:
                case_id = case_id or f"case-{self.n_cases + 1}"
                scores = {}
                for name, score_item, add in scorers:
                    each = scores[name] = score_item(item, position)
                    if aggregated:
                        add(case_id, each)
                self._elapsed_s = now() - start
                yield self._counted(case_id, item, scores)
            self.judge_problems = judge_problems(self.metrics)

    def _read_in_chunks(
        self, records: Iterator[Any], batched: Sequence[Scorer]
    ) -> Iterator[tuple[int, tuple[str, Item]]]:
        """The cases of each chunk with their places in it; the scores of ``batched`` are ready for them."""
        for chunk in self._chunks(records, batched):
            items = [item for _, item in chunk.items]
            for scorer in batched:
                scorer.begin(items, chunk.started.get(scorer.name))
            yield from enumerate(chunk.items)
            if chunk.refused is not None:
                raise chunk.refused

    def _counted(self, case_id: str, item: Item, scores: dict[str, Score]) -> CaseScores:
        index = self.n_cases
        self.n_cases += 1
        if not item.is_open:
            if user_failure(item.trace) is None:
                self.n_without_content += not item.has_content
            else:
                self.n_user_failed += 1
        if self._may_turn_out_checks:
            for name in note_checks(self.infos, scores):
                if self.on_check is not None:
                    self.on_check(name, self.infos[name])
                if self.tally is not None:
                    self.tally.read_checks()
        if self.tally is not None:
            self.tally.add(case_id, item, scores)
        if self.on_scored is not None:
            self.on_scored(item, scores)
        return CaseScores(index, case_id, scores)

    def _score_elsewhere(self, records: Iterator[Any], jobs: int | None, engine: str | None) -> Iterator[CaseScores]:
        """Read here and score in other processes, all but the metrics that count from case to case."""
        score_items = part("score_items")
        start = now()
        stateful = {scorer.name for scorer in self._scorers if scorer.is_stateful}
        sent = [metric for metric in self.metrics if metric.name not in stateful]
        refused: list[RecordError] = []

        def items() -> Iterator[Item]:
            try:
                for _, item in self._read_each(records):
                    yield item
            except RecordError as error:
                refused.append(error)

        for item, found in score_items(items(), sent, jobs=jobs, batch_size=self._batch_size, engine=engine):
            case_id = str(item.case.id or "") or f"case-{self.n_cases + 1}"
            scores: dict[str, Score] = {}
            for scorer in self._scorers:
                if scorer.name in stateful:
                    each = scorer.score(item, 0)
                elif isinstance(found, dict):
                    each = found[scorer.name]
                else:
                    each = scorer.failed(RuntimeError(f"scoring this case killed its process twice ({found.how})"))
                scores[scorer.name] = each
                if self._aggregated:
                    scorer.aggregate.add(case_id, each)
            self._elapsed_s = now() - start
            yield self._counted(case_id, item, scores)
        if refused:
            raise refused[0]

    def _chunks(self, records: Iterator[Any], batched: Sequence[Scorer]) -> Iterator[_Chunk]:
        """The input in chunks and in order, each with the batches that were started of it."""
        starting = [scorer for scorer in batched if scorer.starts]
        # What is started gains nothing from batches: case by case, scores come as they are made.
        size = 1 if starting == batched else max(self._batch_size, *(scorer.batch_items for scorer in batched))
        most = max(1, cases_under_way(self.metrics) // size) if starting else 1
        waiting: deque[_Chunk] = deque()
        try:
            ended = False
            while True:
                # At least one, so that a service always has the next chunk; more only while the first is not done.
                while not ended and len(waiting) < most:
                    read = list(islice(records, size))
                    if not read:
                        ended = True
                        break
                    chunk = _Chunk(*self._items(read))
                    ended = chunk.refused is not None
                    items = [item for _, item in chunk.items]
                    for scorer in starting:
                        started = scorer.start(items)
                        if started is not None:
                            chunk.started[scorer.name] = started
                    waiting.append(chunk)
                    if waiting[0].done():
                        break
                if not waiting:
                    return
                yield waiting[0]
                waiting.popleft()
        finally:
            for chunk in waiting:
                chunk.cancel()

    def _items(self, chunk: Sequence[Any]) -> tuple[list[tuple[str, Item]], RecordError | None]:
        """What can be read of a chunk, each with its case id; and, when strict, the first thing that cannot."""
        items: list[tuple[str, Item]] = []
        try:
            items.extend(self._read_each(chunk))
        except RecordError as error:
            return items, error
        return items, None

    def _read_each(self, records: Iterable[Any]) -> Iterator[tuple[str, Item]]:
        """What can be read, each with its case id; when strict, the first thing that cannot is raised."""
        for given in records:
            self._n_read += 1
            try:
                record, item = _read(given)
            except RecordError as error:
                is_told = isinstance(given, InputError)
                self._keep_error(given if is_told else InputError("records", self._n_read, str(error)))
                if self._strict:
                    raise
                continue
            if self._slips is not None:
                _warn_of_slips(record, self._slips)
            yield str(item.case.id or ""), item


def _warn_of_slips(record: Record | LooseRecord, told: set[str]) -> None:
    for slip in misspelled_fields(record):
        if slip not in told and len(told) < _SLIPS_TOLD:
            told.add(slip)
            warnings.warn(f"score: {slip}", stacklevel=2)


def _read(given: Any) -> tuple[Record | LooseRecord, Item]:
    if isinstance(given, InputError):
        raise RecordError(str(given))
    try:
        record = as_record(given)
        return record, Item(record.case, record.trace, record.outcome)
    except RecordError:
        raise
    except Exception as error:  # a user's own object may fail in any way when it is looked at
        raise RecordError(f"the record cannot be looked at: {describe_error(error)}") from error


@dataclass(slots=True)
class _Chunk:
    """Some cases of the input, the first thing that could not be read when that ends the run, and what is under way."""

    items: list[tuple[str, Item]]
    refused: RecordError | None
    started: dict[str, BatchUnderWay | Exception] = field(default_factory=dict)

    def done(self) -> bool:
        """Whether its scores can be had without waiting."""
        return all(isinstance(batch, Exception) or batch.done() for batch in self.started.values())

    def cancel(self) -> None:
        """Its scores are not wanted any more: the run was stopped."""
        for batch in self.started.values():
            if not isinstance(batch, Exception):
                batch.cancel()


publish("agentunit", Run)

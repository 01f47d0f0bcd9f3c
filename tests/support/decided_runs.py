"""Runs with made-up tries, in memory or in a store: what tests of the verdict hold against each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from kept_records import add_record

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.results import MetricResult, Score
from agentunit.core.score_block import RowsByMetric
from agentunit.core.trace import TraceLog
from agentunit.engine.deciding.cut_offs import number_key
from agentunit.engine.scoring.scored_run import ScoredRun, in_suite_order, info_of, run_from_store
from agentunit.metrics.base import MetricInfo
from agentunit.store.run_store import RunStore
from agentunit.store.runs import FIRST_AGAIN, RecordRow, RunHeader, StoredRecord

INFOS = {
    "contains": info_of("contains"),
    "exact_match": info_of("exact_match"),
    # A user's function without annotations: only its values tell what it is.
    "mine": MetricInfo("mine", "custom", ""),
    "support": MetricInfo("support", "quality", "", "higher", (0.0, 1.0), backend="local", mean_of="support"),
    "opinion": MetricInfo("opinion", "quality", "", "higher", (0.0, 1.0), backend="judge"),
    "length": MetricInfo("length", "quality", "", "lower", (0.0, None), unit="words", backend="local"),
}


@dataclass(frozen=True)
class NoValue:
    """A score without a value."""

    status: str = "not_applicable"
    reason: str = "the case has no such field"


@dataclass(frozen=True)
class Shown:
    """A value that is informational: shown, and no ground to decide by."""

    value: float


NOT_APPLICABLE = NoValue()
NO_ANSWER = NoValue("not_applicable", "no answer to score")
RAISED = NoValue("error", "ValueError: the metric raised")
Cell = float | NoValue | Shown


@dataclass(frozen=True)
class Try:
    """One try of a case: what the metrics gave, and the answer; ``None`` where the agent failed."""

    values: Mapping[str, Cell] = field(default_factory=dict)
    answer: str | None = "It is here."
    attempts: int = 1

    @property
    def failed(self) -> bool:
        return self.answer is None


@dataclass(frozen=True)
class Case:
    """A case with its tries; ``again`` are those that confirm."""

    id: str
    tries: Sequence[Try]
    again: Sequence[Try] = ()
    expected: str = "here"

    def placed(self) -> list[tuple[int, Try]]:
        """The tries with their repeat numbers."""
        return [*enumerate(self.tries), *((FIRST_AGAIN + n, one) for n, one in enumerate(self.again))]


def case_of(case_id: str, *values: Cell, metric: str = "contains", again: Sequence[Cell] = (), **more: Any) -> Case:
    """A case of one metric: a value for each try."""
    tries = [Try({metric: value}) for value in values]
    return Case(case_id, tries, [Try({metric: value}) for value in again], **more)


def score_of(metric: str, cell: Cell, version: str) -> Score:
    """A score as a run keeps it."""
    backend = INFOS[metric].backend if metric in INFOS else "custom"
    detail: dict[str, Any] = {"backend": backend}
    detail |= {"judge": {"model": "m", "calls": 1}} if backend == "judge" else {}
    if isinstance(cell, NoValue):
        return Score(MetricResult(metric, None, {**detail, "reason": cell.reason}), cell.status, backend, version, 0.0)
    value, status = (cell.value, "informational") if isinstance(cell, Shown) else (cell, "ok")
    return Score(MetricResult(metric, value, detail), status, backend, version, 0.0)


def record_of(case: Case, one: Try) -> Record:
    """The record of a try."""
    asked = DatasetCase(case.id, f"Where is {case.id}?", expected_output=case.expected)
    trace = TraceLog()
    if one.attempts > 1:
        trace.metadata["attempts"] = one.attempts
    outcome = Outcome(error="ValueError: boom") if one.answer is None else Outcome(output=one.answer)
    return Record(asked, trace, outcome)


def _settings_of(cases: Sequence[Case], settings: Mapping[str, Any]) -> dict[str, Any]:
    used = {metric for case in cases for _, one in case.placed() for metric in one.values}
    infos = {metric: msgspec.to_builtins(INFOS[metric]) for metric in INFOS if metric in used}
    n_repeats = max((len(case.tries) for case in cases), default=1)
    return {"metrics": list(infos), "metric_infos": infos, "repeats": n_repeats, **settings}


def run_of(
    cases: Sequence[Case], *, name: str = "new", versions: Mapping[str, str] | None = None, **settings: Any
) -> ScoredRun:
    """A run in memory. ``versions`` are those of metrics that are not of version 1."""
    stored: list[StoredRecord] = []
    scores: list[dict[str, Score]] = []
    for position, case in enumerate(cases):
        for repeat, one in case.placed():
            stored.append(StoredRecord(position, repeat, case.id, one.failed, 0.1, record_of(case, one)))
            scores.append(_scores(one, versions or {}))

    def read_cases(case_ids: Collection[str]) -> Iterator[tuple[StoredRecord, Mapping[str, Score]]]:
        return (entry for entry in zip(stored, scores, strict=True) if entry[0].case_id in case_ids)

    n_planned = sum(len(case.tries) for case in cases)
    header = RunHeader(name, name, 0.0, 1.0, "finished", n_planned, "0", _settings_of(cases, settings))
    run = ScoredRun(header, 0, 0, 0, read_records=lambda: iter(stored), read_cases=read_cases)
    run.records = [RecordRow(each.position, each.repeat, each.case_id, each.failed) for each in stored]
    rows = RowsByMetric(lambda metric: number_key(INFOS.get(metric) or info_of(metric)))
    for record, of_record in zip(stored, scores, strict=True):
        rows.add(record.position, record.repeat, record.case_id, of_record)
    run.metrics = {**rows.rows()}
    return in_suite_order(run)


def _scores(one: Try, versions: Mapping[str, str]) -> dict[str, Score]:
    # Where the agent failed, metrics have nothing to score.
    cells = {metric: NO_ANSWER if one.failed else cell for metric, cell in one.values.items()}
    return {metric: score_of(metric, cell, versions.get(metric, "1")) for metric, cell in cells.items()}


def keep_run(
    store: RunStore,
    cases: Sequence[Case],
    *,
    name: str = "new",
    versions: Mapping[str, str] | None = None,
    **settings: Any,
) -> ScoredRun:
    """The same run in a store."""
    n_planned = sum(len(case.tries) for case in cases)
    header = store.create_run(
        name, agentunit_version="0", settings=_settings_of(cases, settings), n_planned=n_planned, run_id=name
    )
    for position, case in enumerate(cases):
        for repeat, one in case.placed():
            record = record_of(case, one)
            add_record(store, header.id, position, repeat, record, failed=one.failed, elapsed_s=0.1)
            store.add_scores(header.id, position, repeat, _scores(one, versions or {}))
    store.set_status(header.id, "finished", finished_at=header.created_at + 1)
    return run_from_store(store, header.id)

"""Scoring records that are kept: new metrics over a store's, and newer versions of metrics over a baseline's."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from math import isclose
from typing import Any

from agentunit.core.case import DatasetCase, origin_of, set_origin
from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import Score
from agentunit.engine.cut_offs import number_keys
from agentunit.engine.judge_plan import SAMPLE_SIZE, Sending, judge_described, plan_sending
from agentunit.engine.judging import judged_metrics
from agentunit.engine.scored_run import ScoredRun, infos_as_data, installed_metric, score_row
from agentunit.engine.scoring import Run
from agentunit.metrics.base import describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.protocol import RunStore
from agentunit.store.runs import ScoreRow, StoredRecord
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import BLOCK_SIZE, WrittenScore, written_scores

# Scores of this many cases, or of this long, are written together: after a kill -9 they are computed once more.
_CASES_AT_ONCE = BLOCK_SIZE
_HELD_BACK_S = 1.0
# Below this share of the baseline's values, what is missing may be what a comparison is about.
_LEAST_KEPT = 0.8


def score_run(
    store: RunStore,
    run_id: str,
    metrics: Iterable[Any] | Any | None,
    *,
    again: bool = False,
    on_case: Callable[[int], None] = lambda n_scored: None,
    cases: Sequence[DatasetCase] | None = None,
    recorded: Mapping[tuple[int, int], Record] | None = None,
    jobs: int | None = None,
) -> int:
    """Score the records of a run that lack a score of these metrics (with ``again``: all of them).

    ``cases`` are those of the run's dataset, where it is at hand: they know in which folder the paths in them lead.
    Else paths stay in the working directory. ``recorded`` are records of the run that are in memory, by position and
    repeat; they are not read again. ``jobs`` processes score, where no judge is asked.

    A metric that keeps state from case to case is always scored over the whole run, in order. Returns how many
    records were scored.
    """
    resolved = resolve_metrics(metrics)
    header = store.find_run(run_id)
    if store.keeps_masked:
        # Details quote what was scored, so only what is kept may be.
        recorded = None
    if header.is_foreign:
        # Its records came from a file, whatever the dataset says that it goes on with.
        cases = None
    settings = dict(header.settings)
    settings["metric_infos"] = {**(settings.get("metric_infos") or {}), **infos_as_data(resolved)}
    if judged_metrics(resolved):
        settings["judge"] = judge_described()
    store.update_run(run_id, settings, n_planned=header.n_planned)
    stateful = [metric for metric in resolved if describe(metric).stateful]
    n_scored = 0
    for group in _groups(resolved):
        lacking = None if again else [metric.name for metric in group]
        n_new, problems = _score(
            store,
            run_id,
            _placed(store.records(run_id, unscored_by=lacking, known=recorded), cases),
            group,
            on_case,
            jobs,
        )
        n_scored = max(n_scored, n_new)
        if n_new and judged_metrics(group):
            settings["judge_problems"] = problems
            store.update_run(run_id, settings, n_planned=header.n_planned)
    if stateful:
        records = _placed(store.records(run_id, known=recorded), cases)
        n_scored = max(n_scored, _score(store, run_id, records, stateful, on_case)[0])
    return n_scored


def _placed(records: Iterator[StoredRecord], cases: Sequence[DatasetCase] | None) -> Iterator[StoredRecord]:
    """The records, each with the folder that paths in its case are confined to."""
    here = os.getcwd()
    for stored in records:
        known = cases is not None and stored.position < len(cases)
        set_origin(stored.record.case, origin_of(cases[stored.position]) if cases is not None and known else here)
        yield stored


def _groups(metrics: Sequence[Any]) -> list[list[Any]]:
    """Metrics that are scored together. A judge is asked by itself, so that it is not paid for another's lack."""
    plain = [metric for metric in metrics if not describe(metric).stateful]
    judged = [metric for metric in plain if getattr(metric, "asks_service", False)]
    others = [metric for metric in plain if metric not in judged]
    return [group for group in (others, judged) if group]


def sending_of_run(store: RunStore, run_id: str, metrics: Sequence[Any], *, again: bool = False) -> Sending | None:
    """What scoring the records of a run would send to a judge; ``None`` when nothing would be."""
    judged = [metric for metric in metrics if getattr(metric, "asks_service", False)]
    if not judged:
        return None
    lacking = None if again else [metric.name for metric in judged]
    sample = [stored.record for stored in islice(store.records(run_id, unscored_by=lacking), SAMPLE_SIZE)]
    return plan_sending(judged, sample, n_cases=store.n_records(run_id, unscored_by=lacking), exact=True)


def _score(
    store: RunStore,
    run_id: str,
    records: Iterator[StoredRecord],
    metrics: Sequence[Any],
    on_case: Callable[[int], None],
    jobs: int | None = None,
) -> tuple[int, list[str]]:
    """How many records were scored, and what was wrong with the judge's run as a whole."""
    n_scored = 0
    run, scored = _start_scoring(records, metrics, jobs)
    infos = {metric.name: describe(metric) for metric in metrics}
    numbers = number_keys(infos)
    with _kept_together(store, 1 if judged_metrics(metrics) else _CASES_AT_ONCE) as keep:
        for stored, scores in scored:
            keep(written_scores(run_id, stored.position, stored.repeat, scores, numbers))
            n_scored += 1
            on_case(n_scored)
    return n_scored, run.judge_problems


def _start_scoring(
    records: Iterator[StoredRecord], metrics: Sequence[Any], jobs: int | None = None
) -> tuple[Run, Iterator[tuple[StoredRecord, dict[str, Score]]]]:
    """The scoring of stored records, and each of them with its scores as they are made."""
    # The engine may read a batch ahead, so each record waits here until its scores come out.
    waiting: deque[StoredRecord] = deque()

    def read() -> Iterator[Record]:
        for stored in records:
            waiting.append(stored)
            yield stored.record

    # What a run adds up to is asked of the store, where the scores of earlier runs are too.
    run = Run(read(), metrics, aggregated=False, jobs=jobs)
    return run, ((waiting.popleft(), case.scores) for case in run)


@contextmanager
def _kept_together(store: RunStore, most_cases: int) -> Iterator[Callable[[list[WrittenScore]], None]]:
    """A function that takes the scores of one case. Whatever ends the block, all that were taken are in the store."""
    waiting: list[WrittenScore] = []
    n_cases, due = 0, time.monotonic() + _HELD_BACK_S

    def write() -> None:
        nonlocal n_cases, due
        store.add_written_scores(waiting)
        waiting.clear()
        n_cases, due = 0, time.monotonic() + _HELD_BACK_S

    def keep(scores: list[WrittenScore]) -> None:
        nonlocal n_cases
        waiting.extend(scores)
        n_cases += 1
        if n_cases >= most_cases or time.monotonic() >= due:
            write()

    try:
        yield keep
    finally:
        if waiting:
            write()


def rescore_baseline(
    candidate: ScoredRun, baseline: ScoredRun, names: Iterable[str]
) -> tuple[ScoredRun, list[str], dict[str, str]]:
    """The baseline with the candidate's versions of these metrics, made from its records where other ones scored it.

    Also returns which metrics were scored again, and for each that could not be, why. Nothing is written. A run does
    not tell the parameters of its metrics, so a metric counts only if it gives the candidate's own scores once more.
    Metrics that ask a service are left alone: asking costs money.
    """
    refused: dict[str, str] = {}
    usable: list[Any] = []
    for name in names:
        old, new = (_versions(run.metrics.get(name, ())) for run in (baseline, candidate))
        if not old or not new or (old == new and len(new) == 1):
            continue
        metric = installed_metric(name)
        problem = _why_not(metric, new)
        if problem is None:
            usable.append(metric)
        else:
            refused[name] = problem
    if not usable:
        return baseline, [], refused
    again, problem = _score_again(candidate, usable)
    if problem is None:
        for metric in list(usable):
            if not _same_scores(again[metric.name], candidate.metrics[metric.name]):
                usable.remove(metric)
                refused[metric.name] = "as installed here it does not give the candidate's scores (other parameters?)"
        again, problem = _score_again(baseline, usable) if usable else ({}, None)
    for metric in list(usable) if problem is None else ():
        before, after = (_n_values(rows) for rows in (baseline.metrics[metric.name], again[metric.name]))
        if after < _LEAST_KEPT * before:
            usable.remove(metric)
            del again[metric.name]
            refused[metric.name] = f"this version has a value for {after} of the {before} cases that had one"
    if problem is not None:
        return baseline, [], {**refused, **dict.fromkeys((metric.name for metric in usable), problem)}
    infos = {metric.name: describe(metric) for metric in usable}
    rescored = replace(baseline, metrics={**baseline.metrics, **again}, infos={**baseline.infos, **infos})
    return rescored, list(again), refused


def _n_values(rows: Iterable[ScoreRow]) -> int:
    return sum(row.value is not None for row in rows)


def _versions(rows: Iterable[ScoreRow]) -> set[str]:
    return {row.version for row in rows if row.value is not None}


def _why_not(metric: Any | None, wanted: set[str]) -> str | None:
    if metric is None:
        return "the metric is not installed here"
    if {describe(metric).version} != wanted:
        return f"version {describe(metric).version} is installed here"
    return "it asks a service, which is not done unasked" if getattr(metric, "asks_service", False) else None


def _score_again(run: ScoredRun, metrics: Sequence[Any]) -> tuple[dict[str, list[ScoreRow]], str | None]:
    """A run's scores made anew from its records; or why they cannot be."""
    if run.read_records is None:
        return {}, f"the records of {run.header.label} are not at hand"
    rows: dict[str, list[ScoreRow]] = {metric.name: [] for metric in metrics}
    infos = {metric.name: describe(metric) for metric in metrics}
    try:
        for stored, scores in _start_scoring(_placed(run.read_records(), None), metrics)[1]:
            for name, each in scores.items():
                rows[name].append(score_row(stored.position, stored.repeat, stored.case_id, each, infos[name]))
    except (RecordError, StoreError, OSError) as error:
        return {}, f"the records of {run.header.label} cannot be read ({error})"
    return rows, None


def _same_scores(again: Iterable[ScoreRow], stored: Iterable[ScoreRow]) -> bool:
    """Whether every stored score came out the same."""
    made = {(row.position, row.repeat): row for row in again}
    return all(_same_score(made.get((row.position, row.repeat)), row) for row in stored)


def _same_score(again: ScoreRow | None, stored: ScoreRow) -> bool:
    if again is None or again.value is None or stored.value is None:
        return again is not None and again.value is stored.value
    return again.backend == stored.backend and isclose(again.value, stored.value, rel_tol=1e-9, abs_tol=1e-9)

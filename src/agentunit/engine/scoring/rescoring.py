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

import msgspec

from agentunit.backends.services import judge_described
from agentunit.core.case import DatasetCase, origin_of, set_origin
from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import Score
from agentunit.core.score_block import RowsByMetric, ScoreRow
from agentunit.engine.deciding.cut_offs import number_key, number_keys
from agentunit.engine.scoring.judging import SAMPLE_SIZE, Sending, judged_metrics, plan_sending, spend_of_run
from agentunit.engine.scoring.records import Run
from agentunit.engine.scoring.scored_run import (
    ScoredRun,
    has_other_parameters,
    infos_as_data,
    installed_metric,
    run_from_store,
)
from agentunit.engine.scoring.stored_rows import versions_of
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.run_store import RunStore
from agentunit.store.runs import StoredRecord, is_again
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import BLOCK_SIZE, ScoreBuffer

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
    tries_again: bool = False,
) -> int:
    """Score the records of a run that lack a score of these metrics (with ``again``: all of them).

    Tries that confirm failing checks are scored by the metrics that check them, and only then (``tries_again``).

    ``cases`` are those of the run's dataset, where it is at hand: they know in which folder the paths in them lead.
    Else paths stay in the working directory. ``recorded`` are records of the run that are in memory, by position and
    repeat; they are not read again. ``jobs`` processes score, where no judge is asked.

    A metric that keeps state from case to case is always scored over the whole run, in order and without tries again.
    Returns how many records were scored.
    """
    resolved = resolve_metrics(metrics)
    header = store.find_run(run_id)
    if store.masking.is_on:
        # Details quote what was scored, so only what is kept may be.
        recorded = None
    if header.is_foreign:
        # Its records came from a file, whatever the dataset says that it goes on with.
        cases = None
    settings = dict(header.settings)
    settings["metric_infos"] = infos_as_data(resolved, settings.get("metric_infos"))
    if judged_metrics(resolved):
        settings["judge"] = judge_described()

    def keep_settings() -> None:
        store.update_run(run_id, settings, n_planned=header.n_planned)

    def keep_check(name: str, info: MetricInfo) -> None:
        settings["metric_infos"][name].update(msgspec.to_builtins(info))
        keep_settings()

    keep_settings()
    stateful = [metric for metric in resolved if describe(metric).stateful]
    n_scored = 0
    for group in _groups(resolved):
        lacking = None if again else [metric.name for metric in group]
        records = store.records(run_id, unscored_by=lacking, known=recorded)
        if not tries_again:
            records = (stored for stored in records if not is_again(stored.repeat))
        with spend_of_run(store, run_id, group):
            n_new, problems = _score(
                store,
                run_id,
                _placed(records, cases),
                group,
                on_case,
                keep_check,
                jobs,
            )
        n_scored = max(n_scored, n_new)
        if n_new and judged_metrics(group):
            settings["judge_problems"] = problems
            keep_settings()
    if stateful:
        # A try again would change the state that later cases are scored with.
        planned = (stored for stored in store.records(run_id, known=recorded) if not is_again(stored.repeat))
        records = _placed(planned, cases)
        n_scored = max(n_scored, _score(store, run_id, records, stateful, on_case, keep_check)[0])
    if again and not tries_again:
        # What confirmed a failing check is scored by the same version as the check itself.
        scored = run_from_store(store, run_id, labels=False).again_metrics
        checks = [metric for metric in resolved if metric.name in scored and metric not in stateful]
        tries = (stored for stored in store.records(run_id) if is_again(stored.repeat))
        if checks:
            _score(store, run_id, _placed(tries, cases), checks, on_case, keep_check)
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
    on_check: Callable[[str, MetricInfo], None],
    jobs: int | None = None,
) -> tuple[int, list[str]]:
    """How many records were scored, and what was wrong with the judge's run as a whole."""
    n_scored = 0
    run, scored = _start_scoring(records, metrics, jobs)
    # What makes a check of a function is written before the score that says so, so that a kill loses nothing.
    run.on_check = on_check
    numbers = number_keys(run.infos)
    with _kept_together(store, run_id, numbers, 1 if judged_metrics(metrics) else _CASES_AT_ONCE) as keep:
        for stored, scores in scored:
            keep(stored.position, stored.repeat, scores)
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
def _kept_together(
    store: RunStore, run_id: str, amounts: Mapping[str, str], most_cases: int
) -> Iterator[Callable[[int, int, Mapping[str, Score]], None]]:
    """A function that takes the scores of one case. Whatever ends the block, all that were taken are in the store."""
    waiting = ScoreBuffer(amounts)
    due = time.monotonic() + _HELD_BACK_S

    def write() -> None:
        nonlocal due
        store.add_blocks(run_id, waiting.take())
        due = time.monotonic() + _HELD_BACK_S

    def keep(position: int, repeat: int, scores: Mapping[str, Score]) -> None:
        waiting.add(position, repeat, scores)
        if waiting.n_cases >= most_cases or time.monotonic() >= due:
            write()

    try:
        yield keep
    finally:
        if waiting.n_cases:
            write()


def rescore_baseline(
    candidate: ScoredRun, baseline: ScoredRun, names: Iterable[str], at_hand: Sequence[Any] = ()
) -> tuple[ScoredRun, list[str], dict[str, str]]:
    """The baseline with the candidate's versions of these metrics, made from its records where other ones scored it.

    Also returns which metrics were scored again, and for each that could not be, why. Nothing is written. Metrics that
    are ``at_hand``, as those of a suite are, come before those that are installed under their names. A metric with
    other parameters is another version. Which parameters a run had is not told, so a metric counts only if it gives the
    candidate's own scores once more. Metrics that ask a service are left alone: asking costs money.
    """
    refused: dict[str, str] = {}
    usable: list[Any] = []
    known = {metric.name: metric for metric in at_hand}
    for name in names:
        old, new = (versions_of(run.metrics.get(name, ())) for run in (baseline, candidate))
        if not old or not new:
            continue
        if has_other_parameters(candidate, baseline, name):
            other = _as_other_version(baseline.metrics[name])
            baseline = replace(baseline, metrics={**baseline.metrics, name: other})
            old = versions_of(other)
        if old == new and len(new) == 1:
            continue
        metric = known[name] if name in known else installed_metric(name)
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
    infos = {metric.name: candidate.infos.get(metric.name) or describe(metric) for metric in usable}
    rescored = replace(baseline, metrics={**baseline.metrics, **again}, infos={**baseline.infos, **infos})
    return rescored, list(again), refused


def _as_other_version(rows: Iterable[ScoreRow]) -> list[ScoreRow]:
    """Scores of a metric with other parameters."""
    return [msgspec.structs.replace(row, version=f"{row.version} with other parameters") for row in rows]


def _n_values(rows: Iterable[ScoreRow]) -> int:
    return sum(row.value is not None for row in rows)


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
    infos = {metric.name: describe(metric) for metric in metrics}
    rows = RowsByMetric(lambda name: number_key(infos[name]))
    try:
        planned = (stored for stored in run.read_records() if not is_again(stored.repeat))
        for stored, scores in _start_scoring(_placed(planned, None), metrics)[1]:
            rows.add(stored.position, stored.repeat, stored.case_id, scores)
    except (RecordError, StoreError, OSError) as error:
        return {}, f"the records of {run.header.label} cannot be read ({error})"
    return rows.rows(), None


def _same_scores(again: Iterable[ScoreRow], stored: Iterable[ScoreRow]) -> bool:
    """Whether every stored score came out the same."""
    made = {row.place: row for row in again}
    return all(_same_score(made.get(row.place), row) for row in stored)


def _same_score(again: ScoreRow | None, stored: ScoreRow) -> bool:
    if again is None or again.value is None or stored.value is None:
        return again is not None and again.value is stored.value
    return again.backend == stored.backend and isclose(again.value, stored.value, rel_tol=1e-9, abs_tol=1e-9)

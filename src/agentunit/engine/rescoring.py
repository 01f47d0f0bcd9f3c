"""Scoring what a store holds: new metrics over old records, kept as they are made."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from agentunit.core.case import DatasetCase, origin_of, set_origin
from agentunit.core.records import Record
from agentunit.engine.judge_plan import SAMPLE_SIZE, Sending, judge_described, plan_sending
from agentunit.engine.judging import judged_metrics
from agentunit.engine.scored_run import infos_as_data
from agentunit.engine.scoring import Run
from agentunit.metrics.base import describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.sqlite import Store, StoredRecord, WrittenScore, written_scores

# Scores of this many cases, or of this long, are written together: after a kill -9 they are computed once more.
_CASES_AT_ONCE = 64
_HELD_BACK_S = 1.0


def score_run(
    store: Store,
    run_id: str,
    metrics: Iterable[Any] | Any | None,
    *,
    again: bool = False,
    on_case: Callable[[int], None] = lambda n_scored: None,
    cases: Sequence[DatasetCase] | None = None,
) -> int:
    """Score the records of a run that lack a score of these metrics (with ``again``: all of them).

    ``cases`` are those of the run's dataset, where it is at hand: they know in which folder the paths in them lead.
    Else paths stay in the working directory.

    A metric that keeps state from case to case is always scored over the whole run, in order. Returns how many
    records were scored.
    """
    resolved = resolve_metrics(metrics)
    header = store.find_run(run_id)
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
            store, run_id, _placed(store.records(run_id, unscored_by=lacking), cases), group, on_case
        )
        n_scored = max(n_scored, n_new)
        if n_new and judged_metrics(group):
            settings["judge_problems"] = problems
            store.update_run(run_id, settings, n_planned=header.n_planned)
    if stateful:
        n_scored = max(n_scored, _score(store, run_id, _placed(store.records(run_id), cases), stateful, on_case)[0])
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


def sending_of_run(store: Store, run_id: str, metrics: Sequence[Any], *, again: bool = False) -> Sending | None:
    """What scoring the records of a run would send to a judge; ``None`` when nothing would be."""
    judged = [metric for metric in metrics if getattr(metric, "asks_service", False)]
    if not judged:
        return None
    lacking = None if again else [metric.name for metric in judged]
    sample = [stored.record for stored in islice(store.records(run_id, unscored_by=lacking), SAMPLE_SIZE)]
    return plan_sending(judged, sample, n_cases=store.n_records(run_id, unscored_by=lacking), exact=True)


def _score(
    store: Store,
    run_id: str,
    records: Iterator[StoredRecord],
    metrics: Sequence[Any],
    on_case: Callable[[int], None],
) -> tuple[int, list[str]]:
    """How many records were scored, and what was wrong with the judge's run as a whole."""
    # The engine may read a batch ahead, so each record's place waits here until its scores come out.
    places: deque[tuple[int, int]] = deque()

    def read() -> Iterator[Record]:
        for stored in records:
            places.append((stored.position, stored.repeat))
            yield stored.record

    n_scored = 0
    # What a run adds up to is asked of the store, where the scores of earlier runs are too.
    run = Run(read(), metrics, aggregated=False)
    with _kept_together(store, 1 if judged_metrics(metrics) else _CASES_AT_ONCE) as keep:
        for case in run:
            keep(written_scores(run_id, *places.popleft(), case.scores))
            n_scored += 1
            on_case(n_scored)
    return n_scored, run.judge_problems


@contextmanager
def _kept_together(store: Store, most_cases: int) -> Iterator[Callable[[list[WrittenScore]], None]]:
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

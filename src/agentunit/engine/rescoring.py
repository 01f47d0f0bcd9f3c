"""Scoring what a store holds: new metrics over old records, each case's scores durable as they are made."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from agentunit.core.records import Record
from agentunit.engine.scored_run import infos_as_data
from agentunit.engine.scoring import score
from agentunit.metrics.base import describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.sqlite import Store, StoredRecord


def score_run(
    store: Store,
    run_id: str,
    metrics: Iterable[Any] | Any | None,
    *,
    again: bool = False,
    on_case: Callable[[int], None] = lambda n_scored: None,
) -> int:
    """Score the records of a run that lack a score of these metrics (with ``again``: all of them).

    A metric that keeps state from case to case is always scored over the whole run, in order. Returns how many
    records were scored.
    """
    resolved = resolve_metrics(metrics)
    header = store.find_run(run_id)
    infos = {**(header.settings.get("metric_infos") or {}), **infos_as_data(resolved)}
    store.update_run(run_id, {**header.settings, "metric_infos": infos}, n_planned=header.n_planned)
    stateful = [metric for metric in resolved if describe(metric).stateful]
    plain = [metric for metric in resolved if not describe(metric).stateful]
    n_scored = 0
    if plain:
        lacking = None if again else [metric.name for metric in plain]
        n_scored = _score(store, run_id, store.records(run_id, unscored_by=lacking), plain, on_case)
    if stateful:
        n_scored = max(n_scored, _score(store, run_id, store.records(run_id), stateful, on_case))
    return n_scored


def _score(
    store: Store,
    run_id: str,
    records: Iterator[StoredRecord],
    metrics: Sequence[Any],
    on_case: Callable[[int], None],
) -> int:
    # The engine may read a batch ahead, so each record's place waits here until its scores come out.
    places: deque[tuple[int, int]] = deque()

    def read() -> Iterator[Record]:
        for stored in records:
            places.append((stored.position, stored.repeat))
            yield stored.record

    n_scored = 0
    for case in score(read(), metrics):
        position, repeat = places.popleft()
        store.add_scores(run_id, position, repeat, case.scores)
        n_scored += 1
        on_case(n_scored)
    return n_scored

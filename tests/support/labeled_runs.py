"""Stored runs of a few dozen cases with scores and labels, made without scoring anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from kept_records import add_record

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.results import MetricResult, Score
from agentunit.engine.scoring.scored_run import info_of
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.sqlite import Store

METRIC = "faithfulness"


def record(position: int, answer: str) -> Record:
    category = "even" if position % 2 == 0 else "odd"
    return Record(DatasetCase(f"q{position}", f"question {position}?", metadata={"category": category}), outcome=answer)


def add_run(
    store: Store, values: Sequence[float | None], *, answers: Mapping[int, str] | None = None, name: str = "r"
) -> str:
    """A run whose cases q0, q1, … have these scores of faithfulness; its answers are those of every such run."""
    infos = {METRIC: msgspec.to_builtins(info_of(METRIC))}
    settings = {"metrics": [METRIC], "metric_infos": infos}
    run_id = store.create_run(name, agentunit_version="1", settings=settings, n_planned=len(values)).id
    for position, value in enumerate(values):
        answer = (answers or {}).get(position, f"answer {position}")
        add_record(store, run_id, position, 0, record(position, answer), failed=False, elapsed_s=0.0)
        detail = {} if value is not None else {"reason": "no context"}
        status = "ok" if value is not None else "not_applicable"
        scored = Score(MetricResult(METRIC, value, detail), status, "local", "2", 0.0)
        store.add_scores(run_id, position, 0, {METRIC: scored})
    store.set_status(run_id, "finished")
    return run_id


def label_of(
    position: int, value: float | None, rater: str = "ana", answer: str | None = None, **more: object
) -> StoredLabel:
    about = record(position, f"answer {position}" if answer is None else answer)
    return StoredLabel(subject_of(about), METRIC, f"q{position}", value, rater, **more)  # type: ignore[arg-type]

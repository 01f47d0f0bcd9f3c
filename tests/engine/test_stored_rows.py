"""Scores that are read again from their store each time: the same figures as of scores that are held."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_records import add_record

from agentunit import MetricResult
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.results import Score
from agentunit.core.trace import TraceLog
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.scoring import scored_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store import open_store

METRIC = "answer_correctness"
# 300 records are more than one block.
N_RECORDS = 300


def judged_by(model: str | None, value: float) -> Score:
    detail = {} if model is None else {"judge": {"model": model, "calls": 1}}
    return Score(MetricResult(METRIC, value, detail), "ok", "judge", "1")


@pytest.fixture
def resumed_with_another_judge(tmp_path: Path):
    """A store with a run of which the first 280 records were judged by one model, and the others by another one."""
    with open_store(tmp_path / "runs.db") as store:
        header = store.create_run("judged", agentunit_version="0", settings={"metrics": [METRIC]}, n_planned=N_RECORDS)
        run_id = header.id
        for position in range(N_RECORDS):
            record = Record(DatasetCase(f"q{position}", "?"), TraceLog(), Outcome(output="yes"))
            add_record(store, run_id, position, 0, record, failed=False, elapsed_s=0.0)
            model = "first" if position < 280 else None if position == 290 else "second"
            store.add_scores(run_id, position, 0, {METRIC: judged_by(model, float(position < 280))})
        store.set_status(run_id, "finished")
        yield store, run_id


def test_scores_of_two_judges_are_not_averaged_in_a_run_that_is_not_held(
    resumed_with_another_judge, monkeypatch
) -> None:
    store, run_id = resumed_with_another_judge
    held = run_from_store(store, run_id)
    monkeypatch.setattr(scored_run, "MOST_HELD", 10)
    read = run_from_store(store, run_id)
    expected = {"judge:first": (1.0, 280), "judge:second": (0.0, 19), "judge": (0.0, 1)}
    for run in (held, read):
        assert {row.backend: (row.mean, row.n_scored) for row in run.summary().metrics} == expected
        (verdict,) = evaluate_gates(run, [f"{METRIC} >= 0.5"])
        assert verdict.verdict == "cannot tell"
    assert read.summary() == held.summary()
    assert list(read.metrics[METRIC]) == held.metrics[METRIC]


def test_scores_of_one_judge_keep_their_backend(resumed_with_another_judge, monkeypatch) -> None:
    store, run_id = resumed_with_another_judge
    for position in range(280, N_RECORDS):
        store.add_scores(run_id, position, 0, {METRIC: judged_by("first", 1.0)})
    monkeypatch.setattr(scored_run, "MOST_HELD", 10)
    assert {row.backend for row in run_from_store(store, run_id).metrics[METRIC]} == {"judge"}

"""Tries again are shown with the case that they confirm, and are part of no figure of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from kept_records import add_record

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.addons.judge.win_rate import pairs_of
from agentunit.addons.scale.table_output import write_parquet
from agentunit.engine.scoring.scored_run import run_from_file, run_from_store
from agentunit.engine.scoring.slices import slices_of_run
from agentunit.reports._junit import write_junit
from agentunit.reports.case_console import print_case
from agentunit.reports.case_view import view_case, worst_repeat
from agentunit.reports.reported_run import ReportedRun, open_run
from agentunit.reports.reporters import write_csv
from agentunit.reports.terminal import Terminal
from agentunit.store.runs import FIRST_AGAIN, StoredDecision
from agentunit.store.sqlite import Store


def answered(case_id: str, answer: str | None) -> Record:
    case = DatasetCase(case_id, "Where is it?", "here", metadata={"shop": "a"})
    if answer is None:
        failed = TraceLog(metadata={"failure": "KeyError"})
        return Record(case, failed, Outcome(success=False, error="KeyError: 'x'"))
    return Record(case, TraceLog(), Outcome(output=answer))


@pytest.fixture
def reported(tmp_path: Path, keep: Callable[..., str]) -> Iterator[ReportedRun]:
    """A run of two cases; the wrong one was tried twice again, and the agent failed once."""
    with Store(tmp_path / "runs.db") as store:
        run = keep(store, [[answered("q0", "here"), answered("q1", "gone")]], metrics=["exact_match"])
        for number, answer in enumerate(("gone", None)):
            record = answered("q1", answer)
            add_record(store, run, 1, FIRST_AGAIN + number, record, failed=answer is None, elapsed_s=1.5)
            store.add_scores(run, 1, FIRST_AGAIN + number, store.scores_at(run, 1, 0))
        why = msgspec.Raw(b'{"why":"asked ada.lovelace@example.org"}')
        store.add_decision(run, StoredDecision(1.0, "run", "fail", "FAIL: ada.lovelace@example.org", why))
        store.add_decision(run, StoredDecision(2.0, "gate", "pass", "PASS", msgspec.Raw(b"{}")))
        yield open_run(run, store)


def test_sums_leave_tries_again_out(reported: ReportedRun, tmp_path: Path) -> None:
    assert reported.failures == []
    assert [(group.n_cases, group.n_records) for group in reported.causes] == [(1, 1)]
    (row,) = reported.summary.metrics
    assert (row.n_cases, row.mean) == (2, 0.5)
    assert [row.n_cases for row in slices_of_run(reported.run, "metadata.shop").rows] == [2]
    assert len(pairs_of(reported.run, reported.run).listed) == 2
    assert write_junit(reported, tmp_path / "junit.xml") == 2


def test_a_case_shows_each_try(reported: ReportedRun, capsys: pytest.CaptureFixture[str]) -> None:
    tries = reported.case("q1")
    assert worst_repeat(tries, reported.infos).repeat == 0
    print_case(view_case(tries[2]), reported.infos, Terminal(), run_id="run-1")
    assert "tried again 2" in capsys.readouterr().out


def test_a_table_holds_tries_again_and_the_runs_own_decision(reported: ReportedRun, tmp_path: Path) -> None:
    assert write_csv(reported, tmp_path / "run.csv") == write_parquet(reported, tmp_path / "run.parquet") == 4
    read = run_from_file(tmp_path / "run.parquet")
    assert reported.store is not None
    stored = run_from_store(reported.store, "run-1")
    assert (read.records, read.metrics) == (stored.records, stored.metrics)
    assert (read.again_records, read.again_metrics) == (stored.again_records, stored.again_metrics)
    assert (read.n_cases, read.n_records, read.n_failed, read.header.n_done) == (2, 2, 0, 2)
    # Masked, as the rows are.
    (decision,) = read.decisions
    assert (decision.made_by, decision.verdict) == ("run", "fail")
    assert "lovelace" not in f"{decision.headline} {bytes(decision.decision).decode()}"

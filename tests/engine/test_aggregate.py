"""What a summary counts: cases and repeats, the worst of them, and records that hold nothing."""

from __future__ import annotations

import pytest

from agentunit import MetricInfo, MetricResult, score
from agentunit.core.score_block import ScoreRow
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.metrics.base import CompositeMetric
from agentunit.metrics.checks import TaskSuccessMetric
from agentunit.metrics.inputs import NO_CONTENT
from agentunit.metrics.trajectory import ToolTrajectoryMetric
from agentunit.store.runs import RecordRow, RunHeader


def test_repeats_of_a_case_are_one_case():
    rows = [
        ScoreRow(case, repeat, f"q{case}", None, "not_applicable", "b", "1", "no answer" if case else NO_CONTENT)
        for case in range(66)
        for repeat in range(3)
    ]
    records = [RecordRow(row.position, row.repeat, row.case_id, False) for row in rows]
    header = RunHeader("r1", "run", 0.0, 1.0, "finished", 198, "0", {})
    summary = ScoredRun(header, 66, 198, 0, {"m": rows}, records).summary()
    assert (summary.n_cases, summary.n_repeats, summary.n_records, summary.n_without_content) == (66, 3, 198, 3)
    unscored = {each.reason: each for each in summary.unscored}
    assert (unscored["no answer"].n_cases, unscored["no answer"].n_records) == (65, 195)
    assert unscored["no answer"].first_cases == ["q1", "q2", "q3", "q4", "q5"]


@pytest.mark.parametrize("customers", [None, [0, 1, 2, 3]])
def test_a_repeated_case_counts_once_by_its_mean(customers):
    # Means 0.25, 0.5, 0.75 and 1.0; the last case ran once more often than the others.
    values = [[0.5, 0.0], [0.0, 1.0], [1.0, 0.5], [1.0, 1.0, 1.0]]
    rows = [
        ScoreRow(case, repeat, f"q{case}", value, "ok", "b", "1")
        for case, repeats in enumerate(values)
        for repeat, value in enumerate(repeats)
    ]
    records = [RecordRow(row.position, row.repeat, row.case_id, False) for row in rows]
    settings = {} if customers is None else {"cluster": {"field": "metadata.customer", "by_position": customers}}
    header = RunHeader("r1", "run", 0.0, 1.0, "finished", 9, "0", settings)
    (row,) = ScoredRun(header, 4, 9, 0, {"tool_success": rows}, records).summary().metrics
    assert (row.mean, row.share_from_half, row.n_scored, row.minimum) == (0.625, 7 / 9, 9, 0.0)
    # Student's t over four cases, or as many customers with one case each: 0.625 - 3.182 · √(0.3125 / 3 / 4).
    assert (row.low, row.high) == pytest.approx((0.1114, 1.0), abs=1e-3)
    assert row.worst_cases[:2] == ["q0", "q1"]


def test_of_two_cases_with_one_id_the_worse_is_named():
    records = [{"case": {"id": f"q{n}", "metadata": {"contains": ["a"]}}, "outcome": "a"} for n in range(3)]
    bad = {"case": {"id": "q1", "metadata": {"contains": ["a", "b"]}}, "outcome": "a"}
    worse = {"case": {"id": "q1", "metadata": {"contains": ["a"]}}, "outcome": "b"}
    other = {"case": {"id": "q9", "metadata": {"contains": ["a", "b", "c", "d"]}}, "outcome": "a"}
    (row,) = score([*records, bad, other, worse], ["contains"]).summary().metrics
    # q1 was first seen with a half, which is better than the quarter of q9; then with nothing.
    assert row.worst_cases == ["q1", "q9"]


@pytest.mark.parametrize("metrics", [None, ["tool_trajectory", "retrieval_quality", "faithfulness", "pii_leakage"]])
def test_a_record_without_content_has_no_score(metrics):
    case = {
        "id": "a",
        "query": "?",
        "expected_output": "4",
        "context": ["4"],
        "metadata": {"expected_tool_calls": ["x"]},
    }
    run = score([{"case": case}, {"case": {**case, "id": "b"}, "trace": {"events": []}, "outcome": {}}], metrics)
    for each in run:
        assert {score.value for score in each.scores.values()} == {None}
        assert {score.result.detail["reason"] for score in each.scores.values()} == {NO_CONTENT}
        assert {score.status for score in each.scores.values()} == {"not_applicable"}
    assert (run.summary().n_cases, run.summary().n_without_content) == (2, 2)


def test_metrics_that_read_a_flag_or_an_amount_need_no_content():
    record = {"case": {"id": "a", "metadata": {"expected_tool_calls": ["x"]}}}
    outcome = {"success": True, "cost": 0.5, "elapsed_s": 2.0}
    (case,) = score([{**record, "outcome": outcome}], ["task_success", "cost", "response_time", "tool_trajectory"])
    assert {name: each.value for name, each in case.scores.items()} == {
        "task_success": 1.0,
        "cost": 0.5,
        "response_time": 2.0,
        "tool_trajectory": None,
    }


@pytest.mark.parametrize("outcome", ["", {"error": "boom"}, {"state": {}}, {"answer": "misnamed"}])
def test_what_little_there_is_counts(outcome):
    run = score(
        [{"case": {"id": "a", "metadata": {"expected_tool_calls": ["x"]}}, "outcome": outcome}], ["tool_trajectory"]
    )
    (case,) = run
    assert (case.scores["tool_trajectory"].value, run.summary().n_without_content) == (0.0, 0)


def test_parts_of_a_composite_get_no_content_either():
    both = CompositeMetric([ToolTrajectoryMetric(), TaskSuccessMetric()])
    record = {"case": {"id": "a", "metadata": {"expected_tool_calls": ["x"]}}, "outcome": {"success": True}}
    (case,) = score([record], [both])
    assert case.scores["composite"].value == 1.0


def test_a_metric_in_batches_is_not_asked_about_nothing():
    seen = []

    class Batched:
        name = "batched"
        info = MetricInfo("batched", "custom", "", inputs=("outcome.output",))

        def evaluate(self, case, trace, outcome):
            raise AssertionError

        def evaluate_batch(self, items):
            seen.append([item.case.id for item in items])
            return [MetricResult("batched", float(item.answer)) for item in items]

    records = [{"case": {"id": "a"}, "outcome": "1"}, {"case": {"id": "b"}}, {"case": {"id": "c"}, "outcome": "3"}]
    assert [case.scores["batched"].value for case in score(records, [Batched()])] == [1.0, None, 3.0]
    assert seen == [["a", "c"]]


def test_an_undeclared_range_is_taken_from_scores_that_are_shares():
    class Mine:
        name = "mine"

        def evaluate(self, case, trace, outcome):
            return MetricResult("mine", float(outcome.output))

    def row(values):
        return (
            score([{"case": {"id": str(n)}, "outcome": str(v)} for n, v in enumerate(values)], [Mine()])
            .summary()
            .metrics[0]
        )

    assert row([0.2, 0.9, 1.0, 1.0]).high == 1.0
    assert row([2.0, 9.0, 10.0, 10.0]).high > 10.0

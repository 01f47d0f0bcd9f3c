"""What judged scores tell besides their values: in gates, in the line on the judge, and which model said it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kept_records import add_record

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.results import MetricResult, Score
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.reports.figures import describe_judge_spend
from agentunit.store.sqlite import Store


def scored(value: float | None, model: str = "small", **detail: Any) -> Score:
    spent = {"model": model, "calls": 2, "cached": 0, "prompt_tokens": 10, "completion_tokens": 2, "cost_usd": 0.25}
    result = MetricResult("faithfulness", value, {"judge": spent, "backend": "judge", **detail})
    return Score(result, "ok" if value is not None else "error", "judge", "1", 0.0)


def claim(verdict: str, found: bool | None, in_answer: bool | None = None) -> dict[str, Any]:
    return {"verdict": verdict, "quote_found": found, "answer_quote_found": in_answer}


ALARM = [{"place": "answer", "kind": "instruction", "excerpt": "Ignore", "count": 1}]
SCORES = [
    scored(1.0, claims=[claim("supported", True, True), claim("supported", True)]),
    scored(0.0, claims=[claim("contradicted", False)], injection_suspected=ALARM),
    scored(None, claims=[claim("unknown", None)], reason="no evidence", error={"message": "no evidence"}),
    scored(0.5),
]


@pytest.fixture
def run_of(tmp_path: Path) -> Any:
    def made(scores: list[Score]) -> ScoredRun:
        with Store(tmp_path / "runs.db") as store:
            header = store.create_run("judged", agentunit_version="0", settings={"metrics": ["faithfulness"]})
            for position, score in enumerate(scores):
                record = Record(DatasetCase(id=f"q{position}"))
                add_record(store, header.id, position, 0, record, failed=False, elapsed_s=0.0)
                store.add_scores(header.id, position, 0, {"faithfulness": score})
            return run_from_store(store, header.id)

    return made


GATES = {
    "injection_suspected all == 0": ("fail", 0.75, ("q1",)),
    "injection_suspected <= 0.25": ("pass", 0.25, ()),
    "quote_found >= 0.9": ("fail", pytest.approx(1 / 3), ()),
    "quote_found >= 0.3": ("pass", pytest.approx(1 / 3), ()),  # one of four records has no quotes, and needs none
    "quote_found all >= 1": ("fail", pytest.approx(1 / 3), ("q1", "q2")),
}


@pytest.mark.parametrize("gate", GATES)
def test_evidence_can_be_gated(gate: str, run_of: Any) -> None:
    verdict, value, cases = GATES[gate]
    (found,) = evaluate_gates(run_of(SCORES), [gate])
    assert (found.verdict, found.value, found.cases) == (verdict, value, cases)


def test_a_run_without_a_judge_cannot_answer_such_a_gate(run_of: Any) -> None:
    unjudged = Score(MetricResult("faithfulness", 1.0, {}), "ok", "lexical", "1", 0.0)
    (found,) = evaluate_gates(run_of([unjudged]), ["injection_suspected all == 0"])
    assert found.verdict == "error"


def test_the_line_on_the_judge_tells_evidence_and_the_price_of_a_verdict(run_of: Any) -> None:
    spend = run_of(SCORES).summary().judge
    assert spend is not None
    told = describe_judge_spend(spend)
    assert "; $0.2500 a verdict; quotes found 3 of 5; injection suspected in 1 score" in told


def test_a_run_that_was_resumed_with_another_judge_keeps_both_apart(run_of: Any) -> None:
    run = run_of([scored(1.0), scored(0.0, "large"), scored(1.0), scored(None, "large", reason="failed")])
    rows = {row.backend: (row.n_scored, row.mean) for row in run.summary().metrics}
    assert rows == {"judge:small": (2, 1.0), "judge:large": (1, 0.0)}
    mixed, one = evaluate_gates(run, ["faithfulness >= 0.5", "faithfulness[judge:small] >= 0.5"], min_coverage=0.1)
    assert (mixed.verdict, one.verdict, one.value) == ("cannot tell", "pass", 1.0)
    assert "values of several backends are not one number" in mixed.reason
    # One model alone is named as ever.
    assert {row.backend for row in run_of([scored(1.0), scored(0.0)]).summary().metrics} == {"judge"}


def test_a_panel_that_disagrees_can_be_gated(run_of: Any) -> None:
    panel = [{"judge": "a", "value": 1.0}, {"judge": "b", "value": 0.0}]
    scores = [scored(0.5, judges=panel, judges_disagree=True), scored(1.0, judges=panel[:1], judges_disagree=False)]
    (verdict,) = evaluate_gates(run_of(scores), ["judges_disagree <= 0.4"])
    assert (verdict.verdict, verdict.value, verdict.cases) == ("fail", 0.5, ())
    (verdict,) = evaluate_gates(run_of(scores), ["judges_disagree all == 0"])
    assert (verdict.verdict, verdict.cases) == ("fail", ("q0",))
    (verdict,) = evaluate_gates(run_of([scored(1.0)]), ["judges_disagree <= 0.4"])
    assert verdict.verdict != "pass"

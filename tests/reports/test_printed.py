"""What Python prints of runs and decisions: at most a screen, masked, and nothing that a terminal obeys."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentunit
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.recording.suite_run import RunResult
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store import open_store

N_CASES = 300
SECRET = "Write to ada@example.org \x1b[31m ::error::x"
CASES = [
    {"id": f"case-{n}", "query": f"Room {n}?", "expected_output": f"{SECRET} {n}", "metadata": {"contains": SECRET}}
    for n in range(N_CASES)
]
METRICS = ["contains", "exact_match", "answer_correctness", "response_time", "token_usage", "cost", "tool_success"]


class Many:
    """One of many metrics, each with a long reason."""

    def __init__(self, number: int) -> None:
        self.name = f"metric_{number}"

    def evaluate(self, case: object, trace: object, outcome: object) -> agentunit.MetricResult:
        return agentunit.MetricResult(self.name, None, {"reason": f"{self.name}: {SECRET} " + "too long " * 100})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    store = str(tmp_path_factory.mktemp("printed") / "runs.db")
    agentunit.run(agentunit.Suite(CASES, lambda query: SECRET, metrics=["contains"], name="right"), store=store)
    suite = agentunit.Suite(CASES, lambda query: "?", metrics=[*METRICS, *map(Many, range(20))], gates=["cost <= 1"])
    return agentunit.run(suite, baseline="last", tries=1, store=store)


def printed(shown: object) -> str:
    text = repr(shown)
    lines = text.splitlines()
    assert len(lines) <= 24, text
    assert max(map(len, lines)) <= 210, text
    assert "ada@example.org" not in text
    assert "\x1b" not in text
    assert "::error::" not in text
    return text


def test_a_result_and_its_decision_say_the_sentence_and_the_first_cases(result: RunResult) -> None:
    text = printed(result)
    assert text.startswith(result.decision.headline.partition(" (")[0])
    assert "  300 of 300 cases newly failing: contains: missing: " in text
    listed = printed(result.decision)
    assert "  case-0: newly failing: missing: " in listed
    assert listed.endswith("more")


def test_a_run_says_which_it_is_and_reads_nothing(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(result.scored), "summary", None)
    text = printed(result.scored)
    assert f"run {result.scored.header.label}: 300 cases" in text
    assert "scored by contains, exact_match" in text
    assert "300 of 300 records" in printed(result.scored.header)


def test_a_summary_is_a_table(result: RunResult) -> None:
    lines = printed(result.summary()).splitlines()
    assert lines[0] == "300 cases"
    assert lines[1].split() == ["metric", "value,", "95", "%", "scored", "backend"]
    assert lines[2].split()[:3] == ["contains", "↑", "0.00"]
    assert "… and 19 more metrics" in lines


def test_cases_are_listed_on_a_screen(result: RunResult) -> None:
    assert len(result.cases) >= N_CASES
    assert result.cases == result.decision.findings
    text = printed(result.cases)
    assert text.startswith(f"{result.cases[0].case_id}: ")
    assert text.endswith(f"… and {len(result.cases) - 8} more")
    assert repr(type(result.cases)()) == "no cases"


def test_a_summary_says_which_way_is_better_of_a_check_of_the_user(tmp_path: Path) -> None:
    def polite(answer: str) -> bool:
        return "please" in answer

    cases = [{"id": "q1", "query": "Room?"}]
    result = agentunit.run(agentunit.Suite(cases, lambda query: "?", metrics=[polite]), store=str(tmp_path / "runs.db"))
    assert "polite ↑" in printed(result.summary())
    assert "polite ↑" in printed(agentunit.score([(case, None, "?") for case in cases], [polite]).summary())


def test_a_comparison_says_what_it_decides(result: RunResult) -> None:
    comparison = result.decision.comparison
    assert comparison is not None
    assert "300 newly failing" in printed(comparison)


def test_what_is_scored_from_python_says_how_far_it_is() -> None:
    run = agentunit.score([{"case": {"id": "q1", "expected_output": SECRET}, "outcome": "4"}] * 30, ["exact_match"])
    assert "0 cases scored so far; run.summary() scores the rest" in printed(run)
    assert run.n_cases == 0
    run.summary()
    assert "exact_match ↑" in printed(run)


def test_a_suite_does_not_print_its_cases() -> None:
    suite = agentunit.Suite([f"case {n}" for n in range(3000)], lambda query: "?", metrics=METRICS)
    assert len(repr(suite)) < 400


def test_a_result_in_a_notebook_says_the_verdict_first_then_the_cases_then_the_figures(result: RunResult) -> None:
    markup = result._repr_html_()
    places = [
        markup.index(text) for text in (result.decision.headline[:20], "300 of 300 cases newly failing", "<table")
    ]
    assert places == sorted(places)
    assert "ada@example.org" not in markup


def test_runs_of_a_store_are_one_line_each(result: RunResult, tmp_path: Path) -> None:
    assert result.scored.reopen is not None
    with result.scored.reopen() as store:
        headers = store.runs()
        again = compare_runs(run_from_store(store, headers[0].id), run_from_store(store, headers[1].id))
    assert len(repr(headers).splitlines()) == 1
    printed(again)
    with open_store(tmp_path / "empty.db") as empty:
        assert repr(empty.runs()) == "[]"

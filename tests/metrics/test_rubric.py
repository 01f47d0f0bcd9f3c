from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest
from judge_decisions import decide, texts_of
from scripted_judge import ScriptedJudge, body_of

import agentunit
from agentunit.backends import quality
from agentunit.backends.judge.judge_backend import JudgeBackend
from agentunit.metrics import rubric
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import resolve_metrics
from agentunit.metrics.rubric import RubricMetric


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ScriptedJudge:
    """A judge that scores by the share of a criterion's words that the answer has."""
    scripted = ScriptedJudge(lambda request: decide(body_of(request)))
    backend = JudgeBackend(scripted)  # type: ignore[arg-type]
    monkeypatch.setattr(rubric, "resolve_backend", lambda *_: backend)
    return scripted


# As pyproject.toml declares it, wherever the tests run.
ENTRY_POINT = EntryPoint("judge", "agentunit.backends.judge:backend", quality.ENTRY_POINT_GROUP)
CASE = {
    "id": "q1",
    "query": "Write to Jane.",
    "context": ["Jane likes tea."],
    "expected_output": ["Dear Jane", "Hi Jane"],
}


def test_the_value_is_the_score_on_a_scale_of_0_to_1(judge: ScriptedJudge) -> None:
    result = RubricMetric("dear jane thanks kindly", name="tone").evaluate(CASE, None, "Dear Jane, hello.")
    assert (result.name, result.value) == ("tone", 0.5)
    assert result.detail["score"] == 3.0
    assert result.detail["scale"] == [1, 5]
    assert result.detail["criteria"] == ["dear jane thanks kindly"]
    assert result.detail["scores"][0]["reason"]
    assert result.detail["answer"] == "Dear Jane, hello."
    assert result.detail["backend"] == "judge"
    assert result.detail["judge"]["calls"] == 1


def test_the_judge_sees_what_the_case_has(judge: ScriptedJudge) -> None:
    RubricMetric("tea").evaluate(CASE, None, "Tea?")
    assert texts_of(body_of(judge.asked[0])) == {
        "question": "Write to Jane.",
        "passage 1": "Jane likes tea.",
        "acceptable answer 1": "Dear Jane",
        "acceptable answer 2": "Hi Jane",
        "answer": "Tea?",
    }


def test_reads_leaves_the_rest_out(judge: ScriptedJudge) -> None:
    RubricMetric("tea", reads=["expected_output"]).evaluate({**CASE, "expected_output": "Dear Jane"}, None, "Tea?")
    assert texts_of(body_of(judge.asked[0])) == {"expected answer": "Dear Jane", "answer": "Tea?"}


def test_criteria_of_the_case_stand_under_the_name_of_the_metric(judge: ScriptedJudge) -> None:
    case = {**CASE, "metadata": {"tone": ["tea", "cake"]}}
    result = RubricMetric(name="tone", scale=("no", "yes")).evaluate(case, None, "Tea?")
    assert result.value == 0.5
    assert [row["score"] for row in result.detail["scores"]] == ["yes", "no"]


def test_several_rubrics_in_one_run(judge: ScriptedJudge) -> None:
    metrics = [RubricMetric("tea", name="tea"), RubricMetric("cake", name="cake")]
    run = agentunit.score([{"case": CASE, "outcome": "Tea?"}] * 3, metrics)
    assert [row.mean for row in run.summary().metrics] == [1.0, 0.0]
    assert len(judge.asked) == 6


@pytest.mark.usefixtures("judge")
def test_a_batch_keeps_order_and_leaves_out_what_cannot_be_asked() -> None:
    items = [Item(CASE, None, answer) for answer in ("Tea", None, "none", "Tea")]
    results = RubricMetric("tea").evaluate_batch(items)
    assert [result.value for result in results] == [1.0, None, 0.0, 1.0]
    assert results[1].detail["reason"] == "no answer: outcome.output is missing"


def test_by_name_it_is_made_without_criteria_and_says_what_is_missing() -> None:
    (metric,) = resolve_metrics(["rubric"])
    result = metric.evaluate({"id": "q1"}, None, "x")  # type: ignore[arg-type]
    assert result.value is None
    assert result.detail["reason"] == "no criteria: none given, no case.metadata['rubric']"
    assert "error" not in result.detail


def test_without_a_judge_the_score_is_an_error_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "MODEL"):
        monkeypatch.delenv(f"AGENTUNIT_JUDGE_{name}", raising=False)
    quality.load_backend.cache_clear()
    monkeypatch.setattr(quality, "installed_backends", lambda: {"judge": ENTRY_POINT})
    result = RubricMetric("tea").evaluate(CASE, None, "Tea?")
    assert result.value is None
    assert "AGENTUNIT_JUDGE_URL" in result.detail["reason"]
    assert result.detail["error"]["type"] == "BackendUnavailable"


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"criteria": ""}, "criteria must be one or more texts; received ''"),
        ({"criteria": []}, "criteria must be one or more texts"),
        ({"criteria": ["a", 5]}, "criteria must be one or more texts"),
        ({"scale": (5, 1)}, r"scale must be .*; received \(5, 1\)"),
        ({"scale": (1,)}, "scale must be"),
        ({"scale": (1, 2, 3)}, "scale must be"),
        ({"scale": (0, 1.5)}, "scale must be"),
        ({"scale": ("good", "Good ")}, "scale must be"),
        ({"scale": ("good", 1)}, "scale must be"),
        ({"scale": "good"}, "scale must be"),
        ({"reads": ["answer"]}, "reads must be some of question, context, expected_output"),
        ({"reads": "context"}, "reads must be"),
        ({"name": " "}, "name must be a text"),
    ],
)
def test_what_cannot_be_right_is_refused(arguments: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=f"^RubricMetric: {rule}"):
        RubricMetric(**arguments)


@pytest.mark.parametrize("odd", [5, [], [""], {"a": 1}])
def test_criteria_of_a_case_that_are_no_texts_are_an_error(odd: Any) -> None:
    result = RubricMetric().evaluate({"id": "q1", "metadata": {"rubric": odd}}, None, "x")
    assert result.value is None
    assert result.detail["error"]["type"] == "InputProblem"
    assert result.detail["reason"].startswith("case.metadata['rubric'] must be one or more texts; received")

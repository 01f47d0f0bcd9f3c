from __future__ import annotations

from math import isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentunit
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.results import MetricResult, decode_case_scores, encode_json
from agentunit.core.trace import TraceLog
from agentunit.metrics.assertions import ContainsMetric, ExactMatchMetric
from agentunit.metrics.base import CompositeMetric, MetricInfo
from agentunit.metrics.builtin import AnswerCorrectnessMetric, FaithfulnessMetric, ToolSuccessMetric

pytestmark = pytest.mark.usefixtures("no_backends_installed")


class Fixed:
    def __init__(self, name: str, value: Any, **detail: Any) -> None:
        self.name = name
        self.value = value
        self.detail = detail

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, self.value, dict(self.detail))


def value_of(composite: CompositeMetric) -> float | None:
    return composite.evaluate(DatasetCase("q1"), TraceLog(), None).value


@pytest.mark.parametrize(
    ("values", "weights", "expected"),
    [
        ([0.5, 1.0], None, 0.75),
        ([0.5, None, 1.0], None, 0.75),  # what has no value does not count
        ([None, None], None, None),
        ([0.0], None, 0.0),
        ([0.5, 1.0], {"m0": 3}, 0.625),  # (3 × 0.5 + 1 × 1) / 4
        ([0.5, 1.0], {"m0": 0}, 1.0),
        ([0.5, None], {"m0": 0}, None),  # all that was scored weighs nothing
        ([0.5, None, 1.0], {"m0": 1, "m1": 8, "m2": 3}, 0.875),  # (0.5 + 3) / 4
        ([1, 0], None, 0.5),
    ],
)
def test_mean_of_what_has_a_value(values: list[Any], weights: Any, expected: float | None) -> None:
    metrics = [Fixed(f"m{position}", value) for position, value in enumerate(values)]
    assert value_of(CompositeMetric(metrics, weights=weights)) == expected


def test_detail_holds_only_the_parts() -> None:
    composite = CompositeMetric([Fixed("a", 0.5, seen=1), Fixed("b", None, reason="unknown")])
    result = composite.evaluate(DatasetCase("q1"), TraceLog(), None)
    assert result.detail == {"a": {"seen": 1}, "b": {"reason": "unknown"}}
    assert result.name == "composite"


def test_own_parts_share_plain_dicts() -> None:
    composite = CompositeMetric([AnswerCorrectnessMetric(), ToolSuccessMetric()], name="both")
    result = composite.evaluate({"id": "q1", "expected_output": "4"}, None, {"output": "4", "success": False})
    assert (result.name, result.value) == ("both", 0.5)


def test_a_composite_of_composites() -> None:
    inner = CompositeMetric([Fixed("a", 0.0), Fixed("b", 1.0)], name="inner")
    outer = CompositeMetric([inner, Fixed("c", 1.0)], name="outer")
    result = outer.evaluate(DatasetCase("q1"), TraceLog(), None)
    assert result.value == 0.75
    assert result.detail == {"inner": {"a": {}, "b": {}}, "c": {}}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"metrics": []}, "CompositeMetric: metrics must hold at least one metric; received none"),
        (
            {"metrics": [Fixed("a", 1.0), Fixed("a", 0.0)]},
            "CompositeMetric: metrics must have different names; received 'a' twice",
        ),
        ({"metrics": [Fixed("a", 1.0)], "weights": {"b": 1}}, r"weights must name its metrics \(a\); received 'b'"),
        ({"metrics": [Fixed("a", 1.0)], "weights": {"a": -1}}, "finite and 0 or more; received -1 for 'a'"),
        ({"metrics": [Fixed("a", 1.0)], "weights": {"a": float("nan")}}, "finite and 0 or more; received nan"),
        ({"metrics": [Fixed("a", 1.0)], "weights": {"a": True}}, "finite and 0 or more; received True"),
        ({"metrics": [Fixed("a", 1.0)], "weights": {"a": 0}}, "weights must not all be 0"),
    ],
)
def test_parameters_are_checked(arguments: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CompositeMetric(**arguments)


def test_a_weight_that_is_no_number_is_refused_in_the_same_words() -> None:
    with pytest.raises((TypeError, ValueError), match="CompositeMetric: weights must be finite"):
        CompositeMetric([Fixed("a", 1.0)], weights={"a": "heavy"})


def test_what_is_no_metric_is_refused_in_a_sentence() -> None:
    with pytest.raises((TypeError, ValueError), match="CompositeMetric: metrics must"):
        CompositeMetric(["faithfulness"])


def test_facts_follow_from_the_parts() -> None:
    same = CompositeMetric([FaithfulnessMetric(), AnswerCorrectnessMetric()])
    assert (same.info.direction, same.info.range) == ("higher", (0.0, 1.0))
    mixed = CompositeMetric([FaithfulnessMetric(), Fixed("a", 1.0)])
    assert (mixed.info.direction, mixed.info.range) == ("none", (None, None))


class Counting(Fixed):
    info = MetricInfo("counting", "custom", "Counts.", stateful=True)


def test_a_composite_of_a_stateful_part_is_stateful() -> None:
    assert CompositeMetric([Counting("counting", 1.0)]).info.stateful
    assert not CompositeMetric([Fixed("a", 1.0)]).info.stateful


def score_of(composite: CompositeMetric, outcome: Any = "Paris") -> Any:
    case = DatasetCase("q1", expected_output="Paris", context=["Paris"])
    [scores] = agentunit.score([(case, TraceLog(), outcome)], composite)
    return scores.scores[composite.name]


def test_in_a_run_the_backends_of_the_scored_parts_are_named() -> None:
    assert score_of(CompositeMetric([ContainsMetric("Paris")])).backend == "check"
    both = score_of(CompositeMetric([ContainsMetric("Paris"), AnswerCorrectnessMetric()]))
    assert both.backend == "check+lexical"
    unscored_part = CompositeMetric([ContainsMetric("Paris"), ToolSuccessMetric()])
    assert score_of(unscored_part).backend == "check"


def test_one_informational_part_makes_the_whole_informational() -> None:
    assert score_of(CompositeMetric([ContainsMetric("Paris"), FaithfulnessMetric()])).status == "informational"
    assert score_of(CompositeMetric([ContainsMetric("Paris"), ExactMatchMetric()])).status == "ok"


def test_a_part_that_was_scored_and_gives_its_reason_counts_as_scored() -> None:
    class Explained(Fixed):
        info = MetricInfo("explained", "custom", "Says why.", backend="coin", informational=frozenset({"coin"}))

    score = score_of(CompositeMetric([Explained("explained", 1.0, reason="because", backend="coin")]))
    assert (score.backend, score.status) == ("coin", "informational")


def test_a_score_survives_the_scores_file() -> None:
    [case] = agentunit.score([(DatasetCase("q1"), TraceLog(), "Paris")], CompositeMetric([ContainsMetric("Paris")]))
    assert decode_case_scores(encode_json(case)) == case


def test_no_part_scored() -> None:
    score = score_of(CompositeMetric([ContainsMetric()]))
    assert (score.value, score.status) == (None, "not_applicable")


def test_a_composite_without_a_value_says_why_and_one_with_a_value_holds_only_its_parts() -> None:
    composite = CompositeMetric([Fixed("a", None, reason="no context"), Fixed("b", None)])
    result = composite.evaluate(DatasetCase("q1"), TraceLog(), None)
    assert result.detail == {
        "a": {"reason": "no context"},
        "b": {},
        "reason": "no part has a value that counts (a: no context; b: no reason recorded)",
    }
    run = agentunit.score([(DatasetCase("q1"), TraceLog(), None)], composite)
    assert [each.reason for each in run.summary().unscored] == [result.detail["reason"]]


def test_a_composite_whose_scored_parts_weigh_nothing_says_so() -> None:
    composite = CompositeMetric([Fixed("a", 1.0), Fixed("b", None, reason="no answer")], weights={"a": 0})
    result = composite.evaluate(DatasetCase("q1"), TraceLog(), None)
    assert result.detail["reason"] == "no part has a value that counts (a: has weight 0; b: no answer)"


def test_the_reason_of_a_composite_of_composites() -> None:
    inner = CompositeMetric([Fixed("a", None, reason="no context")], name="inner")
    reason = CompositeMetric([inner]).evaluate(DatasetCase("q1"), TraceLog(), None).detail["reason"]
    assert reason.count("no part has a value that counts") == 2
    assert "a: no context" in reason


def test_a_part_that_cannot_use_its_input_leaves_the_others_standing() -> None:
    case = DatasetCase("q1", expected_output="Paris", metadata={"contains": 5})
    composite = CompositeMetric([ContainsMetric(), AnswerCorrectnessMetric()])
    result = composite.evaluate(case, TraceLog(), Outcome(output="Paris"))
    assert result.value == 1.0
    assert result.detail["contains"]["error"]["type"] == "InputProblem"


def test_a_part_that_raises_fails_the_composite_in_a_run() -> None:
    class Raising(Fixed):
        def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
            raise ZeroDivisionError("oh")

    score = score_of(CompositeMetric([Raising("r", 1.0), Fixed("a", 1.0)]))
    assert (score.status, score.result.detail["error"]["type"]) == ("error", "ZeroDivisionError")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_part_without_a_finite_value_never_makes_the_mean_infinite_or_nan(value: float) -> None:
    try:
        mean = value_of(CompositeMetric([Fixed("a", value), Fixed("b", 1.0)]))
    except ValueError:
        return  # refusing it aloud is as good
    assert mean is None or isfinite(mean)


@given(st.lists(st.tuples(st.none() | st.floats(0, 1), st.floats(0.001, 1000)), min_size=1, max_size=6))
def test_the_mean_lies_among_the_values(parts: list[tuple[float | None, float]]) -> None:
    metrics = [Fixed(f"m{position}", value) for position, (value, _) in enumerate(parts)]
    weights = {f"m{position}": weight for position, (_, weight) in enumerate(parts)}
    mean = value_of(CompositeMetric(metrics, weights=weights))
    known = [value for value, _ in parts if value is not None]
    if not known:
        assert mean is None
    else:
        assert mean is not None
        # Rounding may carry a weighted mean of equal values past them by a few units in the last place.
        assert min(known) - 1e-12 <= mean <= max(known) + 1e-12

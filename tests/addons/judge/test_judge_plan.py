"""The estimate of what a judge will be asked, against what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from judge_decisions import decide
from judge_server import JudgeServer

import agentunit
from agentunit.engine.scoring.judging import plan_sending
from agentunit.metrics.builtin import AnswerCorrectnessMetric, FaithfulnessMetric, RetrievalQualityMetric

SENTENCES = [f"Room {number} of the castle has {number} windows and a door." for number in range(150)]
LONG = " ".join(SENTENCES)
PASSAGE = LONG + " " + "x " * 8_000


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(decide) as server:
        agentunit.configure(judge={"url": server.url, "model": "judge-1", "cache": None})
        yield server
        agentunit.configure(judge=None)


CASES: dict[str, tuple[type[Any], dict[str, Any], str]] = {
    "short": (FaithfulnessMetric, {"context": [SENTENCES[1]]}, SENTENCES[1]),
    "long answer": (FaithfulnessMetric, {"context": [LONG]}, LONG),
    # Nothing is supported, so every claim is asked about with every batch of passages.
    "long passages": (FaithfulnessMetric, {"context": [f"{'y ' * 11_000}{at}" for at in range(4)]}, SENTENCES[1]),
    "both": (FaithfulnessMetric, {"context": [f"{'y ' * 11_000}{at}" for at in range(4)]}, LONG),
    "reference": (AnswerCorrectnessMetric, {"expected_output": LONG}, LONG + " And it is old."),
    "passages": (
        RetrievalQualityMetric,
        {"context": [f"{at} {PASSAGE}" for at in range(3)], "expected_output": LONG},
        LONG,
    ),
}


@pytest.mark.parametrize(("metric", "case", "answer"), CASES.values(), ids=CASES)
def test_the_calls_that_are_told_are_the_calls_that_are_made(
    metric: type[Any], case: dict[str, Any], answer: str, server: JudgeServer
) -> None:
    record = {"case": {"id": "q", "query": "Tell me.", **case}, "outcome": answer}
    made = metric(backend="judge")
    told = plan_sending([made], [record], n_cases=1, exact=True)
    list(agentunit.score([record], [made]))
    assert told is not None
    assert told.n_calls is not None
    # Claims are not counted beforehand but estimated from the length of a text.
    assert abs(told.n_calls - server.n_calls) <= 0.35 * server.n_calls


def test_a_batch_is_told_at_half_the_price() -> None:
    record = {"case": {"id": "q", "query": "?", "context": [SENTENCES[1]]}, "outcome": SENTENCES[1]}
    prices = {"usd_per_million_input": 2.0, "usd_per_million_output": 8.0}
    costs = []
    for batch in (False, True):
        agentunit.configure(judge={"url": "http://127.0.0.1:9/v1", "model": "m", "batch": batch, **prices})
        told = plan_sending([FaithfulnessMetric(backend="judge")], [record], n_cases=1, exact=True)
        agentunit.configure(judge=None)
        assert told is not None
        costs.append(told.cost_usd)
    assert costs[1] == pytest.approx((costs[0] or 0) / 2)

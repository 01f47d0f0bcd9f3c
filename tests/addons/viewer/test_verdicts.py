"""The verdict on one record: by its checks alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agentunit.addons.viewer._verdicts import CaseRules
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.registry import resolve_metrics

OWN = MetricInfo("polite", "custom", "")


class AllOnesAndZeros:
    def is_pass_fail(self, run_id: str, metric: str) -> bool:
        return True


def rules(*gates: str) -> CaseRules:
    header: Any = SimpleNamespace(id="r1", settings={"gates": list(gates)}, created_at=0.0)
    metrics = resolve_metrics(["exact_match", "answer_correctness", "step_repetition"])
    infos = {metric.info.name: metric.info for metric in metrics} | {"polite": OWN}
    store: Any = AllOnesAndZeros()
    return CaseRules(store, header, infos)


def test_only_checks_decide_a_case() -> None:
    assert set(rules().rules) == {"exact_match"}
    assert set(rules("step_repetition <= 0.5", "answer_correctness >= 0.44").rules) == {"exact_match"}
    assert set(rules("answer_correctness all >= 0.44").rules) == {"exact_match", "answer_correctness"}
    assert set(rules("polite >= 0.9").rules) == {"exact_match", "polite"}


@pytest.mark.parametrize("aggregate", ["", "p95 ", "median ", "pass^3 "])
def test_a_gate_on_the_run_turns_no_case_red(aggregate: str) -> None:
    """A score of 0.45 beside ``answer_correctness >= 0.5`` is no failure of its case, and no pass of it either."""
    case = rules(f"answer_correctness {aggregate}>= 0.5")
    assert case.passed("answer_correctness", 0.45, "ok") is None
    assert case.letter("q1", False, [("answer_correctness", 0.45, "o")]) == "-"
    assert case.letter("q1", False, [("answer_correctness", 0.45, "o"), ("exact_match", 1.0, "o")]) == "p"


@pytest.mark.parametrize(
    ("failed", "scores", "letter"),
    [
        (True, [("exact_match", 1.0, "o")], "e"),
        (False, [("exact_match", 0.0, "o"), ("polite", 1.0, "o")], "f"),
        (False, [("exact_match", 1.0, "o"), ("polite", 0.0, "o")], "f"),
        (False, [("exact_match", 1.0, "o"), ("polite", 1.0, "o")], "p"),
        (False, [("exact_match", float("nan"), "n")], "-"),
        # A score that raised is no failure of the agent; the run counts it among its errors.
        (False, [("exact_match", float("nan"), "e"), ("polite", 1.0, "o")], "p"),
        (False, [("exact_match", 0.0, "i")], "-"),
        (False, [], "-"),
    ],
)
def test_one_record_and_all_at_once_have_the_same_verdict(
    failed: bool, scores: list[tuple[str, float, str]], letter: str
) -> None:
    case = rules("polite >= 0.9")
    assert case.letter("q1", failed, scores) == letter
    columns = [(case.rules[metric], [value], status.encode()) for metric, value, status in scores]
    # That the agent failed is not in the scores.
    assert failed or case.letters(columns, 1) == letter.encode()

"""A program of a user's, as their type checker reads it: 'make lint' checks it with mypy, nothing runs it."""

from __future__ import annotations

import agentunit
from agentunit import DEFAULT_METRICS, Comparison, DatasetCase, RunResult, Suite
from agentunit.metrics import FaithfulnessMetric
from agentunit.multiagent import CoordinationEfficiencyMetric
from agentunit.multimodal import ImageCaptionAccuracyMetric
from agentunit.privacy import PIILeakageMetric
from agentunit.sustainability import CarbonMetric


def answer(query: str) -> str:
    """The agent."""
    return query


def main() -> None:
    """What most programs do. An ignored error that is none is one, too: wrong names must be seen."""
    suite = Suite([DatasetCase("q1", "Hi")], answer, metrics=[*DEFAULT_METRICS, PIILeakageMetric(), CarbonMetric()])
    result: RunResult = agentunit.run(suite)
    compared: Comparison = agentunit.compare(result, "main.json")
    codes: list[int] = [result.exit_code, compared.n_paired]
    codes = agentunit.run(suite).exit_code  # type: ignore[assignment]
    for case in agentunit.score([], [FaithfulnessMetric(), ImageCaptionAccuracyMetric(), CoordinationEfficiencyMetric]):
        name: str = case.case_id
        print(name, codes)
    limit: float = agentunit.sustainability.CarbonMetric().threshold_kg
    limit = agentunit.sustainability.CarbonMetric().threshold_gk  # type: ignore[attr-defined]
    agentunit.scoer([], limit)  # type: ignore[attr-defined]
    agentunit.privacy.PIIMetric()  # type: ignore[attr-defined]
    agentunit.metrics.FaithMetric()  # type: ignore[attr-defined]
    agentunit.multiagent.SwarmMetric()  # type: ignore[attr-defined]
    agentunit.multimodal.CaptionMetric()  # type: ignore[attr-defined]
    agentunit.sustainability.GreenMetric()  # type: ignore[attr-defined]

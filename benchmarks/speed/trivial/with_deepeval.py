"""A metric that returns 1.0, through deepeval: a custom ``BaseMetric`` in ``evaluate``, quiet and not asynchronous."""

from __future__ import annotations

from typing import Any

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from stopwatch import Scoring, time_scoring


class Always(BaseMetric):
    def __init__(self) -> None:
        self.threshold = 0.5
        self.async_mode = False

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        self.score = 1.0
        self.success = True
        return 1.0

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Always"


def evaluate_quietly(cases: list[LLMTestCase]) -> tuple[int, float]:
    """How many cases were scored, and their mean."""
    result = evaluate(
        cases,
        metrics=[Always()],
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        cache_config=CacheConfig(write_cache=False),
    )
    scores = [metric.score for test in result.test_results for metric in test.metrics_data]
    return len(scores), sum(scores) / len(scores)


def prepare(n_cases: int) -> Scoring:
    cases = [LLMTestCase(input=f"question {n}", actual_output=f"answer {n}") for n in range(n_cases)]
    return lambda: evaluate_quietly(cases)


if __name__ == "__main__":
    time_scoring(prepare)

"""A metric that returns 1.0, through pydantic-evals: an ``Evaluator`` of a ``Dataset``, evaluated with progress off."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from stopwatch import Scoring, time_scoring


@dataclass
class Always(Evaluator[str, str]):
    def evaluate(self, ctx: EvaluatorContext[str, str]) -> float:
        return 1.0


async def answer(question: str) -> str:
    # Asynchronous, because a plain function would be sent to a thread for every case.
    return question


def prepare(n_cases: int) -> Scoring:
    cases = [Case(name=f"case-{n}", inputs=f"question {n}", expected_output=f"answer {n}") for n in range(n_cases)]
    dataset: Dataset[str, str] = Dataset(name="trivial", cases=cases, evaluators=[Always()])

    def score_all() -> tuple[int, float]:
        # Unlimited, its default, starts every case at once and is slower when cases cost nothing.
        report = dataset.evaluate_sync(answer, progress=False, max_concurrency=10)
        averages = report.averages()
        return len(report.cases), averages.scores["Always"] if averages else 0.0

    return score_all


if __name__ == "__main__":
    time_scoring(prepare)

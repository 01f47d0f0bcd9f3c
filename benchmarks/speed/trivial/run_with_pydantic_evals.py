"""An agent that returns its question and an ``Evaluator`` that returns 1.0, through pydantic-evals, progress off.

    python run_with_pydantic_evals.py CASES scored

It keeps nothing on disk: its report is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from stopwatch import Recording, time_recording


@dataclass
class Always(Evaluator[str, str]):
    def evaluate(self, ctx: EvaluatorContext[str, str]) -> float:
        return 1.0


async def answer(question: str) -> str:
    # Asynchronous, because a plain function would be sent to a thread for every case.
    return question


def prepare(n_cases: int, scored: bool) -> Recording:
    cases = [Case(name=f"case-{n}", inputs=f"question {n}", expected_output=f"answer {n}") for n in range(n_cases)]
    dataset: Dataset[str, str] = Dataset(name="trivial", cases=cases, evaluators=[Always()] if scored else [])

    def run_all() -> tuple[int, float | None]:
        # Unlimited, its default, starts every case at once and is slower when cases cost nothing.
        report = dataset.evaluate_sync(answer, progress=False, max_concurrency=10)
        averages = report.averages()
        return len(report.cases), averages.scores["Always"] if scored and averages else None

    return run_all


if __name__ == "__main__":
    time_recording(prepare)

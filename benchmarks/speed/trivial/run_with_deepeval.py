"""An agent that returns its question, called for every case, and deepeval's ``evaluate`` over what it answered.

    python run_with_deepeval.py CASES scored

As its documentation runs an agent of one's own: a test case of each answer, then all of them. It keeps nothing on disk.
"""

from __future__ import annotations

from deepeval.test_case import LLMTestCase
from stopwatch import Recording, time_recording
from with_deepeval import evaluate_quietly


def answer(question: str) -> str:
    return question


def prepare(n_cases: int, scored: bool) -> Recording:
    questions = [f"question {n}" for n in range(n_cases)]

    def run_all() -> tuple[int, float | None]:
        cases = [LLMTestCase(input=question, actual_output=answer(question)) for question in questions]
        return evaluate_quietly(cases)

    return run_all


if __name__ == "__main__":
    time_recording(prepare)

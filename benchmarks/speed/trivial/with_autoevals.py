"""A scorer that returns 1.0, through autoevals: it is called in a loop, which is all that the package does."""

from __future__ import annotations

from typing import Any

from autoevals import Score
from autoevals.score import Scorer
from stopwatch import Scoring, time_scoring


class Always(Scorer):
    def _run_eval_sync(self, output: Any, expected: Any = None, **kwargs: Any) -> Score:
        return Score(name="always", score=1.0)


def prepare(n_cases: int) -> Scoring:
    cases = [(f"answer {n}", f"answer {n}") for n in range(n_cases)]
    scorer = Always()

    def score_all() -> tuple[int, float]:
        scores = [scorer.eval(output=output, expected=expected).score or 0.0 for output, expected in cases]
        return len(scores), sum(scores) / len(scores)

    return score_all


if __name__ == "__main__":
    time_scoring(prepare)

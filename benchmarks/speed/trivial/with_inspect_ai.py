"""A metric that returns 1.0, through inspect-ai: a scorer, and a solver that calls no model, into a log."""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from stopwatch import Scoring, time_scoring


@solver
def recorded_answer() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("mockllm/model", state.input_text)
        return state

    return solve


@scorer(metrics=[mean()])
def always() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1.0)

    return score


def prepare(n_cases: int) -> Scoring:
    samples = [Sample(id=f"case-{n}", input=f"question {n}", target=f"answer {n}") for n in range(n_cases)]
    task = Task(dataset=MemoryDataset(samples), solver=recorded_answer(), scorer=always())

    # Any second argument asks for the least it can log: neither each sample, nor as it goes.
    less_logging: dict[str, Any] = {"log_samples": False, "log_realtime": False} if len(sys.argv) > 2 else {}

    def score_all() -> tuple[int, float]:
        with tempfile.TemporaryDirectory() as log_folder:
            log: Any = eval(
                task, model="mockllm/model", display="none", log_dir=log_folder, log_level="error", **less_logging
            )[0]
        if log.status != "success":
            raise SystemExit(f"inspect-ai ended with status {log.status}: {log.error}")
        return log.results.completed_samples, log.results.scores[0].metrics["mean"].value

    return score_all


if __name__ == "__main__":
    time_scoring(prepare)

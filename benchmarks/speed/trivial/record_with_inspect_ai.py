"""An agent that returns its question, through inspect-ai: a solver that calls no model, its log on disk.

    python record_with_inspect_ai.py CASES [scored] [less]

Its settings for logging are its own, the default format, written as samples end; with ``less`` it logs the least that
it can: neither each sample, nor as it goes.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from stopwatch import Recording, time_recording

_LEAST: dict[str, Any] = {"log_samples": False, "log_realtime": False}


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


def prepare(n_cases: int, scored: bool) -> Recording:
    samples = [Sample(id=f"case-{n}", input=f"question {n}", target=f"answer {n}") for n in range(n_cases)]
    task = Task(dataset=MemoryDataset(samples), solver=recorded_answer(), scorer=always() if scored else None)
    log_folder = tempfile.mkdtemp(dir=".")
    less = _LEAST if "less" in sys.argv[2:] else {}

    def record_all() -> tuple[int, float | None]:
        log: Any = eval(task, model="mockllm/model", display="none", log_dir=log_folder, log_level="error", **less)[0]
        if log.status != "success":
            raise SystemExit(f"inspect-ai ended with status {log.status}: {log.error}")
        return log.results.completed_samples, log.results.scores[0].metrics["mean"].value if scored else None

    return record_all


if __name__ == "__main__":
    time_recording(prepare)

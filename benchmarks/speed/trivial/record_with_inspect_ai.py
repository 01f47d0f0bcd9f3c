"""An agent that returns its question, through inspect-ai: a solver that calls no model, its log on disk.

    python record_with_inspect_ai.py CASES [scored]

Its settings for logging are its own. The log is the default format, written as samples end.
"""

from __future__ import annotations

import tempfile
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from stopwatch import Recording, time_recording
from with_inspect_ai import always, recorded_answer


def prepare(n_cases: int, scored: bool) -> Recording:
    samples = [Sample(id=f"case-{n}", input=f"question {n}", target=f"answer {n}") for n in range(n_cases)]
    task = Task(dataset=MemoryDataset(samples), solver=recorded_answer(), scorer=always() if scored else None)
    log_folder = tempfile.mkdtemp(dir=".")

    def record_all() -> tuple[int, float | None]:
        log: Any = eval(task, model="mockllm/model", display="none", log_dir=log_folder, log_level="error")[0]
        if log.status != "success":
            raise SystemExit(f"inspect-ai ended with status {log.status}: {log.error}")
        return log.results.completed_samples, log.results.scores[0].metrics["mean"].value if scored else None

    return record_all


if __name__ == "__main__":
    time_recording(prepare)

"""An agent that returns its question, through ``mlflow.genai.evaluate`` with its traces in a SQLite file.

    python record_with_mlflow.py CASES [scored]

By default it starts no more than about ten predictions a second; that limit is off here, or it would be most of what
is measured.
"""

from __future__ import annotations

import os
import tempfile

os.environ["MLFLOW_GENAI_EVAL_PREDICT_RATE_LIMIT"] = "0"

import mlflow
from mlflow.genai.scorers import scorer
from stopwatch import Recording, time_recording


@scorer
def always(outputs: str) -> float:
    return 1.0


def answer(question: str) -> str:
    return question


def prepare(n_cases: int, scored: bool) -> Recording:
    rows = [
        {"inputs": {"question": f"question {n}"}, "expectations": {"expected_response": f"answer {n}"}}
        for n in range(n_cases)
    ]
    folder = os.path.abspath(tempfile.mkdtemp(dir="."))
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    # Outside of the time: this makes its tables.
    experiment = mlflow.create_experiment("trivial", artifact_location=f"file://{folder}/artifacts")
    mlflow.set_experiment(experiment_id=experiment)

    def record_all() -> tuple[int, float | None]:
        result = mlflow.genai.evaluate(data=rows, predict_fn=answer, scorers=[always] if scored else [])
        mlflow.flush_trace_async_logging()
        # Its frame is made of the traces it finds again in the store.
        return len(result.result_df), float(result.metrics["always/mean"]) if scored else None

    return record_all


if __name__ == "__main__":
    time_recording(prepare)

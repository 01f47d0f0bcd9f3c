"""An agent that returns its question, recorded into a fresh store and, if asked, scored by a metric that returns 1.0.

    python record_with_agentunit.py CASES async|threads|processes [scored]

The time covers opening the store, planning, recording every case durably, scoring with the summary, and closing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from stopwatch import Recording, time_recording

import agentunit
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store.sqlite import Store


class Always:
    name = "always"

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> agentunit.MetricResult:
        return agentunit.MetricResult(self.name, 1.0)


def answer(query: str) -> str:
    return query


async def answer_async(query: str) -> str:
    return query


# A plain function runs in threads; one that has only so much time runs in processes, which can be ended.
_WAYS: dict[str, dict[str, Any]] = {
    "async": {"agent": answer_async},
    "threads": {"agent": answer},
    "processes": {"agent": answer, "timeout_s": 60.0},
}


def prepare(n_cases: int, scored: bool) -> Recording:
    cases = [agentunit.DatasetCase(f"case-{n}", f"question {n}", expected_output=f"answer {n}") for n in range(n_cases)]
    suite = agentunit.Suite(dataset=cases, metrics=[Always()], **_WAYS[sys.argv[2]])
    path = Path(tempfile.mkdtemp(dir=".")) / "runs.db"

    def record_all() -> tuple[int, float | None]:
        with Store(path) as store:
            plan = plan_run(suite, store)
            recording = record(plan, store)
            mean = None
            if scored:
                score_run(store, plan.header.id, suite.metrics)
                mean = run_from_store(store, plan.header.id).summary().metrics[0].mean
        return recording.n_done - recording.n_failed, mean

    return record_all


if __name__ == "__main__":
    time_recording(prepare)

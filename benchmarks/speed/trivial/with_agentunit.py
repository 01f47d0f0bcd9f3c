"""A metric that returns 1.0, through ``agentunit.score``: every case's scores are read, then the summary."""

from __future__ import annotations

from typing import Any

from stopwatch import Scoring, time_scoring

import agentunit


class Always:
    name = "always"

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> agentunit.MetricResult:
        return agentunit.MetricResult(self.name, 1.0)


def prepare(n_cases: int) -> Scoring:
    records = [
        agentunit.Record(
            agentunit.DatasetCase(f"case-{n}", f"question {n}", expected_output=f"answer {n}"),
            agentunit.TraceLog(),
            agentunit.Outcome(output=f"answer {n}"),
        )
        for n in range(n_cases)
    ]

    def score_all() -> tuple[int, float]:
        run = agentunit.score(records, [Always()])
        for _ in run:
            pass
        row = run.summary().metrics[0]
        return row.n_scored, row.mean or 0.0

    return score_all


if __name__ == "__main__":
    time_scoring(prepare)

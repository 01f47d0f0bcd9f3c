"""A reporter: one line of plain text for each metric of a run."""

from __future__ import annotations

from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.reporters import RunReporter, whole_file


def _write(reported: ReportedRun, target: str) -> str:
    rows = reported.summary.metrics
    with whole_file(target) as stream:
        for row in rows:
            mean = "no value" if row.mean is None else f"{row.mean:.3f}"
            line = f"{row.metric} [{row.backend}]: {mean}, {row.n_scored} of {row.n_cases} cases\n"
            stream.write(line.encode("utf-8", "replace"))
    return f"{len(rows)} lines"


TEXT = RunReporter("plain text: one line a metric", (".txt",), _write)

"""Runs that are not whole: stopped before all cases were done, or without the scores of what was recorded."""

from __future__ import annotations

from math import ceil

from agentunit.engine.scored_run import ScoredRun

HOW_TO_GO_ON = "'agentunit run SUITE --resume RUN' runs the rest, 'agentunit score RUN' scores what is recorded"
_ENDED = {"running": "is still running, with", "stopped": "was stopped at", "interrupted": "was interrupted at"}


def planned_cases(run: ScoredRun) -> int:
    """How many cases a run has, or was planned to have."""
    planned = run.header.settings.get("repeats")
    repeats = max(run.n_repeats, max((record.repeat + 1 for record in run.records), default=1))
    if isinstance(planned, int):
        repeats = max(repeats, planned)
    return max(run.n_cases, ceil((run.header.n_planned or 0) / repeats))


def is_unfinished(run: ScoredRun) -> bool:
    """Whether cases of a run are still open."""
    return run.header.status != "finished" and run.n_records < (run.header.n_planned or 0)


def n_with_scores(run: ScoredRun) -> int:
    """How many records were scored, whatever came of it: a metric that does not apply has been there, too."""
    return len({(row.position, row.repeat) for rows in run.metrics.values() for row in rows})


def what_is_missing(run: ScoredRun) -> str | None:
    """What a run lacks, as the end of a sentence about it; ``None`` of a run that is whole."""
    n_scored = n_with_scores(run)
    if not is_unfinished(run):
        if not n_scored:
            return "has no scores"
        n_records = max(run.n_records, n_scored)
        return f"has scores of {n_scored:,} of {n_records:,} records" if n_scored < n_records else None
    what = "cases" if planned_cases(run) == run.header.n_planned else "runs of cases"
    said = f"{_ENDED[run.header.status]} {run.n_records:,} of {run.header.n_planned:,} {what}"
    return said if n_scored >= run.n_records else f"{said}, {f'{n_scored:,} scored' if n_scored else 'none scored'}"

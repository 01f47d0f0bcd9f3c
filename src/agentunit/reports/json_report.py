"""A run as data: what ``--json`` prints. The portable file with every record is ``store/portable.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentunit.core.results import MetricSummary, RunSummary
from agentunit.metrics.base import MetricInfo
from agentunit.reports.figures import quantity
from agentunit.reports.gate_words import Verdict, gate_expression, verdict_word
from agentunit.reports.reported_run import ReportedRun
from agentunit.store.sqlite import RunHeader

_HEADLINES = 3


def run_as_data(reported: ReportedRun, *, verdicts: Sequence[Verdict] = ()) -> dict[str, Any]:
    """The header, the summary and the verdicts of a run, ready for JSON."""
    return {
        "run": reported.run.header,
        "n_cases": reported.run.n_cases,
        "n_records": reported.run.n_records,
        "n_failed": reported.run.n_failed,
        "n_repeats": reported.run.n_repeats,
        "summary": reported.summary,
        "gates": [
            {"expression": gate_expression(each), "verdict": verdict_word(each).lower(), "reason": each.reason}
            for each in verdicts
        ],
    }


def run_line_as_data(header: RunHeader, headlines: Iterable[MetricSummary]) -> dict[str, Any]:
    """One run of a listing, ready for JSON."""
    return {
        "id": header.id,
        "name": header.name,
        "created_at": header.created_at,
        "finished_at": header.finished_at,
        "status": header.status,
        "n_planned": header.n_planned,
        "n_done": header.n_done,
        "n_failed": header.n_failed,
        "metrics": {row.metric: row.mean for row in headlines},
    }


def headline_rows(summary: RunSummary, infos: dict[str, MetricInfo]) -> list[MetricSummary]:
    """The few metrics that say most about a run: scores one may decide on first, then what it cost."""

    def rank(row: MetricSummary) -> int:
        scores = infos[row.metric].unit == "score"
        return (0 if scores else 1) if row.status == "ok" else 2

    scored = [row for row in summary.metrics if row.mean is not None]
    first_of_metric = list({row.metric: row for row in reversed(scored)}.values())[::-1]
    return sorted(first_of_metric, key=rank)[:_HEADLINES]


def headline_words(rows: Iterable[MetricSummary], infos: dict[str, MetricInfo]) -> str:
    """The headline of a run in one line."""
    return ", ".join(
        f"{row.metric} {quantity(row.mean, infos[row.metric].unit)}" for row in rows if row.mean is not None
    )

"""Runs, decisions and metrics as data: what ``--json`` prints. ``store/portable.py`` writes a run with its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agentunit.engine.deciding.decision import Decision
from agentunit.engine.deciding.gate_expressions import GateVerdict
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import describe_trust, known_backends
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.run_facts import origin_as_data
from agentunit.store.runs import RunHeader


def run_as_data(reported: ReportedRun) -> dict[str, Any]:
    """The header, the summary and the decision of a run, ready for JSON."""
    return {
        "run": reported.run.header,
        "n_cases": reported.run.n_cases,
        "n_records": reported.run.n_records,
        "n_failed": reported.run.n_failed,
        "n_repeats": reported.run.n_repeats,
        "summary": reported.summary,
        "failures": reported.failures,
        "causes": reported.causes,
        "findings": reported.findings,
        **decision_as_data(reported.decision),
    }


def decision_as_data(decision: Decision) -> dict[str, Any]:
    """What was decided, and everything it was decided by, ready for JSON."""
    return {
        "gates": [_gate_as_data(each) for each in decision.gates],
        "comparison": decision.comparison,
        "n_errors": decision.n_errors,
        "max_errors": decision.max_errors,
        "known_failures": decision.known_failures,
        "decision": {
            "verdict": decision.verdict,
            "headline": decision.headline,
            "reasons": decision.reasons,
            "failing_cases": decision.failing_cases,
            "line": decision.line,
            "counts": decision.counts,
            "findings": decision.findings,
            "way_out": decision.way_out,
            "made_with": decision.made_with,
        },
        "exit_code": decision.exit_code,
    }


def _gate_as_data(verdict: GateVerdict) -> dict[str, Any]:
    fields = {name: getattr(verdict, name) for name in verdict.__dataclass_fields__}
    return {"expression": str(verdict.gate), "coverage": verdict.coverage, **fields}


def run_line_as_data(
    header: RunHeader, means: Mapping[str, float], verdict: str | None, headline: str | None
) -> dict[str, Any]:
    """One run of a listing with what was decided when it was made, ready for JSON."""
    return {
        "id": header.id,
        "name": header.name,
        "created_at": header.created_at,
        "finished_at": header.finished_at,
        "status": header.status,
        "n_planned": header.n_planned,
        "n_done": header.n_done,
        "n_failed": header.n_failed,
        **origin_as_data(header),
        "verdict": verdict,
        "headline": headline,
        "metrics": dict(means),
    }


def info_as_data(info: MetricInfo, defaults: dict[str, Any], path: str) -> dict[str, Any]:
    """Everything about a metric, ready for JSON; ``path`` is where its class is imported from."""
    facts = {field.name: getattr(info, field.name) for field in fields(info)}
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()},
        "class": path,
        "metadata_inputs": dict(info.metadata_inputs),
        "trust": {backend: describe_trust(info, backend, at_length=True) for backend in known_backends(info)},
        "informational": sorted(info.informational),
        "informational_backends": sorted(info.informational),
        "amount": None if info.amount is None else {"detail_key": info.amount[0], "unit": info.amount[1]},
        "parameters": defaults,
    }

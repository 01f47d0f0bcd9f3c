"""A gate and what became of it, in the words every report uses. Whether the run passes is said by its decision."""

from __future__ import annotations

from agentunit.engine.gates import GateVerdict

# A gate that is met is not a run that passes: errors, a baseline or another gate may speak against it.
GATE_WORDS = {"pass": "met", "fail": "FAIL", "error": "ERROR"}


def gate_rule(verdict: GateVerdict) -> str:
    """The expression without its metric: what stands beside the metric in a table."""
    return str(verdict.gate).removeprefix(verdict.gate.metric).strip()


def is_about(verdict: GateVerdict, metric: str, backend: str) -> bool:
    """Whether a gate looks at these scores: one on a named backend looks at that backend's only."""
    return verdict.gate.metric == metric and verdict.gate.backend in (None, backend)

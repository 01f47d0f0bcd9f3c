"""The metrics that gates name: a slip in a gate is told before anything is run, read or scored."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from agentunit.engine.gate_expressions import Gate, GateError
from agentunit.engine.gates import refuse_impossible
from agentunit.metrics.base import describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.json_report import known_backends


def gated_metric(gate: Gate, metric: Any = None) -> Any:
    """The metric that a gate is about, unless it is at hand already. A name that nothing has is a ``GateError``."""
    if metric is None:
        try:
            [metric] = resolve_metrics([gate.metric])
        except (ValueError, TypeError, RuntimeError) as error:
            raise GateError(f"gate {str(gate)!r}: {error}") from None
    # Backends of other packages need not be known here, so only what is close to a known one is taken for a slip.
    known = known_backends(describe(metric))
    near = [] if gate.backend is None or gate.backend in known else get_close_matches(gate.backend, known, n=1)
    if near:
        raise GateError(f"gate {str(gate)!r}: {gate.metric} has no backend {gate.backend!r}; did you mean {near[0]!r}?")
    refuse_impossible(gate, describe(metric))
    return metric

"""Count the facts in spans that speak OpenInference, whatever file they stood in; for counters of the corpus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

COUNTS = {
    "input": "llm.token_count.prompt",
    "output": "llm.token_count.completion",
    "cache_read": "llm.token_count.prompt_details.cache_read",
    "reasoning": "llm.token_count.completion_details.reasoning",
}


class SpanFacts(NamedTuple):
    """One span: its attributes under dotted names, whether its status is an error, and what orders it."""

    trace_id: str
    start: Any
    attributes: dict[str, Any]
    failed: bool


def cases_of(spans: Iterable[SpanFacts]) -> list[dict[str, Any]]:
    """One case a trace: what its agents' spans, its tools' spans and its model calls' spans state."""
    traces: dict[str, list[SpanFacts]] = {}
    for span in sorted(spans, key=lambda each: each.start):
        traces.setdefault(span.trace_id, []).append(span)
    return [_case(trace) for trace in traces.values()]


def _case(spans: list[SpanFacts]) -> dict[str, Any]:
    kinds = {
        kind: [span for span in spans if span.attributes.get("openinference.span.kind") == kind]
        for kind in ("AGENT", "TOOL", "LLM")
    }
    first = kinds["AGENT"][0].attributes
    return {
        "question": first["input.value"],
        "answer": first["output.value"],
        "agents": sorted({span.attributes["agent.name"] for span in kinds["AGENT"]}),
        "tool_calls": [[span.attributes["tool.name"], "error" if span.failed else "success"] for span in kinds["TOOL"]],
        "tokens": {
            kind: sum(int(span.attributes.get(name, 0)) for span in kinds["LLM"]) for kind, name in COUNTS.items()
        },
        "cost": None,
    }

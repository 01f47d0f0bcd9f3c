"""The fields of Langfuse's exports, and the names by which Langfuse knows them as attributes of a span."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

OF_AN_OBSERVATION: dict[str, tuple[str, ...]] = {
    "langfuse.observation.type": ("type",),
    "langfuse.observation.level": ("level",),
    "langfuse.observation.status_message": ("statusMessage",),
    "langfuse.observation.input": ("input",),
    "langfuse.observation.output": ("output",),
    "langfuse.observation.metadata": ("metadata",),
    "langfuse.observation.model.name": ("model", "providedModelName"),
    "langfuse.observation.model.parameters": ("modelParameters",),
    "langfuse.observation.completion_start_time": ("completionStartTime",),
    "langfuse.observation.prompt.name": ("promptName",),
    "langfuse.observation.prompt.version": ("promptVersion",),
    # Langfuse has no attributes for these: it finds them in outputs.
    "langfuse.observation.tool_calls": ("toolCalls",),
    "langfuse.observation.tool_call_names": ("toolCallNames",),
    "langfuse.observation.tool_definitions": ("toolDefinitions",),
    "langfuse.environment": ("environment",),
    "langfuse.release": ("release",),
    "langfuse.version": ("version",),
    "langfuse.session.id": ("sessionId",),
    "langfuse.user.id": ("userId",),
    "langfuse.trace.name": ("traceName",),
    "langfuse.trace.tags": ("tags",),
}

OF_A_TRACE: dict[str, tuple[str, ...]] = {
    "langfuse.trace.name": ("name",),
    "langfuse.trace.input": ("input",),
    "langfuse.trace.output": ("output",),
    "langfuse.trace.metadata": ("metadata",),
    "langfuse.trace.tags": ("tags",),
    "langfuse.trace.public": ("public",),
    # Langfuse has no attributes for these three: it computes them, or gets them by another way.
    "langfuse.trace.total_cost": ("totalCost",),
    "langfuse.trace.latency": ("latency",),
    "langfuse.trace.scores": ("scores",),
    "langfuse.environment": ("environment",),
    "langfuse.release": ("release",),
    "langfuse.version": ("version",),
    "langfuse.session.id": ("sessionId",),
    "langfuse.user.id": ("userId",),
}

_USAGE = {"input": ("promptTokens",), "output": ("completionTokens",), "total": ("totalTokens",)}
_COSTS = {
    "input": ("inputCost", "calculatedInputCost"),
    "output": ("outputCost", "calculatedOutputCost"),
    "total": ("totalCost", "calculatedTotalCost"),
}


def field(row: Mapping[str, Any], name: str, missing: Any = None) -> Any:
    """A field under its name in the API (``traceId``), or else under that in the storage (``trace_id``)."""
    return row.get(name, row.get(_snake_case(name), missing))


def usage_details(row: Mapping[str, Any]) -> Any:
    """How many tokens of each kind were used, in whichever way this version of Langfuse says so.

    Older versions say ``usage`` or ``promptTokens``, with zeros where nothing was used; those say nothing.

    >>> usage_details({"usage": {"input": 7, "output": 2, "total": 9, "unit": "TOKENS"}, "usageDetails": {}})
    {'input': 7, 'output': 2, 'total': 9}
    """
    details = field(row, "usageDetails")
    if details:
        return details
    usage = row.get("usage")
    if isinstance(usage, dict) and usage.get("unit") in (None, "TOKENS"):
        return _stated({kind: usage.get(kind) for kind in _USAGE}) or _amounts(usage, _USAGE)
    return _amounts(row, _USAGE)


def cost_details(row: Mapping[str, Any]) -> Any:
    """What an observation cost, in US dollars by kind, in whichever way this version of Langfuse says so."""
    return field(row, "costDetails") or _amounts(row, _COSTS)


def _amounts(row: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Any] | None:
    return _stated(
        {
            kind: next((value for each in fields if (value := field(row, each)) is not None), None)
            for kind, fields in names.items()
        }
    )


def _stated(amounts: Mapping[str, Any]) -> dict[str, Any] | None:
    return {kind: amount for kind, amount in amounts.items() if amount is not None} if any(amounts.values()) else None


@cache
def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()

"""The catalog of metrics with what each is worth (``Catalog`` of types.ts), made from the registry."""

from __future__ import annotations

from functools import cache
from typing import Any

from agentunit.metrics.base import MetricInfo
from agentunit.metrics.registry import parameter_defaults, registry
from agentunit.metrics.trust import describe_trust
from agentunit.reports.case_view import plain
from agentunit.reports.json_report import known_backends

_FACTS = ("name", "family", "summary", "direction", "unit", "backend", "extra", "question", "version")


@cache
def catalog() -> dict[str, Any]:
    """All metrics that are installed here; one that cannot be loaded is left out."""
    entries = []
    for name, info in registry.describe_all():
        if not isinstance(info, MetricInfo):
            continue
        entries.append(
            {
                **{fact: getattr(info, fact) for fact in _FACTS},
                "range": list(info.range),
                "inputs": list(info.inputs),
                "trust": {each: describe_trust(info, each, at_length=True) for each in known_backends(info)},
                "informational": sorted(info.informational),
                "parameters": plain(parameter_defaults(registry.create(name))),
            }
        )
    return {"metrics": entries}

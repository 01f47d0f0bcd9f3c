"""The metrics as a listing, a card or data: all made from what each metric says about itself."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import trust_words


def info_as_data(info: MetricInfo, defaults: dict[str, Any], path: str) -> dict[str, Any]:
    """Everything about a metric, ready for JSON; ``path`` is where its class is imported from."""
    facts = {field.name: getattr(info, field.name) for field in fields(info)}
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()},
        "class": path,
        "metadata_inputs": dict(info.metadata_inputs),
        "trust": {backend: trust_words(info, backend, at_length=True) for backend in known_backends(info)},
        "informational": sorted(info.informational),
        "informational_backends": sorted(info.informational),
        "amount": None if info.amount is None else {"detail_key": info.amount[0], "unit": info.amount[1]},
        "parameters": defaults,
    }


def known_backends(info: MetricInfo) -> list[str]:
    """The backends a metric speaks of, its default first."""
    return list(dict.fromkeys([info.backend, *info.trust, *sorted(info.informational)]))


def spoken_range(info: MetricInfo) -> str:
    """The values a metric can take, in words.

    >>> spoken_range(MetricInfo("cost", "operational", "", range=(0.0, None), unit="USD"))
    'USD, 0 or more'
    """
    low, high = info.range
    if low is None and high is None:
        return info.unit
    if high is None:
        return f"{info.unit}, {low:g} or more"
    return f"{low:g} to {high:g}" if low is not None else f"up to {high:g}"


def spoken_direction(direction: str) -> str:
    """Which way is better."""
    return {"higher": "higher is better", "lower": "lower is better", "none": "neither way is better"}[direction]

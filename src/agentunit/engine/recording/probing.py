"""What the chosen metrics want measured while agents run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agentunit.metrics.base import CompositeMetric, describe
from agentunit.probes.probe_settings import DEFAULT_INTERVAL_S, PROBES, ProbeSettings, checked_interval


def probe_settings(metrics: Iterable[Any]) -> ProbeSettings | None:
    """How to measure for these metrics: at the shortest ``sample_interval`` among them; ``None`` if none asks for it.

    >>> from agentunit.metrics.registry import resolve_metrics
    >>> probe_settings(resolve_metrics(["cost"])) is None
    True
    """
    intervals = []
    for metric in _with_parts(metrics):
        asked = describe(metric).probes
        for probe in asked:
            if probe not in PROBES:
                raise ValueError(
                    f"metric {metric.name!r}: probes must be among {', '.join(PROBES)}; received {probe!r}"
                )
        if asked:
            who = type(metric).__name__
            interval = getattr(metric, "sample_interval", DEFAULT_INTERVAL_S)
            intervals.append(checked_interval(who, "sample_interval", interval))
    return ProbeSettings(min(intervals)) if intervals else None


def _with_parts(metrics: Iterable[Any]) -> Iterator[Any]:
    for metric in metrics:
        if isinstance(metric, CompositeMetric):
            yield from _with_parts(metric.metrics)
        else:
            yield metric

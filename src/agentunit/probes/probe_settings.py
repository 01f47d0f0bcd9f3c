"""What a run asks the probes to do, as the code that calls an agent finds it."""

from __future__ import annotations

from contextvars import ContextVar
from threading import TIMEOUT_MAX
from typing import NamedTuple

PROBES = ("energy", "resources")
"""What a metric may ask for in ``MetricInfo.probes``. One probe measures both."""

DEFAULT_INTERVAL_S = 1.0
SHORTEST_INTERVAL_S = 0.01


class ProbeSettings(NamedTuple):
    """How a run measures its agents."""

    sample_interval_s: float = DEFAULT_INTERVAL_S


wanted: ContextVar[ProbeSettings | None] = ContextVar("agentunit_probes", default=None)
"""The settings under which agents are measured in this context; ``None``: they are not."""


def checked_interval(who: str, parameter: str, value: object) -> float:
    """A sampling interval in seconds, or a ``ValueError`` that says what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= TIMEOUT_MAX:
        raise ValueError(f"{who}: {parameter} must be a finite number of seconds above 0; received {value!r}")
    if value < SHORTEST_INTERVAL_S:
        raise ValueError(
            f"{who}: {parameter} must be at least {SHORTEST_INTERVAL_S} s, or measuring would be most of what is "
            f"measured; received {value!r}"
        )
    return float(value)

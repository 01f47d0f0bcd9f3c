"""What agents use and emit: energy, carbon and resources.

The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentunit.public import lazy_names

if TYPE_CHECKING:
    from agentunit.sustainability.metrics import (
        CarbonMetric,
        EnergyMetric,
        ResourceUtilizationMetric,
    )

__all__ = [
    "CarbonMetric",
    "EnergyMetric",
    "ResourceUtilizationMetric",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {".metrics": " ".join(__all__)})

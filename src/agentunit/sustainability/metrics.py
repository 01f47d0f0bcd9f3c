"""The catalog's sustainability metrics, under the path it gives them."""

from __future__ import annotations

from agentunit.sustainability.carbon import CarbonMetric
from agentunit.sustainability.energy import EnergyMetric
from agentunit.sustainability.utilization import ResourceUtilizationMetric

__all__ = ["CarbonMetric", "EnergyMetric", "ResourceUtilizationMetric"]

"""The catalog's sustainability metrics, under the path it gives them, and how well a run used its machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.formulas.sustainability import utilization_score
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import Item, number_at
from agentunit.metrics.parameters import POSITIVE, check_parameters
from agentunit.metrics.sentences import amount
from agentunit.sustainability.carbon import CarbonMetric
from agentunit.sustainability.energy import EnergyMetric, missing_of, problems_of, resources_of, sustainability_info

__all__ = ["CarbonMetric", "EnergyMetric", "ResourceUtilizationMetric"]


_WORDS = {"cpu_percent": ("CPU", "%"), "memory_gb": ("memory", "GB"), "gpu_percent": ("GPU", "%")}


@dataclass(frozen=True)
class ResourceUtilizationMetric(ItemMetric):
    """How near CPU, memory and GPU come to what they are meant to be used: 1.0 from 50 % to 120 % of each target.

    Less and more are penalized; the mean over what was measured. ``cpu_percent`` is of the processors that the process
    may use, ``memory_gb`` is the peak. Measured while the agent runs, or read from ``trace.metadata``.

    >>> metric = ResourceUtilizationMetric(target_cpu_percent=80.0)
    >>> metric.evaluate({"id": "q1"}, {"metadata": {"cpu_percent": 20.0, "memory_gb": 4.0}}, "done").value
    0.75
    """

    target_cpu_percent: float = 80.0
    target_memory_gb: float = 4.0
    target_gpu_percent: float = 80.0

    info = sustainability_info(
        name="resource_utilization",
        summary="How near CPU, memory and GPU come to their targets.",
        inputs=(
            "trace.metadata.cpu_percent or trace.metadata.memory_gb or trace.metadata.gpu_percent "
            "or trace.metadata.resource_use",
        ),
        detail_keys=("cpu_percent", "memory_gb", "gpu_percent", "scores", "shared"),
        trust={"measured": "measured", "recorded": "recorded"},
        probes=("resources",),
    )

    def __post_init__(self) -> None:
        check_parameters(self, target_cpu_percent=POSITIVE, target_memory_gb=POSITIVE, target_gpu_percent=POSITIVE)

    def score_item(self, item: Item) -> MetricResult:
        """Compare what was used with the targets."""
        resources = resources_of(item)
        detail: dict[str, Any] = {"scores": {}, "shared": resources.get("shared") is True, "backend": "recorded"}
        targets = {
            "cpu_percent": self.target_cpu_percent,
            "memory_gb": self.target_memory_gb,
            "gpu_percent": self.target_gpu_percent,
        }
        for key, target in targets.items():
            in_resources = "memory_peak_gb" if key == "memory_gb" else key
            measured = number_at(f"trace.metadata['resource_use'][{in_resources!r}]", resources.get(in_resources))
            recorded = number_at(f"trace.metadata[{key!r}]", item.trace_metadata.get(key))
            used = measured if recorded is None else recorded
            detail[key] = used
            if used is not None:
                detail["scores"][key] = utilization_score(used, target)
                if used == measured:
                    detail["backend"] = "measured"
        if not detail["scores"]:
            return self.unscored(
                "; ".join(["no CPU, memory or GPU use was measured or recorded", *problems_of(resources)])
            )
        if missing := missing_of(resources):
            detail["missing"] = missing
        detail["why"] = _why(detail, targets)
        scores = detail["scores"].values()
        return MetricResult(self.name, fsum(scores) / len(scores), detail)


def _why(detail: Mapping[str, Any], targets: Mapping[str, float]) -> str:
    """What is furthest from its target."""
    key = min(detail["scores"], key=detail["scores"].__getitem__)
    words, unit = _WORDS[key]
    return f"{words} {amount(detail[key])} {unit}, target {amount(targets[key])} {unit} (50 to 120 % of it is fine)"

"""How much energy a run took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.formulas.sustainability import threshold_score
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import Item
from agentunit.probes.settings import checked_interval
from agentunit.sustainability.used_energy import Amount, UsedEnergy, used_energy

TRUST = {
    "measured": "measured",
    "modelled": "modelled",
    "recorded": "recorded",
    "estimated": "estimated",
    "measured+estimated": "estimated in part",
    "modelled+estimated": "estimated",
    "recorded+estimated": "estimated in part",
}
INPUTS = "trace.metadata.energy_kwh or trace.metadata.resource_use or trace llm_call"


@dataclass(frozen=True)
class EnergyMetric(ItemMetric):
    """Energy of a run in kWh against a threshold: 1.0 up to ``threshold_kwh``, ``threshold / used`` beyond it.

    What the machine used is measured while the agent runs (every ``sample_interval`` seconds), or read from
    ``trace.metadata["energy_kwh"]``; what remote models used is estimated from their tokens (extra
    ``sustainability``), and the two stand apart in the detail. Tables show Wh, because nearly every run is far below
    the threshold.

    >>> EnergyMetric().evaluate({"id": "q1"}, {"metadata": {"energy_kwh": 0.4}}, "done").value
    0.25
    """

    threshold_kwh: float = 0.1
    sample_interval: float = 1.0

    info = MetricInfo(
        name="energy_consumption",
        family="sustainability",
        summary="Energy of the run against a threshold: measured on the machine, estimated for remote models.",
        direction="higher",
        range=(0.0, 1.0),
        inputs=(INPUTS,),
        detail_keys=(
            "energy_kwh",
            "energy_wh",
            "threshold_kwh",
            "under_threshold",
            "local_wh",
            "remote_wh",
            "range_wh",
            "method",
            "incomplete",
        ),
        backend="measured",
        trust=TRUST,
        extra="sustainability",
        probes=("energy",),
        amount=("energy_wh", "Wh"),
    )
    name = info.name

    def __post_init__(self) -> None:
        check_positive("EnergyMetric", "threshold_kwh", self.threshold_kwh)
        checked_interval("EnergyMetric", "sample_interval", self.sample_interval)

    def judge(self, item: Item) -> MetricResult:
        """Add up what is known of the run's energy."""
        used = used_energy(item)
        total = used.total
        if total is None:
            return self.unscored(used.reason, threshold_kwh=self.threshold_kwh)
        detail: dict[str, Any] = {
            "energy_kwh": total.value,
            "energy_wh": 1e3 * total.value,
            "threshold_kwh": self.threshold_kwh,
            "under_threshold": total.value <= self.threshold_kwh,
            "local_wh": _wh(used.local),
            "remote_wh": _wh(used.remote),
            "range_wh": [1e3 * total.low, 1e3 * total.high],
            "method": used.methods,
            "incomplete": bool(used.missing),
            **gaps(used),
            "backend": used.backend,
        }
        return MetricResult(self.name, threshold_score(total.value, self.threshold_kwh), detail)


def gaps(used: UsedEnergy) -> dict[str, Any]:
    """What a reader must know about a figure: what is missing from it, and that others had a part in it."""
    told: dict[str, Any] = {"missing": used.missing} if used.missing else {}
    if used.shared:
        told["shared"] = "agents ran at the same time and cannot be told apart: divided evenly among them"
    return told


def check_positive(who: str, parameter: str, value: object) -> None:
    """A parameter must be a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e100:
        raise ValueError(f"{who}: {parameter} must be a finite number above 0; received {value!r}")


def _wh(amount: Amount | None) -> float | None:
    return None if amount is None else 1e3 * amount.value

"""How much carbon dioxide a run brought with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from math import fsum
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.formulas.sustainability import carbon_of, equivalents, threshold_score
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, number_at
from agentunit.sustainability.energy import INPUTS, TRUST, check_positive, gaps
from agentunit.sustainability.grid import grid_intensity_of
from agentunit.sustainability.used_energy import Amount, UsedEnergy, resources_of, used_energy

Intensity = float | str | Callable[[datetime], float]


@dataclass(frozen=True)
class CarbonMetric(ItemMetric):
    """Kilograms of CO2 equivalent against a threshold: 1.0 up to ``threshold_kg``, ``threshold / emitted`` beyond it.

    The machine's energy counts with ``grid_intensity``: kg a kWh, the code of a country or state (``"FR"``,
    ``"US-CA"``), or a function of the time at which the run began (a ``datetime`` in UTC). Remote models count with the
    electricity of their provider's data centres. ``trace.metadata["carbon_kg"]``, where it is recorded, is taken as the
    whole. Tables show grams.

    >>> CarbonMetric().evaluate({"id": "q1"}, {"metadata": {"energy_kwh": 0.2}}, "done").detail["carbon_kg"]
    0.095
    """

    threshold_kg: float = 0.05
    grid_intensity: Intensity = 0.475

    info = MetricInfo(
        name="carbon_emissions",
        family="sustainability",
        summary="Carbon dioxide of the run's energy against a threshold.",
        direction="higher",
        range=(0.0, 1.0),
        inputs=(f"trace.metadata.carbon_kg or {INPUTS}",),
        detail_keys=(
            "carbon_kg",
            "carbon_g",
            "threshold_kg",
            "under_threshold",
            "equivalents",
            "local_g",
            "remote_g",
            "range_g",
            "grid",
            "method",
            "incomplete",
        ),
        backend="measured",
        trust=TRUST,
        extra="sustainability",
        probes=("energy",),
        amount=("carbon_g", "g"),
    )
    name = info.name

    def __post_init__(self) -> None:
        check_positive("CarbonMetric", "threshold_kg", self.threshold_kg)
        given = self.grid_intensity
        if isinstance(given, str):
            try:
                grid_intensity_of(given)
            except ValueError as error:
                raise ValueError(f"CarbonMetric: {error}") from None
        elif not callable(given) and (
            isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < 1e100
        ):
            raise ValueError(
                "CarbonMetric: grid_intensity must be kg of CO2 a kWh (0 or more), the code of a country, or a "
                f"function of time; received {given!r}"
            )

    def judge(self, item: Item) -> MetricResult:
        """Take the recorded carbon, else that of the energy."""
        recorded = number_at("trace.metadata['carbon_kg']", item.trace_metadata.get("carbon_kg"))
        if recorded is not None:
            whole = UsedEnergy(backend="recorded", methods={"carbon": "recorded"})
            return self._result(Amount(recorded, recorded, recorded), None, whole, None, None)
        used = used_energy(item)
        if used.total is None:
            return self.unscored(used.reason, threshold_kg=self.threshold_kg)
        grid = self._grid(item) if used.local is not None or used.stated_remote is not None else None
        if grid is not None and grid["kg_per_kwh"] is None:
            used.missing.append(grid["reason"])
        local = _emitted(used.local, grid)
        remote = _sum(used.remote_carbon_kg, _emitted(used.stated_remote, grid))
        total = _sum(local, remote)
        if total is None:
            return self.unscored("; ".join(used.missing), threshold_kg=self.threshold_kg)
        return self._result(total, local, used, remote, grid)

    def _result(
        self,
        total: Amount,
        local: Amount | None,
        used: UsedEnergy,
        remote: Amount | None,
        grid: dict[str, Any] | None,
    ) -> MetricResult:
        detail: dict[str, Any] = {
            "carbon_kg": total.value,
            "carbon_g": 1e3 * total.value,
            "threshold_kg": self.threshold_kg,
            "under_threshold": total.value <= self.threshold_kg,
            "equivalents": equivalents(total.value)._asdict(),
            "local_g": None if local is None else 1e3 * local.value,
            "remote_g": None if remote is None else 1e3 * remote.value,
            "range_g": [1e3 * total.low, 1e3 * total.high],
            "grid": grid,
            "method": used.methods,
            "incomplete": bool(used.missing),
            **({} if used.hardware_kg is None else {"remote_hardware_g": 1e3 * used.hardware_kg}),
            **gaps(used),
            "backend": used.backend,
        }
        return MetricResult(self.name, threshold_score(total.value, self.threshold_kg), detail)

    def _grid(self, item: Item) -> dict[str, Any]:
        """The intensity that counts for this run, and where it comes from; or the reason why there is none."""
        given = self.grid_intensity
        if isinstance(given, str):
            grid = grid_intensity_of(given)
            return {"kg_per_kwh": grid.kg_per_kwh, "code": grid.code, "year": grid.year, "source": grid.source}
        if not callable(given):
            return {"kg_per_kwh": float(given), "source": "parameter"}
        began = _began(item)
        if began is None:
            return {"kg_per_kwh": None, "reason": "grid_intensity is a function of time, and the trace has no time"}
        intensity = given(began)
        if isinstance(intensity, bool) or not isinstance(intensity, (int, float)) or not 0 <= intensity < 1e100:
            raise InputProblem(
                f"CarbonMetric: grid_intensity must return a finite number of 0 or more; received {intensity!r:.80} "
                f"for {began.isoformat()}"
            )
        return {"kg_per_kwh": float(intensity), "source": "function of time", "time": began.isoformat()}


def _sum(*amounts: Amount | None) -> Amount | None:
    known = [amount for amount in amounts if amount is not None]
    return Amount(*(fsum(values) for values in zip(*known, strict=True))) if known else None


def _emitted(energy: Amount | None, grid: dict[str, Any] | None) -> Amount | None:
    if energy is None or grid is None or grid["kg_per_kwh"] is None:
        return None
    return Amount(*(carbon_of(each, grid["kg_per_kwh"]) for each in energy))


def _began(item: Item) -> datetime | None:
    started = number_at("trace.metadata['resource_use']['started_at']", resources_of(item).get("started_at"))
    times = [event.timestamp for event in item.events if event.timestamp is not None]
    moment = started if started is not None else min(times, default=None)
    try:
        return None if moment is None else datetime.fromtimestamp(moment, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return None

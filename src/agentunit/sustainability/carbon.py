"""How much carbon dioxide a run brought with it, and what the electricity of a country or region brings."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from agentunit.core.results import MetricResult
from agentunit.formulas.sustainability import carbon_of, equivalents, threshold_score
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import InputProblem, Item, number_at
from agentunit.metrics.parameters import POSITIVE, Rule, check_parameters, is_number
from agentunit.metrics.sentences import amount
from agentunit.public import publish
from agentunit.sustainability.energy import (
    INPUTS,
    TRUST,
    Amount,
    UsedEnergy,
    gaps,
    resources_of,
    sustainability_info,
    thousandths,
    total_of,
    used_energy,
    why_used,
)

_SOURCES = {"owid": "Our World in Data / Ember", "egrid": "EPA eGRID"}


class GridIntensity(NamedTuple):
    """The mean of a grid over a year, in kilograms of CO2 equivalent a kilowatt-hour."""

    code: str
    kg_per_kwh: float
    year: int
    source: str


@lru_cache(maxsize=1)
def grid_table() -> dict[str, GridIntensity]:
    """All grids, by their codes: ISO 3166 of two or three letters, and states of the USA as ``US-CA``."""
    table: dict[str, GridIntensity] = {}
    with files("agentunit.sustainability").joinpath("grid_intensity.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            grid = GridIntensity(row["code"], float(row["kg_per_kwh"]), int(row["year"]), _SOURCES[row["source"]])
            table[row["code"]] = grid
            if row["alpha_3"]:
                table[row["alpha_3"]] = grid
    return table


def grid_intensity_of(code: str) -> GridIntensity:
    """The grid of a country or region.

    >>> grid_intensity_of("fr")
    GridIntensity(code='FR', kg_per_kwh=0.056, year=2023, source='Our World in Data / Ember')
    """
    wanted = code.strip().upper()
    found = grid_table().get(wanted)
    if found is None:
        nearest = ["GB"] if wanted == "UK" else get_close_matches(wanted, grid_table(), n=1, cutoff=0.5)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"grid_intensity: no grid has the code {code!r} (ISO 3166, or US-CA for a state){hint}")
    return found


Intensity = float | str | Callable[[datetime], float]


def _is_intensity(value: Any) -> bool:
    return is_number(value) and 0 <= value < 1e100


_INTENSITY = Rule(
    "kg of CO2 a kWh (0 or more), the code of a country, or a function of time",
    lambda value: callable(value) or _is_intensity(value),
)


@dataclass(frozen=True)
class CarbonMetric(ItemMetric):
    """Kilograms of CO2 equivalent against a threshold: 1.0 up to ``threshold_kg``, ``threshold / emitted`` beyond it.

    The machine's energy counts with ``grid_intensity``: kg per kWh, the code of a country or state (``"FR"``,
    ``"US-CA"``), or a function of the time at which the run began. Remote models count with the electricity of
    their provider. A recorded ``trace.metadata["carbon_kg"]`` is taken as the whole. Tables show grams.

    >>> CarbonMetric().evaluate({"id": "q1"}, {"metadata": {"energy_kwh": 0.2}}, "done").detail["carbon_kg"]
    0.095
    """

    threshold_kg: float = 0.05
    grid_intensity: Intensity = 0.475

    info = sustainability_info(
        name="carbon_emissions",
        summary="Carbon dioxide of the run's energy against a threshold.",
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
        trust=TRUST,
        probes=("energy",),
        amount=("carbon_g", "g"),
    )

    def __post_init__(self) -> None:
        check_parameters(self, threshold_kg=POSITIVE)
        if isinstance(self.grid_intensity, str):
            try:
                grid_intensity_of(self.grid_intensity)
            except ValueError as error:
                raise ValueError(f"CarbonMetric: {error}") from None
        else:
            check_parameters(self, grid_intensity=_INTENSITY)

    def score_item(self, item: Item) -> MetricResult:
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
        remote = total_of(used.remote_carbon_kg, _emitted(used.stated_remote, grid))
        total = total_of(local, remote)
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
            "local_g": thousandths(local),
            "remote_g": thousandths(remote),
            "range_g": [1e3 * total.low, 1e3 * total.high],
            "grid": grid,
            "method": used.methods,
            "incomplete": bool(used.missing),
            **({} if used.hardware_kg is None else {"remote_hardware_g": 1e3 * used.hardware_kg}),
            **gaps(used),
            "backend": used.backend,
            "why": why_used(f"{amount(1e3 * total.value)} g of CO2", f"{amount(1e3 * self.threshold_kg)} g", used),
        }
        return MetricResult(self.name, threshold_score(total.value, self.threshold_kg), detail)

    def _grid(self, item: Item) -> dict[str, Any]:
        """The intensity that counts for this run, and where it comes from; or the reason why there is none."""
        chosen = self.grid_intensity
        if isinstance(chosen, str):
            grid = grid_intensity_of(chosen)
            return {"kg_per_kwh": grid.kg_per_kwh, "code": grid.code, "year": grid.year, "source": grid.source}
        if not callable(chosen):
            return {"kg_per_kwh": float(chosen), "source": "parameter"}
        began = _began(item)
        if began is None:
            return {"kg_per_kwh": None, "reason": "grid_intensity is a function of time, and the trace has no time"}
        returned = chosen(began)
        if not _is_intensity(returned):
            raise InputProblem(
                f"CarbonMetric: grid_intensity must return a finite number of 0 or more; received {returned!r:.80} "
                f"for {began.isoformat()}"
            )
        return {"kg_per_kwh": float(returned), "source": "function of time", "time": began.isoformat()}


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


publish("agentunit.sustainability.metrics", CarbonMetric)

"""Energy, carbon and utilization as the catalog defines them, from measured, recorded and estimated figures."""

from __future__ import annotations

from datetime import datetime
from math import inf, nan
from typing import Any

import pytest

from agentunit.core.results import MetricResult
from agentunit.sustainability.carbon import grid_intensity_of, grid_table
from agentunit.sustainability.energy import Footprint
from agentunit.sustainability.metrics import CarbonMetric, EnergyMetric, ResourceUtilizationMetric

CASE = {"id": "q1"}
GPT_4O = {"type": "llm_call", "payload": {"model": "gpt-4o", "usage": {"prompt_tokens": 9, "completion_tokens": 500}}}
MEASURED = {
    "started_at": 0.0,
    "energy_kwh": 0.002,
    "energy_min_kwh": 0.001,
    "energy_max_kwh": 0.004,
    "cpu_method": "cpu model",
    "cpu_percent": 40.0,
    "memory_peak_gb": 2.0,
    "shared": False,
}


def evaluated(metric: Any, metadata: dict[str, Any] | None = None, *events: dict[str, Any]) -> MetricResult:
    result = metric.evaluate(CASE, {"metadata": metadata or {}, "events": list(events)}, "done")
    assert isinstance(result, MetricResult)
    return result


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that takes 1 to 3 Wh and 0.5 to 1.5 g a thousand tokens."""
    known = Footprint((0.001, 0.003), (0.0005, 0.0015), (0.0001, 0.0001))
    monkeypatch.setattr("agentunit.sustainability.energy.footprint_unready", lambda: None)
    monkeypatch.setattr("agentunit.sustainability.energy.footprint_method", lambda: "table 1")
    monkeypatch.setattr(
        "agentunit.sustainability.energy.footprint_of",
        lambda model, tokens: known if model == "gpt-4o" else None,
    )


def test_recorded_energy_against_the_catalogs_threshold() -> None:
    result = evaluated(EnergyMetric(), {"energy_kwh": 0.2})
    assert result.value == pytest.approx(0.5)
    assert result.detail["energy_wh"] == pytest.approx(200)
    assert result.detail["under_threshold"] is False
    assert (result.detail["backend"], result.detail["incomplete"]) == ("recorded", False)


def test_measured_energy_has_its_range_and_method() -> None:
    detail = evaluated(EnergyMetric(), {"resource_use": MEASURED, "energy_kwh": 0.002}).detail
    assert detail["backend"] == "modelled"
    assert detail["range_wh"] == pytest.approx([1.0, 4.0])
    assert detail["method"] == {"cpu": "cpu model"}
    assert (detail["local_wh"], detail["remote_wh"]) == (pytest.approx(2.0), None)
    rapl = {**MEASURED, "cpu_method": "rapl", "gpu_method": "nvml"}
    detail = evaluated(EnergyMetric(), {"resource_use": rapl}).detail
    assert (detail["backend"], detail["method"]) == ("measured", {"cpu": "rapl", "gpu": "nvml"})


def test_what_the_agent_recorded_goes_before_what_was_measured() -> None:
    detail = evaluated(EnergyMetric(), {"resource_use": MEASURED, "energy_kwh": 0.01}).detail
    assert (detail["backend"], detail["energy_kwh"]) == ("recorded", 0.01)


def test_shared_figures_say_so() -> None:
    detail = evaluated(EnergyMetric(), {"resource_use": {**MEASURED, "shared": True}}).detail
    assert "cannot be separated" in detail["shared"]


@pytest.mark.usefixtures("estimates")
def test_local_and_remote_stand_apart_and_add_up() -> None:
    detail = evaluated(EnergyMetric(), {"resource_use": MEASURED}, GPT_4O, GPT_4O).detail
    assert detail["local_wh"] == pytest.approx(2.0)
    assert detail["remote_wh"] == pytest.approx(4.0)  # twice the middle of 1 and 3
    assert detail["energy_wh"] == pytest.approx(6.0)
    assert detail["range_wh"] == pytest.approx([1 + 2, 4 + 6])
    assert detail["backend"] == "modelled+estimated"
    assert detail["method"]["remote"] == "table 1"
    assert detail["incomplete"] is False


@pytest.mark.usefixtures("estimates")
def test_what_cannot_be_estimated_makes_it_incomplete() -> None:
    unknown = {"type": "llm_call", "payload": {"model": "tiny-9", "usage": {"completion_tokens": 5}}}
    nameless = {"type": "llm_call", "payload": {"usage": {"completion_tokens": 5}}}
    detail = evaluated(EnergyMetric(), {"resource_use": MEASURED}, GPT_4O, unknown, nameless).detail
    assert detail["incomplete"] is True
    assert detail["missing"] == [
        "the energy of model 'tiny-9' is not known to table 1",
        "LLM tokens are recorded without the model that used them",
    ]
    assert detail["remote_wh"] == pytest.approx(2.0)
    alone = evaluated(EnergyMetric(), None, GPT_4O).detail
    assert alone["missing"] == ["nothing was measured on the machine that the agent ran on"]
    assert alone["backend"] == "estimated"


@pytest.mark.usefixtures("estimates")
def test_a_call_that_states_its_energy_is_taken_at_its_word() -> None:
    local_model = {"type": "llm_call", "payload": {"model": "gpt-4o", "energy_kwh": 0, "completion_tokens": 5}}
    stated = {"type": "llm_call", "payload": {"model": "gpt-4o", "energy_kwh": 0.01, "completion_tokens": 5}}
    result = evaluated(EnergyMetric(), {"resource_use": MEASURED}, local_model, stated)
    assert result.detail["remote_wh"] == pytest.approx(10.0)
    carbon = evaluated(CarbonMetric(grid_intensity=1.0), {"resource_use": MEASURED}, stated, GPT_4O).detail
    assert carbon["remote_g"] == pytest.approx(10.0 + 1.0)


@pytest.mark.usefixtures("estimates")
def test_totals_of_one_model_are_estimated_too() -> None:
    metadata = {"model": "gpt-4o", "usage": {"prompt_tokens": 1, "completion_tokens": 500}}
    assert evaluated(EnergyMetric(), metadata).detail["remote_wh"] == pytest.approx(2.0)


def test_nothing_known_is_none_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for metric in (EnergyMetric(), CarbonMetric()):
        result = evaluated(metric)
        assert result.value is None
        assert result.detail["reason"] == "no energy was measured or recorded"
    monkeypatch.setattr("agentunit.sustainability.energy.footprint_unready", lambda: "ecologits is not installed")
    assert "ecologits is not installed" in evaluated(EnergyMetric(), None, GPT_4O).detail["reason"]
    assert evaluated(ResourceUtilizationMetric()).value is None


def test_what_hindered_the_probe_is_part_of_the_reason() -> None:
    hindered = {"resource_use": {"problems": ["the probe could not start: OSError"]}}
    for metric in (EnergyMetric(), CarbonMetric(), ResourceUtilizationMetric()):
        assert evaluated(metric, hindered).detail["reason"].endswith("; the probe could not start: OSError")


def test_carbon_has_the_catalogs_keys() -> None:
    result = evaluated(CarbonMetric(), {"carbon_kg": 0.023})
    assert result.value == 1.0
    assert result.detail["carbon_kg"] == 0.023
    assert result.detail["threshold_kg"] == 0.05
    assert result.detail["under_threshold"] is True
    assert result.detail["equivalents"] == pytest.approx({"km_driven": 0.1058, "trees_needed": 0.023 / 21})


def test_carbon_of_energy_by_the_default_grid() -> None:
    result = evaluated(CarbonMetric(), {"energy_kwh": 0.2})
    assert result.detail["carbon_kg"] == pytest.approx(0.2 * 0.475)
    assert result.value == pytest.approx(0.05 / 0.095)
    assert result.detail["grid"] == {"kg_per_kwh": 0.475, "source": "parameter"}


@pytest.mark.parametrize("code", ["FR", "fra", " fr "])
def test_carbon_by_country(code: str) -> None:
    detail = evaluated(CarbonMetric(grid_intensity=code), {"energy_kwh": 1.0}).detail
    assert detail["carbon_kg"] == pytest.approx(0.056, abs=0.02)
    assert detail["grid"]["code"] == "FR"
    assert detail["grid"]["year"] >= 2021
    assert "Our World in Data" in detail["grid"]["source"]


@pytest.mark.usefixtures("estimates")
def test_remote_models_count_with_the_grid_of_their_provider() -> None:
    detail = evaluated(CarbonMetric(grid_intensity=10.0), {"resource_use": MEASURED}, GPT_4O).detail
    assert detail["local_g"] == pytest.approx(20.0)
    assert detail["remote_g"] == pytest.approx(1.0)
    assert detail["remote_hardware_g"] == pytest.approx(0.1)
    assert detail["carbon_g"] == pytest.approx(21.0)
    assert detail["range_g"] == pytest.approx([10.0 + 0.5, 40.0 + 1.5])


def test_carbon_by_a_function_of_time() -> None:
    asked: list[datetime] = []

    def by_hour(moment: datetime) -> float:
        asked.append(moment)
        return 0.1 if moment.hour < 12 else 0.5

    metric = CarbonMetric(grid_intensity=by_hour)
    noon = 12 * 3600.0
    morning = evaluated(metric, {"energy_kwh": 1.0}, {"type": "message", "payload": {}, "timestamp": 3600.0})
    evening = evaluated(metric, {"energy_kwh": 1.0, "resource_use": {"started_at": noon}})
    assert (morning.detail["carbon_kg"], evening.detail["carbon_kg"]) == (0.1, 0.5)
    assert all(moment.utcoffset() is not None for moment in asked)
    assert "no time" in evaluated(metric, {"energy_kwh": 1.0}).detail["reason"]
    broken = evaluated(CarbonMetric(grid_intensity=lambda moment: -1.0), {"energy_kwh": 1.0, "resource_use": MEASURED})
    assert broken.value is None
    assert "must return a finite number" in broken.detail["reason"]


def test_utilization_is_the_mean_of_what_was_measured() -> None:
    result = evaluated(ResourceUtilizationMetric(), {"resource_use": MEASURED})
    # CPU 40 of 80: 1.0. Memory 2 of 4: 1.0. No GPU.
    assert result.value == 1.0
    result = evaluated(ResourceUtilizationMetric(), {"cpu_percent": 20.0, "memory_gb": 2.0, "gpu_percent": 136.0})
    assert result.detail["scores"] == pytest.approx({"cpu_percent": 0.5, "memory_gb": 1.0, "gpu_percent": 0.5})
    assert result.value == pytest.approx(2 / 3)
    assert result.detail["backend"] == "recorded"


@pytest.mark.parametrize("value", [0, -1, nan, inf, "1", None, True])
@pytest.mark.parametrize(
    ("metric", "parameter"),
    [
        (EnergyMetric, "threshold_kwh"),
        (EnergyMetric, "sample_interval"),
        (CarbonMetric, "threshold_kg"),
        (ResourceUtilizationMetric, "target_cpu_percent"),
        (ResourceUtilizationMetric, "target_memory_gb"),
        (ResourceUtilizationMetric, "target_gpu_percent"),
    ],
)
def test_parameters_that_cannot_be(metric: Any, parameter: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{metric.__name__}: {parameter} must be"):
        metric(**{parameter: value})


@pytest.mark.parametrize("value", [-0.1, nan, inf, True, None, "Atlantis", ""])
def test_grids_that_cannot_be(value: Any) -> None:
    with pytest.raises(ValueError, match="CarbonMetric: grid_intensity"):
        CarbonMetric(grid_intensity=value)


@pytest.mark.parametrize(("code", "meant"), [("US_CA", "US-CA"), ("uk", "GB")])
def test_a_grid_that_is_misspelt_has_a_neighbour(code: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        grid_intensity_of(code)


def test_every_grid_of_the_table_is_plausible() -> None:
    assert len(grid_table()) > 400
    for code, grid in grid_table().items():
        assert 0 <= grid.kg_per_kwh < 1.4, code
        assert 2021 <= grid.year <= 2026, code
    assert grid_intensity_of("US-WA").kg_per_kwh < grid_intensity_of("US-WV").kg_per_kwh

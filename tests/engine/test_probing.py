"""The engine measures what the chosen metrics ask for, wherever the agent runs, and not otherwise."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentunit.adapters._call import AgentCall
from agentunit.adapters._callable import CallableAgent
from agentunit.adapters.command import CommandAgent
from agentunit.addons.pytest_plugin.evaluation import AgentLoop
from agentunit.core.case import DatasetCase
from agentunit.core.trace import TraceLog
from agentunit.engine.recording.probing import probe_settings
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import Suite
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics.base import CompositeMetric, MetricInfo
from agentunit.metrics.registry import resolve_metrics
from agentunit.probes.probe_settings import ProbeSettings
from agentunit.reports.figures import describe_value
from agentunit.store.sqlite import Store
from agentunit.sustainability.metrics import CarbonMetric, EnergyMetric, ResourceUtilizationMetric


def burning(query: str, trace: TraceLog) -> str:
    end = time.process_time() + 0.25
    while time.process_time() < end:
        pass
    return query


async def burning_async(query: str, trace: TraceLog) -> str:
    return burning(query, trace)


def hanging(query: str, trace: TraceLog) -> str:
    while True:
        burning(query, trace)


BURNING_PROGRAM = "import time\nend = time.process_time() + 0.25\nwhile time.process_time() < end: pass\nprint('done')"
AGENTS: dict[str, Any] = {
    "thread": lambda: CallableAgent(burning, workers=1),
    "process": lambda: CallableAgent(burning, workers=1, isolation="process"),
    "coroutine": lambda: CallableAgent(burning_async),
    "command": lambda: CommandAgent([sys.executable, "-S", "-c", BURNING_PROGRAM]),
}


def recorded(
    tmp_path: Path, agent: Any, metrics: list[Any], **settings: Any
) -> tuple[Store, str, list[dict[str, Any]]]:
    suite = Suite(
        dataset=[{"id": f"q{n}", "query": "?"} for n in range(2)],
        agent=agent,
        metrics=metrics,
        concurrency=1,
        **settings,
    )
    store = Store(tmp_path / "runs.db")
    plan = plan_run(suite, store)
    record(plan, store)
    return store, plan.header.id, [each.record.trace.metadata for each in store.records(plan.header.id)]


@pytest.mark.parametrize("where", AGENTS)
def test_measured_where_it_runs(where: str, tmp_path: Path) -> None:
    if where == "spawn" and __name__ not in sys.modules:
        pytest.skip("this module cannot be imported by name")
    metrics = [EnergyMetric(sample_interval=0.05), ResourceUtilizationMetric()]
    _, _, found = recorded(tmp_path, AGENTS[where](), metrics)
    assert len(found) == 2
    for metadata in found:
        use = metadata["resource_use"]
        assert 0.15 <= use["cpu_s"] <= 0.6
        assert use["sample_interval_s"] == 0.05
        assert metadata["energy_kwh"] == use["energy_kwh"] > 0
        assert metadata["cpu_percent"] > 0


# Detaches a program of half a second and waits until it is done, as an agent that asks a server it has started.
DETACHING_PROGRAM = """
import os, sys, time
reading, writing = os.pipe()
if not os.fork():
    if os.fork():
        os._exit(0)
    os.setsid()
    end = time.process_time() + 0.5
    while time.process_time() < end: pass
    os._exit(0)
os.wait()
os.close(writing)
os.read(reading, 1)
print("done")
"""
DETACHING = [sys.executable, "-S", "-c", DETACHING_PROGRAM]


def detaching(query: str) -> str:
    return subprocess.run(DETACHING, check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
@pytest.mark.parametrize("where", ["thread", "process", "command"])
def test_what_an_agent_detaches_is_measured_too(where: str, tmp_path: Path) -> None:
    agent: Any = CommandAgent(DETACHING) if where == "command" else CallableAgent(detaching, isolation=where)  # type: ignore[arg-type]
    _, _, found = recorded(tmp_path, agent, [EnergyMetric(sample_interval=30)])
    # The kernel counts by ticks and the process by nanoseconds, and what was used before the first look is not the
    # agent's: a half second may be counted a little short.
    assert all(0.3 <= metadata["resource_use"]["cpu_s"] <= 0.9 for metadata in found), found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
def test_what_is_detached_before_anybody_looks_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = AgentCall.begin_probe

    def begin_late(call: AgentCall, pid: int | None = None) -> None:
        time.sleep(0.15)
        begin(call, pid)

    monkeypatch.setattr(AgentCall, "begin_probe", begin_late)
    _, _, found = recorded(tmp_path, CommandAgent(DETACHING), [EnergyMetric(sample_interval=30)])
    assert all(metadata["resource_use"]["cpu_s"] >= 0.2 for metadata in found), found


def test_a_call_cut_short_keeps_what_was_measured(tmp_path: Path) -> None:
    # On a busy machine the agent may hardly get to run before it is cut short; then it gets more time.
    for timeout_s in (0.6, 3, 15, 60):
        _, _, found = recorded(tmp_path, hanging, [EnergyMetric(sample_interval=0.05)], timeout_s=timeout_s)
        assert [metadata["failure"] for metadata in found] == ["timeout", "timeout"]
        measured_s = [metadata.get("resource_use", {}).get("cpu_s", 0.0) for metadata in found]
        if min(measured_s) >= 0.2:
            return
    pytest.fail(f"calls that were cut short measured {measured_s} s of CPU time")


def test_nothing_is_measured_unasked(tmp_path: Path) -> None:
    _, _, found = recorded(tmp_path, lambda query: "x", resolve_metrics(["answer_correctness"]))
    assert all("resource_use" not in metadata and "energy_kwh" not in metadata for metadata in found)


def test_tables_show_wh_and_grams(tmp_path: Path) -> None:
    metrics = [EnergyMetric(sample_interval=0.05), CarbonMetric()]
    store, run_id, found = recorded(tmp_path, burning, metrics)
    score_run(store, run_id, metrics)
    rows = {row.metric: row for row in run_from_store(store, run_id).summary().metrics}
    energy = rows["energy_consumption"]
    assert energy.mean == 1.0
    assert energy.amount is not None
    assert energy.amount.total == pytest.approx(1e3 * sum(each["energy_kwh"] for each in found))
    assert describe_value(energy, "score").split(",")[0].endswith("Wh")
    assert describe_value(rows["carbon_emissions"], "score").split(",")[0].endswith("g")


def test_a_test_measures_too() -> None:
    loop = AgentLoop()
    try:
        case = DatasetCase("q1", "?")
        agent = CallableAgent(burning, workers=1)
        measured = loop.ask(agent, case, timeout_s=None, seed=None, lasting=True, measured=ProbeSettings(0.05))
        unmeasured = loop.ask(agent, case, timeout_s=None, seed=None, lasting=True)
    finally:
        loop.close()
    assert measured.trace.metadata["resource_use"]["cpu_s"] >= 0.15
    assert "resource_use" not in unmeasured.trace.metadata


def test_settings_come_from_the_metrics_and_their_parts() -> None:
    both = CompositeMetric([EnergyMetric(sample_interval=0.2), ResourceUtilizationMetric()])
    assert probe_settings(resolve_metrics(["cost"])) is None
    assert probe_settings([CarbonMetric()]) == ProbeSettings(1.0)
    assert probe_settings([CarbonMetric(), both]) == ProbeSettings(0.2)
    assert both.info.probes == ("energy", "resources")


def test_a_probe_that_nobody_has_is_refused() -> None:
    class Weather:
        name = "weather"
        info = MetricInfo("weather", "custom", "", probes=("rain",))

    with pytest.raises(ValueError, match="metric 'weather': probes must be among energy, resources; received 'rain'"):
        probe_settings([Weather()])

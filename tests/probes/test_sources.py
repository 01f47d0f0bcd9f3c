"""Where figures come from: a GPU driver as it was recorded, energy counters and container limits as files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentunit.core.trace import TraceLog
from agentunit.installation import install_command
from agentunit.probes._counters import Gpus, MachineTime, RaplCounters
from agentunit.probes._process_tree import Increase, ProcessTree, _look_at_proc, _look_with_psutil
from agentunit.probes.machine import Limits, _cpu_energy, _gpus, capabilities, limits
from agentunit.probes.measuring import measure
from agentunit.probes.meter import Account, Meter

RECORDED = json.loads((Path(__file__).parent / "recorded_nvml.json").read_text())
CORES = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class RecordedDriver:
    """NVML as it answered on a real machine; ``pid`` stands where the recorded process number stood."""

    def __init__(self, pid: int, *, without: tuple[str, ...] = (), others: tuple[int, ...] = ()) -> None:
        self.moment = "idle"
        self._pid = pid
        self._others = others
        for name in without:
            setattr(self, name, self._refuse)

    def _refuse(self, *args: Any) -> Any:
        raise RuntimeError("Not Supported")

    @property
    def _now(self) -> dict[str, Any]:
        found = RECORDED[self.moment]
        assert isinstance(found, dict)
        return found

    def nvmlInit(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return str(RECORDED["name"])

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return str(RECORDED["uuid"])

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        return int(self._now["energy_mj"])

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return int(self._now["power_mw"])

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self._now["utilization"], memory=self._now["memory_utilization"])

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        found = [SimpleNamespace(pid=self._pid, usedGpuMemory=each["usedGpuMemory"]) for each in self._now["processes"]]
        return found + [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in self._others if found]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        return []


def gpus_of(driver: Any, times: tuple[float, ...] = (0.0, 1.5)) -> Gpus:
    ticks = iter(times)
    return Gpus(lambda: driver, lambda: next(ticks))


def test_energy_by_the_gpus_counter() -> None:
    driver = RecordedDriver(4711)
    gpus = gpus_of(driver)
    driver.moment = "busy"
    (use,) = gpus.advance([4711])
    assert use.energy_j == pytest.approx((RECORDED["busy"]["energy_mj"] - RECORDED["idle"]["energy_mj"]) / 1e3)
    assert (use.name, use.percent, use.memory_bytes) == ("NVIDIA H200", 99.0, 1050673152)
    assert (use.share, use.matched) == (1.0, True)


def test_energy_by_power_over_time_where_there_is_no_counter() -> None:
    driver = RecordedDriver(4711, without=("nvmlDeviceGetTotalEnergyConsumption",))
    gpus = gpus_of(driver)
    driver.moment = "busy"
    (use,) = gpus.advance([4711])
    # From 79.113 W to 652.702 W in 1.5 s.
    assert use.energy_j == pytest.approx((79.113 + 652.702) / 2 * 1.5)


def test_a_gpu_that_others_use_too_is_divided() -> None:
    driver = RecordedDriver(4711, others=(1, 2, 3))
    gpus = gpus_of(driver)
    driver.moment = "busy"
    (use,) = gpus.advance([4711, 9999])
    assert use.share == 0.25
    assert use.energy_j == pytest.approx((RECORDED["busy"]["energy_mj"] - RECORDED["idle"]["energy_mj"]) / 4e3)


def test_a_gpu_of_others_and_an_idle_one_are_not_ours() -> None:
    driver = RecordedDriver(os.getppid())
    gpus = gpus_of(driver, (0.0, 1.0, 2.0))
    assert gpus.advance([4711]) == []
    driver.moment = "busy"
    assert gpus.advance([4711]) == []


@pytest.mark.parametrize(("listed", "n_visible"), [("0", 1), ("1", 0), ("GPU-00000000", 1), ("", 0), ("-1", 0)])
def test_hidden_gpus_are_left_alone(listed: str, n_visible: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert len(gpus_of(RecordedDriver(1), (0.0,)).names) == n_visible


@pytest.mark.parametrize("refused", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetName"])
def test_a_driver_that_refuses_is_a_reason(refused: str) -> None:
    gpus = gpus_of(RecordedDriver(1, without=(refused,)))
    assert gpus.advance([1]) == []
    assert gpus.problem == "no GPU can be measured: Not Supported"


def test_without_the_package_the_reason_says_what_to_install() -> None:
    def missing() -> Any:
        raise ImportError("no module named pynvml")

    assert install_command("sustainability") in (Gpus(missing).problem or "")


def test_a_real_gpu_if_there_is_one() -> None:
    gpus = Gpus()
    if not gpus.names:
        pytest.skip(f"no GPU here: {gpus.problem}")
    assert gpus.problem is None
    assert gpus.advance([]) == []


def package(folder: Path, zone: str, name: str, energy_uj: int, range_uj: int = 1000_000_000) -> Path:
    place = folder / zone
    place.mkdir(parents=True)
    (place / "name").write_text(f"{name}\n")
    (place / "energy_uj").write_text(f"{energy_uj}\n")
    (place / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return place / "energy_uj"


def test_packages_and_memory_are_added_cores_and_platform_are_not(tmp_path: Path) -> None:
    first = package(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    second = package(tmp_path, "intel-rapl:1", "package-1", 999_000_000)
    memory = package(tmp_path, "intel-rapl:0:1", "dram", 0)
    core = package(tmp_path, "intel-rapl:0:0", "core", 0)
    platform = package(tmp_path, "intel-rapl:2", "psys", 0)
    again = package(tmp_path, "intel-rapl-mmio:0", "package-0", 0)
    counters = RaplCounters(tmp_path)
    first.write_text("3000000")
    second.write_text("1000000")  # over its range of 1,000 J: 1 J to the end and 1 J after it
    memory.write_text("500000")
    core.write_text("9000000")
    platform.write_text("9000000")
    again.write_text("9000000")
    assert counters.readable
    assert counters.counts_memory
    assert counters.advance() == pytest.approx(2.0 + 2.0 + 0.5)
    assert counters.advance() == 0.0


@pytest.mark.parametrize(("counts_memory", "method"), [(True, "rapl"), (False, "memory model")])
def test_memory_is_modelled_where_no_counter_counts_it(
    counts_memory: bool, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Meter()
    monkeypatch.setattr("agentunit.probes.measuring.meter", lambda: new)
    with measure(TraceLog(), sample_interval=30) as measurement:
        monkeypatch.setattr(new.rapl, "advance", lambda: 80.0)
        monkeypatch.setattr(new.rapl, "counts_memory", counts_memory)
    found = measurement.facts
    assert (found["cpu_method"], found["memory_method"]) == ("rapl", method)
    assert (found["memory_kwh"] is None) == counts_memory
    assert found["energy_kwh"] == pytest.approx(found["cpu_kwh"] + (found["memory_kwh"] or 0.0))
    assert (found["energy_max_kwh"] > found["energy_kwh"]) == (not counts_memory)


def test_counters_that_vanish_or_are_not_there(tmp_path: Path) -> None:
    assert "no RAPL" in (RaplCounters(tmp_path / "nowhere").problem or "")
    file = package(tmp_path, "intel-rapl:0", "package-0", 5)
    counters = RaplCounters(tmp_path)
    file.unlink()
    assert counters.advance() is None
    assert "could not be read any more" in (counters.problem or "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_counters_without_permission_say_how_to_get_it(tmp_path: Path) -> None:
    package(tmp_path, "intel-rapl:0", "package-0", 5).chmod(0)
    assert "chmod a+r" in (RaplCounters(tmp_path).problem or "")


def test_busy_time_of_the_machine(tmp_path: Path) -> None:
    tick = os.sysconf("SC_CLK_TCK")
    file = tmp_path / "stat"
    file.write_text("cpu  100 0 50 1000 20 0 0 0 0 0\n")
    machine = MachineTime(file)
    file.write_text(f"cpu  {100 + tick} 0 {50 + tick} 2000 99 0 0 0 0 0\n")
    assert machine.advance() == pytest.approx(2.0)
    file.unlink()
    assert machine.advance() is None


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}, Limits(CORES, None, None)),
        ("0::/\n", {"cpu.max": "50000 100000", "memory.max": "2000000000"}, Limits(0.5, 2_000_000_000, 0.5)),
        (
            "0::/docker/abc\n",
            {"docker/abc/cpu.max": "max 100000", "docker/cpu.max": "25000 100000", "docker/abc/memory.max": "10"},
            Limits(0.25, 10, 0.25),
        ),
        (
            # Every group on the way limits; the tightest one counts, be it above or below.
            "0::/pod/box\n",
            {
                "pod/box/cpu.max": "40000 100000",
                "pod/cpu.max": "20000 100000",
                "cpu.max": "90000 100000",
                "pod/box/memory.max": "5000",
                "pod/memory.max": "3000",
                "memory.max": "9000",
            },
            Limits(0.2, 3000, 0.2),
        ),
        (
            "4:memory:/box\n3:cpu,cpuacct:/box\n",
            {
                "cpu,cpuacct/box/cpu.cfs_quota_us": "20000",
                "cpu,cpuacct/box/cpu.cfs_period_us": "100000",
                "memory/box/memory.limit_in_bytes": "4096",
                "memory/memory.limit_in_bytes": "9223372036854771712",
            },
            Limits(0.2, 4096, 0.2),
        ),
        (
            "4:memory:/box\n3:cpu:/box\n",
            {"cpu/box/cpu.cfs_quota_us": "-1", "cpu/box/cpu.cfs_period_us": "100000"},
            Limits(CORES, None, None),
        ),
        ("0::/host/path/of/the/container\n", {"cpu.max": "10000 100000"}, Limits(0.1, None, 0.1)),
        ("what is this\n", {"cpu.max": "10000 100000"}, Limits(CORES, None, None)),
        ("0::/\n", {"cpu.max": "a lot", "memory.max": ""}, Limits(CORES, None, None)),
    ],
)
def test_container_limits(own: str, files: dict[str, str], expected: Limits, tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "own").write_text(own)
    assert limits(root, tmp_path / "own") == expected


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_psutil_and_proc_see_the_same() -> None:
    pytest.importorskip("psutil")
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(30)"]) as child:
        try:
            rss, by_proc = _look_at_proc()
            same_rss, by_psutil = _look_with_psutil()
        finally:
            child.kill()
    assert rss is not None
    assert same_rss == pytest.approx(rss, rel=0.2)
    assert child.pid in by_proc
    assert by_proc.keys() == by_psutil.keys()


def test_a_system_that_shows_nothing_still_counts_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentunit.probes._process_tree._way_to_look", lambda: None)
    tree = ProcessTree()
    sum(range(2_000_000))
    increase = tree.advance()
    assert increase.own_s > 0
    assert increase.rss_bytes is None
    assert install_command("sustainability") in (tree.problem or "")


def test_what_this_machine_can_measure() -> None:
    found = {each.part: each for each in capabilities()}
    assert list(found) == ["CPU time and memory", "CPU energy (RAPL)", "GPU energy (NVML)", "container limits"]
    assert f"{limits().cores:g} core" in found["container limits"].note


def test_what_is_missing_says_how_to_enable_it(tmp_path: Path) -> None:
    package(tmp_path, "intel-rapl:0", "package-0", 5)
    assert _cpu_energy(RaplCounters(tmp_path)).state == "ok"
    counters = RaplCounters(tmp_path / "nowhere")
    assert (_cpu_energy(counters).state, _cpu_energy(counters).fix) == ("missing", None)
    counters.problem = "RAPL energy counters may not be read (sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj)"
    denied = _cpu_energy(counters)
    assert denied.state == "not ready"
    assert denied.fix == "sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj"

    def missing() -> Any:
        raise ImportError("no module named pynvml")

    assert _gpus(Gpus(missing)).fix == install_command("sustainability")
    assert _gpus(gpus_of(RecordedDriver(1))).note == "NVIDIA H200"


def test_package_energy_is_attributed_by_the_share_of_busy_time(monkeypatch: pytest.MonkeyPatch) -> None:
    meter, account = Meter(), Account(60.0)
    meter.begin(account)
    monkeypatch.setattr(meter.rapl, "advance", lambda: 80.0)
    monkeypatch.setattr(meter.machine, "advance", lambda: 4.0)
    increase = Increase(1.0, {(1, 2): 0.5}, 0.5, 100, {2: 50}, {}, {2: None}, False)
    monkeypatch.setattr(meter.tree, "advance", lambda: increase)
    monkeypatch.setattr(meter, "_overhead_s", 0.0)
    assert meter.end(account)
    # 2 of the machine's 4 busy seconds: half of 80 J.
    assert account.package_j == pytest.approx(40.0)
    assert account.cpu_s == pytest.approx(2.0)

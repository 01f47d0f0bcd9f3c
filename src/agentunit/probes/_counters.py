"""What the hardware itself counts: energy of processor packages (RAPL), and energy and use of NVIDIA's GPUs (NVML)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from agentunit.formulas.sustainability import counter_increase, trapezoid
from agentunit.probes._process_tree import INSTALL_HINT

_FOLDER = Path("/sys/class/powercap")
HOW_TO_ENABLE = "sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj"


class RaplCounters:
    """The packages of a machine and their memory, as one counter in joules.

    AMD's processors have them under the same name. Packages hold their cores and graphics, so those are not added; the
    whole platform (psys) and the second view of the same packages (mmio) are left out.
    """

    def __init__(self, folder: Path = _FOLDER) -> None:
        self.problem: str | None = None
        self.counts_memory = False
        self._files: list[tuple[Path, float | None]] = []
        denied = False
        for zone in sorted(folder.glob("intel-rapl:*")) if folder.is_dir() else ():
            try:
                name = (zone / "name").read_text().strip()
                if not name.startswith("package") and name != "dram":
                    continue
                float((zone / "energy_uj").read_text())
            except PermissionError:
                denied = True
                continue
            except (OSError, ValueError):
                continue
            self._files.append((zone / "energy_uj", _range_uj(zone)))
            self.counts_memory = self.counts_memory or name == "dram"
        if denied and not self._files:
            self.problem = f"RAPL energy counters are there but may not be read ({HOW_TO_ENABLE})"
        elif not self._files:
            self.problem = "this machine offers no RAPL energy counters (virtual machines and non-x86 rarely do)"
        self._last = self._read()

    @property
    def readable(self) -> bool:
        """Whether there is a counter."""
        return bool(self._files)

    def advance(self) -> float | None:
        """Joules since the last call; ``None`` without a counter, or when one could not be read."""
        now, before = self._read(), self._last
        self._last = now
        if not self._files or now is None or before is None:
            return None
        used_uj = sum(
            counter_increase(was, value, wraps) for (_, wraps), was, value in zip(self._files, before, now, strict=True)
        )
        return used_uj / 1e6

    def _read(self) -> list[float] | None:
        try:
            return [float(file.read_text()) for file, _ in self._files]
        except (OSError, ValueError) as error:
            self.problem = f"the RAPL energy counters could not be read any more: {error}"
            return None


def _range_uj(zone: Path) -> float | None:
    try:
        return float((zone / "max_energy_range_uj").read_text())
    except (OSError, ValueError):
        return None


class MachineTime:
    """CPU time that the whole machine has spent, to say which share of it was one process's."""

    def __init__(self, file: Path = Path("/proc/stat")) -> None:
        self._file = file
        self._last = self._busy_s()

    def advance(self) -> float | None:
        """Busy CPU seconds of all processors since the last call."""
        now, before = self._busy_s(), self._last
        self._last = now
        return None if now is None or before is None else max(0.0, now - before)

    def _busy_s(self) -> float | None:
        try:
            with open(self._file) as file:
                fields = [int(each) for each in file.readline().split()[1:9]]
        except (OSError, ValueError):
            return None
        if len(fields) < 5:
            return None
        # user nice system idle iowait irq softirq steal: guests' time is in user's already.
        return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class GpuUse(NamedTuple):
    """One GPU since the last look. ``share`` is how much of it is attributed to the processes asked about: their number
    among all that use it. ``matched`` is false where the driver's process numbers are not ours (a container)."""

    number: int
    name: str
    energy_j: float
    percent: float
    memory_bytes: int
    share: float
    matched: bool


class _Gpu:
    """One device, and its last readings."""

    def __init__(self, nvml: Any, index: int) -> None:
        self.index = index
        self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name = nvml.nvmlDeviceGetName(self.handle)
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        self.energy_mj: float | None = None
        self.watts: float | None = None


class Gpus:
    """All GPUs this process may see. Whatever the driver refuses is left out and said in ``problem``."""

    def __init__(self, load: Callable[[], Any] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.problem: str | None = None
        self._clock = clock
        self._at = clock()
        self._devices: list[_Gpu] = []
        try:
            self._nvml = (load or _load)()
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            self._devices = [_Gpu(self._nvml, index) for index in range(count) if _is_visible(self._nvml, index)]
        except ImportError:
            self.problem = f"GPUs are not looked at: nvidia-ml-py is not installed ({INSTALL_HINT})"
        except Exception as error:  # noqa: BLE001 - no driver, no permission, a driver of another age
            self.problem = f"no GPU can be measured: {error}"
        for device in self._devices:
            self._read_energy(device, 0.0)

    @property
    def names(self) -> list[str]:
        """The GPUs that can be measured."""
        return [device.name for device in self._devices]

    def advance(self, pids: Iterable[int]) -> list[GpuUse]:
        """What each GPU that these processes use did since the last call."""
        if not self._devices:
            return []
        now = self._clock()
        elapsed_s, self._at = now - self._at, now
        ours = set(pids)
        found = []
        for device in self._devices:
            energy_j = self._read_energy(device, elapsed_s)
            share, memory, matched = self._use_by(device, ours)
            if not share:
                continue
            utilization = self._ask("nvmlDeviceGetUtilizationRates", device)
            percent = float(getattr(utilization, "gpu", 0.0))
            found.append(GpuUse(device.index, device.name, energy_j * share, percent, memory, share, matched))
        return found

    def _read_energy(self, device: _Gpu, elapsed_s: float) -> float:
        """Joules since the last reading: by the device's counter, else by its power over time."""
        before, device.energy_mj = device.energy_mj, self._ask("nvmlDeviceGetTotalEnergyConsumption", device)
        if before is not None and device.energy_mj is not None:
            return counter_increase(before, device.energy_mj) / 1e3
        milliwatts = self._ask("nvmlDeviceGetPowerUsage", device) if device.energy_mj is None else None
        last, device.watts = device.watts, None if milliwatts is None else milliwatts / 1e3
        if last is None or device.watts is None:
            return 0.0
        return trapezoid(last, device.watts, elapsed_s)

    def _use_by(self, device: _Gpu, ours: set[int]) -> tuple[float, int, bool]:
        """Our share of the processes on a device, the memory they hold, and whether their numbers are known to us."""
        running = {
            each.pid: each.usedGpuMemory or 0
            for what in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")
            for each in self._ask(what, device) or ()
        }
        if not running:
            return 0.0, 0, True
        mine = ours & running.keys()
        if mine:
            return len(mine) / len(running), sum(running[pid] for pid in mine), True
        # In a container the driver speaks of the host's process numbers, which say nothing here.
        strangers = [pid for pid in running if not os.path.exists(f"/proc/{pid}")]
        if len(strangers) == len(running) and any(_computes_on_gpu(pid) for pid in ours):
            return 1 / len(running), sum(running.values()) // len(running), False
        return 0.0, 0, True

    def _ask(self, function: str, device: _Gpu) -> Any:
        try:
            return getattr(self._nvml, function)(device.handle)
        except Exception:  # noqa: BLE001 - not every GPU offers everything, and one may fall off the bus
            return None


def _load() -> Any:
    import pynvml

    return pynvml


def _is_visible(nvml: Any, index: int) -> bool:
    """Whether CUDA lets this process use the device."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return True
    names = [each.strip() for each in listed.split(",")]
    if str(index) in names:
        return True
    uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index))
    uuid = uuid.decode() if isinstance(uuid, bytes) else str(uuid)
    return any(name and not name.isdigit() and uuid.startswith(name) for name in names)


def _computes_on_gpu(pid: int) -> bool:
    """Whether a process has CUDA open; asking the driver for figures, as we do, does not open it."""
    try:
        return any(
            os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/dev/nvidia-uvm") for fd in os.listdir(f"/proc/{pid}/fd")
        )
    except OSError:
        return False

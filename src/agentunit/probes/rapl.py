"""Energy counters of the processor packages (RAPL), where the system lets them be read."""

from __future__ import annotations

import os
from pathlib import Path

from agentunit.formulas.sustainability import counter_increase

_FOLDER = Path("/sys/class/powercap")
HOW_TO_ENABLE = "sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj"


class RaplCounters:
    """The packages of a machine and their memory, as one counter in joules.

    AMD's processors have them under the same name. Packages hold their cores and graphics, so those are not added; the
    whole platform (psys) and the second view of the same packages (mmio) are left out.
    """

    def __init__(self, folder: Path = _FOLDER) -> None:
        self.problem: str | None = None
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

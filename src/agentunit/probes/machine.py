"""How much of the machine this process may use, what can be measured on it, and how to enable the rest."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from agentunit.probes._counters import HOW_TO_ENABLE, Gpus, RaplCounters
from agentunit.probes._process_tree import INSTALL_HINT, ProcessTree

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
# What version 1 writes for "no limit" is close to 2**63.
_UNLIMITED_BYTES = 1 << 60


class Limits(NamedTuple):
    """``cores`` is what percentages are of; ``memory_bytes`` is ``None`` without a limit. ``cpu_quota`` is the
    container's share of processors, if it has one."""

    cores: float
    memory_bytes: int | None
    cpu_quota: float | None


def limits(root: Path = _ROOT, own: Path = _OWN) -> Limits:
    """The limits of this process: processors it may run on, and its control group's quota, version 2 or 1."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas, memories = [], []
    for folder in _folders(root, own, "cpu"):
        quota = _quota_2(folder / "cpu.max") or _quota_1(folder)
        if quota is not None:
            quotas.append(quota)
    for folder in _folders(root, own, "memory"):
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        if limit is not None and limit < _UNLIMITED_BYTES:
            memories.append(limit)
    quota = min(quotas, default=None)
    return Limits(min(float(usable), quota) if quota is not None else float(usable), min(memories, default=None), quota)


def machine_memory_bytes() -> int | None:
    """The memory of the whole machine; ``None`` where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        pass
    if find_spec("psutil") is None:
        return None
    import psutil

    return int(psutil.virtual_memory().total)


def _folders(root: Path, own: Path, controller: str) -> list[Path]:
    """The control group of this process and all above it: each of them limits."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            base = root
        elif controller in controllers.split(","):
            base = root / controllers if (root / controllers).is_dir() else root / controller
        else:
            continue
        # Inside a container the path is often that of the host, while the container's own group is mounted at the top.
        group = Path(path.lstrip("/"))
        found += [base / part for part in (group, *group.parents)]
    return found


def _quota_2(file: Path) -> float | None:
    try:
        quota, period = file.read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_1(folder: Path) -> float | None:
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


class Capability(NamedTuple):
    """One thing that probes measure; ``fix`` is the command that would enable it, where one can."""

    part: str
    state: Literal["ok", "missing", "not ready"]
    note: str
    fix: str | None = None


def capabilities() -> list[Capability]:
    """What the probes find here."""
    return [_processes(), _cpu_energy(RaplCounters()), _gpus(Gpus()), _container()]


def _processes() -> Capability:
    problem = ProcessTree().problem
    if problem is None:
        note = "of an agent's process and what it starts"
        return Capability(
            "CPU time and memory", "ok", note if sys.platform == "linux" else f"{note}, unless it detaches"
        )
    return Capability("CPU time and memory", "not ready", problem, INSTALL_HINT)


def _cpu_energy(counters: RaplCounters) -> Capability:
    part = "CPU energy (RAPL)"
    if counters.readable:
        return Capability(part, "ok", "read from the processor's counters, by the share of CPU time")
    denied = counters.problem is not None and HOW_TO_ENABLE in counters.problem
    note = "modeled from CPU time, within a factor of 2.5; " + (
        "the counters may not be read (the fix lasts until the next start)" if denied else str(counters.problem)
    )
    return Capability(part, "not ready" if denied else "missing", note, HOW_TO_ENABLE if denied else None)


def _gpus(gpus: Gpus) -> Capability:
    part = "GPU energy (NVML)"
    if gpus.names:
        return Capability(part, "ok", ", ".join(gpus.names))
    note = gpus.problem or "the driver shows no GPU to this process"
    return Capability(part, "missing", note, INSTALL_HINT if INSTALL_HINT in note else None)


def _container() -> Capability:
    found = limits()
    memory = "no limit" if found.memory_bytes is None else f"{found.memory_bytes / 1e9:.3g} GB"
    quota = "no quota" if found.cpu_quota is None else f"a quota of {found.cpu_quota:g}"
    cores = f"{found.cores:g} {'core' if found.cores == 1 else 'cores'}"
    return Capability("container limits", "ok", f"percentages are of {cores} ({quota}); memory: {memory}")

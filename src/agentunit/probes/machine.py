"""What can be measured on this machine, and how to enable the rest."""

from __future__ import annotations

from typing import Literal, NamedTuple

from agentunit.probes.limits import limits
from agentunit.probes.nvml import INSTALL_HINT as NVML_HINT
from agentunit.probes.nvml import Gpus
from agentunit.probes.process_tree import INSTALL_HINT, ProcessTree
from agentunit.probes.rapl import HOW_TO_ENABLE, RaplCounters


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
        return Capability("CPU time and memory", "ok", "of an agent's process and its children")
    return Capability("CPU time and memory", "not ready", problem, INSTALL_HINT)


def _cpu_energy(counters: RaplCounters) -> Capability:
    part = "CPU energy (RAPL)"
    if counters.readable:
        return Capability(part, "ok", "read from the processor's counters, by the share of CPU time")
    denied = counters.problem is not None and HOW_TO_ENABLE in counters.problem
    note = "modelled from CPU time, within a factor of 2.5; " + (
        "the counters may not be read (the fix lasts until the next start)" if denied else str(counters.problem)
    )
    return Capability(part, "not ready" if denied else "missing", note, HOW_TO_ENABLE if denied else None)


def _gpus(gpus: Gpus) -> Capability:
    part = "GPU energy (NVML)"
    if gpus.names:
        return Capability(part, "ok", ", ".join(gpus.names))
    note = gpus.problem or "the driver shows no GPU to this process"
    return Capability(part, "missing", note, NVML_HINT if NVML_HINT in note else None)


def _container() -> Capability:
    found = limits()
    memory = "no limit" if found.memory_bytes is None else f"{found.memory_bytes / 1e9:.3g} GB"
    quota = "no quota" if found.cpu_quota is None else f"a quota of {found.cpu_quota:g}"
    cores = f"{found.cores:g} {'core' if found.cores == 1 else 'cores'}"
    return Capability("container limits", "ok", f"percentages are of {cores} ({quota}); memory: {memory}")

"""``measure``: what an agent uses while it runs, written into its trace."""

from __future__ import annotations

import os
import platform
import time
from math import fsum
from typing import Any

from agentunit.core.trace import TraceLog
from agentunit.formulas.sustainability import (
    JOULES_PER_KWH,
    EnergyRange,
    memory_modules_watts,
    modeled_cpu_energy,
    modeled_memory_energy,
)
from agentunit.probes.machine import limits, machine_memory_bytes
from agentunit.probes.meter import Account, GpuAccount, Meter, meter
from agentunit.probes.probe_settings import DEFAULT_INTERVAL_S, checked_interval
from agentunit.public import publish

RESOURCE_USE = "resource_use"
"""Where in ``trace.metadata`` the facts stand."""
_PLAIN = ("energy_kwh", "cpu_percent", "memory_gb", "gpu_percent")
_ADDED_ENERGY = ("energy_kwh", "energy_min_kwh", "energy_max_kwh", "cpu_kwh", "memory_kwh", "gpu_kwh")
_ADDED = ("elapsed_s", "cpu_s", "n_samples", *_ADDED_ENERGY)
_GB = 1e9
_measured: set[int] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_measured.clear)


class Measurement:
    """A measurement, for ``with`` and ``async with``; or ``start`` and ``stop``. ``facts`` is what was found.

    ``trace`` is where it is written. Stopping twice changes nothing. One trace is measured once at a time: a second
    measurement of it, within the first, does nothing.
    """

    def __init__(self, trace: TraceLog, sample_interval: float, pid: int | None) -> None:
        if not isinstance(trace, TraceLog):
            raise TypeError(f"measure: trace must be a TraceLog; received {type(trace).__name__}")
        self.trace = trace
        self._interval_s = checked_interval("measure", "sample_interval", sample_interval)
        if pid is not None and (isinstance(pid, bool) or not isinstance(pid, int) or pid < 1):
            raise ValueError(f"measure: pid must be the number of a child of this process; received {pid!r:.80}")
        self._pid = pid
        self._key = 0
        self._meter: Meter | None = None
        self._account: Account | None = None
        self._started_at: float | None = None
        self._state = "new"
        self.facts: dict[str, Any] = {}

    def start(self) -> Measurement:
        """Begin to measure."""
        if self._state != "new":
            raise RuntimeError("measure: a measurement starts once; make a new one with measure(trace)")
        self._state = "running"
        self._started_at = time.time()
        key = self._key = id(self.trace)
        if key in _measured:
            return self
        _measured.add(key)
        self._meter, self._account = meter(), Account(self._interval_s, self._pid)
        try:
            self._meter.begin(self._account)
        except Exception as error:  # noqa: BLE001 - a probe that fails must not take the agent along
            _measured.discard(key)
            self._account = None
            self._write({"problems": [f"the probe could not start: {type(error).__name__}: {error}"]})
        return self

    def stop(self) -> dict[str, Any]:
        """End the measurement and write what was found into the trace; the second time it only returns it again."""
        if self._state == "new":
            raise RuntimeError("measure: nothing to stop: the measurement was never started")
        was_running, self._state = self._state == "running", "stopped"
        if not was_running or self._account is None or self._meter is None:
            return self.facts
        _measured.discard(self._key)
        try:
            whole = self._meter.end(self._account)
            found = _facts(self._account, self._meter, self._started_at)
            if not self._account.seen and not self._account.cpu_s:
                found = _unseen(found, self._account.pid)
            if not whole:
                found["problems"].append("the measurement was interrupted: it ends at the last sample")
        except Exception as error:  # noqa: BLE001 - a probe that fails must not take the agent along
            found = {"problems": [f"the probe failed: {type(error).__name__}: {error}"]}
        self._write(found)
        return self.facts

    def _write(self, found: dict[str, Any]) -> None:
        self.facts = found
        if not isinstance(self.trace.metadata, dict):
            self.trace.metadata = {}
        metadata = self.trace.metadata
        earlier = metadata.get(RESOURCE_USE)
        plain_before = plain_facts(earlier) if isinstance(earlier, dict) else {}
        try:
            whole = found if earlier is None else joined_measurements(earlier, found)
        except (AttributeError, TypeError, KeyError):
            note = f"what stood in trace.metadata[{RESOURCE_USE!r}] before is no measurement, and was replaced"
            whole, plain_before = {**found, "problems": [*found["problems"], note]}, {}
        metadata[RESOURCE_USE] = whole
        for key, value in plain_facts(whole).items():
            # What the agent says of itself stays.
            if metadata.get(key) == plain_before.get(key):
                metadata[key] = value

    def __del__(self) -> None:
        # One that was dropped without an end must not take its part of what others use for ever.
        account = getattr(self, "_account", None)
        if account is not None and self._state == "running":
            account.left = True
            _measured.discard(self._key)

    def __enter__(self) -> Measurement:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Measurement:
        return self.start()

    async def __aexit__(self, *error: object) -> None:
        self.stop()


def measure(trace: TraceLog, *, sample_interval: float = DEFAULT_INTERVAL_S, pid: int | None = None) -> Measurement:
    """Measure what runs inside the block: CPU, memory, GPUs and energy of this process and its children.

    The facts stand in ``trace.metadata["resource_use"]``, the chief ones also as ``energy_kwh``, ``cpu_percent``,
    ``memory_gb`` and ``gpu_percent``, unless the agent wrote those itself. With ``pid``, a child of this process, only
    that child and what it starts is measured. What runs in one process at the same time shares what is used there, by
    threads where they can be told apart. Samples are taken every ``sample_interval`` seconds in a thread.

    >>> trace = TraceLog()
    >>> with measure(trace):
    ...     total = sum(range(100_000))
    >>> trace.metadata["resource_use"]["cpu_s"] >= 0
    True
    """
    return Measurement(trace, sample_interval, pid)


def plain_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The chief facts of a measurement, by the names that metrics read in a trace's metadata."""
    named = {**facts, "memory_gb": facts.get("memory_peak_gb")}
    return {key: named[key] for key in _PLAIN if named.get(key) is not None}


def _facts(account: Account, meter: Meter, started_at: float | None) -> dict[str, Any]:
    available = limits()
    elapsed_s = account.elapsed_s
    by_rapl = account.package_j is not None
    counted_j = account.package_j or 0.0
    cpu = EnergyRange(counted_j, counted_j, counted_j) if by_rapl else modeled_cpu_energy(account.cpu_s)
    memory = None if by_rapl and meter.counts_memory_energy else _memory_energy(account)
    low_j, known_j, high_j = (fsum(parts) for parts in zip(cpu, memory or (0.0, 0.0, 0.0), strict=True))
    gpu_j = fsum(gpu.energy_j for gpu in account.gpus.values())
    busy_gpus = [gpu.percent_s / gpu.seconds for gpu in account.gpus.values() if gpu.seconds > 0]
    peak = account.memory_peak_bytes
    return {
        "started_at": started_at,
        "elapsed_s": elapsed_s,
        "sample_interval_s": account.interval_s,
        "n_samples": account.n_looks + 1,
        "longest_gap_s": account.longest_gap_s,
        "cpu_s": account.cpu_s,
        "cpu_percent": 100 * account.cpu_s / (elapsed_s * available.cores) if elapsed_s > 0 else None,
        "cores_available": available.cores,
        "memory_peak_gb": None if peak is None else peak / _GB,
        "memory_mean_gb": account.memory_byte_s / elapsed_s / _GB if peak is not None and elapsed_s > 0 else None,
        "memory_limit_gb": None if available.memory_bytes is None else available.memory_bytes / _GB,
        "gpu_percent": fsum(busy_gpus) / len(busy_gpus) if busy_gpus else None,
        "gpus": [_gpu_facts(index, gpu) for index, gpu in sorted(account.gpus.items())],
        "energy_kwh": (known_j + gpu_j) / JOULES_PER_KWH,
        "energy_min_kwh": (low_j + gpu_j) / JOULES_PER_KWH,
        "energy_max_kwh": (high_j + gpu_j) / JOULES_PER_KWH,
        "cpu_kwh": cpu.value_j / JOULES_PER_KWH,
        "memory_kwh": None if memory is None else memory.value_j / JOULES_PER_KWH,
        "gpu_kwh": gpu_j / JOULES_PER_KWH if account.gpus else None,
        "cpu_method": "rapl" if by_rapl else "cpu model",
        "memory_method": "memory model" if memory is not None else "rapl" if meter.counts_memory_energy else None,
        "gpu_method": "nvml" if account.gpus else None,
        "beside": account.beside,
        "shared": account.split or any(gpu.shared for gpu in account.gpus.values()),
        "missing": _missing(account),
        "problems": meter.problems,
    }


def _memory_energy(account: Account) -> EnergyRange | None:
    """The energy of the memory that was in use; ``None`` where nobody could see how much that was."""
    machine_bytes = machine_memory_bytes()
    if account.memory_peak_bytes is None:
        return None
    arm = platform.machine().lower().startswith(("arm", "aarch"))
    modules_w = 0.0 if machine_bytes is None else memory_modules_watts(machine_bytes / _GB, arm)
    return modeled_memory_energy(account.memory_byte_s / _GB, modules_w * account.alone_s)


def _missing(account: Account) -> list[str]:
    """What ran, or drew power, and is in no figure."""
    found = []
    if account.has_lost_some:
        found.append("a process detached itself from the agent's and ran on unseen")
    if account.memory_peak_bytes is None:
        found.append("the energy of memory, whose use could not be seen")
    return found


def _unseen(facts: dict[str, Any], pid: int | None) -> dict[str, Any]:
    """What remains of facts about a process that was never there: that nothing is known of it."""
    kept = {key: facts[key] for key in ("started_at", "elapsed_s", "sample_interval_s", "n_samples")}
    return {**kept, "problems": [*facts["problems"], f"no child of this process has the number {pid}"]}


def _gpu_facts(index: int, gpu: GpuAccount) -> dict[str, Any]:
    return {
        "index": index,
        "name": gpu.name,
        "percent": gpu.percent_s / gpu.seconds if gpu.seconds > 0 else None,
        "memory_peak_gb": gpu.memory_peak_bytes / _GB,
        "kwh": gpu.energy_j / JOULES_PER_KWH,
        "mean_w": gpu.energy_j / gpu.seconds if gpu.seconds > 0 else None,
        "shared": gpu.shared,
    }


def joined_measurements(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """Two measurements of one trace, one after the other: amounts add up, rates are over both times."""
    joined = {**earlier, **{key: value for key, value in later.items() if value is not None}}
    if not all(isinstance(each.get("elapsed_s"), float) for each in (earlier, later)):
        return joined
    seconds = earlier["elapsed_s"] + later["elapsed_s"]
    for key in _ADDED:
        parts = [each[key] for each in (earlier, later) if each.get(key) is not None]
        joined[key] = sum(parts) if parts else None
    for key in ("memory_mean_gb", "cpu_percent", "gpu_percent"):
        known = [each for each in (earlier, later) if each.get(key) is not None]
        time_s = fsum(each["elapsed_s"] for each in known)
        joined[key] = fsum(each[key] * each["elapsed_s"] for each in known) / time_s if time_s > 0 else None
    peaks = [each["memory_peak_gb"] for each in (earlier, later) if each.get("memory_peak_gb") is not None]
    joined["memory_peak_gb"] = max(peaks, default=None)
    joined["elapsed_s"] = seconds
    joined["started_at"] = earlier.get("started_at")
    joined["shared"] = bool(earlier.get("shared") or later.get("shared"))
    joined["gpus"] = [*(earlier.get("gpus") or ()), *(later.get("gpus") or ())]
    for key in ("missing", "problems"):
        joined[key] = list(dict.fromkeys([*(earlier.get(key) or ()), *(later.get(key) or ())]))
    return joined


publish("agentunit.probes", Measurement)

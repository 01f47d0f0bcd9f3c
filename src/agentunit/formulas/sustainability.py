"""Energy, carbon and use of resources: what is used, what it means, and how it scores."""

from __future__ import annotations

from math import ceil, isfinite
from typing import NamedTuple

JOULES_PER_KWH = 3_600_000.0

BUSY_CPU_WATTS = 3.8
BUSY_CPU_WATTS_RANGE = (1.6, 6.0)
"""Watts of one busy hardware thread of a server, and their spread from one processor generation to the next.

The middle of the averages that Cloud Carbon Footprint takes from SPECpower results of the processors of three large
clouds (3.5, 3.8 and 4.1 W); the ends are its figures for AMD EPYC of the second generation and Intel Haswell.
"""


class EnergyRange(NamedTuple):
    """An estimate of energy in joules, with its least and most likely values."""

    low_j: float
    value_j: float
    high_j: float


def modeled_cpu_energy(busy_cpu_s: float) -> EnergyRange:
    """The energy of busy processors where no counter can be read: seconds of CPU time × watts of a busy thread.

    Linear in utilization, without the idle power of a machine that waits, or its cooling. Memory is apart.

    >>> modeled_cpu_energy(100.0)
    EnergyRange(low_j=160.0, value_j=380.0, high_j=600.0)
    """
    _check("modeled_cpu_energy", "busy_cpu_s", busy_cpu_s)
    low, high = BUSY_CPU_WATTS_RANGE
    return EnergyRange(busy_cpu_s * low, busy_cpu_s * BUSY_CPU_WATTS, busy_cpu_s * high)


MEMORY_WATTS_PER_GB = 0.39
LEAST_MEMORY_WATTS_PER_GB = 0.08
"""Watts of a gigabyte of memory in use: Cloud Carbon Footprint's mean of memory makers' figures, and a 64 GB module of
a server that draws 5 W."""
MODULE_WATTS = 5.0
ARM_MODULE_WATTS = 1.5
"""Watts of one memory module, as CodeCarbon counts them."""
_MODULES_UP_TO_GB = ((16.0, 2), (64.0, 4), (128.0, 8), (2048.0, 16))
_LARGEST_MODULE_GB = 128.0


def memory_modules_watts(machine_gb: float, arm: bool = False) -> float:
    """What all memory modules of a machine draw, whoever uses them: their number is guessed from its memory.

    >>> memory_modules_watts(8.0), memory_modules_watts(32.0), memory_modules_watts(4096.0)
    (10.0, 20.0, 160.0)
    """
    _check("memory_modules_watts", "machine_gb", machine_gb)
    guesses = (count for most_gb, count in _MODULES_UP_TO_GB if machine_gb <= most_gb)
    return next(guesses, ceil(machine_gb / _LARGEST_MODULE_GB)) * (ARM_MODULE_WATTS if arm else MODULE_WATTS)


def modeled_memory_energy(used_gb_s: float, modules_j: float) -> EnergyRange:
    """The energy of memory: gigabytes in use × seconds × watts. Memory draws power whether it is used or not, so at
    the most it is that of all modules of the machine over the same time.

    >>> modeled_memory_energy(2.0 * 100.0, 20.0 * 100.0)
    EnergyRange(low_j=16.0, value_j=78.0, high_j=2000.0)
    """
    _check("modeled_memory_energy", "used_gb_s", used_gb_s)
    _check("modeled_memory_energy", "modules_j", modules_j)
    value_j = used_gb_s * MEMORY_WATTS_PER_GB
    return EnergyRange(used_gb_s * LEAST_MEMORY_WATTS_PER_GB, value_j, max(value_j, modules_j))


def counter_increase(before: float, after: float, wraps_at: float | None = None) -> float:
    """How far a counter went that starts anew at ``wraps_at``; one that went back without one has been reset.

    Two wraps between two readings cannot be told from one.

    >>> counter_increase(90, 95, 100), counter_increase(95, 5, 100), counter_increase(95, 5)
    (5, 10, 5)
    """
    if after >= before:
        return after - before
    return after if wraps_at is None else wraps_at - before + after


def trapezoid(value_before: float, value_after: float, elapsed: float) -> float:
    """The area under a line between two readings: watts over seconds are joules. Time that runs back counts nothing.

    >>> trapezoid(100.0, 200.0, 2.0), trapezoid(100.0, 200.0, -1.0)
    (300.0, 0.0)
    """
    return (value_before + value_after) / 2 * max(0.0, elapsed)


def threshold_score(used: float, threshold: float) -> float:
    """``min(1, threshold / used)``: 1.0 up to the threshold, half of it at twice as much; nothing used is 1.0.

    >>> threshold_score(0.05, 0.1), threshold_score(0.4, 0.1), threshold_score(0.0, 0.1)
    (1.0, 0.25, 1.0)
    """
    _check("threshold_score", "used", used)
    if not (isfinite(threshold) and threshold > 0):
        raise ValueError(f"threshold_score: threshold must be a finite number above 0; received {threshold!r}")
    return 1.0 if used <= threshold else threshold / used


def _check(who: str, parameter: str, value: float) -> None:
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"{who}: {parameter} must be a finite number of 0 or more; received {value!r}")


KM_PER_KG = 4.6
TREES_PER_KG = 1 / 21


class Equivalents(NamedTuple):
    """What an amount of CO2 compares to: kilometres by car, and trees that take it up within a year."""

    km_driven: float
    trees_needed: float


def carbon_of(energy_kwh: float, intensity_kg_per_kwh: float) -> float:
    """``energy × intensity``: kilograms of CO2 equivalent of electricity from a grid.

    >>> carbon_of(0.1, 0.475)
    0.0475
    """
    _check("carbon_of", "energy_kwh", energy_kwh)
    _check("carbon_of", "intensity_kg_per_kwh", intensity_kg_per_kwh)
    return energy_kwh * intensity_kg_per_kwh


def equivalents(carbon_kg: float) -> Equivalents:
    """``km = kg × 4.6``, ``trees = kg / 21``: as the catalog has them.

    >>> equivalents(21.0)
    Equivalents(km_driven=96.6, trees_needed=1.0)
    """
    return Equivalents(carbon_kg * KM_PER_KG, carbon_kg * TREES_PER_KG)


LEAST_OF_TARGET = 0.5
MOST_OF_TARGET = 1.2


def utilization_score(used: float, target: float) -> float:
    """With ``r = used / target``: ``r / 0.5`` below 0.5, 1.0 from 0.5 to 1.2, ``max(0, 1 − (r − 1.2))`` above.

    Nothing used scores 0.0, and so does 2.2 times the target and more.

    >>> [utilization_score(used, 80.0) for used in (20.0, 40.0, 96.0)]
    [0.5, 1.0, 1.0]
    """
    if not (isfinite(target) and target > 0):
        raise ValueError(f"utilization_score: target must be a finite number above 0; received {target!r}")
    if not (isfinite(used) and used >= 0):
        raise ValueError(f"utilization_score: used must be a finite number of 0 or more; received {used!r}")
    ratio = used / target
    if ratio < LEAST_OF_TARGET:
        return ratio / LEAST_OF_TARGET
    return 1.0 if ratio <= MOST_OF_TARGET else max(0.0, 1.0 - (ratio - MOST_OF_TARGET))

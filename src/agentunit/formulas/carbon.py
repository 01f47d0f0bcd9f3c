"""Carbon dioxide of electricity, and what it compares to."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

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
    for parameter, value in (("energy_kwh", energy_kwh), ("intensity_kg_per_kwh", intensity_kg_per_kwh)):
        if not (isfinite(value) and value >= 0):
            raise ValueError(f"carbon_of: {parameter} must be a finite number of 0 or more; received {value!r}")
    return energy_kwh * intensity_kg_per_kwh


def equivalents(carbon_kg: float) -> Equivalents:
    """``km = kg × 4.6``, ``trees = kg / 21``: as the catalog has them.

    >>> equivalents(21.0)
    Equivalents(km_driven=96.6, trees_needed=1.0)
    """
    return Equivalents(carbon_kg * KM_PER_KG, carbon_kg * TREES_PER_KG)

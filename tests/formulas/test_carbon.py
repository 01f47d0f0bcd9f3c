"""Carbon of electricity, with the catalog's own figures."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.sustainability import carbon_of, equivalents


@pytest.mark.parametrize(
    ("energy_kwh", "intensity", "expected"), [(1.0, 0.475, 0.475), (0.1, 0.056, 0.0056), (0.0, 0.7, 0.0), (5, 0, 0)]
)
def test_hand_checked(energy_kwh: float, intensity: float, expected: float) -> None:
    assert carbon_of(energy_kwh, intensity) == pytest.approx(expected)


def test_the_catalogs_equivalents() -> None:
    # The catalog's example: 0.023 kg is 0.106 km and 0.0011 trees.
    found = equivalents(0.023)
    assert found.km_driven == pytest.approx(0.106, abs=5e-4)
    assert found.trees_needed == pytest.approx(0.0011, abs=5e-5)


@given(st.floats(min_value=0, max_value=1e6), st.floats(min_value=0, max_value=2))
def test_twice_the_energy_is_twice_the_carbon(energy_kwh: float, intensity: float) -> None:
    assert carbon_of(2 * energy_kwh, intensity) == pytest.approx(2 * carbon_of(energy_kwh, intensity))


@pytest.mark.parametrize(("energy_kwh", "intensity"), [(-1, 0.4), (nan, 0.4), (1, -0.4), (1, inf)])
def test_what_cannot_be_is_refused(energy_kwh: float, intensity: float) -> None:
    with pytest.raises(ValueError, match=r"carbon_of: \w+ must be a finite number of 0 or more"):
        carbon_of(energy_kwh, intensity)

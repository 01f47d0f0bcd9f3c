"""How much carbon dioxide a kilowatt-hour brings with it, by country or region, from a table in this package.

Countries: Our World in Data, "Carbon intensity of electricity generation" (Ember and the Energy Institute; CC BY 4.0).
States of the USA: EPA eGRID2023, annual CO2 equivalent total output emission rate (public domain). Yearly means; each
row has its year.
"""

from __future__ import annotations

import csv
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

_SOURCES = {"owid": "Our World in Data / Ember", "egrid": "EPA eGRID"}


class GridIntensity(NamedTuple):
    """The mean of a grid over a year, in kilograms of CO2 equivalent a kilowatt-hour."""

    code: str
    kg_per_kwh: float
    year: int
    source: str


@lru_cache(maxsize=1)
def grid_table() -> dict[str, GridIntensity]:
    """All grids, by their codes: ISO 3166 of two or three letters, and states of the USA as ``US-CA``."""
    table: dict[str, GridIntensity] = {}
    with files("agentunit.sustainability").joinpath("grid_intensity.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            grid = GridIntensity(row["code"], float(row["kg_per_kwh"]), int(row["year"]), _SOURCES[row["source"]])
            table[row["code"]] = grid
            if row["alpha_3"]:
                table[row["alpha_3"]] = grid
    return table


def grid_intensity_of(code: str) -> GridIntensity:
    """The grid of a country or region.

    >>> grid_intensity_of("fr")
    GridIntensity(code='FR', kg_per_kwh=0.056, year=2023, source='Our World in Data / Ember')
    """
    wanted = code.strip().upper()
    found = grid_table().get(wanted)
    if found is None:
        nearest = ["GB"] if wanted == "UK" else get_close_matches(wanted, grid_table(), n=1, cutoff=0.5)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"grid_intensity: no grid has the code {code!r} (ISO 3166, or US-CA for a state){hint}")
    return found

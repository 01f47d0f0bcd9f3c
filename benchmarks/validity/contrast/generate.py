"""Fills the scenes of ``scenes.txt`` with names, places, numbers and dates: always the same pairs.

A scene is a text, and lines of ``kind | true claim | false claim``; the two claims differ in one thing. Most of what a
false claim says stands in the text too, of something else, so that counting known words does not tell them apart.
Names, places and numbers are drawn anew for each filling, so that no one of them decides.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SCENES = Path(__file__).with_name("scenes.txt")
FILLINGS = 12
SEED = 18
KINDS = ("roles", "number", "date", "unit", "negation", "antonym", "place")
_PEOPLE = (
    "Maren Holt", "Tomas Reyes", "Ingrid Falk", "Yusuf Demir", "Clara Whitfield", "Ngozi Adeyemi", "Pavel Novak",
    "Hana Sato", "Oscar Lindqvist", "Leila Haddad", "Bruno Moretti", "Aoife Brennan", "Samuel Okafor", "Greta Vogel",
    "Daniel Kovacs", "Mei Tanaka",
)  # fmt: skip
_PLACES = (
    "Lowick", "Tarnby", "Osterfeld", "Casal Verde", "Brackendale", "Nordhaven", "Villemont", "Port Ellery",
    "Kestrel Bay", "Marston", "Alderholm", "Santa Brisa", "Greywater", "Holmfirth Cross",
)  # fmt: skip
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
# Each slot is filled with the same place of a pair of opposites, and its partner with the other.
_OPPOSITES = {
    ("cheap", "dear"): (("cheap", "expensive"), ("soft", "hard"), ("fresh", "stale")),
    ("calm", "rough"): (("calm", "rough"), ("warm", "cold"), ("clear", "murky")),
    ("dry", "wet"): (("dry", "wet"), ("fertile", "barren"), ("stony", "soft")),
    ("short", "long"): (("short", "long"), ("dull", "exciting"), ("fair", "unfair")),
    ("narrow", "wide"): (("narrow", "wide"), ("low", "high"), ("strong", "weak")),
    ("better", "worse"): (("better", "worse"), ("stronger", "weaker"), ("warm", "cold")),
    ("quiet", "loud"): (("quiet", "loud"), ("bright", "dark"), ("small", "large")),
    ("full", "empty"): (("full", "empty"), ("dry", "wet"), ("open", "closed")),
    ("higher", "lower"): (("higher", "lower"),),
    ("happy", "sad"): (("happy", "sad"), ("surprising", "predictable")),
    ("new", "old"): (("new", "old"), ("large", "small")),
    ("steep", "flat"): (("steep", "flat"), ("dry", "muddy"), ("wide", "narrow")),
}
# Slots whose opposite would not fit the sentence.
_ONE_WAY = frozenset({"new", "higher"})
_COMPARED = {"new": "newer", "large": "larger"}


@dataclass(frozen=True)
class ContrastPair:
    """A text, a claim that it supports, and one that it does not; ``scene`` and ``filling`` say where it comes from."""

    kind: str
    scene: str
    filling: int
    text: str
    supported: str
    unsupported: str

    @property
    def name(self) -> str:
        """The text that it is about: pairs of one text are not independent."""
        return f"{self.scene}:{self.filling}"


def contrast_pairs(fillings: int = FILLINGS) -> list[ContrastPair]:
    """All pairs, in a fixed order.

    >>> pairs = contrast_pairs()
    >>> len(pairs) >= 1000, {pair.kind for pair in pairs} == set(KINDS)
    (True, True)
    >>> all(pair.supported != pair.unsupported for pair in pairs)
    True
    """
    return [pair for block in SCENES.read_text(encoding="utf-8").split("\n\n") for pair in _filled(block, fillings)]


def _filled(block: str, fillings: int) -> Iterator[ContrastPair]:
    heading, text, *lines = block.strip().splitlines()
    scene = heading.removeprefix("= ")
    for filling in range(fillings):
        values = _values(random.Random(f"{SEED} {scene} {filling}"))
        for line in lines:
            kind, supported, unsupported = (part.strip() for part in line.split("|"))
            claims = supported.format(**values), unsupported.format(**values)
            yield ContrastPair(kind, scene, filling, text.format(**values), *claims)


def _values(rng: random.Random) -> dict[str, str]:
    values = dict(zip("ABC", rng.sample(_PEOPLE, 3), strict=True))
    values |= dict(zip("PQR", rng.sample(_PLACES, 3), strict=True))
    many, few = rng.sample(range(1100, 9900, 50), 2), rng.sample(range(12, 60), 2)
    values |= {"N": f"{many[0]:,}", "N2": f"{many[1]:,}", "m": str(few[0]), "m2": str(few[1])}
    values |= dict(zip(("k", "k2"), map(str, rng.sample(range(61, 99), 2)), strict=True))
    years = sorted(rng.sample(range(1951, 2019), 2))
    months = rng.sample(_MONTHS, 2)
    values |= {f"D{n + 1}": f"{months[n]} {rng.randint(2, 11)}, {years[n]}" for n in range(2)}
    values["t"] = rng.choice(("seven", "half past nine", "noon"))
    for (slot, partner), pairs in _OPPOSITES.items():
        one, other = rng.choice(pairs)
        values[slot], values[partner] = (one, other) if slot in _ONE_WAY or rng.random() < 0.5 else (other, one)
    values["newer"] = _COMPARED[values["new"]]
    return values

"""Amounts with units, and whether two of them are equal."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from agentunit_local.answer_matching.number_words import plain_number
from agentunit_local.answer_matching.words import Words

# dimension: unit words, and how many of the base unit one of them is.
_DIMENSIONS: dict[str, dict[str, float]] = {
    "length": {
        "mm millimetre millimeter": 0.001, "cm centimetre centimeter": 0.01, "m metre meter": 1.0,
        "km kilometre kilometer": 1000.0, "in inch": 0.0254, "ft foot feet": 0.3048, "yd yard": 0.9144,
        "mi mile": 1609.344,
    },
    "mass": {"mg milligram": 1e-6, "g gram": 0.001, "kg kilogram kilo": 1.0, "tonne": 1000.0, "lb pound": 0.45359237,
             "oz ounce": 0.028349523125},
    "time": {"second sec": 1.0, "minute min": 60.0, "hour hr": 3600.0, "day": 86400.0, "week": 604800.0,
             "month": 2629800.0, "year yr": 31557600.0, "decade": 315576000.0},
    "area": {"acre": 4046.8564224, "hectare ha": 10000.0},
    "volume": {"ml millilitre milliliter": 0.001, "l litre liter": 1.0, "gallon": 3.785411784, "pint": 0.473176473},
    "speed": {"mph": 0.44704, "kph kmh": 1 / 3.6},
    "data": {"kb kilobyte": 1e3, "mb megabyte": 1e6, "gb gigabyte": 1e9, "tb terabyte": 1e12},
    "frequency": {"hz hertz": 1.0, "khz kilohertz": 1e3, "mhz megahertz": 1e6, "ghz gigahertz": 1e9},
    "power": {"watt": 1.0, "kw kilowatt": 1e3, "mw megawatt": 1e6, "gw gigawatt": 1e9},
    "share": {"%": 1.0},
    "dollar": {"dollar usd": 1.0, "cent": 0.01},
    "euro": {"euro eur": 1.0},
    "rupee": {"rupee inr rs": 1.0},
    "yen": {"yen jpy": 1.0},
}  # fmt: skip
UNITS: dict[str, tuple[str, float]] = {
    word: (dimension, size)
    for dimension, units in _DIMENSIONS.items()
    for words, size in units.items()
    for word in words.split()
}
UNIT_WORDS = UNITS.keys() | {
    "°",
    "degree",
    "celsius",
    "fahrenheit",
    "kelvin",
    "c",
    "f",
    "square",
    "cubic",
    "$",
    "€",
    "£",
    "¥",
    "₹",
}
_BEFORE = {
    "$": ("dollar", 1.0),
    "€": ("euro", 1.0),
    "£": ("pound sterling", 1.0),
    "¥": ("yen", 1.0),
    "₹": ("rupee", 1.0),
}
_TEMPERATURES = {"celsius": "c", "c": "c", "fahrenheit": "f", "f": "f", "kelvin": "k"}
_JOINS_A_RANGE = frozenset(("to", "and", "through", "until", "or"))
_ROUNDING = 0.02


class Quantity(NamedTuple):
    """An amount: as written, its dimension (``None`` without a unit), in the dimension's base unit, and its unit."""

    value: float
    dimension: str | None
    base: float
    unit: float | str = 1.0


def read_quantities(words: Words, dates: Collection[int] = ()) -> list[Quantity]:
    """The amounts of a text in order, without the places that ``dates`` took.

    >>> from agentunit_local.answer_matching.words import read_words
    >>> [(q.value, q.dimension) for q in read_quantities(read_words("5 feet 6 inches, $20 and 3 cats"))]
    [(5.5, 'length'), (20.0, 'dollar'), (3.0, None)]
    """
    found: list[Quantity] = []
    last_end = -1
    for place, value in enumerate(words.values):
        if value is None or place in dates:
            continue
        quantity, end = _with_unit(words, place, value)
        previous = found[-1] if found else None
        if previous and last_end == place and previous.dimension == quantity.dimension in ("length", "mass", "time"):
            whole, part = float(previous.unit), float(quantity.unit)
            if part < whole and quantity.base < whole:
                total = previous.base + quantity.base
                found[-1] = Quantity(total / whole, quantity.dimension, total, whole)
                last_end = end
                continue
        found.append(quantity)
        last_end = end
    return found


def _with_unit(words: Words, place: int, value: float) -> tuple[Quantity, int]:
    before = words.forms[place - 1] if place else ""
    if before in _BEFORE:
        dimension, size = _BEFORE[before]
        return Quantity(value, dimension, value * size, size), place + 1
    after = place + 1
    while (
        after < len(words) and words.forms[after] in ("°", "degree", "degrees", "square", "cubic") and after < place + 3
    ):
        after += 1
    unit = words.forms[after] if after < len(words) else ""
    if after > place + 1 and words.forms[place + 1] in ("square", "cubic"):
        return Quantity(value, f"{words.forms[place + 1]} {unit}", value), after + 1
    if unit in _TEMPERATURES and after > place + 1:
        scale = _TEMPERATURES[unit]
        return Quantity(value, "temperature", _kelvin(value, scale), scale), after + 1
    known = UNITS.get(unit) or UNITS.get(unit.removesuffix("s")) or UNITS.get(unit.removesuffix("es"))
    if known and not (unit == "in" and words.forms[after + 1 : after + 2]):
        return Quantity(value, known[0], value * known[1], known[1]), after + 1
    return Quantity(value, None, value), place + 1


def _kelvin(value: float, scale: str) -> float:
    return value if scale == "k" else value + 273.15 if scale == "c" else (value - 32) / 1.8 + 273.15


def equal(expected: Quantity, given: Quantity) -> bool:
    """Whether two amounts are the same: the number as precise as expected, after conversion within 2 % (1 degree).

    >>> equal(Quantity(1, "length", 1609.344, 1609.344), Quantity(1.6, "length", 1600, 1000))
    True
    >>> pi = Quantity(3.14, None, 3.14)
    >>> equal(pi, Quantity(3.1416, None, 3.1416)), equal(pi, Quantity(3.2, None, 3.2))
    (True, False)
    """
    if expected.dimension is None or given.dimension is None or expected[1::2] == given[1::2]:
        return expected.value == given.value or _rounds_to(given.value, expected.value)
    if expected.dimension != given.dimension:
        return False
    if expected.dimension == "temperature":
        return abs(expected.base - given.base) <= 1
    return close(expected.base, given.base)


def _rounds_to(value: float, rounded: float) -> bool:
    decimals = len(plain_number(rounded).partition(".")[2])
    return decimals > 0 and round(value, decimals) == rounded


def close(one: float, other: float) -> bool:
    """Whether two numbers are within 2 % of the larger one.

    >>> close(29029, 29000), close(3, 4)
    (True, False)
    """
    return abs(one - other) <= _ROUNDING * max(abs(one), abs(other))


def read_ranges(words: Words) -> list[tuple[float, float]]:
    """Stretches such as "6-12" or "between 5 and 10", as pairs of rising numbers.

    >>> from agentunit_local.answer_matching.words import read_words
    >>> read_ranges(read_words("usually 6-12 days, or five to ten weeks"))
    [(6.0, 12.0), (5.0, 10.0)]
    """
    found = []
    for place, low in enumerate(words.values):
        if low is None:
            continue
        after = (
            place + 2 if words.forms[place + 1 : place + 2] and words.forms[place + 1] in _JOINS_A_RANGE else place + 1
        )
        high = words.values[after] if after < len(words) else None
        if high is not None and low < high:
            found.append((low, high))
    return found

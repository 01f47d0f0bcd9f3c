"""Dates in many spellings, and how far two of them agree."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from agentunit_local.answer_matching.aliases import MONTHS
from agentunit_local.answer_matching.words import Words

_NUMERIC = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)|(\d\d?)/(\d\d?)/(\d{4})")
_DECADE = re.compile(r"(\d{1,3}0)s")
_YEARS = range(1000, 2101)
# Months that are also plain words count only beside a number.
_DOUBTFUL = frozenset(("may", "march", "mar", "sep", "dec", "jan"))
_BEFORE_OUR_ERA = frozenset(("bc", "bce"))
_OUR_ERA = frozenset(("ad", "ce"))

SAME, COARSER, NEAR, OTHER = 3, 2, 1, 0


class Date(NamedTuple):
    """A day, month, year, decade or century: years ``first`` to ``last``; what is not stated is ``None``."""

    first: int | None
    last: int | None
    month: int | None = None
    day: int | None = None


def read_dates(words: Words) -> tuple[dict[Date, int], set[int]]:
    """The dates of a text with the place of each one's first mention, and the places of all words that belong to dates.

    >>> from agentunit_local.answer_matching.words import read_words
    >>> [tuple(date) for date in read_dates(read_words("On 20 July 1969, not in the 1970s."))[0]]
    [(1969, 1969, 7, 20), (1970, 1979, None, None)]
    """
    dates: dict[Date, int] = {}
    used: set[int] = set()
    for place, form in enumerate(words.forms):
        if place in used:
            continue
        if form in MONTHS:
            found, places = _around_month(words, place)
        elif form[0].isdigit():
            found, places = _from_number(words, place)
        else:
            continue
        for date in found:
            dates.setdefault(date, place)
        used |= places
    return dates, used


def _around_month(words: Words, place: int) -> tuple[list[Date], set[int]]:
    month = MONTHS[words.forms[place]]
    before = place - 2 if place > 1 and words.forms[place - 1] == "of" else place - 1
    day = _whole(words, before, 1, 31)
    places = {place}
    if day is not None:
        places.add(before)
        year_place = place + 1
    else:
        day = _whole(words, place + 1, 1, 31)
        year_place = place + 1 if day is None else place + 2
        if day is not None:
            places.add(place + 1)
    year = _year(words, year_place)
    if year is not None:
        places.add(year_place)
    elif day is None and (words.forms[place] in _DOUBTFUL and not (words.capitals[place] and len(words) == 1)):
        return [], set()
    return [Date(year, year, month, day)], places


def _from_number(words: Words, place: int) -> tuple[list[Date], set[int]]:
    form = words.forms[place]
    nothing: tuple[list[Date], set[int]] = ([], set())
    numeric = _NUMERIC.fullmatch(form)
    if numeric:
        return _numeric_dates(numeric), {place}
    decade = _DECADE.fullmatch(form)
    if decade:
        first = int(decade[1]) + (1900 if len(decade[1]) == 2 else 0)
        return [Date(first, first + (99 if first % 100 == 0 and first >= 1000 else 9))], {place}
    if words.values[place] is None:
        return nothing
    following = words.forms[place + 1] if place + 1 < len(words) else ""
    number = _whole(words, place, 1, 3000)
    if number is not None and following in ("century", "centuries") and number <= 30:
        era = words.forms[place + 2] if place + 2 < len(words) else ""
        if era in _BEFORE_OUR_ERA:
            return [Date(-100 * number, -100 * number + 99)], {place, place + 1, place + 2}
        return [Date(100 * number - 100, 100 * number - 1)], {place, place + 1}
    if number is not None and following in _BEFORE_OUR_ERA:
        return [Date(-number, -number)], {place, place + 1}
    if number is not None and following in _OUR_ERA:
        return [Date(number, number)], {place, place + 1}
    year = _year(words, place)
    if year is not None and following != "%" and (place == 0 or words.forms[place - 1] not in "$€£¥₹"):
        next_year = _second_year(words, place + 1, year)
        if next_year is not None:
            return [Date(year, year), Date(next_year, next_year)], {place, place + 1}
        return [Date(year, year)], {place}
    return nothing


def _second_year(words: Words, place: int, year: int) -> int | None:
    """The year that "1946-47" ends with."""
    short = _whole(words, place, 1, 99)
    return year - year % 100 + short if short is not None and short == (year + 1) % 100 else None


def _numeric_dates(match: re.Match[str]) -> list[Date]:
    """Both readings of 3/4/2020, which may be a day in March or in April."""
    parts = [int(part) for part in match.groups() if part]
    year, readings = (parts[0], [parts[1:]]) if match[1] else (parts[2], [parts[:2], parts[1::-1]])
    return [Date(year, year, month, day) for month, day in readings if 1 <= month <= 12 and 1 <= day <= 31]


def _whole(words: Words, place: int, low: int, high: int) -> int | None:
    value = words.values[place] if 0 <= place < len(words) else None
    return int(value) if value is not None and low <= value <= high and value == int(value) else None


def _year(words: Words, place: int) -> int | None:
    """A year; the digits of a footnote that stuck to it ("19901") are cut off."""
    number = _whole(words, place, 1000, 2_100_999)
    if number is None or place in words.ordinals:
        return None
    if number in _YEARS:
        return number
    cut = int(words.forms[place][:4])
    return cut if 1500 <= cut <= 2030 and len(words.forms[place]) <= 6 else None


def agreement(expected: Date, given: Collection[Date]) -> int:
    """How well the best of the given dates agrees with the expected one.

    ``SAME``: it says all that is expected (and perhaps more). ``COARSER``: it says less, and nothing else ("1969" for
    "July 1969"). ``NEAR``: the year agrees, the month or the day does not. ``OTHER``: none of these.

    >>> july = Date(1969, 1969, 7, 20)
    >>> agreement(Date(1969, 1969, 7), [july]), agreement(july, [Date(1969, 1969)]), agreement(july, [Date(1970, 1970)])
    (3, 2, 0)
    """
    return max((_pair(expected, date) for date in given), default=OTHER)


def _pair(expected: Date, given: Date) -> int:
    if expected.first is not None and expected.last is not None and given.first is not None and given.last is not None:
        within = expected.first <= given.first and given.last <= expected.last
        around = given.first <= expected.first and expected.last <= given.last
        if not (within or around):
            return OTHER
        year_grade = SAME if within else COARSER
    elif expected.month is None or given.month is None:
        return OTHER
    else:
        year_grade = SAME if expected.first is None else COARSER
    grades = [year_grade]
    for wanted, said in ((expected.month, given.month), (expected.day, given.day)):
        if wanted is not None:
            grades.append(COARSER if said is None else SAME if said == wanted else NEAR)
    grade = min(grades)
    return OTHER if grade == NEAR and expected.first is None else grade

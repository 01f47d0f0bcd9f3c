"""Numbers, dates and times of a sentence, and whether the evidence states them, in whatever spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agentunit_local.answer_matching.dates import SAME, Date, agreement, read_dates
from agentunit_local.answer_matching.number_words import CARDINALS, ORDINALS, plain_number
from agentunit_local.answer_matching.quantities import Quantity, equal, read_quantities
from agentunit_local.answer_matching.words import Words, read_words

_HEDGING = "about around approximately approx roughly nearly almost some over under circa ca close more less least most"
_HEDGES = frozenset(_HEDGING.split())
_HEDGE_REACH = 2
_NUMBER = re.compile(rf"\d|\b(?:{'|'.join([*CARDINALS, *ORDINALS, 'dozen', 'hundred', 'thousand', 'million'])})", re.I)
_CLOCK = re.compile(r"(\d\d?):(\d\d)")
_NOON = {"am": 0, "pm": 12}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a text states in numbers; ``hedged`` are the places of amounts behind "about" and its like."""

    amounts: tuple[Quantity, ...] = ()
    hedged: frozenset[int] = frozenset()
    dates: tuple[Date, ...] = ()
    times: frozenset[int] = frozenset()

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.amounts) + len(self.dates) + len(self.times)


@lru_cache(maxsize=4096)
def figures_of(text: str) -> Figures:
    """The amounts, dates and times of day of a text.

    >>> figures_of("On 3 May it sold 4.5 million at 2:30 pm").amounts[0].value
    4500000.0
    """
    if not _NUMBER.search(text):
        return Figures()
    # In small letters: capitals would make Roman numbers of words in a text that is written in capitals.
    words = read_words(text.lower())
    dates, used = read_dates(words)
    times, taken = _times(words)
    used |= taken
    places = [place for place, value in enumerate(words.values) if value is not None and place not in used]
    amounts = read_quantities(words, used)
    hedges: frozenset[int] = frozenset()
    if len(amounts) == len(places):
        hedges = frozenset(number for number, place in enumerate(places) if _is_hedged(words, place))
    return Figures(tuple(amounts), hedges, tuple(dates), times)


def share_stated(claim: Figures, evidence: Iterable[Figures]) -> float | None:
    """The share of a claim's figures that the evidence states; ``None`` when the claim has none.

    An amount may be written otherwise (4.5 million for 4,500,000), in another unit, or rounded where the claim says
    so ("about 14 %" for 13.8 %). A lone "one" is most often no number.

    >>> share_stated(figures_of("About 14 % of 4,500,000 voted."), [figures_of("13.8 % of 4.5 million voted.")])
    1.0
    """
    evidence = list(evidence)
    amounts = [known for each in evidence for known in each.amounts]
    dates = [known for each in evidence for known in each.dates]
    times = frozenset(known for each in evidence for known in each.times)
    found = [
        any(equal(amount, known) or (number in claim.hedged and _rounds_to(known, amount)) for known in amounts)
        or _is_year(amount, dates)
        for number, amount in enumerate(claim.amounts)
        if not (amount.value == 1 and amount.dimension is None)
    ]
    found += [agreement(date, dates) == SAME or _is_number(date, amounts) for date in claim.dates]
    found += [time in times for time in claim.times]
    return sum(found) / len(found) if found else None


def beyond(figures: Figures, known: Figures) -> Figures:
    """The figures of a text without those that another one states too, and without a lone "one".

    >>> beyond(figures_of("3 of 12 ships in 1990"), figures_of("How many of 12 ships?")).amounts[0].value
    3.0
    """
    kept = [
        number
        for number, amount in enumerate(figures.amounts)
        if not (amount.value == 1 and amount.dimension is None)
        if not any(equal(amount, each) for each in known.amounts)
    ]
    return Figures(
        tuple(figures.amounts[number] for number in kept),
        frozenset(place for place, number in enumerate(kept) if number in figures.hedged),
        tuple(date for date in figures.dates if agreement(date, known.dates) != SAME),
        figures.times - known.times,
    )


def _is_year(amount: Quantity, dates: Iterable[Date]) -> bool:
    return amount.dimension is None and any(amount.value in (date.first, date.last, date.day) for date in dates)


def _is_number(date: Date, amounts: Iterable[Quantity]) -> bool:
    return date.month is None and date.first == date.last and any(each.value == date.first for each in amounts)


def _rounds_to(known: Quantity, rounded: Quantity) -> bool:
    if None not in (known.dimension, rounded.dimension) and known.dimension != rounded.dimension:
        return False
    digits = plain_number(rounded.value)
    decimals = len(digits.partition(".")[2])
    zeros = 0 if decimals else len(digits) - len(digits.rstrip("0"))
    return abs(known.value - rounded.value) <= 0.5 * 10.0 ** (zeros - decimals)


def _is_hedged(words: Words, place: int) -> bool:
    return not _HEDGES.isdisjoint(words.forms[max(0, place - _HEDGE_REACH) : place])


def _times(words: Words) -> tuple[frozenset[int], set[int]]:
    """Times of day in minutes, and the places they take: "14:00", "2 pm" and "2:00 PM" are the same."""
    found, used = set(), set()
    for place, form in enumerate(words.forms):
        following = words.forms[place + 1] if place + 1 < len(words) else ""
        clock = _CLOCK.fullmatch(form)
        value = words.values[place]
        if clock:
            hour, minute = int(clock[1]), int(clock[2])
        elif following in _NOON and value is not None and value in range(1, 13):
            hour, minute = int(value), 0
        else:
            continue
        if following in _NOON:
            hour = hour % 12 + _NOON[following]
        found.add(hour * 60 + minute)
        used.add(place)
    return frozenset(found), used

"""An answer read once, for comparison with any number of expected ones."""

from __future__ import annotations

from functools import cached_property

from agentunit_local.answer_matching.aliases import FUNCTION_WORDS
from agentunit_local.answer_matching.answer_index import AnswerIndex
from agentunit_local.answer_matching.dates import Date, read_dates
from agentunit_local.answer_matching.quantities import Quantity, read_quantities, read_ranges
from agentunit_local.answer_matching.stance import polarity
from agentunit_local.answer_matching.words import read_words

# Words of an expected answer that weigh at least this are its key words.
KEY_WEIGHT = 0.9
# Of a word that stands in many places, so many are looked at.
MOST_PLACES = 20


class GivenAnswer:
    """An answer's words, dates and amounts; ``asked`` are the stems of the question's words."""

    def __init__(self, answer: str, asked: frozenset[str]) -> None:
        self.text = answer
        self.words = read_words(answer)
        self.index = AnswerIndex(self.words)
        self.asked = asked
        stems = self.index.stems
        self.content = [place for place, form in enumerate(self.words.forms) if form not in FUNCTION_WORDS]
        self.news = [place for place in self.content if stems[place] not in asked]

    @cached_property
    def _dates_and_places(self) -> tuple[dict[Date, int], set[int]]:
        return read_dates(self.words)

    @property
    def dates(self) -> dict[Date, int]:
        """The dates it names."""
        return self._dates_and_places[0]

    @cached_property
    def quantities(self) -> dict[str | None, set[Quantity]]:
        """The amounts it names, without dates, by dimension."""
        found: dict[str | None, set[Quantity]] = {}
        for quantity in read_quantities(self.words, self._dates_and_places[1]):
            found.setdefault(quantity.dimension, set()).add(quantity)
        return found

    @cached_property
    def numbers(self) -> set[float]:
        """All its numbers, also those of dates."""
        return {value for value in self.words.values if value is not None}

    @cached_property
    def ranges(self) -> list[tuple[float, float]]:
        """Stretches such as 6 to 12."""
        return read_ranges(self.words)

    @cached_property
    def polarity(self) -> int:
        """1 for a yes, -1 for a no, 0 for neither."""
        return polarity(self.words, self.asked)

    @cached_property
    def initials(self) -> str:
        """The first letters of its capitalised words, apart where other words stand between them."""
        capitals, forms = self.words.capitals, self.words.forms
        return "".join(forms[place][0] if capitals[place] else " " for place in self.content)

    @cached_property
    def trigrams(self) -> set[str]:
        """All runs of three characters, spaces left out."""
        text = self.index.glued
        return {text[at : at + 3] for at in range(len(text) - 2)}

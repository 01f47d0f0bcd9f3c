"""An answer prepared for looking up words: by stem, by near spelling, by shared beginning."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

from agentunit_local.answer_matching.aliases import RELATED
from agentunit_local.answer_matching.words import Words

_SHORTEST_MISSPELT = 5
_PREFIX = 4
_SHORTEST_GLUED = 6
# Bounds on a search, so that a long text against a long text stays fast.
_MOST_CANDIDATES = 200
_MOST_GLUED_SEARCHES = 300

SAME, MISSPELT, RELATED_SCORE, GLUED, DERIVED, INITIAL = 1.0, 0.9, 0.85, 0.8, 0.7, 0.5


@lru_cache(maxsize=1 << 16)
def stem(form: str) -> str:
    """A word without its plural ending; digits and short words stay.

    >>> [stem(word) for word in ("cities", "boxes", "rivers", "glass", "bus", "1990s")]
    ['city', 'box', 'river', 'glass', 'bus', '1990s']
    """
    if len(form) < 4 or form[-1] != "s" or form[0].isdigit() or form[-2] in "sui":
        return form
    if form.endswith("ies") and len(form) > 4:
        return form[:-3] + "y"
    if form.endswith(("ses", "xes", "zes", "ches", "shes")):
        return form[:-2]
    return form[:-1]


class Lookup(NamedTuple):
    """How surely a word stands in the answer (0 to 1), and as which stem; ``None`` when only inside another word."""

    score: float
    found: str | None


_ABSENT = Lookup(0.0, None)


class AnswerIndex:
    """The words of one answer, and the ways to find one of them."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.stems = [stem(form) for form in words.forms]
        self.places: dict[str, list[int]] = {}
        for place, word in enumerate(self.stems):
            self.places.setdefault(word, []).append(place)
        self._looked_up: dict[str, Lookup] = {}

    @cached_property
    def line(self) -> str:
        """All stems, each between spaces."""
        return f" {' '.join(self.stems)} "

    @cached_property
    def glued(self) -> str:
        """All words without the spaces."""
        return "".join(self.words.forms)

    @cached_property
    def _by_edge(self) -> dict[tuple[int, str], list[str]]:
        edges: dict[tuple[int, str], list[str]] = {}
        for word in self.places:
            if len(word) >= _SHORTEST_MISSPELT - 1 and not word[0].isdigit():
                edges.setdefault((len(word), word[:2]), []).append(word)
                edges.setdefault((-len(word), word[-2:]), []).append(word)
        return edges

    @cached_property
    def _by_prefix(self) -> dict[str, list[str]]:
        beginnings: dict[str, list[str]] = {}
        for word in self.places:
            if len(word) > _PREFIX:
                beginnings.setdefault(word[:_PREFIX], []).append(word)
        return beginnings

    def spans(self, stems: list[str], most: int = 8) -> list[tuple[int, int]]:
        """The first places where a row of stems stands, as start and end (exclusive)."""
        if not stems or not all(word in self.places for word in stems):
            return []
        if len(stems) == 1:
            return [(place, place + 1) for place in self.places[stems[0]][:most]]
        found: list[tuple[int, int]] = []
        needle, counted, at = f" {' '.join(stems)} ", 0, 0
        position = self.line.find(needle)
        while position >= 0 and len(found) < most:
            counted += self.line.count(" ", at, position)
            at = position
            found.append((counted, counted + len(stems)))
            position = self.line.find(needle, position + 1)
        return found

    def look_up(self, word: str) -> Lookup:
        """Find a stem: as it is, misspelt by one letter, related, glued to another word, or derived."""
        if word in self.places:
            return Lookup(SAME, word)
        known = self._looked_up.get(word)
        if known is None:
            known = self._looked_up[word] = self._search(word)
        return known

    def _search(self, word: str) -> Lookup:
        if word[0].isdigit():
            return _ABSENT
        for other in RELATED.get(word, ()):
            if other in self.places:
                return Lookup(RELATED_SCORE, other)
        size = len(word)
        if size >= _SHORTEST_MISSPELT:
            for length in (size, size - 1, size + 1):
                for key in ((length, word[:2]), (-length, word[-2:])):
                    for other in self._by_edge.get(key, ())[:_MOST_CANDIDATES]:
                        if one_edit_apart(word, other):
                            return Lookup(MISSPELT, other)
        if size >= _SHORTEST_GLUED and len(self._looked_up) < _MOST_GLUED_SEARCHES and word in self.glued:
            return Lookup(GLUED, None)
        if size > _PREFIX:
            for other in self._by_prefix.get(word[:_PREFIX], ())[:_MOST_CANDIDATES]:
                if _shared_beginning(word, other) >= 0.65 * max(size, len(other)):
                    return Lookup(DERIVED, other)
        return _ABSENT


def _shared_beginning(one: str, other: str) -> int:
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    return shared


def one_edit_apart(one: str, other: str) -> bool:
    """Whether one letter added, left out, replaced, or two neighbours swapped make one word the other.

    >>> one_edit_apart("colour", "color"), one_edit_apart("centre", "center"), one_edit_apart("paris", "berlin")
    (True, True, False)
    """
    if one == other:
        return False
    if abs(len(one) - len(other)) > 1:
        return False
    at = _shared_beginning(one, other)
    if len(one) == len(other):
        if one[at + 1 :] == other[at + 1 :]:
            return True
        return one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[at + 1 :] == shorter[at:]

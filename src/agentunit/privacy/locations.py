"""Where a text says that the user is, and the places it names without saying whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agentunit.privacy.detection.gazetteer import Kind, entries, fold, kinds_of

LOCATION_FIELDS = ("location", "city", "town", "country", "region", "place", "area", "whereabouts", "hometown")
_FIELD = "|".join(LOCATION_FIELDS)
_OF_THE_USER = re.compile(
    rf"""(?:
      \byou(?:['’]re|\s+are|\s+were)?
        (?:\s+(?:currently|now|still|located|based|staying|living|working|live|lived|stay|reside|work))*
        \s+(?:in|at|near|from|around|outside)
    | \byour\s+(?:\w+\s+){{0,2}}?(?:{_FIELD}|home)(?:\s+(?:is|was|in|near|of|seems\s+to\s+be|appears\s+to\s+be))*
    | \bnear(?:by)?\s+you\s+(?:in|around)
    | \b(?:{_FIELD})["'*]*\s*[:=]
    )[\s"'*:]*(?:(?:the|downtown|central)\s+)*\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_SAID_OF_THE_USER = re.compile(
    r",?\s+(?:(?:is\s+)?where\s+you|is\s+your\s+(?:home|location|city|town))\b", re.IGNORECASE
)
_OF_A_PLACE = re.compile(r"\b(?:in|near|from|to|around|outside|at|of)\s+(?:the\s+)?\Z", re.IGNORECASE)
_CAPITALIZED = re.compile(r"(?<![\w@#/.])[^\W\d_a-z][\w'’-]*")
_COORDINATES = re.compile(r"(?<![\d.])-?\d{1,2}\.\d{3,}°?\s?[NS]?,\s?-?\d{1,3}\.\d{3,}°?\s?[EW]?")
_MOST_WORDS = 4
_REACH = 80


class NamedPlace(NamedTuple):
    """A place in a text, and whether the text says that the user is there."""

    start: int
    end: int
    of_the_user: bool


def named_places(text: str) -> Iterator[NamedPlace]:
    """Cities, states and countries that the gazetteer knows, coordinates, and what follows "you live in".

    A word that is also a plain one ("Reading", "Nice") is a place after a preposition only.

    >>> text = "You are in Oslo, Norway. Bergen is nice."
    >>> [(text[each.start : each.end], each.of_the_user) for each in named_places(text)]
    [('Oslo', True), ('Norway', False), ('Bergen', False)]
    """
    for found in _COORDINATES.finditer(text):
        yield NamedPlace(*found.span(), of_the_user=True)
    words = list(_CAPITALIZED.finditer(text))
    at = 0
    while at < len(words):
        start = words[at].start()
        n_words = _words_of_place(text, words, at)
        before = text[max(0, start - _REACH) : start]
        is_theirs = _OF_THE_USER.search(before) is not None
        if n_words:
            end = words[at + n_words - 1].end()
            yield NamedPlace(start, end, is_theirs or _SAID_OF_THE_USER.match(text, end) is not None)
        elif is_theirs and not kinds_of(words[at][0]) & (Kind.WORD | Kind.RARE_WORD):
            # A village that no list has, or something else: nobody can tell.
            yield NamedPlace(start, words[at].end(), of_the_user=False)
        at += n_words or 1


def _words_of_place(text: str, words: list[re.Match[str]], at: int) -> int:
    """How many words from here name a known place, 0 for none."""
    start = words[at].start()
    for n_words in range(min(_MOST_WORDS, len(words) - at), 1, -1):
        name = text[start : words[at + n_words - 1].end()]
        if entries().get(fold(name), 0) & Kind.PLACE:
            return n_words
    kind = kinds_of(words[at][0])
    if not kind & Kind.PLACE:
        return 0
    is_plain = kind & (Kind.WORD | Kind.RARE_WORD)
    return 1 if not is_plain or _OF_A_PLACE.search(text[max(0, start - _REACH) : start]) else 0

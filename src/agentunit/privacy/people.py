"""The people whom a record names: other places that speak of the same person, by part of the name or as an account."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from agentunit.privacy.detection.gazetteer import Kind, kinds_of
from agentunit.privacy.detection.name_words import AMBIGUOUS, PLAIN_WORDS
from agentunit.privacy.pseudonyms import TITLES, same_value

_WORD = re.compile(r"[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*")
# How often a word may stand in a record for each time that it was taken for a name.
_MOST_UNNOTICED = 20
_BETWEEN = frozenset((" ", ".", "_", "-", ", ", "  "))

Words = list[tuple[str, int, int]]


class Mention(NamedTuple):
    """Where a person is spoken of, and the name that the person is known by."""

    start: int
    end: int
    name: str


class People:
    """Everybody named in one record.

    A first name or a surname alone belongs to the one full name that holds it; where several do, it stands for itself.

    >>> text = "Mia asked for account mia_li_3668."
    >>> [(text[start:end], name) for start, end, name in People(["Mia Li"]).mentions(text)]
    [('Mia', 'Mia Li'), ('mia_li', 'Mia Li')]
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings: dict[str, list[tuple[list[str], str]]] = {}
        owners: dict[str, list[str]] = {}
        singles: list[str] = []
        for name in dict.fromkeys(names):
            # Each part of a name is one word or several: "Anne-Marie", "O'Neil".
            words_of = [_WORD.findall(part) for part in name.split()]
            parts = [words for words in words_of if words and words[0].lower() not in TITLES]
            if not parts:
                continue
            if len(parts) == 1:
                singles += parts[0] if len(parts[0]) == 1 else []
                self._spell(parts[0], name)
                continue
            self._spell([word for part in parts for word in part], name)
            self._spell([*parts[0], *parts[-1]], name)
            for part in (parts[0], parts[-1]):
                if len(part) == 1:
                    owners.setdefault(part[0], []).append(name)
                else:
                    self._spell(part, name)
        self._alone = {word: word for word in singles if _stands_alone(word)}
        for word, full_names in owners.items():
            if _stands_alone(word):
                people = {same_value("name", name) for name in full_names}
                self._alone[word] = full_names[0] if len(people) == 1 else word
        for spellings in self._spellings.values():
            spellings.sort(key=lambda each: -len(each[0]))

    def __bool__(self) -> bool:
        return bool(self._alone or self._spellings)

    def named(self, name: str) -> str:
        """The full name of the person whom a found name speaks of."""
        return self._alone.get(name.strip(), name)

    def mentions(self, text: str) -> Iterator[Mention]:
        """Where a text speaks of one of them, in order."""
        words = [(found.group(), found.start(), found.end()) for found in _WORD.finditer(text)] if self else []
        position = 0
        while position < len(words):
            word, start, end = words[position]
            length, name = self._spelled_at(text, words, position)
            if length:
                yield Mention(start, words[position + length - 1][2], name)
            elif word in self._alone:
                yield Mention(start, end, self._alone[word])
            position += max(length, 1)

    def _spell(self, words: list[str], name: str) -> None:
        if len(words) > 1:
            self._spellings.setdefault(words[0].lower(), []).append(([word.lower() for word in words], name))

    def _spelled_at(self, text: str, words: Words, position: int) -> tuple[int, str]:
        for spelling, name in self._spellings.get(words[position][0].lower(), ()):
            here = words[position : position + len(spelling)]
            gaps = (text[left[2] : right[1]] for left, right in pairwise(here))
            if [word.lower() for word, _, _ in here] == spelling and all(gap in _BETWEEN for gap in gaps):
                return len(spelling), name
        return 0, ""


def is_worth_repeating(name: str, n_found: int, everything: str) -> bool:
    """Whether a found name speaks of a person wherever a record repeats it, by all the record's texts.

    One that no list of names knows does not, where it was hardly ever taken for a name; nor a single word that the
    record also writes as a plain one.

    >>> is_worth_repeating("Subgoal", 1, "Subgoal: find it. This subgoal is done."), is_worth_repeating("Mia", 1, "mia")
    (False, True)
    """
    words = _WORD.findall(name)
    plain = Kind.WORD if len(words) > 1 else 0
    kinds = [kinds_of(word) for word in words]
    if any(kind & (Kind.FIRST | Kind.LAST) and not kind & plain for kind in kinds):
        return True
    spelled = "[ ._-]".join(map(re.escape, words))
    if len(re.findall(spelled, everything, re.IGNORECASE)) > _MOST_UNNOTICED * n_found:
        return False
    lower = name.lower()
    if len(words) != 1 or lower not in everything:
        return True
    return len(re.findall(rf"(?<![^\W_]){re.escape(lower)}(?![^\W_])", everything)) < n_found


def _stands_alone(word: str) -> bool:
    """Whether a part of a name is no plain word as well: "Will" and "May" say too little by themselves."""
    if word.lower() in PLAIN_WORDS or word.lower() in AMBIGUOUS or len(word) < 2 or not word[0].isupper():
        return False
    kind = kinds_of(word)
    is_place = kind & Kind.PLACE and not kind & Kind.FREQUENT_FIRST
    return not kind & Kind.WORD and not is_place

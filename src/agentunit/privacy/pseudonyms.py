"""Names that stand for values, and the people of a record, whom it may name by part of a name or as an account."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentunit.privacy.detection.gazetteer import AMBIGUOUS, PLAIN_WORDS, Kind, kinds_of
from agentunit.privacy.detection.readable import INVISIBLE
from agentunit.privacy.findings import NUMBER_TYPES

# At most six digits: <USER_4155552671> is somebody's number and no pseudonym.
PLACEHOLDER = re.compile(r"<[A-Z][A-Z_]*_(?:[0-9]{1,6}|[a-p]{12})>")
"""What a pseudonym looks like, numbered or made with a salt."""

TITLES = frozenset(("mr", "mrs", "ms", "miss", "mx", "dr", "prof", "sir", "madam"))
"""Words before a name that are no part of it."""

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_SALTED_LENGTH = 12


class Pseudonyms:
    """Hands out pseudonyms: numbered in the order of first use or, with a ``salt``, the same in every file.

    Who knows the salt can try values out until one fits, so it is a secret. ``values`` keeps each pseudonym's value as
    it was first written, and ``uses`` how often each type was replaced.

    >>> pseudonyms = Pseudonyms()
    >>> pseudonyms.of("name", "Mia Li"), pseudonyms.of("name", "mia  LI"), pseudonyms.of("email", "mia@example.com")
    ('<NAME_1>', '<NAME_1>', '<EMAIL_1>')
    """

    def __init__(self, salt: str | None = None) -> None:
        self._salt = None if salt is None else salt.encode()
        self._by_value: dict[tuple[str, str], str] = {}
        self._n_distinct: Counter[str] = Counter()
        self.uses: Counter[str] = Counter()
        self.values: dict[str, str] = {}

    def of(self, type: str, value: str) -> str:
        """The pseudonym of a value, which counts as one use of its type."""
        self.uses[type] += 1
        return self.known(type, value)

    def found(self) -> list[tuple[str, str, str]]:
        """Each pseudonym, its type and its value, in the order of first use."""
        return [(known, type, self.values[known]) for (type, _), known in self._by_value.items()]

    def forget(self) -> None:
        """Keep no value any longer. With a salt, a value still has the same pseudonym afterwards."""
        self._by_value.clear()
        self.values.clear()

    def known(self, type: str, value: str) -> str:
        """The pseudonym of a value whose use is counted elsewhere."""
        key = (type, same_value(type, value))
        known = self._by_value.get(key)
        if known is None:
            self._n_distinct[type] += 1
            known = f"<{type.upper()}_{self._mark(key)}>"
            self._by_value[key] = known
            self.values[known] = value
        return known

    def n_distinct(self, type: str) -> int:
        """How many different values of a type were replaced."""
        return self._n_distinct[type]

    def _mark(self, key: tuple[str, str]) -> str:
        if self._salt is None:
            return str(self._n_distinct[key[0]])
        digest = hmac.new(self._salt, "\0".join(key).encode("utf-8", "replace"), hashlib.sha256).hexdigest()
        # Letters only: digits could look like a number of somebody's.
        return digest[:_SALTED_LENGTH].translate(_LETTERS)


def same_value(type: str, value: str) -> str:
    """A value without what may differ between two ways of writing it: case, spacing, separators, titles.

    >>> same_value("phone", "+1 (555) 010-4477") == same_value("phone", "555.010.4477")
    True
    >>> same_value("name", "Dr. Mia Li"), same_value("address", "12 High St.,\\n Leeds")
    ('mia li', '12 high st leeds')
    """
    value = INVISIBLE.sub("", value)
    if type in NUMBER_TYPES:
        plain = "".join(letter for letter in value if letter.isalnum()).casefold()
        # A US number with and without its country code.
        return plain[1:] if type == "phone" and len(plain) == 11 and plain.startswith("1") else plain
    if type in ("name", "address"):
        words = re.findall(r"[^\W_]+", value.casefold())
        named = [word for word in words if word not in TITLES] if type == "name" else words
        return " ".join(named or words) or value
    return value.strip().casefold() if type == "email" else value.strip()


_ANY_WORD = re.compile(r"[^\W_]+")
_LINE_ESCAPE = re.compile(r"\\[nrtbf]")
_WORD = re.compile(r"[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*")
# How often a word may stand in a record for each time that it was taken for a name.
_MOST_UNNOTICED = 20
_SHORTEST_DISTINCTIVE = 8
# For so few names it is quicker to see first whether a text has any of them.
_FEW_NAMES = 100
_BETWEEN = frozenset((" ", ".", "_", "-", ", ", "  "))

Words = list[tuple[str, int, int]]


class Mention(NamedTuple):
    """Where a text names a person, and the name that the person is known by."""

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
        self._spellings: dict[tuple[str, ...], str] = {}
        # How many words the spellings have that begin with a word, the most first.
        self._lengths: dict[str, list[int]] = {}
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
        for spelling in self._spellings:
            lengths = self._lengths.setdefault(spelling[0], [])
            if len(spelling) not in lengths:
                lengths.append(len(spelling))
        for lengths in self._lengths.values():
            lengths.sort(reverse=True)
        self._first_words = {*self._lengths, *(word.lower() for word in self._alone)}

    def __bool__(self) -> bool:
        return bool(self._alone or self._spellings)

    def named(self, name: str) -> str:
        """The full name of the person whom a found name belongs to."""
        return self._alone.get(name.strip(), name)

    def mentions(self, text: str) -> Iterator[Mention]:
        """Where a text names one of them, in order."""
        if len(self._first_words) <= _FEW_NAMES:
            lower = text.lower()
            if not any(word in lower for word in self._first_words):
                return
        # In JSON text a line ends in two characters, of which the second is a letter.
        read = _LINE_ESCAPE.sub("  ", text) if "\\" in text else text
        words = [(found.group(), found.start(), found.end()) for found in _WORD.finditer(read)] if self else []
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
            self._spellings.setdefault(tuple(word.lower() for word in words), name)

    def _spelled_at(self, text: str, words: Words, position: int) -> tuple[int, str]:
        for length in self._lengths.get(words[position][0].lower(), ()):
            here = words[position : position + length]
            name = self._spellings.get(tuple(word.lower() for word, _, _ in here))
            if name is not None and all(text[left[2] : right[1]] in _BETWEEN for left, right in pairwise(here)):
                return len(here), name
        return 0, ""


class Mentions:
    """How often the texts of a record hold words, counted once for all names."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: list[str] | None = None
        self._counts: dict[int, Counter[tuple[str, ...]]] = {}

    def count(self, words: Sequence[str]) -> int:
        """How often these words stand one after another, in any case."""
        return self._counted(len(words))[tuple(word.lower() for word in words)]

    def count_exactly(self, word: str) -> int:
        """How often a word is written as it is here."""
        return self._counted(0)[word,]

    def _counted(self, length: int) -> Counter[tuple[str, ...]]:
        """How often each run of so many words stands there, in lower case; of single words as written for 0."""
        counts = self._counts.get(length)
        if counts is None:
            if self._words is None:
                self._words = _ANY_WORD.findall(self._text)
            words = [word.lower() for word in self._words] if length else self._words
            counts = Counter(zip(*(words[first:] for first in range(max(length, 1))), strict=False))
            self._counts[length] = counts
        return counts


def is_worth_repeating(name: str, n_found: int, everything: Mentions) -> bool:
    """Whether a found name means a person wherever a record repeats it, by all the record's texts.

    One that no list of names knows does not, where it was hardly ever taken for a name; nor a single word that the
    record also writes as a plain one.

    >>> is_worth_repeating("Subgoal", 1, Mentions("Subgoal: find it. This subgoal is done."))
    False
    >>> is_worth_repeating("Mia", 1, Mentions("mia"))
    True
    """
    words = _WORD.findall(name)
    plain = Kind.WORD if len(words) > 1 else 0
    kinds = [kinds_of(word) for word in words]
    if not words or any(kind & (Kind.FIRST | Kind.LAST) and not kind & plain for kind in kinds):
        return True
    written = _ANY_WORD.findall(name)
    if everything.count(written) > _MOST_UNNOTICED * n_found:
        return False
    lower = name.lower()
    has_no_case = lower == name.upper()
    if len(words) != 1 or len(written) != 1 or has_no_case:
        return True
    n_plain = everything.count_exactly(lower)
    return n_plain == 0 or n_plain < n_found


def is_distinctive(type: str, value: str) -> bool:
    """Whether a value means the same thing wherever it stands, in other records too.

    >>> is_distinctive("name", "Mia Lindqvist"), is_distinctive("name", "Mia"), is_distinctive("account", "C1001")
    (True, False, False)
    """
    n_digits = sum(letter.isdigit() for letter in value)
    if type == "name":
        kinds = [kinds_of(word) for word in _WORD.findall(value)]
        plain = Kind.WORD | Kind.RARE_WORD | Kind.PLACE
        is_name = all(kind & (Kind.FIRST | Kind.LAST) for kind in kinds)
        # One word that is nothing but a name is enough: "Daiki Lee".
        return len(kinds) > 1 and is_name and not all(kind & plain for kind in kinds)
    if type == "email":
        return "@" in value
    if type in ("date_of_birth", "ip_address"):
        return False
    if type == "address":
        return n_digits > 0 and len(value.split()) > 2
    return n_digits > 0 and len(value) >= _SHORTEST_DISTINCTIVE


def _stands_alone(word: str) -> bool:
    """Whether a part of a name is no plain word as well: "Will" and "May" say too little by themselves."""
    if word.lower() in PLAIN_WORDS or word.lower() in AMBIGUOUS or len(word) < 2 or not word[0].isupper():
        return False
    kind = kinds_of(word)
    is_place = kind & Kind.PLACE and not kind & Kind.FREQUENT_FIRST
    return not kind & Kind.WORD and not is_place

"""Places in a text to replace, none overlapping, those that hold pseudonyms already, and those of fixed strings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from agentunit.privacy.pseudonyms import PLACEHOLDER


class TextPlace(NamedTuple):
    """A place to replace; ``known_as`` is the value that it means, where the text there is another spelling of it."""

    type: str
    start: int
    end: int
    known_as: str = ""


def at_start(span: TextPlace) -> TextPlace:
    """The span in a text that begins where it begins."""
    return span._replace(start=0, end=span.end - span.start)


class Placed(Protocol):
    """Anything of a type that has a place in a text."""

    @property
    def type(self) -> str:
        """What it is."""

    @property
    def start(self) -> int:
        """Its first character."""

    @property
    def end(self) -> int:
        """The character after its last."""


_Placed = TypeVar("_Placed", bound=Placed)


def apart(first: list[_Placed], more: list[_Placed]) -> list[_Placed]:
    """Both kinds of spans in order, none overlapping: the first kind wins, then the longer span."""
    if not more:
        return first
    kept, starts = list(first), [span.start for span in first]
    for span in sorted(more, key=lambda each: (each.start - each.end, each.start, each.type)):
        place = bisect_right(starts, span.start)
        clear_before = place == 0 or kept[place - 1].end <= span.start
        if clear_before and (place == len(kept) or span.end <= starts[place]):
            kept.insert(place, span)
            starts.insert(place, span.start)
    return kept


def outside_placeholders(text: str, spans: list[TextPlace]) -> Iterator[TextPlace]:
    """The parts of spans that are not pseudonyms already, as far as they say anything."""
    taken = Placeholders(text) if spans else None
    for type, start, end, known_as in spans:
        inside = taken.touched_by(start, end) if taken is not None else []
        if known_as and inside and all(start <= place[0] and place[1] <= end for place in inside):
            yield TextPlace(type, start, end, known_as)  # a pseudonym is part of what the value is known by
            continue
        pieces = [start, *(edge for place in inside for edge in place), end]
        for left, right in zip(pieces[::2], pieces[1::2], strict=True):
            if left < right and ((known_as and not inside) or any(letter.isalnum() for letter in text[left:right])):
                yield TextPlace(type, left, right, known_as if (left, right) == (start, end) else "")


class Placeholders:
    """Where a text holds pseudonyms."""

    def __init__(self, text: str) -> None:
        self._spans = [found.span() for found in PLACEHOLDER.finditer(text)] if "<" in text else []
        self._ends = [end for _, end in self._spans]

    def touched_by(self, start: int, end: int) -> list[tuple[int, int]]:
        """Those that a span reaches into, in order."""
        first = past = bisect_right(self._ends, start)
        while past < len(self._spans) and self._spans[past][0] < end:
            past += 1
        return self._spans[first:past]


# Fixed strings are looked for in time that does not depend on how many there are.

# So few are looked for one after the other: that is quicker than making an automaton or an index.
_FEW = 100
_MOST_AT_ONCE = 2_000
_AUTOMATON_BYTES = 64 << 20
_RUN = re.compile(r"[0-9]+|[^\W\d_]+")
_NONE: dict[tuple[int, int], set[str]] = {}

Accept = Callable[[int, int], "tuple[int, int] | None"]
"""The span that a hit stands for; ``None`` where it is none."""


class Literals:
    """Strings of bytes, found wherever they are."""

    def __init__(self, literals: Collection[str]) -> None:
        self._few = [each.encode() for each in literals] if len(literals) <= _FEW else []
        self._many = [] if self._few else _alternations(list(literals))

    def found(self, text: bytes, accept: Accept) -> Iterator[tuple[str, tuple[int, int]]]:
        """Each literal with the span that ``accept`` gives for a place where it is."""
        for literal in self._few:
            start = text.find(literal)
            while start >= 0:
                span = accept(start, start + len(literal))
                if span is not None:
                    yield literal.decode(), span
                start = text.find(literal, start + 1)
        for pattern in self._many:
            found = pattern.search(text)
            while found is not None:
                start, end = found.span()
                span = accept(start, end)
                if span is not None:
                    yield found.group().decode(), span
                # A part of something longer may overlap the value itself: 10 5550104477.
                found = pattern.search(text, end if span is not None else start + 1)


def _alternations(literals: list[str]) -> list[Any]:
    """Patterns that find any of the literals, in linear time."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _AUTOMATON_BYTES
    options.longest_match = True
    options.never_capture = True
    return [
        re2.compile(b"|".join(each.encode() for each in literals[at : at + _MOST_AT_ONCE]), options)
        for at in range(0, len(literals), _MOST_AT_ONCE)
    ]


class Phrases:
    """Texts, found where a run of letters or digits begins as they do.

    >>> list(Phrases(["C10", "10.1.2.3"]).found("XC10 C10, 10.1.2.34"))
    [('C10', 5, 8), ('10.1.2.3', 10, 18)]
    """

    def __init__(self, values: Iterable[str]) -> None:
        distinct = dict.fromkeys(values)
        self._few = list(distinct) if len(distinct) <= _FEW else []
        # By the first run of a value: where that is in it, how long it is, and the values of which both are true.
        self._by_run: dict[str, dict[tuple[int, int], set[str]]] = {}
        for value in () if self._few else distinct:
            run = _RUN.search(value)
            if run is None:
                self._few.append(value)
                continue
            alike = self._by_run.setdefault(run.group(), {})
            alike.setdefault((run.start(), len(value)), set()).add(value)

    def __bool__(self) -> bool:
        return bool(self._few or self._by_run)

    def found(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Each value with a place where it begins like a word; what follows it there is not looked at."""
        for value in self._few:
            run = _RUN.search(value)
            start = text.find(value)
            while start >= 0:
                if run is None or not _continues(text, start + run.start()):
                    yield value, start, start + len(value)
                start = text.find(value, start + 1)
        for found in _RUN.finditer(text) if self._by_run else ():
            for (before, length), values in self._by_run.get(found.group(), _NONE).items():
                start = found.start() - before
                value = text[start : start + length] if start >= 0 else ""
                if value in values:
                    yield value, start, start + length


def _continues(text: str, start: int) -> bool:
    """Whether a run of letters or digits began before."""
    before, here = text[start - 1 : start], text[start]
    return before.isdecimal() if here.isdecimal() else before.isalpha()

"""Places in a text to replace, none overlapping, and those that hold pseudonyms already."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from agentunit.privacy.pseudonyms import PLACEHOLDER


class Span(NamedTuple):
    """A place to replace; ``known_as`` is the value that it means, where the text there is another spelling of it."""

    type: str
    start: int
    end: int
    known_as: str = ""


def at_start(span: Span) -> Span:
    """The span in a text that begins where it begins."""
    return span._replace(start=0, end=span.end - span.start)


def apart(first: list[Span], more: list[Span]) -> list[Span]:
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


def outside_placeholders(text: str, spans: list[Span]) -> Iterator[Span]:
    """The parts of spans that are not pseudonyms already, as far as they say anything."""
    taken = [found.span() for found in PLACEHOLDER.finditer(text)] if spans else []
    for type, start, end, known_as in spans:
        inside = [place for place in taken if place[0] < end and start < place[1]]
        if known_as and inside and all(start <= place[0] and place[1] <= end for place in inside):
            yield Span(type, start, end, known_as)  # a pseudonym is part of what the value is known by
            continue
        pieces = [start, *(edge for place in inside for edge in place), end]
        for left, right in zip(pieces[::2], pieces[1::2], strict=True):
            if left < right and any(letter.isalnum() for letter in text[left:right]):
                yield Span(type, left, right, known_as if (left, right) == (start, end) else "")


def is_in_placeholder(text: str, start: int, end: int) -> bool:
    """Whether a span touches a pseudonym."""
    return any(found.start() < end and start < found.end() for found in PLACEHOLDER.finditer(text))

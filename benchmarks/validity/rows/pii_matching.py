"""Found and labeled spans of personal data, matched one to one, and what that says about a detector."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """A type and a place in a text."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class Counts:
    """How many spans a detector found rightly, found wrongly, and missed."""

    n_right: int = 0
    n_wrong: int = 0
    n_missed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.n_right + other.n_right, self.n_wrong + other.n_wrong, self.n_missed + other.n_missed)

    @property
    def precision(self) -> float | None:
        """The share of the findings that are right; None where nothing was found."""
        n_found = self.n_right + self.n_wrong
        return self.n_right / n_found if n_found else None

    @property
    def recall(self) -> float | None:
        """The share of the labeled spans that were found; None where nothing is labeled."""
        n_labelled = self.n_right + self.n_missed
        return self.n_right / n_labelled if n_labelled else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall; None where there is nothing to find and nothing was found."""
        total = 2 * self.n_right + self.n_wrong + self.n_missed
        return 2 * self.n_right / total if total else None


def match(found: Iterable[Span], labelled: Iterable[Span]) -> dict[str, Counts]:
    """Count right, wrong and missed spans of each type in one text.

    A finding is right when it shares at least half of the union with a labeled span of the same type. Each labeled
    span is given to one finding at most, the closest fit first, so that several pieces never count as several hits.

    >>> match([Span("name", 0, 10)], [Span("name", 0, 8), Span("name", 20, 25)])
    {'name': Counts(n_right=1, n_wrong=0, n_missed=1)}
    """
    found_by_type, labelled_by_type = _by_type(found), _by_type(labelled)
    counts = {}
    for span_type in sorted({*found_by_type, *labelled_by_type}):
        ours, theirs = found_by_type[span_type], labelled_by_type[span_type]
        n_right = _n_matched(ours, theirs)
        counts[span_type] = Counts(n_right, len(ours) - n_right, len(theirs) - n_right)
    return counts


def join_adjacent(spans: Iterable[Span], text: str, span_type: str) -> list[Span]:
    """Make one span of neighbors of a type with nothing but white space between them.

    Generated data labels a house number, a street and a flat one by one in some texts, and as one address in others.

    >>> join_adjacent([Span("address", 0, 2), Span("address", 3, 11)], "12 High St.", "address")
    [Span(type='address', start=0, end=11)]
    """
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.type, span.start)):
        last = joined[-1] if joined else None
        if last and span_type == last.type == span.type and not text[last.end : span.start].strip():
            joined[-1] = Span(span.type, last.start, max(last.end, span.end))
        else:
            joined.append(span)
    return sorted(joined, key=lambda span: span.start)


def total(counts: Iterable[dict[str, Counts]]) -> dict[str, Counts]:
    """The counts of several texts, added up by type."""
    sums: dict[str, Counts] = defaultdict(Counts)
    for of_text in counts:
        for span_type, of_type in of_text.items():
            sums[span_type] += of_type
    return dict(sorted(sums.items()))


def pooled(counts: dict[str, Counts], types: Sequence[str]) -> Counts:
    """The counts of several types, added up."""
    return sum((counts.get(span_type, Counts()) for span_type in types), Counts())


def _by_type(spans: Iterable[Span]) -> defaultdict[str, list[Span]]:
    by_type: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_type[span.type].append(span)
    return by_type


def _n_matched(ours: list[Span], theirs: list[Span]) -> int:
    fits = []
    for i, one in enumerate(ours):
        for j, other in enumerate(theirs):
            shared = min(one.end, other.end) - max(one.start, other.start)
            union = max(one.end, other.end) - min(one.start, other.start)
            if shared > 0 and 2 * shared >= union:
                fits.append((shared / union, i, j))
    matched_ours: set[int] = set()
    matched_theirs: set[int] = set()
    for _, i, j in sorted(fits, key=lambda fit: (-fit[0], fit[1], fit[2])):
        if i not in matched_ours and j not in matched_theirs:
            matched_ours.add(i)
            matched_theirs.add(j)
    return len(matched_ours)

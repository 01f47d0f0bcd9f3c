"""The detector of the base install: tables of patterns with checks, and names and postal addresses."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from agentunit.privacy.detection.addresses import find_addresses_in
from agentunit.privacy.detection.engine import Table, find_in_texts, without_overlaps
from agentunit.privacy.detection.names import find_names_in
from agentunit.privacy.detection.recognisers import TABLES
from agentunit.privacy.findings import Finding


class PatternDetector:
    """Finds every type of ``PII_TYPES`` but accounts without a model, in time linear in the texts."""

    name = "patterns"

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping.

        >>> text = "Write to ada@example.org or call +44 20 7946 0958."
        >>> [(each.type, text[each.start : each.end]) for each in PatternDetector().find([text])[0]]
        [('email', 'ada@example.org'), ('phone', '+44 20 7946 0958')]
        """
        found = zip(texts, find_in_texts(_tables(), texts), find_addresses_in(texts), find_names_in(texts), strict=True)
        return [
            without_overlaps([*structured, *_ended_before(structured, addresses, text), *names])
            for text, structured, addresses, names in found
        ]


class StructuredDetector:
    """Finds what has a form of its own: numbers, addresses of machines, credentials. No names, no postal addresses."""

    name = "structured"

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping."""
        return [without_overlaps(found) for found in find_in_texts(_tables(), texts)]


def _ended_before(structured: list[Finding], addresses: list[Finding], text: str) -> list[Finding]:
    """Addresses without the beginning of a number that stands after them, which looks like a postal code."""
    starts = sorted((each.start, each.end) for each in structured)
    ended: list[Finding] = []
    for address in addresses:
        last = bisect_left(starts, (address.end, 0)) - 1
        if last >= 0 and address.start < starts[last][0] and address.end < starts[last][1]:
            kept = text[address.start : starts[last][0]].rstrip(" \t\r\n,;")
            address = address._replace(end=address.start + len(kept))
        ended.append(address)
    return ended


@lru_cache(maxsize=1)
def _tables() -> tuple[Table, ...]:
    return tuple(Table(each) for each in TABLES)

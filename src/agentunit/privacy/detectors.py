"""The detectors of personal data by name, AgentUnit's own and those of installed packages.

A package adds one through the entry-point group ``agentunit.detectors``: a callable that returns a ``Detector``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, lru_cache

from agentunit.backends.quality import BackendUnavailable
from agentunit.doors import part
from agentunit.plugins import Plugin, PluginError, PluginTable, require
from agentunit.privacy.detection.contexts import CONTEXTS
from agentunit.privacy.detection.credentials import ASSIGNMENTS, CREDENTIALS
from agentunit.privacy.detection.engine import Tables, without_overlaps
from agentunit.privacy.detection.identifiers import ACCOUNTS, EMAILS, NETWORKS
from agentunit.privacy.detection.labeled_values import AWS_SECRETS, LABELED
from agentunit.privacy.detection.national_ids import NATIONAL_IDS
from agentunit.privacy.detection.numbers import NUMBERS
from agentunit.privacy.detection.readable import find_as_read
from agentunit.privacy.findings import Detector, Finding

ENTRY_POINT_GROUP = "agentunit.detectors"

_OWN_DETECTORS = {
    "patterns": "agentunit.privacy.detectors:PatternDetector",
    "ner": "agentunit.addons.names.ner:NerDetector",
    "presidio": "agentunit.addons.names.presidio:PresidioDetector",
    "local": "agentunit.addons.names.recognizer:LearnedDetector",
}
DETECTORS = tuple(_OWN_DETECTORS)
"""The names of AgentUnit's own."""

# A table with one row needs no second look to tell which row it was, and of numbers a text can have very many.
TABLES = (
    EMAILS,
    *((each,) for each in (*NUMBERS, *ACCOUNTS)),
    NETWORKS,
    CREDENTIALS,
    NATIONAL_IDS,
)
TABLES_ALONE = (ASSIGNMENTS, CONTEXTS, LABELED, AWS_SECRETS)


@cache
def detector_table() -> PluginTable[Callable[[], Detector]]:
    """What makes each detector, by its name."""
    return PluginTable("detector", ENTRY_POINT_GROUP, _OWN_DETECTORS, adopt=_adopted)


def _adopted(make: Callable[[], Detector], plugin: Plugin) -> Callable[[], Detector]:
    if plugin.package is not None:
        require(make(), "detector", "name", "find")
    return make


def detector_named(name: str, owner: str) -> Detector:
    """The detector of this name; one that does not exist or cannot run here is refused with the way out."""
    known = detector_table().entries
    if name not in known:
        nearest = get_close_matches(name, known, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise BackendUnavailable(f"{owner}: backend must be one of {', '.join(known)}; received {name!r}{hint}")
    try:
        detector = detector_table().load(name)()
    except PluginError as error:
        raise BackendUnavailable(f"{owner}: {error}") from None
    unready: Callable[[], str | None] | None = getattr(detector, "unready", None)
    reason = unready() if unready is not None else None
    if reason is not None:
        raise BackendUnavailable(f"{owner}: backend {name!r} cannot run: {reason}")
    return detector


def names_unready() -> str | None:
    """Why names and postal addresses cannot be looked for here; ``None`` where they can."""
    try:
        _ = part("find_addresses_in"), part("find_names_in")
    except PluginError as error:
        return str(error)
    return None


class PatternDetector:
    """Finds every type of ``PII_TYPES`` but accounts without a model, in time linear in the texts."""

    name = "patterns"

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping.

        >>> text = "Write to ada@example.org or call +44 20 7946 0958."
        >>> [(each.type, text[each.start : each.end]) for each in PatternDetector().find([text])[0]]
        [('email', 'ada@example.org'), ('phone', '+44 20 7946 0958')]
        """
        return find_as_read(self._find, texts)

    def _find(self, texts: list[str]) -> list[list[Finding]]:
        addresses, names = part("find_addresses_in")(texts), part("find_names_in")(texts)
        found = zip(texts, _tables().find(texts), addresses, names, strict=True)
        return [
            without_overlaps([*structured, *_ended_before(structured, addresses, text), *names])
            for text, structured, addresses, names in found
        ]


class StructuredDetector:
    """Finds what has a form of its own: numbers, addresses of machines, credentials. No names, no postal addresses."""

    name = "structured"

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping."""
        return find_as_read(self._find, texts)

    def _find(self, texts: list[str]) -> list[list[Finding]]:
        return [without_overlaps(found) for found in _tables().find(texts)]


def _ended_before(structured: list[Finding], addresses: list[Finding], text: str) -> list[Finding]:
    """Addresses without the beginning of a number that stands after them, which looks like a postal code."""
    starts = sorted((each.start, each.end) for each in structured)
    ended: list[Finding] = []
    for address in addresses:
        last = bisect_left(starts, (address.end, 0)) - 1
        if last >= 0 and address.start < starts[last][0] and address.end < starts[last][1]:
            kept = text[address.start : starts[last][0]].rstrip(" \t\r\n,;")
            if not any(letter.isdigit() for letter in kept):
                continue
            address = address._replace(end=address.start + len(kept))
        ended.append(address)
    return ended


@lru_cache(maxsize=1)
def _tables() -> Tables:
    return Tables(TABLES, TABLES_ALONE)

"""Records with personal data replaced by pseudonyms, everywhere in them and the same way everywhere."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.interactions import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.privacy.findings import Detector
from agentunit.privacy.people import People
from agentunit.privacy.personal_fields import FIELD_TYPES, Leaf, full_names, known_fields
from agentunit.privacy.pseudonyms import PLACEHOLDER, Pseudonyms

_STRUCTS: tuple[type[Struct], ...] = (
    Record, DatasetCase, TraceLog, TraceEvent, Outcome, AgentInteraction, HandoffEvent, ConflictEvent, AgentRole
)  # fmt: skip
_OWN_KEYS: frozenset[str] = frozenset(name for kind in _STRUCTS for name in kind.__struct_encode_fields__)
# A name that a developer gave a field. It tells the detector what the field holds; any other may be data itself.
_PLAIN_FIELD = re.compile(r"[a-z_][A-Za-z0-9_]{0,39}")
_SHORTEST_REPEATED = 6
_MOST_ROUNDS = 10


class _Span(NamedTuple):
    """A place to replace; ``person`` is who a mention speaks of, where the text there is not the whole name."""

    type: str
    start: int
    end: int
    person: str = ""


_Spans = dict[Leaf, list[_Span]]


class Redactor:
    """Replaces what a detector finds of the given types in records.

    Every text counts: fields that AgentUnit does not know and names of fields as well, but no number, so that counts,
    costs and times stay what they are. A value that was found once is replaced wherever the record repeats it, and a
    first name or surname alone gets the pseudonym of the full name that the record holds.
    """

    def __init__(self, detector: Detector, types: Collection[str], pseudonyms: Pseudonyms) -> None:
        self._detector = detector
        self._types = frozenset(types)
        self._pseudonyms = pseudonyms

    def redact(self, records: Sequence[Record]) -> list[Any]:
        """The records as plain data, in the shape they are written in; many at once is faster than one by one."""
        plain = [msgspec.json.decode(encode_record(record)) for record in records]
        leaves_of = [list(_leaves(each)) for each in plain]
        found = self._find(dict.fromkeys(leaf for leaves in leaves_of for leaf in leaves))
        for data, leaves in zip(plain, leaves_of, strict=True):
            _replace(data, self._replaced(leaves, found))
        return plain

    def _replaced(self, all_leaves: list[Leaf], found: _Spans) -> dict[Leaf, str]:
        """The new text of each text of one record that changes."""
        leaves = list(dict.fromkeys(all_leaves))
        values: dict[tuple[str, str], int] = {}
        for leaf in leaves:
            for span in found[leaf]:
                value = (span.type, leaf.text[span.start : span.end])
                values[value] = values.get(value, 0) + 1
        if not values:
            return {}
        names = [value for type, value in values if type == "name"]
        people = People([*full_names(all_leaves), *names] if names else [])
        repeated = _repeated(values, leaves)
        replaced = {}
        for leaf in leaves:
            more = [_Span("name", *mention) for mention in people.mentions(leaf.text)]
            more += [
                _Span(type, start, start + len(value))
                for type, value in repeated
                for start in _places(value, leaf.text)
            ]
            spans = _apart(found[leaf], more)
            if spans:
                replaced[leaf] = self._masked(leaf.text, spans, people)
        return self._until_nothing_is_found(replaced, people)

    def _masked(self, text: str, spans: list[_Span], people: People) -> str:
        parts, position = [], 0
        for type, start, end, person in spans:
            value = person or text[start:end]
            parts += [text[position:start], self._pseudonyms.of(type, people.named(value) if type == "name" else value)]
            position = end
        return "".join(parts) + text[position:]

    def _until_nothing_is_found(self, replaced: dict[Leaf, str], people: People) -> dict[Leaf, str]:
        """What was hidden may have kept something else from being found: look again until there is nothing left."""
        pending = dict(replaced)
        for _ in range(_MOST_ROUNDS):
            found = self._find({Leaf(leaf.field, text): None for leaf, text in pending.items()})
            pending = {
                leaf: self._masked(text, spans, people)
                for leaf, text in pending.items()
                if (spans := found[Leaf(leaf.field, text)])
            }
            if not pending:
                break
            replaced |= pending
        return replaced

    def _find(self, leaves: dict[Leaf, None]) -> _Spans:
        """What is personal in each text: by itself, and with the name of its field before it, which tells much."""
        texts = dict.fromkeys(leaf.text for leaf in leaves)
        named = dict.fromkeys(_with_field(leaf) for leaf in leaves if _PLAIN_FIELD.fullmatch(leaf.field))
        both = list(dict.fromkeys([*texts, *named]))
        findings = dict(zip(both, self._detector.find(both), strict=True))
        spans = {}
        for leaf in leaves:
            plain = [_Span(each.type, each.start, each.end) for each in findings[leaf.text]]
            more = [_Span(FIELD_TYPES[field], start, end) for field, start, end in known_fields(leaf)]
            if _PLAIN_FIELD.fullmatch(leaf.field):
                before = len(leaf.field) + 2
                more += [
                    _Span(each.type, max(each.start - before, 0), each.end - before)
                    for each in findings[_with_field(leaf)]
                    if each.end > before
                ]
            wanted = [[span for span in group if span.type in self._types] for group in (plain, more)]
            spans[leaf] = list(_outside_placeholders(leaf.text, _apart(*wanted)))
        return spans


def _with_field(leaf: Leaf) -> str:
    return f"{leaf.field}: {leaf.text}"


def _apart(first: list[_Span], more: list[_Span]) -> list[_Span]:
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


def _outside_placeholders(text: str, spans: list[_Span]) -> Iterator[_Span]:
    """The parts of spans that are not pseudonyms already, as far as they say anything."""
    taken = [found.span() for found in PLACEHOLDER.finditer(text)] if spans else []
    for type, start, end, _ in spans:
        pieces = [start, *(edge for place in taken if place[0] < end and start < place[1] for edge in place), end]
        for left, right in zip(pieces[::2], pieces[1::2], strict=True):
            if left < right and any(letter.isalnum() for letter in text[left:right]):
                yield _Span(type, left, right)


def _repeated(values: dict[tuple[str, str], int], leaves: list[Leaf]) -> list[tuple[str, str]]:
    """The values, names aside, that stand in more places than they were found in."""
    everything = "\0".join(leaf.text for leaf in leaves)
    return [
        (type, value)
        for (type, value), n_found in values.items()
        if type != "name" and len(value) >= _SHORTEST_REPEATED and everything.count(value) > n_found
    ]


def _places(value: str, text: str) -> Iterator[int]:
    """Where a text repeats a value that is not part of a longer word or number."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
            yield start
        start = text.find(value, end)


def _leaves(value: Any) -> Iterator[Leaf]:
    """The texts of plain data in order, names of fields among them; without recursion, however deep it is nested."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        field, each = pending.pop()
        if isinstance(each, str):
            if each:
                yield Leaf(field, each)
        elif isinstance(each, dict):
            for key in each:
                if key not in _OWN_KEYS:
                    yield Leaf("", key)
            pending += reversed(each.items())
        elif isinstance(each, list):
            pending += ((field, child) for child in reversed(each))


def _replace(value: Any, replaced: dict[Leaf, str]) -> None:
    """Put the new texts into plain data, in place."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        field, each = pending.pop()
        if isinstance(each, list):
            pending += ((field, child) for child in each if isinstance(child, (dict, list)))
            each[:] = [replaced.get(Leaf(field, child), child) if isinstance(child, str) else child for child in each]
        elif isinstance(each, dict):
            items = list(each.items())
            pending += ((key, child) for key, child in items if isinstance(child, (dict, list)))
            each.clear()
            for key, child in items:
                new = replaced.get(Leaf(key, child), child) if isinstance(child, str) else child
                each[_new_key(key, each, replaced)] = new


def _new_key(key: str, taken: dict[str, Any], replaced: dict[Leaf, str]) -> str:
    own = Leaf("", key)
    masked = replaced[own] if own in replaced and key not in _OWN_KEYS else key
    new, number = masked, 2
    # Two spellings of one value must not become one field.
    while new in taken:
        new, number = f"{masked} ({number})", number + 1
    return new

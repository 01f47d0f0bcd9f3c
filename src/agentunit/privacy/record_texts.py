"""The texts of a record: all of them in order, each with its field, and new ones put in their places.

Some texts hold the record together: names of tools, agents and models, identifiers, statuses. They stay as they are, or
the record could no longer be scored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, TraceEvent, TraceLog
from agentunit.privacy.detection.gazetteer import AMBIGUOUS, Kind, kinds_of, word_set
from agentunit.privacy.personal_fields import Leaf, counts_as, plain_field

STRUCTURE, OWN_NAME = "\0", "\0name"
"""What redaction takes for the fields of texts that hold the record together, and of names of its agents and tools."""

STRUCTURE_TYPES = frozenset(("email", "api_key", "private_key", "jwt"))
"""What is masked even there, since its form leaves no doubt."""

DATA = "data"
_LARGEST_NUMBER = 10**20  # longer ones are nobody's
_PARTS = {
    ("record", "case"): "case",
    ("record", "trace"): "trace",
    ("record", "outcome"): "outcome",
    ("case", "tools"): "tool",
    ("trace", "events"): "event",
    ("trace", "interactions"): "interaction",
    ("trace", "handoffs"): "interaction",
    ("trace", "conflicts"): "interaction",
    ("trace", "agent_roles"): "roles",
    ("event", "payload"): "payload",
    ("case", "metadata"): "case metadata",
    ("case metadata", "expected_tool_calls"): "tool",
    ("payload", "tool_calls"): "tool",
    ("message", "tool_calls"): "tool",
    ("tool", "function"): "tool",
    ("trace", "metadata"): "metadata",
    ("interaction", "metadata"): "metadata",
    ("role", "metadata"): "metadata",
}
"""The part of a record that a field leads to; every other field leads to data of the user's."""

_IDENTIFIERS = "id span_id parent_id parent_span_id trace_id call_id tool_call_id run_id request_id"
_IN_EVENTS = (
    f"agent tool model provider status role type kind error_type finish_reason from_agent to_agent derived_from "
    f"{_IDENTIFIERS}"
)
_STRUCTURE = {
    part: frozenset(fields.split())
    for part, fields in {
        "case": "id",
        "tool": "tools id name type",
        "event": f"type {_IDENTIFIERS}",
        "payload": f"name {_IN_EVENTS}",
        "message": _IN_EVENTS,
        "interaction": "from_agent to_agent agents_involved interaction_type message_type conflict_type severity "
        "resolution_method interaction_id parent_interaction_id handoff_id conflict_id task_id",
        "role": "name capabilities message_types",
        "metadata": f"derived_from kind source_format service framework model {_IDENTIFIERS}",
    }.items()
}
_AGENT_FIELDS = frozenset(("agent", "from_agent", "to_agent", "agents_involved", "name"))
_NAME_FIELDS = _AGENT_FIELDS | frozenset(("tool", "tools", "model"))


def part_at(part: str, field: str, holder: Mapping[str, Any]) -> str:
    """The part of a record that a field of ``holder``, another part, leads to.

    >>> part_at("record", "case", {}), part_at("trace", "events", {}), part_at("payload", "arguments", {})
    ('case', 'event', 'data')
    """
    if part == "roles":
        return "role"
    if part == "event" and field == "payload" and holder.get("type") == "message":
        return "message"  # whose ``name`` can be that of the user
    return _PARTS.get((part, field), DATA)


def is_structure(part: str, field: str) -> bool:
    """Whether the text in a field holds the record together.

    >>> is_structure("payload", "name"), is_structure("data", "name"), is_structure("case", "query")
    (True, False, False)
    """
    return field in _STRUCTURE.get(part, ())


def structure_field(field: str) -> str:
    """What a field that holds the record together counts as.

    >>> structure_field("span_id") == STRUCTURE, structure_field("agent") == OWN_NAME
    (True, True)
    """
    return OWN_NAME if field in _NAME_FIELDS else STRUCTURE


def is_somebody(part: str, field: str, text: str) -> bool:
    """Whether an agent is called by the full name of a person, as people are in a recorded conversation.

    >>> is_somebody("payload", "agent", "Mary Smith"), is_somebody("payload", "agent", "Codebase Navigator")
    (True, False)
    """
    if part == "tool" or field not in _AGENT_FIELDS:
        return False
    words = text.split()
    if not 2 <= len(words) <= 4 or not all(word.istitle() for word in (words[0], words[-1])):
        return False
    first, last = kinds_of(words[0]), kinds_of(words[-1])
    return (
        words[0].lower() not in AMBIGUOUS
        and _is(first, Kind.FIRST, Kind.FREQUENT_FIRST)
        and _is(last, Kind.LAST, Kind.FREQUENT_LAST)
    )


def _is(kind: int, name: int, frequent_name: int) -> bool:
    """Whether a word is a frequent name, or one that is nothing else."""
    return bool(kind & frequent_name or (kind & name and not kind & (Kind.WORD | Kind.RARE_WORD | Kind.COUNTRY)))


_STRUCTS: tuple[type[Struct], ...] = (
    Record, DatasetCase, TraceLog, TraceEvent, Outcome, AgentInteraction, HandoffEvent, ConflictEvent, AgentRole
)  # fmt: skip
_OWN_KEYS: frozenset[str] = frozenset(name for kind in _STRUCTS for name in kind.__struct_encode_fields__)

_MOST_KEYS = 40

_Slot = tuple[Leaf, Any, Any]
"""A text or number, the object or list that holds it, and the field or place there."""


class RecordTexts:
    """The texts and whole numbers of a record in order, each with its field, read in one walk, and their places in it.

    ``leaves`` are the texts and, once each, names of fields; ``numbers`` are written out. However deep data
    is nested, there is no recursion.
    """

    def __init__(self, record: Any) -> None:
        self.leaves: list[Leaf] = []
        self.numbers: list[Leaf] = []
        self._slots: list[_Slot] = []
        self._number_slots: list[_Slot] = []
        self._objects: list[tuple[str, dict[str, Any]]] = []
        self._read(record)

    def _read(self, record: Any) -> None:
        pending: list[tuple[str, str, Any, Any, Any]] = [("record", "", record, None, None)]
        known_keys: set[tuple[Leaf, ...]] = set()
        while pending:
            part, field, each, holder, place = pending.pop()
            if isinstance(each, str):
                if each and holder is not None:
                    leaf = _leaf(part, field, each)
                    self.leaves.append(leaf)
                    self._slots.append((leaf, holder, place))
            elif isinstance(each, dict):
                shape = _shape_of(part, each)
                if shape.keys:
                    self._objects.append((part, each))
                    if shape.keys not in known_keys:
                        known_keys.add(shape.keys)
                        self.leaves += shape.keys
                for (is_structure, inner, known_as), (key, child) in zip(
                    reversed(shape.fields), reversed(each.items()), strict=True
                ):
                    if is_structure and _is_text(child):
                        inner, known_as = part, key
                    pending.append((inner, known_as, child, each, key))
            elif isinstance(each, list):
                pending += [(part, field, each[place], each, place) for place in range(len(each) - 1, -1, -1)]
            elif holder is not None and (written := _whole_number(each)) is not None:
                leaf = Leaf(field, written)
                self.numbers.append(leaf)
                self._number_slots.append((leaf, holder, place))

    def replace(self, replaced: Mapping[Leaf, str], numbers: Mapping[Leaf, str] = MappingProxyType({})) -> None:
        """Put new texts into the record, in place; ``numbers`` are those that a text takes the place of."""
        for leaf, holder, place in self._slots if replaced else ():
            if leaf in replaced:
                holder[place] = replaced[leaf]
        for leaf, holder, place in self._number_slots if numbers else ():
            if leaf in numbers:
                holder[place] = numbers[leaf]
        # Last, since the slots know the fields by their old names.
        for part, each in self._objects if replaced else ():
            if not replaced.keys().isdisjoint(_shape_of(part, each).keys):
                old = dict(each)
                each.clear()
                for key, child in old.items():
                    each[_new_key(part, key, each, replaced)] = child


def places_of(record: Any) -> Iterator[tuple[str, str]]:
    """Every text and number of a record with the path to it, the names of fields among them."""
    pending: list[tuple[str, Any]] = [("", record)]
    while pending:
        path, each = pending.pop()
        if isinstance(each, dict):
            for number, key in enumerate(each, start=1):
                yield f"{path} (name of field {number})".strip(), key
            pending += reversed([(f"{path}.{key}" if path else key, child) for key, child in each.items()])
        elif isinstance(each, list):
            pending += reversed([(f"{path}[{number}]", child) for number, child in enumerate(each)])
        elif isinstance(each, str):
            yield path, each
        elif (written := _whole_number(each)) is not None:
            yield path, written


class _Shape(NamedTuple):
    """What the names of an object's fields say.

    Of each field: whether a text in it holds the record together, the part of the record that it leads to and what it
    counts as beside the others. A text, or a list of texts, belongs to the part that its field stands in.
    """

    fields: tuple[tuple[bool, str, str], ...]
    keys: tuple[Leaf, ...]


def _shape_of(part: str, holder: dict[str, Any]) -> _Shape:
    is_message = part == "event" and holder.get("type") == "message"
    keys = tuple(holder)
    return _known_shape(part, keys, is_message) if len(keys) <= _MOST_KEYS else _shape(part, keys, is_message)


def _shape(part: str, keys: tuple[str, ...], is_message: bool) -> _Shape:
    plain = [plain_field(key) for key in keys]
    beside = set(plain)
    holder = {"type": "message"} if is_message else {}
    fields = []
    for key, field in zip(keys, plain, strict=True):
        known_as = counts_as(field, beside)
        fields.append((is_structure(part, key), part_at(part, key, holder), key if known_as == field else known_as))
    return _Shape(tuple(fields), tuple(_key(part, key) for key in keys if key not in _OWN_KEYS))


# Records of one source repeat their objects.
_known_shape = lru_cache(maxsize=4_096)(_shape)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _leaf(part: str, field: str, text: str) -> Leaf:
    if is_structure(part, field):
        return Leaf("full_name" if is_somebody(part, field, text) else structure_field(field), text)
    return Leaf(field, text)


def _key(part: str, key: str) -> Leaf:
    return _leaf("role", "name", key) if part == "roles" else Leaf("", key)


def _whole_number(value: Any) -> str | None:
    """The digits of a whole number; tables often keep telephone numbers as 4155552671.0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST_NUMBER:
        return None
    return str(int(value)) if value == int(value) else None


def _new_key(part: str, key: str, taken: dict[str, Any], replaced: Mapping[Leaf, str]) -> str:
    masked = key if key in _OWN_KEYS else replaced.get(_key(part, key), key)
    new, number = masked, 2
    # Two spellings of one value must not become one field.
    while new in taken:
        new, number = f"{masked} ({number})", number + 1
    return new


# Texts may be recorded in pieces, as a model streamed them: a value begins in one piece and ends in another.

_LISTS = word_set("chunks deltas tokens stream parts pieces fragments segments partials stream_chunks")
_MARKS = ("delta", "chunk", "token", "stream", "partial")
_TEXTS = word_set("content text delta token chunk output_text partial_json arguments part value data")
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "\n", "}", "]")
_SHORT = 40
_DEEPEST = 5


class Piece(NamedTuple):
    """Where a piece of a text stands: in a field (or at an index) of its holder."""

    holder: Any
    field: Any

    @property
    def text(self) -> str:
        """The piece as it is now."""
        return str(self.holder[self.field])


def joined(pieces: Sequence[Piece]) -> str:
    """The whole text that pieces are of."""
    return "".join(piece.text for piece in pieces)


def mask_across_pieces(
    streams: Iterable[list[Piece]], spans_in: Callable[[str], Sequence[tuple[int, int, str]]]
) -> int:
    """Replace in place what reaches from one piece of a text into the next; returns how many pieces changed.

    ``spans_in`` gives, for a whole text, spans and what stands for each. The first piece gets that; the others
    lose their part of the value.

    >>> pieces = ["my mail is ada@ex", "ample.org", " thanks"]
    >>> mask_across_pieces(streams_of({"chunks": pieces}), lambda text: [(11, 26, "<EMAIL_1>")]), pieces
    (2, ['my mail is <EMAIL_1>', '', ' thanks'])
    """
    n_changed = 0
    for pieces in list(streams):
        texts = [piece.text for piece in pieces]
        edges = [0, *accumulate(map(len, texts))]
        changed = list(texts)
        for start, end, mark in sorted(spans_in("".join(texts)), reverse=True):
            first, last = bisect_right(edges, start) - 1, bisect_left(edges, end) - 1
            if first >= last:
                continue
            for n in range(first, last + 1):
                left, right = max(start - edges[n], 0), min(end - edges[n], len(texts[n]))
                changed[n] = changed[n][:left] + (mark if n == first else "") + changed[n][right:]
        for piece, old, new in zip(pieces, texts, changed, strict=True):
            if new != old:
                piece.holder[piece.field] = new
                n_changed += 1
    return n_changed


def streams_of(data: Any) -> Iterator[list[Piece]]:
    """The texts that data holds in pieces: lists called so, and lists of objects with short texts at one place."""
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        name, each = pending.pop()
        if isinstance(each, dict):
            pending += [(str(key), child) for key, child in each.items() if isinstance(child, (dict, list))]
        elif isinstance(each, list):
            if all(isinstance(child, str) for child in each):
                if name.lower() in _LISTS and len(each) > 1:
                    yield [Piece(each, place) for place in range(len(each))]
                continue
            if len(each) > 1:
                yield from _streams_in(name, each)
            pending += [(name, child) for child in each if isinstance(child, (dict, list))]


def _streams_in(name: str, items: list[Any]) -> Iterator[list[Piece]]:
    by_path: dict[str, list[Piece]] = {}
    for item in items:
        for path, piece in _texts_in(item):
            by_path.setdefault(path, []).append(piece)
    for path, pieces in by_path.items():
        if len(pieces) > 1 and (name.lower() in _LISTS or _looks_streamed(path, [piece.text for piece in pieces])):
            yield pieces


def _looks_streamed(path: str, texts: list[str]) -> bool:
    if any(mark in path for mark in _MARKS):
        return True
    is_short = len(texts) > 3 and sum(map(len, texts)) <= _SHORT * len(texts)
    return is_short and sum(text.rstrip(" ").endswith(_SENTENCE_ENDS) for text in texts[:-1]) < len(texts) / 2


# Where an item holds something: the place of its holder, the holder and the field; no field in a list of one.
_Path = tuple[Any, Any, Any] | None


def _texts_in(item: Any) -> Iterator[tuple[str, Piece]]:
    """The texts of an item that a piece may stand in, with the path to each; the kind of an event is part of it."""
    pending: list[tuple[_Path, Any, int]] = [(None, item, 0)]
    while pending:
        path, each, depth = pending.pop()
        if depth >= _DEEPEST:
            continue
        if isinstance(each, dict):
            for key, child in each.items():
                if isinstance(child, str):
                    if str(key).lower() in _TEXTS:
                        yield _written((path, each, key)), Piece(each, key)
                elif isinstance(child, (dict, list)):
                    pending.append(((path, each, key), child, depth + 1))
        elif isinstance(each, list) and len(each) == 1:
            pending.append(((path, each, None), each[0], depth + 1))


def _written(path: _Path) -> str:
    parts: list[str] = []
    while path is not None:
        path, holder, key = path
        if key is None:
            parts.append("[]")
            continue
        kind, role = holder.get("type"), holder.get("role")
        parts.append(f".{str(key).lower()}")
        parts.append(f"({role})" if isinstance(role, str) and len(role) < _SHORT else "")
        parts.append(f"({kind})" if isinstance(kind, str) and len(kind) < _SHORT else "")
    return "".join(reversed(parts))

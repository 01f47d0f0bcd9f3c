"""A call that changed something, in a form in which two runs can be compared: the tool, and arguments made alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.core.results import json_within
from agentunit.engine.deciding.causes import QUOTE, tool_words
from agentunit.formulas.text import shortened

LONGEST_KEPT = 160
"""So many characters of an argument are kept to be shown; the whole of it counts when two are compared."""
LONGEST_KEPT_PARTS = 1000
"""So many of a list or an object, with its parts: two are told apart by the parts that only one of them has."""
LONGEST_VALUE = 32
"""So many of them are shown where a call is named."""
MOST_ARGUMENTS = 24
SHOWN_ARGUMENTS = 4
FREE_TEXT_WORDS = 6
"""An argument of so many words is a text that every run words in its own way: that it is there is compared."""

_FREE_TEXT = "…"
_DEEPEST = 8
_LONGEST_KEY = 24
# An id with leading zeros is no number, and beyond 15 digits two numbers may have one float.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_MOST_DIGITS = 15

SpelledValue = str | dict[str, Any] | list[Any]
"""A value as it was spelled: a text, or a list or an object (names in lower case) of such values."""


class Effect(Struct, frozen=True, gc=False, eq=False, array_like=True):
    """One call. ``arguments`` are names with what their values are compared by, in the order of the names.

    ``kept`` are these values as the first run that made the call spelled them. It does not count in comparisons.
    """

    tool: str
    arguments: tuple[tuple[str, str], ...]
    kept: tuple[SpelledValue, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Effect) and (self.tool, self.arguments) == (other.tool, other.arguments)

    def __hash__(self) -> int:
        return hash((self.tool, self.arguments))

    def __str__(self) -> str:
        short = (shortened(spelled(value), LONGEST_VALUE) for value in self.kept)
        named = zip(self.arguments[:SHOWN_ARGUMENTS], short, strict=False)
        shown = [f"{name}={value}" if name else value for (name, _), value in named]
        more = len(self.arguments) - len(shown)
        listed = ", ".join([*shown, f"{more} more"] if more else shown)
        return f"{tool_words(self.tool)}({listed.replace('`', QUOTE)})"


def differing_arguments(own: Effect, other: Effect) -> list[str]:
    """The names of the arguments in which two calls of a tool differ."""
    mine, theirs = dict(own.arguments), dict(other.arguments)
    return [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]


def spelled(value: SpelledValue) -> str:
    """A value that was kept, as one text.

    >>> spelled([{"to": "Rome", "on": "May 2"}])
    '[{on: May 2, to: Rome}]'
    """
    return _plain(value, _DEEPEST, folds=False)


def compared(value: SpelledValue) -> str:
    """A value that was kept, as the text that equal values share."""
    return _plain(value, _DEEPEST, folds=True)


class EffectTable:
    """All effects of an input, by numbers. Each takes some 300 bytes: there may be a million of them.

    Case, spacing, order and 4 or 4.0 do not matter, nor what is empty, nor how a long text is worded.

    >>> table = EffectTable()
    >>> rome = table.add("book", '{"Seats": 2.0, "to": " Rome ", "note": null}')
    >>> str(table[rome])
    'book(seats=2, to=Rome)'
    >>> table.add("book", {"to": "rome", "seats": 2}) == rome
    True
    >>> oslo = table.add("book", {"to": "Oslo", "seats": 2})
    >>> differing_arguments(table[rome], table[oslo])
    ['to']
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._packed: list[bytes] = []
        self._tools: list[str] = []
        self._names: dict[str, str] = {}

    def add(self, tool: str, arguments: Any) -> int:
        """The number of a call, the same for all that are alike."""
        tool = self._names.setdefault(tool, _encodable(tool))
        named = _named(arguments)
        compared = msgspec.msgpack.encode([tool, *(part for name, key, _ in named for part in (name, key))])
        digest = blake2b(compared, digest_size=16).digest()
        number = self._numbers.get(digest)
        if number is None:
            number = self._numbers[digest] = len(self._packed)
            self._packed.append(msgspec.msgpack.encode(_effect(tool, named)))
            self._tools.append(tool)
        return number

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, number: int) -> Effect:
        return msgspec.msgpack.decode(self._packed[number], type=Effect)

    def tool(self, number: int) -> str:
        """The tool of an effect."""
        return self._tools[number]

    def tools(self) -> Iterator[str]:
        """The tool of each effect, in the order of their numbers."""
        return iter(self._tools)


def _named(arguments: Any) -> list[tuple[str, str, Any]]:
    """Arguments by their names, in one order, each with what it is compared by; what is empty is left out."""
    data = json_within(arguments)
    if not isinstance(data, Mapping):
        data = {} if data is None or data == "" else {"": data}
    found = [
        (_encodable(str(name).casefold()), _key(_plain(value, _DEEPEST, folds=True)), value)
        for name, value in data.items()
        if not _empty(value)
    ]
    found.sort(key=lambda each: each[:2])
    if len(found) <= MOST_ARGUMENTS:
        return found
    left = found[MOST_ARGUMENTS - 1 :]
    digest = _key("\0".join(f"{name}\0{key}" for name, key, _ in left))
    return [*found[: MOST_ARGUMENTS - 1], ("further arguments", digest, [name for name, *_ in left])]


def _effect(tool: str, named: list[tuple[str, str, Any]]) -> Effect:
    return Effect(tool, tuple((name, key) for name, key, _ in named), tuple(_kept(value) for *_, value in named))


def _kept(value: Any) -> SpelledValue:
    text = _encodable(_plain(value, _DEEPEST, folds=False))
    if len(text) <= LONGEST_KEPT_PARTS and isinstance(parts := _parts(value, _DEEPEST), (dict, list)):
        return parts
    return shortened(text, LONGEST_KEPT)


def _parts(value: Any, depth: int) -> SpelledValue:
    value = json_within(value)
    if depth and isinstance(value, Mapping):
        filled = [(_encodable(str(key).casefold()), each) for key, each in value.items() if not _empty(each)]
        parts = {key: _parts(each, depth - 1) for key, each in filled}
        # Two names that differ in case alone are two fields: such an object stays a text.
        return parts if len(parts) == len(filled) else _encodable(_plain(value, depth, folds=False))
    if depth and isinstance(value, (list, tuple)):
        return [_parts(each, depth - 1) for each in value]
    return _encodable(_plain(value, depth, folds=False))


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, dict)) and not value)


def _plain(value: Any, depth: int, *, folds: bool) -> str:
    """A value as one text: with ``folds`` equal values have equal texts, without it is as it was spelled."""
    value = json_within(value)
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).casefold() if folds else value
        text = " ".join(text.split())
        return _number(text) or (text if len(text.split()) < FREE_TEXT_WORDS else _FREE_TEXT)
    if isinstance(value, bool) or value is None:
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        if isinstance(value, float):
            # What arithmetic leaves behind is no difference: 0.1 + 0.2 is 0.3.
            value = int(value) if value.is_integer() else f"{value:.12g}"
        return _number(str(value)) or str(value)
    if depth and isinstance(value, Mapping):
        parts = sorted(
            (str(key).casefold(), _plain(each, depth - 1, folds=folds))
            for key, each in value.items()
            if not _empty(each)
        )
        return "{" + ", ".join(f"{key}: {text}" for key, text in parts) + "}"
    if depth and isinstance(value, (list, tuple)):
        # In the order of what is compared, whatever the spelling.
        parts_of_list = sorted((_plain(each, depth - 1, folds=folds) for each in value), key=str.casefold)
        return "[" + ", ".join(parts_of_list) + "]"
    return str(value)[:LONGEST_KEPT]


def _number(text: str) -> str | None:
    """A number in one spelling."""
    if len(text) > _MOST_DIGITS + 2 or not _NUMBER.fullmatch(text):
        return None
    if sum(sign.isdigit() for sign in text) > _MOST_DIGITS:
        return None
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "-") else text


def _key(text: str) -> str:
    """What a value is compared by: itself, or what tells long ones apart."""
    if len(text) <= _LONGEST_KEY:
        return _encodable(text)
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _encodable(text: str) -> str:
    """Text without half surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

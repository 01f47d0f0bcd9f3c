"""A call that changed something, in a form in which two runs can be compared: the tool, and arguments made alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.formulas.text import shortened

LONGEST_KEPT = 160
"""So many characters of an argument are kept to be shown; the whole of it counts when two are compared."""
LONGEST_VALUE = 32
"""So many of them are shown."""
MOST_ARGUMENTS = 24
SHOWN_ARGUMENTS = 4
FREE_TEXT_WORDS = 6
"""An argument of so many words is a text that every run words in its own way: that it is there is compared."""

QUOTE = "'"
"""What stands in sentences for a backquote, with which they quote."""
_FREE_TEXT = "…"
_LONGEST_NAME = 80
_DEEPEST = 8
_LONGEST_KEY = 24
# An id with leading zeros is no number, and beyond 15 digits two numbers may have one float.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_MOST_DIGITS = 15
_PART_STARTS = re.compile(r"[{\[]|, |: ")


class Effect(Struct, frozen=True, gc=False, eq=False, array_like=True):
    """One call. ``arguments`` are names with what their values are compared by, in the order of the names.

    ``shown`` are these values as the first run that made the call spelled them. It does not count in comparisons.
    """

    tool: str
    arguments: tuple[tuple[str, str], ...]
    shown: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Effect) and (self.tool, self.arguments) == (other.tool, other.arguments)

    def __hash__(self) -> int:
        return hash((self.tool, self.arguments))

    def __str__(self) -> str:
        short = (shortened(value, LONGEST_VALUE) for value in self.shown)
        named = zip(self.arguments[:SHOWN_ARGUMENTS], short, strict=False)
        shown = [f"{name}={value}" if name else value for (name, _), value in named]
        more = len(self.arguments) - len(shown)
        listed = ", ".join([*shown, f"{more} more"] if more else shown)
        return f"{tool_words(self.tool)}({listed.replace('`', QUOTE)})"


def effect_of(tool: str, arguments: Any) -> Effect:
    """A call as two runs can be compared by: case, spacing, order and 4 or 4.0 do not matter, nor what is empty.

    >>> str(effect_of("book", '{"Seats": 2.0, "to": " Rome ", "note": null}'))
    'book(seats=2, to=Rome)'
    >>> effect_of("book", {"ids": ["b", "a"]}) == effect_of("book", {"ids": ["a", "b"]})
    True
    >>> effect_of("send", {"text": "Your order is on its way to you"}) == effect_of("send", {"text": "We have shipped it to you"})
    True
    """  # noqa: E501 - one line of an example
    return _effect(tool, _named(arguments))


def differing_arguments(own: Effect, other: Effect) -> list[str]:
    """The names of the arguments in which two calls of a tool differ.

    >>> differing_arguments(effect_of("book", {"to": "Rome", "on": "May 2"}), effect_of("book", {"to": "Oslo", "on": "May 2"}))
    ['to']
    """  # noqa: E501 - one line of an example
    mine, theirs = dict(own.arguments), dict(other.arguments)
    return [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]


def differing_values(own: Effect, other: Effect, name: str) -> tuple[str | None, str | None]:
    """What two calls of a tool have in an argument, in short: where long values differ. ``None`` where it is missing.

    >>> first, second = (effect_of("book", {"legs": ["2024-05-17 in the morning", leg]}) for leg in ("HAT1", "HAT2"))
    >>> differing_values(first, second, "legs")
    ('…HAT1]', '…HAT2]')
    """
    values = [dict(zip((each for each, _ in call.arguments), call.shown, strict=True)) for call in (own, other)]
    mine, theirs = (each.get(name) for each in values)
    start = 0
    if mine and theirs and max(len(mine), len(theirs)) > LONGEST_VALUE:
        pairs = zip(mine.casefold(), theirs.casefold(), strict=False)
        parted = next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(mine), len(theirs)))
        # From the beginning of a part on: half a value may be half an address.
        start = max((found.end() for found in _PART_STARTS.finditer(mine[:parted])), default=0)
    return _from(mine, start), _from(theirs, start)


def tool_words(name: str) -> str:
    """The name of a tool as it can stand in a sentence, between backquotes.

    >>> tool_words("rm `x`"), len(tool_words("long" * 50))
    ("rm 'x'", 80)
    """
    name = name.replace("`", QUOTE)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


class EffectTable:
    """All effects of an input, by numbers. Each takes some 300 bytes: there may be a million of them."""

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


def _from(value: str | None, start: int) -> str | None:
    if value is None:
        return None
    return shortened(f"…{value[start:]}" if start else value, LONGEST_VALUE)


def _named(arguments: Any) -> list[tuple[str, str, Any]]:
    """Arguments by their names, in one order, each with what it is compared by; what is empty is left out."""
    data = _decoded(arguments)
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
    shown = (shortened(_plain(value, _DEEPEST, folds=False), LONGEST_KEPT) for *_, value in named)
    return Effect(tool, tuple((name, key) for name, key, _ in named), tuple(map(_encodable, shown)))


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, dict)) and not value)


def _plain(value: Any, depth: int, *, folds: bool) -> str:
    """A value as one text: with ``folds`` equal values have equal texts, without it is as it was spelled."""
    value = _decoded(value)
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

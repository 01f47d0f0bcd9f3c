"""A call that changed something, in a form in which two runs can be compared: the tool, and arguments made alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

LONGEST_VALUE = 32
"""So many characters of an argument are kept to be shown; the whole of it counts when two are compared."""
MOST_ARGUMENTS = 24
SHOWN_ARGUMENTS = 4
FREE_TEXT_WORDS = 6
"""An argument of so many words is a text that every run words in its own way: that it is there is compared."""

_FREE_TEXT = "…"
_DEEPEST = 8


class Effect(Struct, frozen=True, gc=False):
    """One call: ``arguments`` are names with their values in short, in the order of the names."""

    tool: str
    arguments: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        shown = [f"{name}={value.partition(chr(0))[0]}" for name, value in self.arguments[:SHOWN_ARGUMENTS]]
        more = len(self.arguments) - len(shown)
        return f"{self.tool}({', '.join([*shown, f'{more} more'] if more else shown)})"


def effect_of(tool: str, arguments: Any) -> Effect:
    """A call as two runs can be compared by: case, spacing, order and 4 or 4.0 do not matter, nor what is empty.

    >>> str(effect_of("book", '{"Seats": 2.0, "to": " Rome ", "note": null}'))
    'book(seats=2, to=rome)'
    >>> effect_of("book", {"ids": ["b", "a"]}) == effect_of("book", {"ids": ["a", "b"]})
    True
    >>> effect_of("send", {"text": "Your order is on its way to you"}) == effect_of("send", {"text": "We have shipped it to you"})
    True
    """  # noqa: E501 - one line of an example
    data = _decoded(arguments)
    if not isinstance(data, Mapping):
        data = {} if data in (None, "") else {"": data}
    found = sorted((str(name).casefold(), _plain(value, _DEEPEST)) for name, value in data.items() if not _empty(value))
    return Effect(tool, tuple((name, _shown(value)) for name, value in found[:MOST_ARGUMENTS]))


def differing_arguments(own: Effect, other: Effect) -> list[str]:
    """The names of the arguments in which two calls of a tool differ.

    >>> differing_arguments(effect_of("book", {"to": "Rome", "on": "May 2"}), effect_of("book", {"to": "Oslo", "on": "May 2"}))
    ['to']
    """  # noqa: E501 - one line of an example
    mine, theirs = dict(own.arguments), dict(other.arguments)
    return [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, dict)) and not value)


def _plain(value: Any, depth: int) -> str:
    """A value as one text: equal values have equal texts."""
    value = _decoded(value)
    if isinstance(value, str):
        text = " ".join(unicodedata.normalize("NFKC", value).casefold().split())
        return _number(text) or (text if len(text.split()) < FREE_TEXT_WORDS else _FREE_TEXT)
    if isinstance(value, bool) or value is None:
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return _number(str(value)) or str(value)
    if depth and isinstance(value, Mapping):
        parts = sorted(
            (str(key).casefold(), _plain(each, depth - 1)) for key, each in value.items() if not _empty(each)
        )
        return "{" + ", ".join(f"{key}: {text}" for key, text in parts) + "}"
    if depth and isinstance(value, (list, tuple)):
        return "[" + ", ".join(sorted(_plain(each, depth - 1) for each in value)) + "]"
    return str(value)[:LONGEST_VALUE]


def _number(text: str) -> str | None:
    """A number in one spelling; an id with leading zeros is none."""
    digits = text.lstrip("-")
    if not digits[:1].isdigit() or len(digits) > 15 or (digits[0] == "0" and digits[1:2].isdigit()):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return f"{number:.10g}" if isfinite(number) else None


def _shown(text: str) -> str:
    """A value in short. Behind a zero byte, which is not shown, stands what tells long values apart."""
    if len(text) <= LONGEST_VALUE:
        return text
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{text[: LONGEST_VALUE - 1]}…\0{digest}"

"""JSON as language models write it: amid prose, in code fences, with single quotes, comments and trailing commas.

What is read is never guessed: a value that does not end, or a name given twice with different values, is no value.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_LONGEST_TEXT = 100_000
_MOST_STARTS = 50
_MOST_UNENDED = 3
_DEEPEST = 20

_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_GAP = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_START = re.compile(r"[{\[]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORD_VALUES = {"true": True, "false": False, "null": None, "none": None}
_CLOSING_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_AFTER_VALUE = re.compile(
    r"\s*(?:[}\]]|$|,\s*(?:[\"'“‘{\[}\]\-\d]|//|#|/\*|$|(?:true|false|null|none)\b))", re.IGNORECASE
)
_AFTER_VALUE_OF_OBJECT = re.compile(r"\s*(?:[}\]]|$|,\s*(?:[\"'“‘}]|//|#|/\*|$|\w+\s*:))")
_AFTER_NAME = re.compile(r"\s*:")


class NotJson(ValueError):
    """A text that holds no JSON value where one was looked for."""


class _Unended(NotJson):
    """A value that goes on to the end of the text."""


def json_values(text: str) -> list[Any]:
    """The objects and lists that a text holds, in order; what a model thought aloud before its reply does not count.

    >>> json_values('Sure! ```json\\n{"score": 4,}\\n``` as you asked')
    [{'score': 4}]
    >>> json_values("{'verdict': 'supported'} [draft")
    [{'verdict': 'supported'}]
    """
    if len(text) > _LONGEST_TEXT:
        raise NotJson(f"the reply has {len(text):,} characters; at most {_LONGEST_TEXT:,} are read")
    # The mark that ends a thought may also stand inside a reply that quotes it, so the whole text comes first.
    for whole in (text, _END_OF_THOUGHT.split(text)[-1]):
        try:
            value = json.loads(whole.strip("\ufeff \t\r\n"), object_pairs_hook=_named_once, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            continue
        return [value] if isinstance(value, (dict, list)) else []
    return _values_amid_prose(_THOUGHT.sub("", text, count=1) if _THOUGHT.match(text) else text)


def _values_amid_prose(text: str) -> list[Any]:
    values: list[Any] = []
    position = unended = 0
    for _ in range(_MOST_STARTS):
        start = _START.search(text, position)
        if start is None:
            break
        reader = _Reader(text, start.start())
        try:
            values.append(reader.value(_DEEPEST))
            position = reader.position
        except ValueError as error:  # NotJson, or a number too long for Python
            position = start.end()
            # Each of these reads the rest of the text, which may be long.
            unended += isinstance(error, _Unended)
            if unended == _MOST_UNENDED:
                break
    return values


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is no number")


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; the same name with two values may be an echo of the text under judgement."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made and made[name] != value:
            raise NotJson(f"{name!r:.40} is given twice, with different values")
        made[name] = value
    return made


class _Reader:
    """A reader of one value that forgives what models get wrong."""

    def __init__(self, text: str, position: int) -> None:
        self._text = text
        self.position = position

    def value(self, deeper: int, within_object: bool = False) -> Any:
        if not deeper:
            raise NotJson(f"nested deeper than {_DEEPEST}")
        character = self._next()
        if character == "{":
            return self._object(deeper)
        if character == "[":
            return self._list(deeper)
        if character in _CLOSING_QUOTES:
            return self._string(_AFTER_VALUE_OF_OBJECT if within_object else _AFTER_VALUE)
        if number := _NUMBER.match(self._text, self.position):
            self.position = number.end()
            return json.loads(_plain_number(number.group()))
        word = _WORD.match(self._text, self.position)
        if word is None or word.group().lower() not in _WORD_VALUES:
            raise NotJson(f"no value at {self.position}")
        self.position = word.end()
        return _WORD_VALUES[word.group().lower()]

    def _object(self, deeper: int) -> dict[str, Any]:
        self.position += 1
        pairs: list[tuple[str, Any]] = []
        while self._next() != "}":
            name = self._name()
            if self._next() != ":":
                raise NotJson(f"no colon after {name!r:.40}")
            self.position += 1
            pairs.append((name, self.value(deeper - 1, within_object=True)))
            self._comma_or("}")
        self.position += 1
        return _named_once(pairs)

    def _list(self, deeper: int) -> list[Any]:
        self.position += 1
        values: list[Any] = []
        while self._next() != "]":
            values.append(self.value(deeper - 1))
            self._comma_or("]")
        self.position += 1
        return values

    def _comma_or(self, closing: str) -> None:
        character = self._next()
        if character == ",":
            self.position += 1
        elif character != closing:
            raise NotJson(f"neither ',' nor {closing!r} at {self.position}")

    def _name(self) -> str:
        if self._next() in _CLOSING_QUOTES:
            return self._string(_AFTER_NAME)
        word = _WORD.match(self._text, self.position)
        if word is None:
            raise NotJson(f"no name at {self.position}")
        self.position = word.end()
        return word.group()

    def _string(self, follows: re.Pattern[str]) -> str:
        """A quoted text; a quotation mark inside that nobody escaped is told by what follows it."""
        text, closing = self._text, _CLOSING_QUOTES[self._text[self.position]]
        special = re.compile(f"[\\\\{closing}]")
        made: list[str] = []
        start = self.position + 1
        while found := special.search(text, start):
            made.append(text[start : found.start()])
            start = found.end()
            if found.group() == closing:
                if follows.match(text, start):
                    self.position = start
                    # Escapes of characters beyond the basic plane come in two halves.
                    return "".join(made).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                made.append(closing)
                continue
            character = text[start : start + 1]
            digits = text[start + 1 : start + 5]
            if character == "u" and re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                made.append(chr(int(digits, 16)))
                start += 5
            else:
                made.append(_ESCAPES.get(character, character))
                start += 1
        raise _Unended("a text does not end")

    def _next(self) -> str:
        """The character that comes next, after spaces and comments; the text must not end here."""
        gap = _GAP.match(self._text, self.position)
        assert gap is not None
        self.position = gap.end()
        if self.position >= len(self._text):
            raise _Unended("the value does not end")
        return self._text[self.position]


def _plain_number(digits: str) -> str:
    whole, point, rest = digits.partition(".")
    sign = "-" if whole.startswith("-") else ""
    return f"{sign}{whole.removeprefix('-').lstrip('0') or '0'}{point}{rest}"

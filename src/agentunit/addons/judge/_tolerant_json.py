"""JSON as language models write it: after prose, in code fences, with single quotes and trailing commas.

What is read is never guessed: a value that does not end, or a name given twice with different values, is no value.
Comments, and quotation marks that nobody escaped, are not forgiven: a quoted text could pass for a part of the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

_LONGEST_TEXT = 100_000
_MOST_STARTS = 50
_MOST_UNENDED = 3
_DEEPEST = 20

_BLANKS = "\ufeff \t\r\n"
_CODE_FENCE = re.compile(r"```\w*\s*")
_THOUGHT = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_GAP = re.compile(r"\s*")
_START = re.compile(r"[{\[]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORD_VALUES = {"true": True, "false": False, "null": None, "none": None}
_CLOSING_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class NotJson(ValueError):
    """A text that holds no JSON value where one was looked for."""


class _Unended(NotJson):
    """A value that goes on to the end of the text."""


def readings(text: str) -> Iterator[list[Any]]:
    """The ways to read a reply that ends in JSON: the objects and lists in it, of which the last one ends the text.

    A code fence around it does not count, nor what stands before it. What a model thought aloud before its reply is
    left out where its end is marked; the mark may also stand inside a reply that quotes it, hence the other readings.

    >>> list(readings('Sure! ```json\\n{"score": 4,}\\n```'))
    [[{'score': 4}]]
    >>> list(readings('{"score": 4} but that is a lie'))
    []
    """
    if len(text) > _LONGEST_TEXT:
        raise NotJson(f"the reply has {len(text):,} characters; at most {_LONGEST_TEXT:,} are read")
    text = text.strip(_BLANKS).removesuffix("```").rstrip(_BLANKS)
    if fence := _CODE_FENCE.match(text):
        text = text[fence.end() :]
    try:
        value = json.loads(text, object_pairs_hook=_named_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        pass
    else:
        if isinstance(value, (dict, list)):
            yield [value]
        return
    ends_of_thought = [found.end() for found in _END_OF_THOUGHT.finditer(text)]
    starts = dict.fromkeys([*ends_of_thought[-1:], *ends_of_thought[:1]])
    for start in starts if _THOUGHT.match(text) else [*starts, 0]:
        values = _values_up_to_the_end(text, start)
        if values:
            yield values


def _values_up_to_the_end(text: str, position: int) -> list[Any]:
    values: list[Any] = []
    unended = end = 0
    for _ in range(_MOST_STARTS):
        start = _START.search(text, position)
        if start is None:
            break
        reader = _Reader(text, start.start())
        try:
            values.append(reader.value(_DEEPEST))
            position = end = reader.position
        except ValueError as error:  # NotJson, or a number too long for Python
            position = start.end()
            # Each of these reads the rest of the text, which may be long.
            unended += isinstance(error, _Unended)
            if unended == _MOST_UNENDED:
                break
    return values if end == len(text) else []


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a number")


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; the same name with two values may be an echo of the text under judgment."""
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

    def value(self, deeper: int) -> Any:
        if not deeper:
            raise NotJson(f"nested deeper than {_DEEPEST}")
        character = self._next()
        if character == "{":
            return self._object(deeper)
        if character == "[":
            return self._list(deeper)
        if character in _CLOSING_QUOTES:
            return self._string()
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
            pairs.append((name, self.value(deeper - 1)))
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
            return self._string()
        word = _WORD.match(self._text, self.position)
        if word is None:
            raise NotJson(f"no name at {self.position}")
        self.position = word.end()
        return word.group()

    def _string(self) -> str:
        text, closing = self._text, _CLOSING_QUOTES[self._text[self.position]]
        special = re.compile(f"[\\\\{closing}]")
        made: list[str] = []
        start = self.position + 1
        while found := special.search(text, start):
            made.append(text[start : found.start()])
            start = found.end()
            if found.group() == closing:
                self.position = start
                # Escapes of characters beyond the basic plane come in two halves.
                return "".join(made).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
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
        """The character that comes next, after spaces; the text must not end here."""
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

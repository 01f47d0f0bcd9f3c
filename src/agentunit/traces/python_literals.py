"""Values as Python prints them, read by a grammar of their own: nothing is run, and a short text stays small."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from agentunit.traces.limits import read_limits, too_many_nodes

_DEEPEST = 100
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_WORDS = {"None": None, "True": True, "False": False}
_GAP = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*")
_SPECIAL = {"'": re.compile(r"['\\\n]"), '"': re.compile(r'["\\\n]')}


class PrintedObject(NamedTuple):
    """An object as Python prints it: ``FunctionCall(id='c1')``."""

    kind: str
    fields: dict[str, Any]


def python_literal(text: str, *, objects: bool = False) -> Any:
    """The value that a text holds as Python prints it: lists, tuples (as lists), objects, texts, numbers and words.

    Texts of a list with spaces between them and no comma are its elements, as numpy prints arrays. With ``objects``
    there may be a ``PrintedObject`` wherever a value may be. Anything else is a ``ValueError``; more values than an
    item may hold are a ``LimitExceeded``.

    >>> python_literal("{'city': 'Oslo', 'days': (1, 2.5)}"), python_literal("['a' 'b']")
    ({'city': 'Oslo', 'days': [1, 2.5]}, ['a', 'b'])
    """
    return _Reader(text, objects).whole()


class _Reader:
    def __init__(self, text: str, objects: bool) -> None:
        self._text = text
        self._objects = objects
        self._position = 0
        self._n_left = read_limits().nodes

    def whole(self) -> Any:
        value = self._value(_DEEPEST)
        if self._next():
            raise self._unfit()
        return value

    def _value(self, deeper: int) -> Any:
        self._n_left -= 1
        if self._n_left < 0:
            raise too_many_nodes()
        opening = self._next()
        if opening in _SPECIAL:
            return self._string(opening)
        if opening in _CLOSING:
            if not deeper:
                raise self._unfit()
            self._position += 1
            return self._object(deeper) if opening == "{" else self._list(_CLOSING[opening], deeper)
        if number := _NUMBER.match(self._text, self._position):
            self._position = number.end()
            return float(number[0]) if number[1] or number[2] else int(number[0])
        word = self._word()
        if word in _WORDS:
            return _WORDS[word]
        if not self._objects or not deeper or self._next() != "(":
            raise self._unfit()
        self._position += 1
        return self._printed_object(word, deeper)

    def _list(self, closing: str, deeper: int) -> Any:
        values: list[Any] = []
        comma = False
        while self._next() != closing:
            values.append(self._value(deeper - 1))
            end = self._position
            # Python would join these to one text.
            is_array = closing == "]" and isinstance(values[-1], str) and self._next() in _SPECIAL
            comma = (is_array and self._position > end) or self._comma_before(closing)
        self._position += 1
        return values[0] if closing == ")" and len(values) == 1 and not comma else values

    def _object(self, deeper: int) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        while self._next() != "}":
            name = self._value(deeper - 1)
            if not isinstance(name, (str, int)):
                raise self._unfit()
            self._expect(":")
            made[name] = self._value(deeper - 1)
            self._comma_before("}")
        self._position += 1
        return made

    def _printed_object(self, kind: str, deeper: int) -> PrintedObject:
        fields: dict[str, Any] = {}
        while self._next() != ")":
            name = self._word()
            self._expect("=")
            fields[name] = self._value(deeper - 1)
            self._comma_before(")")
        self._position += 1
        return PrintedObject(kind, fields)

    def _string(self, quote: str) -> str:
        start = self._position
        at = start + 1
        while (found := _SPECIAL[quote].search(self._text, at)) and found[0] == "\\":
            at = found.end() + 1
        if found is None or found[0] != quote:
            raise self._unfit()
        self._position = found.end()
        # One text is one value, whatever is in it.
        is_plain = at == start + 1
        return self._text[at : found.start()] if is_plain else ast.literal_eval(self._text[start : found.end()])

    def _word(self) -> str:
        self._next()
        word = _WORD.match(self._text, self._position)
        if word is None:
            raise self._unfit()
        self._position = word.end()
        return word[0]

    def _comma_before(self, closing: str) -> bool:
        if self._next() == closing:
            return False
        self._expect(",")
        return True

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise self._unfit()
        self._position += 1

    def _next(self) -> str:
        gap = _GAP.match(self._text, self._position)
        assert gap is not None
        self._position = gap.end()
        return self._text[self._position : self._position + 1]

    def _unfit(self) -> ValueError:
        return ValueError(f"no value that Python would print, at character {self._position}")

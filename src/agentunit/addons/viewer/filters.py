"""Which cases to show: filter expressions, read by a small grammar and answered column by column. Nothing is evaluated.

``faithfulness < 0.5 and (tool_success == 1 or verdict == fail) and not question ~ "refund"``
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentunit.engine.deciding.gate_expressions import nearest_name

_TOKEN = re.compile(
    r"""\s*(?:(?P<operator><=|>=|==|!=|[<>=~()])|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<quoted>[^`]+)`|(?P<word>[^\s<>=!~()"'`]+)|(?P<other>\S))"""
)
_WORDS = ("and", "or", "not", "is", "known")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "=")
VERDICT_LETTERS = {"pass": "p", "fail": "f", "error": "e", "aside": "a", "unknown": "-"}
TEXT_FIELDS = ("id", "question", "answer", "state")
NUMBER_FIELDS = ("time", "repeat", "labels")
_MOST_DEPTH = 50
_MOST_LENGTH = 2_000


class FilterError(ValueError):
    """An expression that is no filter; ``at`` is the place in it, counted from 0."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(text)
        self.at = at


class Columns(Protocol):
    """What a filter asks about: all rows of a table, column by column."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    def names(self) -> Sequence[str]:
        """The columns of numbers beside time, repeat and labels."""

    def numbers(self, name: str) -> array[float]:
        """The numbers of a column, NaN where unknown."""

    def texts(self, name: str) -> Sequence[str]:
        """The texts of ``id``, ``question``, ``answer`` or ``state``; none of a field that is not known."""

    def verdicts(self) -> bytes:
        """One letter a row (``VERDICT_LETTERS``)."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


Filter = Callable[[Columns], bytes]
"""One byte a row: 1 where it is wanted."""


def parse_filter(text: str, names: Sequence[str]) -> Filter:
    """The filter that an expression says; ``names`` are the columns that there are.

    >>> parse_filter("cost > ", ["cost"])
    Traceback (most recent call last):
    agentunit.addons.viewer.filters.FilterError: a number must follow 'cost >'
    """
    if len(text) > _MOST_LENGTH:
        raise FilterError(f"a filter has at most {_MOST_LENGTH:,} characters; received {len(text):,}", _MOST_LENGTH)
    return _Parser(text, names).parse()


class _Parser:
    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._text = text
        self._names = names
        self._tokens = [
            _Token(match.lastgroup or "other", match.group(match.lastgroup or 0), match.start(match.lastgroup or 0))
            for match in _TOKEN.finditer(text)
        ]
        self._at = 0
        self._depth = 0

    def parse(self) -> Filter:
        found = self._either()
        if (left := self._peek()) is not None:
            raise FilterError(f"'and', 'or' or the end must stand in place of {left.text!r}", left.at)
        return found

    def _peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _is_next(self, word: str) -> bool:
        token = self._peek()
        return token is not None and token.kind in ("word", "operator") and token.text.lower() == word

    def _take(self, word: str) -> bool:
        if self._is_next(word):
            self._at += 1
            return True
        return False

    def _either(self) -> Filter:
        found = self._both()
        while self._take("or"):
            found = _joined(found, self._both(), int.__or__)
        return found

    def _both(self) -> Filter:
        found = self._one()
        while self._take("and"):
            found = _joined(found, self._one(), int.__and__)
        return found

    def _one(self) -> Filter:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise FilterError(f"a filter is at most {_MOST_DEPTH} parts deep", self._where())
        try:
            if self._take("not"):
                return _negated(self._one())
            if self._take("("):
                found = self._either()
                if not self._take(")"):
                    raise FilterError("a ')' is missing", self._where())
                return found
            return self._test()
        finally:
            self._depth -= 1

    def _where(self) -> int:
        token = self._peek()
        return len(self._text) if token is None else token.at

    def _test(self) -> Filter:
        token = self._peek()
        if token is None or token.kind not in ("word", "quoted") or token.text.lower() in _WORDS[:3]:
            raise FilterError("a metric's name must stand here, as in 'faithfulness < 0.5'", self._where())
        self._at += 1
        name = token.text
        known = (*self._names, *NUMBER_FIELDS, *TEXT_FIELDS, "verdict")
        if name not in known:
            raise FilterError(f"there is no column {name!r}; {nearest_name(name, known)}", token.at)
        if self._take("is"):
            wanted = not self._take("not")
            if not self._take("known"):
                raise FilterError("'known' or 'not known' must follow 'is'", self._where())
            return _known(name, wanted, token.at)
        operator = self._peek()
        allowed: tuple[str, ...] = _COMPARISONS
        if name not in self._names and name not in NUMBER_FIELDS:
            allowed = ("==", "!=", "=", "~") if name in TEXT_FIELDS else ("==", "!=", "=")
        if operator is None or operator.text not in allowed:
            raise FilterError(f"one of {' '.join(allowed)} must follow {name!r}", self._where())
        self._at += 1
        sign = "==" if operator.text == "=" else operator.text
        return self._compared(name, sign, token.at)

    def _compared(self, name: str, sign: str, at: int) -> Filter:
        value = self._peek()
        if name in self._names or name in NUMBER_FIELDS:
            if value is None or value.kind != "number":
                raise FilterError(f"a number must follow '{name} {sign}'", self._where())
            self._at += 1
            return _number_test(name, sign, float(value.text))
        if value is None or value.kind not in ("text", "word", "number", "quoted"):
            raise FilterError(f"a text must follow '{name} {sign}'", self._where())
        self._at += 1
        text = re.sub(r"\\(.)", r"\1", value.text[1:-1]) if value.kind == "text" else value.text
        if name == "verdict":
            if text.lower() not in VERDICT_LETTERS:
                raise FilterError(f"a verdict is one of {', '.join(VERDICT_LETTERS)}; received {text!r}", value.at)
            return _verdict_test(sign, VERDICT_LETTERS[text.lower()])
        return _text_test(name, sign, text.casefold(), at)


def _number_test(name: str, sign: str, wanted: float) -> Filter:
    # Values that differ by rounding alone are equal, as in gates.
    near = max(1e-9 * abs(wanted), 1e-12)
    low, high = wanted - near, wanted + near
    tests: dict[str, Callable[[array[float]], bytes]] = {
        "<": lambda column: bytes([value < low for value in column]),
        "<=": lambda column: bytes([value <= high for value in column]),
        ">": lambda column: bytes([value > high for value in column]),
        ">=": lambda column: bytes([value >= low for value in column]),
        "==": lambda column: bytes([low <= value <= high for value in column]),
        "!=": lambda column: bytes([value < low or value > high for value in column]),
    }
    test = tests[sign]
    return lambda columns: test(columns.numbers(name))


def _text_test(name: str, sign: str, wanted: str, at: int) -> Filter:
    def test(columns: Columns) -> bytes:
        texts = _texts(columns, name, at)
        if sign == "~":
            return bytes([wanted in text.casefold() for text in texts])
        return bytes([(text.casefold() == wanted) == (sign == "==") for text in texts])

    return test


def _texts(columns: Columns, name: str, at: int) -> Sequence[str]:
    texts = columns.texts(name)
    if columns.n_rows and not texts:
        raise FilterError("the states of cases were not kept with this run", at)
    return texts


def _verdict_test(sign: str, letter: str) -> Filter:
    code = ord(letter)
    return lambda columns: bytes([(each == code) == (sign == "==") for each in columns.verdicts()])


def _known(name: str, wanted: bool, at: int) -> Filter:
    def test(columns: Columns) -> bytes:
        if name == "verdict":
            return bytes([(each != ord("-")) == wanted for each in columns.verdicts()])
        if name in TEXT_FIELDS:
            return bytes([bool(text) == wanted for text in _texts(columns, name, at)])
        # Only NaN differs from itself.
        return bytes([(value == value) == wanted for value in columns.numbers(name)])

    return test


def _joined(left: Filter, right: Filter, join: Callable[[int, int], int]) -> Filter:
    def both(columns: Columns) -> bytes:
        one, other = (int.from_bytes(each(columns), "little") for each in (left, right))
        return join(one, other).to_bytes(columns.n_rows, "little")

    return both


def _negated(test: Filter) -> Filter:
    return lambda columns: test(columns).translate(_TURNED)


_TURNED = bytes([1, 0, *range(2, 256)])

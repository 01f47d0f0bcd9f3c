"""What a judge's reply says, read tolerantly and checked strictly.

Models wrap, number and word the same verdict in many ways. What can mean only one thing is read; anything else is an
``UnreadableReply`` whose message tells the judge what to do better.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

from agentunit.addons.judge._tolerant_json import NotJson, readings
from agentunit.backends.asking import MARK, UnreadableReply, check_nothing_beside, field_of, one_spelling, plain_words

T = TypeVar("T")

_NUMBERED = re.compile(r"[\W_]*(?:[A-Za-z]{1,12}[\W_]*)?(\d{1,6})(?:\.0+)?[\W_]*")
_NO_NUMBER = frozenset({"", "none", "null", "n/a", "na", "nil", "-", "no passage"})
_SCORE = re.compile(
    r"(?:-\s+)?[^\w-]*(?:score[^\w-]*)?(-?\d{1,9}(?:\.\d{1,9})?)(?:\s*(?:/|out of)\s*(\d{1,9}))?\W*", re.I
)
_REMARK = re.compile(r"[\s.,;:(\[–-]+(?:(?:by|in|see|from)\s+)?(?:the\s+)?passages?\W*\d+\W*$")
# What is longer is no word with a remark; models that run wild write thousands of dots, on which the pattern is slow.
_LONGEST_WORD = 200
_WRAPPERS = 3
# The last field of a reply with its closing brackets, without spaces: ","score":5}]}
_LENGTH_OF_END = 14


class UnprovenReply(UnreadableReply):
    """A reply whose verdict lacks its evidence; ``otherwise`` is what it is worth if no better one comes."""

    def __init__(self, message: str, otherwise: Any) -> None:
        super().__init__(message)
        self.otherwise = otherwise


def own_object(text: str, mark: str, judged: str = "") -> dict[str, Any]:
    """The JSON object that ends a reply and carries the mark of its question.

    The mark stands in none of the texts under judgment. So JSON without it may be an echo of such a text, or the reply
    to another question, and is no verdict. Two objects with the mark that differ are no reply either, nor is one that
    ends as a text in ``judged`` does: a judge that forgets to escape a quote would end its reply with it.

    >>> own_object('Here: {"mark": "1f", "claims": []}', "1f")
    {'mark': '1f', 'claims': []}
    """
    try:
        for values in readings(text):
            own = [found for value in values if (found := _marked(value, mark, _WRAPPERS)) is not None]
            if not own or _marked(values[-1], mark, _WRAPPERS) is None:
                continue
            if "}" in judged and _squeezed(text)[-_LENGTH_OF_END:] in _squeezed(judged):
                raise UnreadableReply("the end of the reply is also in the text under judgment")
            if any(found != own[0] for found in own):
                raise UnreadableReply("the reply must be one JSON object; it holds several that differ")
            return own[0]
    except NotJson as error:
        raise UnreadableReply(str(error)) from None
    raise UnreadableReply(f'the reply must be one JSON object with "{MARK}": "{mark}" in it, and nothing after it')


def _squeezed(text: str) -> str:
    return "".join(text.split()).replace("\\", "").removesuffix("```")


def _marked(value: Any, mark: str, deeper: int) -> dict[str, Any] | None:
    """The object with the mark: the value itself, or what it is the only wrapper of."""
    if not isinstance(value, dict) or not deeper:
        return None
    found = field_of(value, MARK)
    if isinstance(found, str):
        return value if found.strip(" #").casefold() == mark else None
    return _marked(next(iter(value.values())), mark, deeper - 1) if len(value) == 1 else None


def entries_of(reply: dict[str, Any], key: str, names: Sequence[str]) -> list[Any]:
    """The list that a reply gives under ``key``.

    Accepted are also a single entry in its place, and one that is the reply itself, known by a field of ``names``.

    >>> entries_of({"mark": "1f", "claims": ["Paris is in France."]}, "claims", ["claim"])
    ['Paris is in France.']
    """
    found = field_of(reply, key)
    if found is None and any(field_of(reply, name) is not None for name in names):
        found, key = reply, ""
    if not isinstance(found, (list, dict)):
        raise UnreadableReply(f"the reply must be a JSON object with a list named {key!r}")
    check_nothing_beside(reply, (key,))
    return found if isinstance(found, list) else [found]


def deciding_field_of(entry: Any, *names: str) -> Any:
    """The same for the field that decides: where an object has several of these names, they must agree."""
    found = [value for name in names if (value := field_of(entry, name)) is not None]
    if any(value != found[0] for value in found):
        raise UnreadableReply(f"{names[0]!r} is given twice, with different values")
    return found[0] if found else None


def text_of(value: Any) -> str | None:
    """A text of a reply without halves of characters; ``None`` when there is none."""
    if not isinstance(value, str) or not value.strip():
        return None
    return value.strip().encode("utf-8", "replace").decode()


def whole_number(value: Any) -> int | None:
    """A number that may be written "2", "[2]" or "passage 2"; ``None`` where there is none.

    >>> [whole_number(each) for each in (2, "2", "Passage 2", [2], "none", None)]
    [2, 2, 2, 2, None, None]
    """
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        if not isfinite(value) or value != int(value):
            raise UnreadableReply(f"a number must be whole; received {value!r:.40}")
        return int(value)
    found = _NUMBERED.fullmatch(value) if isinstance(value, str) else None
    if found:
        return int(found[1])
    if isinstance(value, str) and one_spelling(value) in _NO_NUMBER:
        return None
    raise UnreadableReply(f"a number must be written as one; received {value!r:.40}")


def score_of(value: Any, highest: float) -> float:
    """A score that may be written "4", "4/5" or "Score: 4 out of 5".

    >>> score_of("4 out of 5", 5), score_of(3, 5)
    (4.0, 3.0)
    """
    if isinstance(value, str):
        found = _SCORE.fullmatch(value)
        if found and (found[2] is None or float(found[2]) == highest):
            return float(found[1])
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    raise UnreadableReply(f"a score must be a number; received {value!r:.60}")


def word_of(value: Any, meanings: Mapping[str, T], rule: str) -> T:
    """What a word of a reply means; a remark on the passage behind it does not matter.

    >>> word_of("**Supported** (passage 2)", {"supported": True, "not supported": False}, "…")
    True
    """
    word = one_spelling(re.sub(r"[\"'*`_]+", " ", str(value)))
    word = _REMARK.sub("", word).strip(" .,;:!") if len(word) <= _LONGEST_WORD else ""
    if word in meanings:
        return meanings[word]
    raise UnreadableReply(f"{rule}; received {str(value)!r:.60}")


def by_number(entries: Iterable[tuple[int | None, T]], n_asked: int, kind: str) -> list[T]:
    """Exactly one entry for each of the numbers 1 to ``n_asked``, in order; a single one may lack its number.

    >>> by_number([(2, "b"), (1, "a")], 2, "claim")
    ['a', 'b']
    """
    listed = list(entries)
    if len(listed) == n_asked == 1 and listed[0][0] is None:
        return [listed[0][1]]
    found: dict[int, T] = {}
    for number, entry in listed:
        if number is None or not 1 <= number <= n_asked:
            raise UnreadableReply(f"every {kind} must be numbered from 1 to {n_asked}; received {number}")
        if number in found:
            raise UnreadableReply(f"{kind} {number} has two entries")
        found[number] = entry
    missing = [str(number) for number in range(1, n_asked + 1) if number not in found]
    if missing:
        raise UnreadableReply(f"an entry is missing for {kind} {', '.join(missing[:20])}")
    return [found[number] for number in range(1, n_asked + 1)]


_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.{3,}|…)(?:\s*\])?\s*")
_AROUND = " .,;:!?\n\t"


def quote_stands_in(quote: str, text: str) -> bool:
    """Whether a quote stands in a text, whatever its spacing and the punctuation around it.

    An ellipsis in the quote may stand for words left out.

    >>> quote_stands_in("paris … 2 million", "Paris has about 2 million people.")
    True
    >>> quote_stands_in("Paris has 3 million", "Paris has about 2 million people.")
    False
    >>> quote_stands_in("2 million people", "Paris has about 12 million people.")
    False
    """
    where = plain_words(text)
    position = 0
    parts = [part.strip(_AROUND) for part in _ELLIPSIS.split(" ".join(quote.split()))]
    wanted = [plain_words(part) for part in parts if part]
    for part in wanted:
        found = _found(part, where, position)
        if found < 0:
            return False
        position = found + len(part)
    return bool(wanted)


def _found(part: str, where: str, position: int) -> int:
    """Where a part of a quote stands as whole words: "3 million" does not stand in "13 million"."""
    found = where.find(part, position)
    while found >= 0 and (_is_one_word(where, found) or _is_one_word(where, found + len(part))):
        found = where.find(part, found + 1)
    return found


def _is_one_word(text: str, at: int) -> bool:
    """Whether a cut at this place goes through a word. Not every script has spaces, so this is for plain letters."""
    sides = text[at - 1 : at + 1] if at else ""
    return len(sides) == 2 and sides.isascii() and sides.isalnum()

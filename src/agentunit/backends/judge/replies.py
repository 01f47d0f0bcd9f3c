"""What a judge's reply says, read tolerantly and checked strictly.

Models wrap, number and word the same verdict in many ways. What can mean only one thing is read; anything else is an
``UnreadableReply`` whose message tells the judge what to do better.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

from agentunit.backends.judge.tolerant_json import NotJson, json_values

T = TypeVar("T")

_NUMBERED = re.compile(r"[\W_]*(?:[A-Za-z]{1,12}[\W_]*)?(\d{1,6})(?:\.0+)?[\W_]*")
_NUMBERED_LINE = re.compile(
    r"^[^\w\n]*(?:(?:claim|passage|criterion|statement)[^\w\n]*)?(\d{1,6})[^\w\n]+(\S[^\n]*)$", re.I | re.M
)
_NO_NUMBER = frozenset({"", "none", "null", "n/a", "na", "nil", "-", "no passage"})
_SCORE = re.compile(
    r"(?:-\s+)?[^\w-]*(?:score[^\w-]*)?(-?\d{1,9}(?:\.\d{1,9})?)(?:\s*(?:/|out of)\s*(\d{1,9}))?\W*", re.I
)
_REMARK = re.compile(r"[\s.,;:(\[–-]+(?:(?:by|in|see|from)\s+)?(?:the\s+)?passages?\W*\d+\W*$")
# What is longer is no word with a remark; models that run wild write thousands of dots, on which the pattern is slow.
_LONGEST_WORD = 200
_WRAPPERS = 3


class UnreadableReply(ValueError):
    """A reply that says nothing usable; the message is the rule it broke."""


class ReplyWithoutJson(UnreadableReply):
    """A reply in words alone, which may still say what was asked."""


def entries_of(text: str, key: str, marks: Sequence[str]) -> list[Any]:
    """The list that a reply gives under ``key``, however it is wrapped.

    Accepted are also the bare list, and objects one by one that have a name in ``marks``. Two lists that differ are no
    reply: one of them may be an echo of the text under judgement.

    >>> entries_of('Here: {"claims": ["Paris is in France."]}', "claims", ["claim"])
    ['Paris is in France.']
    """
    try:
        values = json_values(text)
    except NotJson as error:
        raise UnreadableReply(str(error)) from None
    lists = [found for found in (_list_under(value, key, _WRAPPERS) for value in values) if found is not None]
    if not lists:
        lone = [value for value in values if isinstance(value, dict) and _has_any(value, marks)]
        lists = [lone] if lone else [value for value in values if isinstance(value, list) and _is_list_of(value, marks)]
    if not lists:
        rule = f"the reply must be a JSON object with a list named {key!r}"
        raise (UnreadableReply if any(map(_holds_objects, values)) else ReplyWithoutJson)(rule)
    if any(found != lists[0] for found in lists):
        raise UnreadableReply(f"the reply must hold one list named {key!r}; it holds several that differ")
    return lists[0]


def _list_under(value: Any, key: str, deeper: int) -> list[Any] | None:
    if not isinstance(value, dict) or not deeper:
        return None
    found = field_of(value, key)
    if isinstance(found, list):
        return found
    if isinstance(found, dict):
        return [found]
    inside = [_list_under(each, key, deeper - 1) for each in value.values()]
    return next((each for each in inside if each is not None), None)


def _has_any(value: Mapping[str, Any], marks: Sequence[str]) -> bool:
    return any(field_of(value, mark) is not None for mark in marks)


def _holds_objects(value: Any) -> bool:
    """Whether a value is more than a reference in brackets, as in "see [2]"."""
    return isinstance(value, dict) or any(isinstance(each, (dict, list)) for each in value)


def _is_list_of(value: list[Any], marks: Sequence[str]) -> bool:
    return all(isinstance(each, str) or (isinstance(each, dict) and _has_any(each, marks)) for each in value)


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """The lines of a reply without JSON that begin with a number: the number, and what follows it.

    >>> numbered_lines("Claim 1: supported\\n2. contradicted")
    [(1, 'supported'), (2, 'contradicted')]
    """
    return [(int(found[1]), found[2].strip()) for found in _NUMBERED_LINE.finditer(text)]


def field_of(entry: Any, *names: str) -> Any:
    """The value under the first of these names that an object has, whatever the case of its letters."""
    if not isinstance(entry, dict):
        return None
    plain = {_plain(str(name)): value for name, value in entry.items()}
    return next((plain[name] for name in map(_plain, names) if plain.get(name) is not None), None)


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().casefold()


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
    if isinstance(value, str) and _plain(value) in _NO_NUMBER:
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
    spoken = _plain(re.sub(r"[\"'*`_]+", " ", str(value)))
    spoken = _REMARK.sub("", spoken).strip(" .,;:!") if len(spoken) <= _LONGEST_WORD else ""
    if spoken in meanings:
        return meanings[spoken]
    raise UnreadableReply(f"{rule}; received {str(value)!r:.60}")


def by_number(entries: Iterable[tuple[int | None, T]], n_asked: int, kind: str) -> list[T]:
    """One entry for each of the numbers 1 to ``n_asked``, in order; entries of which none has a number count in order.

    >>> by_number([(2, "b"), (1, "a")], 2, "claim")
    ['a', 'b']
    """
    listed = list(entries)
    if len(listed) == n_asked and all(number is None for number, _ in listed):
        return [entry for _, entry in listed]
    found: dict[int, T] = {}
    for number, entry in listed:
        if number is None or not 1 <= number <= n_asked:
            raise UnreadableReply(f"every {kind} must be numbered from 1 to {n_asked}; received {number}")
        if number in found and found[number] != entry:
            raise UnreadableReply(f"{kind} {number} has two entries that differ")
        found[number] = entry
    missing = [str(number) for number in range(1, n_asked + 1) if number not in found]
    if missing:
        raise UnreadableReply(f"an entry is missing for {kind} {', '.join(missing[:20])}")
    return [found[number] for number in range(1, n_asked + 1)]

"""What an agent did against what was expected: its tool calls, and the state it left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import fsum
from typing import Any, Literal

Mode = Literal["unordered", "ordered", "strict"]
ArgumentRule = Literal["equal", "subset", "ignore"]


@dataclass(frozen=True)
class ToolCall:
    """A call by name; ``arguments`` of ``None`` says nothing about them, so any will do."""

    name: str
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TrajectoryMatch:
    """How many calls match, and what follows. Precision is ``None`` without calls, recall without expectations."""

    matched: int
    precision: float | None
    recall: float | None
    f1: float


def calls_match(expected: ToolCall, actual: ToolCall, rule: ArgumentRule = "equal") -> bool:
    """Whether a call is the expected one: the same tool, and its arguments equal (or containing) the expected.

    >>> calls_match(ToolCall("find", {"id": 1}), ToolCall("find", {"id": 1, "limit": 5}), "subset")
    True
    """
    if expected.name != actual.name:
        return False
    if rule == "ignore" or expected.arguments is None:
        return True
    received = actual.arguments or {}
    if rule == "subset":
        return all(key in received and json_equal(value, received[key]) for key, value in expected.arguments.items())
    return json_equal(expected.arguments, received)


def match_trajectory(
    expected: Sequence[ToolCall],
    actual: Sequence[ToolCall],
    mode: Mode = "ordered",
    rule: ArgumentRule = "equal",
) -> TrajectoryMatch:
    """Precision, recall and F1 of the calls made, each expected call answered by at most one.

    ``unordered``: the most pairs that match, in any order. ``ordered``: the longest run of matches in the expected
    order, other calls in between allowed. ``strict``: matches at the same position only. With m matches among e
    expected and a actual calls: precision m/a, recall m/e, F1 2m/(e + a); F1 is 1 when both are empty.

    >>> search, book = ToolCall("search"), ToolCall("book")
    >>> [match_trajectory([search, book], [book, search], mode).f1 for mode in ("unordered", "ordered", "strict")]
    [1.0, 0.5, 0.0]
    """
    counters: dict[Mode, Callable[[], int]] = {
        "unordered": lambda: _largest_matching(expected, actual, rule),
        "ordered": lambda: round(_best_alignment(expected, actual, lambda e, a: float(calls_match(e, a, rule)))),
        "strict": lambda: sum(calls_match(e, a, rule) for e, a in zip(expected, actual, strict=False)),
    }
    matched = counters[mode]()
    n_expected, n_actual = len(expected), len(actual)
    return TrajectoryMatch(
        matched,
        matched / n_actual if n_actual else None,
        matched / n_expected if n_expected else None,
        2 * matched / (n_expected + n_actual) if n_expected or n_actual else 1.0,
    )


def alignment_score(expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> float:
    """How close two trajectories are when arguments may differ a little.

    2·S / (e + a), S being the largest sum of call similarities over order-keeping pairings. Two calls of different
    tools have similarity 0, of the same tool 0.5 + 0.5 · argument similarity. From 0 (nothing in common) to 1
    (identical, or both empty); symmetric where every call states its arguments.

    >>> alignment_score([ToolCall("find", {"id": "A-1"})], [ToolCall("find", {"id": "A-1"}), ToolCall("stop")])
    0.6666666666666666
    """
    if not expected and not actual:
        return 1.0
    return 2 * _best_alignment(expected, actual, _call_similarity) / (len(expected) + len(actual))


def value_similarity(left: Any, right: Any) -> float:
    """How alike two JSON values are, from 0 to 1: equal is 1, different kinds are 0.

    Numbers: 1 − |l − r| / max(|l|, |r|), at least 0. Strings: the Dice coefficient of their letter pairs, whatever
    the case. Objects: the mean over all keys of either, an absent one counting 0. Lists: the mean over positions of
    the longer one.

    >>> value_similarity({"city": "Paris", "nights": 2}, {"city": "Paris", "nights": 4})   # (1 + 1/2) / 2
    0.75
    """
    if json_equal(left, right):
        return 1.0
    if isinstance(left, bool) or isinstance(right, bool):
        return 0.0
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _number_similarity(left, right)
    if isinstance(left, str) and isinstance(right, str):
        return _dice(left.casefold(), right.casefold())
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        shared = [value_similarity(left[key], right[key]) for key in left if key in right]
        # fsum: the order of keys must not show in the last digit.
        return fsum(shared) / len({*left, *right})
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        longest = max(len(left), len(right))
        return sum(value_similarity(a, b) for a, b in zip(left, right, strict=False)) / longest
    return 0.0


def _call_similarity(expected: ToolCall, actual: ToolCall) -> float:
    if expected.name != actual.name:
        return 0.0
    if expected.arguments is None:
        return 1.0
    return 0.5 + 0.5 * value_similarity(expected.arguments, actual.arguments or {})


def _best_alignment(
    expected: Sequence[ToolCall], actual: Sequence[ToolCall], worth: Callable[[ToolCall, ToolCall], float]
) -> float:
    """The largest total worth of pairs that keep the order of both sequences, one row of the table at a time."""
    previous = [0.0] * (len(actual) + 1)
    for wanted in expected:
        current = [0.0]
        for position, made in enumerate(actual):
            pair = worth(wanted, made)
            best = max(previous[position + 1], current[position])
            current.append(max(best, previous[position] + pair) if pair else best)
        previous = current
    return previous[-1]


def _largest_matching(expected: Sequence[ToolCall], actual: Sequence[ToolCall], rule: ArgumentRule) -> int:
    """The size of the largest one-to-one matching, by augmenting paths, without recursion."""
    choices = [[a for a, made in enumerate(actual) if calls_match(wanted, made, rule)] for wanted in expected]
    taken_by: dict[int, int] = {}
    for start in range(len(expected)):
        reached_from: dict[int, int] = {}
        frontier = [start]
        free: int | None = None
        while frontier and free is None:
            wanted = frontier.pop()
            for candidate in choices[wanted]:
                if candidate in reached_from:
                    continue
                reached_from[candidate] = wanted
                if candidate not in taken_by:
                    free = candidate
                    break
                frontier.append(taken_by[candidate])
        while free is not None:
            wanted = reached_from[free]
            released = next((a for a, owner in taken_by.items() if owner == wanted), None)
            if released is not None:
                del taken_by[released]
            taken_by[free] = wanted
            free = released
    return len(taken_by)


def _number_similarity(left: float, right: float) -> float:
    try:
        return max(0.0, 1.0 - abs(left - right) / max(abs(left), abs(right)))
    except OverflowError:  # an int beyond every float is unlike any float
        return 0.0


def _dice(left: str, right: str) -> float:
    pairs_left, pairs_right = _letter_pairs(left), _letter_pairs(right)
    total = sum(pairs_left.values()) + sum(pairs_right.values())
    return 2 * sum((pairs_left & pairs_right).values()) / total if total else 0.0


@lru_cache(maxsize=256)
def _letter_pairs(text: str) -> Counter[str]:
    return Counter(first + second for first, second in pairwise(text)) or Counter(text)


def json_equal(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON: 1 is 1.0, but true is not 1, at any depth; objects have no order.

    >>> json_equal({"a": [1, 2]}, {"a": [1.0, 2]}), json_equal([1], [True])
    (True, False)
    """
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(json_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(json_equal(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def state_differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Where a final state falls short of the expected one; empty when it holds everything expected.

    Objects are compared by the expected keys alone (more is fine), all else by equality.

    >>> state_differences({"order": {"status": "returned"}}, {"order": {"status": "open", "items": 2}, "users": 1})
    ["order.status is 'open', expected 'returned'"]
    """
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        differences: list[str] = []
        for key, value in expected.items():
            place = f"{path}.{key}" if path else str(key)
            if key not in actual:
                differences.append(f"{place} is missing, expected {value!r:.80}")
            else:
                differences.extend(state_differences(value, actual[key], place))
        return differences
    if json_equal(expected, actual):
        return []
    return [f"{path or 'the state'} is {actual!r:.80}, expected {expected!r:.80}"]

"""When two JSON values are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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

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

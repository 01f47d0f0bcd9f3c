"""The world an agent left behind against the world it should have left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentunit.formulas.equality import json_equal


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

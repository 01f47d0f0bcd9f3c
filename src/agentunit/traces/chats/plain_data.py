"""Reading values whose type cannot be relied on: what is not of the kind asked for is as good as absent."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

from agentunit.core.results import decode_json
from agentunit.core.time import epoch_seconds


def as_dict(value: Any) -> dict[str, Any]:
    """The value when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value when it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def as_name(value: Any) -> str | None:
    """A text with something in it, or a whole number as text; anything else names nothing.

    >>> as_name("q1"), as_name(7), as_name(True), as_name("  ")
    ('q1', '7', None, None)
    """
    if isinstance(value, str):
        return value if value.strip() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def as_number(value: Any) -> float | None:
    """A finite number as it stands; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if isfinite(value) else None
    except OverflowError:
        return None


def as_amount(value: Any) -> float | None:
    """A finite number of zero or more: money, seconds."""
    number = as_number(value)
    return number if number is not None and number >= 0 else None


def as_time(value: Any) -> float | None:
    """Seconds since 1970 of a number or an ISO 8601 text; ``None`` when it is neither."""
    try:
        return epoch_seconds(value)
    except (ValueError, OverflowError):
        return None


def as_data(value: Any) -> Any:
    """The data within a JSON text that holds an object or an array; any other value as it is.

    >>> as_data('{"city": "Oslo"}'), as_data("Oslo"), as_data("7")
    ({'city': 'Oslo'}, 'Oslo', '7')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return decode_json(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value


def as_json(value: Any) -> str:
    """The JSON text of a decoded value."""
    return msgspec.json.encode(value).decode()


def without_nones(**values: Any) -> dict[str, Any]:
    """The given values that are known."""
    return {name: value for name, value in values.items() if value is not None}

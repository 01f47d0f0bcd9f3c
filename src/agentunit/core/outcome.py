"""What came out of an agent's run."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct, field


class Outcome(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The result of one run: the agent's answer and what it says about itself.

    ``success`` is the agent's own flag, ``state`` the world it left behind (compared with a case's
    ``expected_state``), ``cost`` is in US dollars, ``elapsed_s`` in seconds. ``None`` means unknown.
    """

    success: bool | None = None
    output: Any = None
    cost: float | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None
    state: dict[str, Any] | None = None
    elapsed_s: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")


def outcome_text(outcome: object) -> str | None:
    """The text of an outcome: the string itself, or its ``output``; ``None`` when it has none.

    An output that is data (a dict, a list, a number) becomes its JSON. An object without ``output`` has no text:
    a Python repr is never mistaken for an answer.

    >>> outcome_text("Paris"), outcome_text(Outcome(output={"city": "Paris"})), outcome_text(object())
    ('Paris', '{"city":"Paris"}', None)
    """
    output = outcome if isinstance(outcome, (str, bool, int, float, list)) else getattr(outcome, "output", None)
    if output is None or isinstance(output, str):
        return output
    if isinstance(output, float) and not isfinite(output):
        return None
    try:
        # An object has no order, so two that are equal must read the same.
        plain = msgspec.to_builtins(output, str_keys=True, order="sorted")
        return msgspec.json.encode(plain, order="sorted").decode()
    except (TypeError, ValueError, RecursionError):
        return _unordered_json(output)


def _unordered_json(output: Any) -> str | None:
    """The JSON of what holds names or members that cannot be put in order."""
    try:
        return msgspec.json.encode(output).decode()
    except (TypeError, ValueError, RecursionError):
        return None

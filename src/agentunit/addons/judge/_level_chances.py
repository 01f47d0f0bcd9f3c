"""How sure a judge was of a score, from the log-probabilities of its tokens: the chance of each level.

A judge that says 4 may have been torn between 3 and 5. Where the server tells how likely each next token was, the
expected score says more than the one that was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp
from typing import Any

TOP = 10
"""How many of the likeliest tokens are asked for at each place."""
LEAST_COVERED = 0.5
"""With less of the chance on levels than this, the tokens say nothing about them."""
_SURE = 0.9999
_SCORE = re.compile(r'"(?:score|rating|label)"\s*:\s*"?')

Position = tuple[str, list[tuple[str, float]]]
"""A token of a reply, and the likeliest tokens in its place with their chances; none where it was as good as sure."""


def positions_of(choice: Any) -> tuple[Position, ...] | None:
    """The tokens of a choice of an OpenAI-style response with their chances; ``None`` where it tells none.

    >>> top = [{"token": "4", "logprob": -0.7}, {"token": "5", "logprob": -0.7}]
    >>> positions_of({"logprobs": {"content": [{"token": "4", "logprob": -0.7, "top_logprobs": top}]}})[0][0]
    '4'
    """
    told = choice.get("logprobs") if isinstance(choice, dict) else None
    content = told.get("content") if isinstance(told, dict) else None
    if not isinstance(content, list) or not content:
        return None
    found: list[Position] = []
    for each in content:
        if not isinstance(each, dict) or not isinstance(each.get("token"), str):
            return None
        top = each.get("top_logprobs")
        rows = [
            (row["token"], exp(min(0.0, row["logprob"])))
            for row in (top if isinstance(top, list) else ())
            if isinstance(row, dict)
            and isinstance(row.get("token"), str)
            and isinstance(row.get("logprob"), int | float)
        ]
        # Most tokens of JSON are as good as sure: their alternatives need no room in the cache.
        is_sure = any(token == each["token"] and chance >= _SURE for token, chance in rows)
        found.append((each["token"], [] if is_sure else rows))
    return tuple(found)


def level_chances(
    text: str, positions: Sequence[Position], levels: Sequence[Sequence[str]], written: Sequence[str]
) -> list[dict[str, float] | None]:
    """For each score of a reply, in the order in which they stand in it, the chance of each of its levels.

    ``levels`` are those of each score as they are written, ``written`` those that the reply holds. ``None`` where the
    tokens do not tell: levels that begin alike, or other tokens than levels that were as likely.

    >>> level_chances('{"score": 4}', [('{"score": ', []), ("4", [("4", 0.6), ("5", 0.3)]), ("}", [])], ["345"], ["4"])
    [{'4': 0.666..., '5': 0.333...}]
    """
    starts = [found.end() for found in _SCORE.finditer(text)][-len(levels) :]
    if len(starts) < len(levels) or "".join(token for token, _ in positions) != text:
        return [None] * len(levels)
    return [
        _chances(positions, start, each, said) if text.startswith(said, start) else None
        for start, each, said in zip(starts, levels, written, strict=True)
    ]


def _chances(positions: Sequence[Position], start: int, levels: Sequence[str], said: str) -> dict[str, float] | None:
    if any(one != other and other.startswith(one) for one in levels for other in levels):
        return None
    at = 0
    for token, top in positions:
        if at <= start < at + len(token):
            before = token[: start - at]
            return _by_level(top, before, levels) if top else {said: 1.0}
        at += len(token)
    return None


def _by_level(top: Sequence[tuple[str, float]], before: str, levels: Sequence[str]) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for token, chance in top:
        # Another token may hold another part of what stands before the score: a space, a quote.
        piece = token[len(before) :] if before and token.startswith(before) else token.lstrip(' "')
        meant = [level for level in levels if piece and (level.startswith(piece) or piece.startswith(level))]
        if len(meant) == 1:
            found[meant[0]] = found.get(meant[0], 0.0) + chance
    covered = sum(found.values())
    if covered < LEAST_COVERED:
        return None
    return {level: found[level] / covered for level in levels if level in found}

"""Where two texts differ, word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

Part = tuple[str, bool]
"""A piece of text, and whether the other text has it too."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# The comparison takes time that grows with the square of the length: past this nobody would read the marks anyway.
_MOST_WORDS = 3_000
# Two texts that share less than this are different as a whole: marks on every word would say nothing.
_LEAST_SHARED = 0.2
_CANDIDATES = 8


def marked_differences(answer: str, expected: str) -> tuple[list[Part], list[Part]]:
    """Both texts cut into parts that are shared and parts that are not; nothing when they share too little to tell.

    >>> marked_differences("due on 11 October", "due on 20 October")[0]
    [('due on ', True), ('11', False), (' October', True)]
    >>> marked_differences("yes", "the parcel is lost")
    ([], [])
    """
    left, right = _WORDS.findall(answer), _WORDS.findall(expected)
    if not left or not right or len(left) + len(right) > _MOST_WORDS:
        return [], []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if _shared(matcher, left, right) < _LEAST_SHARED:
        return [], []
    mine: list[Part] = []
    theirs: list[Part] = []
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        text = "".join(left[start:end])
        # A space between two words that differ belongs to the difference.
        same = kind == "equal" and not text.isspace()
        _append(mine, text, same)
        _append(theirs, "".join(right[other_start:other_end]), same)
    return mine, theirs


def closest(answer: str, candidates: Sequence[str]) -> str:
    """The candidate most like the answer, the first where they tie.

    >>> closest("about four", ["4", "four"])
    'four'
    """
    if len(candidates) == 1 or len(answer) > _MOST_WORDS:
        return candidates[0]
    return max(
        candidates[:_CANDIDATES],
        key=lambda each: SequenceMatcher(None, answer, each[:_MOST_WORDS], autojunk=False).quick_ratio(),
    )


def _shared(matcher: SequenceMatcher[str], left: list[str], right: list[str]) -> float:
    # Spaces are in every text and say nothing about likeness.
    words = sum(not each.isspace() for each in left) + sum(not each.isspace() for each in right)
    same = sum(
        not each.isspace() for block in matcher.get_matching_blocks() for each in left[block.a : block.a + block.size]
    )
    return 2 * same / words if words else 0.0


def _append(parts: list[Part], text: str, same: bool) -> None:
    if not text:
        return
    if parts and parts[-1][1] == same:
        text = parts.pop()[0] + text
    parts.append((text, same))

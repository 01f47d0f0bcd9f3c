"""In what two calls of a tool differ: what only one of them has, never what both have."""

from __future__ import annotations

import re
from collections import Counter

from agentunit.engine.suspects.effects import Effect, Kept, compared, spelled
from agentunit.formulas.text import shortened

LONGEST_DIFFERENCE = 80
"""So many characters of what only one of two values has are shown."""

_PART_STARTS = re.compile(r"[{\[]|, |: ")


def differing_values(own: Effect, other: Effect, name: str) -> tuple[str | None, str | None]:
    """What only one and what only the other of two calls has in an argument, in short.

    ``None`` where a call does not have the argument, and nothing where it has no more than the other call.

    >>> from agentunit.engine.suspects.effects import effect_of
    >>> first, second = (effect_of("book", {"legs": [{"on": "May 2", "to": to} for to in stops]}) for stops in ("ab", "ca"))
    >>> differing_values(first, second, "legs")
    ('… to: b', '… to: c')
    >>> differing_values(effect_of("tag", {"names": ["x", "y"]}), effect_of("tag", {"names": ["x"]}), "names")
    ('… y', '')
    """  # noqa: E501 - one line of an example
    mine, theirs = (
        next((value for (each, _), value in zip(call.arguments, call.kept, strict=True) if each == name), None)
        for call in (own, other)
    )
    if mine is None or theirs is None:
        left, right = (None if each is None else _joined([spelled(each)]) for each in (mine, theirs))
        return left, right
    if isinstance(mine, str) or type(mine) is not type(theirs):
        return _from_where_they_part(spelled(mine), spelled(theirs))
    only_mine, only_theirs = _only_in_one(mine, theirs)
    return _joined(only_mine, "… "), _joined(only_theirs, "… ")


def _only_in_one(mine: Kept, theirs: Kept) -> tuple[list[str], list[str]]:
    """What only one of two values has and what only the other has, each as texts."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return _fields_only_in_one(mine, theirs)
    if isinstance(mine, list) and isinstance(theirs, list):
        return _items_only_in_one(mine, theirs)
    return [spelled(mine)], [spelled(theirs)]


def _fields_only_in_one(mine: dict[str, Kept], theirs: dict[str, Kept]) -> tuple[list[str], list[str]]:
    found: tuple[list[str], list[str]] = ([], [])
    for name in sorted(mine.keys() | theirs.keys()):
        if name not in mine or name not in theirs:
            found[name not in mine].append(f"{name}: {spelled((mine if name in mine else theirs)[name])}")
        elif compared(mine[name]) != compared(theirs[name]):
            for side, only in zip(found, _only_in_one(mine[name], theirs[name]), strict=True):
                side += [f"{name}: {each}" for each in only]
    return found


def _items_only_in_one(mine: list[Kept], theirs: list[Kept]) -> tuple[list[str], list[str]]:
    of_mine, of_theirs = Counter(map(compared, mine)), Counter(map(compared, theirs))
    one = [each for each in mine if compared(each) not in of_theirs]
    other = [each for each in theirs if compared(each) not in of_mine]
    # What both have, and one of them more often.
    often = {text: each for each in mine if of_theirs[text := compared(each)] not in (0, of_mine[text])}
    again = [[f"{count[text]} × {spelled(each)}" for text, each in often.items()] for count in (of_mine, of_theirs)]
    pair = _pair_only_in_one(one[0], other[0], mine, theirs) if len(one) == len(other) == 1 else None
    only_mine, only_theirs = pair or (_told_apart(one, theirs), _told_apart(other, mine))
    return [*only_mine, *again[0]], [*only_theirs, *again[1]]


def _pair_only_in_one(
    one: Kept, other: Kept, mine: list[Kept], theirs: list[Kept]
) -> tuple[list[str], list[str]] | None:
    """In what an item differs from the one in its place, unless a further item has the same."""
    only = _only_in_one(one, other)
    further = " ".join(compared(each) for each in [*mine, *theirs] if each is not one and each is not other)
    values = [compared(text.rpartition(": ")[2]) for side in only for text in side]
    return only if all(only) and not any(value in further for value in values) else None


def _told_apart(items: list[Kept], others: list[Kept]) -> list[str]:
    """Items that another list does not have: by their fields that no item of it has, else whole."""
    fields = {(name, compared(value)) for each in others if isinstance(each, dict) for name, value in each.items()}
    found = []
    for item in items:
        named = item.items() if fields and isinstance(item, dict) else ()
        own = [f"{name}: {spelled(value)}" for name, value in sorted(named) if (name, compared(value)) not in fields]
        found.append("{" + ", ".join(own) + "}" if len(own) > 1 else "".join(own) or spelled(item))
    return list(dict.fromkeys(found))


def _joined(texts: list[str], before: str = "") -> str:
    """As many of them as there is room for."""
    if not texts:
        return ""
    shown = [shortened(texts[0], LONGEST_DIFFERENCE)]
    for text in texts[1:]:
        if len(", ".join([*shown, text])) > LONGEST_DIFFERENCE:
            break
        shown.append(text)
    more = len(texts) - len(shown)
    return before + ", ".join([*shown, f"{more} more"] if more else shown)


def _from_where_they_part(mine: str, theirs: str) -> tuple[str, str]:
    start = 0
    if max(len(mine), len(theirs)) > LONGEST_DIFFERENCE:
        pairs = zip(mine.casefold(), theirs.casefold(), strict=False)
        parted = next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(mine), len(theirs)))
        # From the beginning of a part on: half a value may be half an address.
        start = max((found.end() for found in _PART_STARTS.finditer(mine[:parted])), default=0)
    left, right = (shortened(f"…{each[start:]}" if start else each, LONGEST_DIFFERENCE) for each in (mine, theirs))
    return left, right

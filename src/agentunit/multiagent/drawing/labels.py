"""Foreign names as a drawing may show them: one line, no control characters, cut to a width."""

from __future__ import annotations

import unicodedata

UNIT_PX = 7.0
"""The width of a usual letter at the size of labels, on the wide side: fonts differ."""

# Controls, marks that turn the direction of text, half surrogates, and what no standard has given a meaning.
_NOT_SHOWN = frozenset(("Cc", "Cf", "Cs", "Cn", "Co"))
# Persian and emoji are spelt with these two.
_JOINERS = "\u200c\u200d"


def label(text: str, most: int) -> str:
    """A text in one line of at most so many letter widths; what cannot be shown becomes a dot.

    >>> label("a\\x00 long\\n name", 8)
    'a· long…'
    """
    # Only so much of an endless name is ever looked at.
    shown = "".join(_shown(each) for each in " ".join(text[: 4 * most + 100].split()))
    if n_units(shown) <= most:
        return shown or "(no name)"
    kept, left = [], most - 1
    for each in shown:
        left -= _units(each)
        if left < 0:
            break
        kept.append(each)
    return "".join(kept) + "…"


def n_units(text: str) -> int:
    """How wide a text is, in usual letters."""
    return sum(map(_units, text))


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "link"), counted(1200, "link")
    ('1 link', '1,200 links')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _units(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(character: str) -> str:
    return character if character in _JOINERS or unicodedata.category(character) not in _NOT_SHOWN else "·"

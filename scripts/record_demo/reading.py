"""What every agent does with text: find order numbers and e-mail addresses, spot words, give a reply."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    """An agent's answer, and whether it believes that the matter is settled."""

    text: str
    settled: bool = True


def order_numbers(text: str) -> list[str]:
    """Order numbers in their normal form, in order of appearance.

    >>> order_numbers("a1007 and A-1008")
    ['A-1007', 'A-1008']
    """
    return [f"A-{digits}" for digits in dict.fromkeys(re.findall(r"\b[Aa]-?(\d{4})\b", text))]


def email_address(text: str) -> str | None:
    """The first e-mail address in a text."""
    found = re.search(r"[\w.]+@[\w.]+\w", text)
    return found.group() if found else None


def mentions(text: str, *words: str) -> bool:
    """Whether any of the words stands somewhere in the text, whatever its case."""
    return any(word in text.lower() for word in words)

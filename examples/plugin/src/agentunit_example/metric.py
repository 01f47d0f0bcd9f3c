"""A metric: a plain function whose parameters are filled by name."""

from __future__ import annotations


def politeness(answer: str) -> bool:
    """Whether the answer says please or thank you."""
    return any(word in answer.lower() for word in ("please", "thank"))

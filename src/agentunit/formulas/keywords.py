"""Which words of a list a text uses, and what that says about a text on several kinds of input."""

from __future__ import annotations

from collections.abc import Iterable

from agentunit.formulas.text import words

COVERAGE_WEIGHT = 0.6
TRANSITION_WEIGHT = 0.4


def keywords_found(keywords: Iterable[str], text: str) -> list[str]:
    """The keywords, single words or phrases, that stand in a text as whole words, whatever their case.

    >>> keywords_found(["image", "in contrast", "art"], "In  Contrast, the IMAGE shows a party.")
    ['image', 'in contrast']
    """
    spaced = f" {' '.join(words(text))} "
    return [keyword for keyword in keywords if f" {' '.join(words(keyword))} " in spaced]


def modality_coherence(n_referenced: int, n_present: int, has_transition: bool) -> float | None:
    """How far a text draws on all kinds of input that it was given, and joins them.

    0.6 · referenced / present + 0.4 · (1 if a transition word is there, else 0): from 0 to 1. Nothing given: None.

    >>> modality_coherence(1, 2, True)   # 0.6 · 1/2 + 0.4
    0.7
    """
    if not n_present:
        return None
    return COVERAGE_WEIGHT * n_referenced / n_present + TRANSITION_WEIGHT * has_transition

"""How well scores agree with people, beside plain rules, with intervals that resample questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from training.answer_correctness.labelled import Row

_PUNCTUATION = re.compile(r"[^\w\s]")
_RESAMPLES = 2000
RULES = ("always yes", "exact match", "containment", "token F1 ≥ 0.5")


def plain_words(text: str) -> list[str]:
    """Words as the usual exact-match rule sees them: lower case, no punctuation, no articles."""
    return [word for word in _PUNCTUATION.sub(" ", text.lower()).split() if word not in ("a", "an", "the")]


def rule_verdicts(row: Row) -> tuple[bool, bool, bool, bool]:
    """What each of ``RULES`` says of a row."""
    answer = plain_words(row.answer)
    references = [plain_words(text) for text in row.expected]
    line = f" {' '.join(answer)} "
    contained = any(words and f" {' '.join(words)} " in line for words in references)
    overlap = max((_f1(answer, words) for words in references), default=0.0)
    return True, answer in references, contained, overlap >= 0.5


def _f1(answer: list[str], reference: list[str]) -> float:
    shared = sum((Counter(answer) & Counter(reference)).values())
    return 2 * shared / (len(answer) + len(reference)) if shared else 0.0


def agreement_with_interval(
    agrees: np.ndarray, question_ids: Sequence[str], seed: int = 0
) -> tuple[float, float, float]:
    """The share of rows that agree, and its 95 % bootstrap interval over questions."""
    names, places = np.unique(np.asarray(question_ids), return_inverse=True)
    hits = np.bincount(places, weights=agrees.astype(float), minlength=len(names))
    counts = np.bincount(places, minlength=len(names))
    drawn = np.random.default_rng(seed).integers(0, len(names), size=(_RESAMPLES, len(names)))
    shares = hits[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(agrees.mean()), float(low), float(high)


def calibration(probabilities: np.ndarray, labels: np.ndarray, bins: int = 10) -> list[tuple[float, float, int]]:
    """For each tenth of the scale: mean score, share of correct answers, number of rows."""
    places = np.minimum((probabilities * bins).astype(int), bins - 1)
    return [
        (
            float(probabilities[places == place].mean()),
            float(labels[places == place].mean()),
            int((places == place).sum()),
        )
        for place in range(bins)
        if (places == place).any()
    ]


def best_threshold(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The threshold (in steps of 0.02) of best agreement, and that agreement."""
    steps = np.arange(0.3, 0.71, 0.02)
    shares = [float(((probabilities >= step) == labels).mean()) for step in steps]
    place = int(np.argmax(shares))
    return round(float(steps[place]), 2), shares[place]

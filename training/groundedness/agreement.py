"""How well scores agree with labels."""

from __future__ import annotations

import numpy as np


def auroc(labels: np.ndarray, values: np.ndarray) -> float:
    """The chance that a supported row scores higher than one that is not."""
    placed = ranks(values)
    positive = labels == 1
    n, m = positive.sum(), (~positive).sum()
    return float((placed[positive].sum() - n * (n + 1) / 2) / (n * m))


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, ties sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's rank correlation."""
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])

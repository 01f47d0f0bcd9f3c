"""How alike two vectors are, and what that scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, isfinite
from operator import mul

MEAN_WEIGHT, BEST_WEIGHT = 0.6, 0.4
_CLIPSCORE_SCALE = 2.5


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of the angle between two vectors: ``a · b / (|a| |b|)``.

    From −1 (opposite) to 1 (same direction), whatever their lengths; rounding never leads outside. Vectors must have
    the same number of finite components, and not only zeros: a zero vector has no direction.

    >>> cosine([1.0, 0.0], [1.0, 1.0]), cosine([2.0, 0.0], [-1.0, 0.0])
    (0.7071067811865475, -1.0)
    """
    if len(left) != len(right):
        raise ValueError(f"cosine: vectors must be equally long; received {len(left)} and {len(right)} components")
    lengths = hypot(*left), hypot(*right)
    for length in lengths:
        if not (isfinite(length) and length > 0):
            raise ValueError(f"cosine: vectors must be finite and not only zeros; received one of length {length!r}")
    # Divided one after the other: the product of two tiny lengths would be zero.
    unit = (each / lengths[0] for each in left)
    return max(-1.0, min(1.0, float(sum(map(mul, unit, (each / lengths[1] for each in right))))))


def similarity_score(similarity: float, threshold: float) -> float:
    """1.0 from the threshold on, below it ``max(0, similarity) / threshold``.

    Never falls when the similarity grows; a similarity of 0 and less scores 0.0.

    >>> [similarity_score(each, 0.25) for each in (-0.1, 0.125, 0.25, 0.9)]
    [0.0, 0.5, 1.0, 1.0]
    """
    _check_similarity("similarity_score", similarity)
    if not 0 < threshold <= 1:
        raise ValueError(f"similarity_score: threshold must be above 0 and at most 1; received {threshold!r}")
    return 1.0 if similarity >= threshold else max(0.0, similarity) / threshold


def frames_score(similarities: Sequence[float]) -> float:
    """How well a text fits a series of frames: ``0.6 · mean + 0.4 · max`` of the similarities, and at least 0.

    From 0 to 1; one frame scores its own similarity, or 0 when that is negative. No frames have no score.

    >>> round(frames_score([0.1, 0.2, 0.3]), 6)
    0.24
    """
    if not similarities:
        raise ValueError("frames_score: similarities must hold at least one number; received none")
    for each in similarities:
        _check_similarity("frames_score", each)
    mean = sum(similarities) / len(similarities)
    return max(0.0, min(1.0, MEAN_WEIGHT * mean + BEST_WEIGHT * max(similarities)))


def clipscore(similarity: float) -> float:
    """CLIPScore of a caption without references: ``2.5 · max(similarity, 0)``, from 0 to 2.5.

    The published figures put "A photo depicts " before the caption. Source: Hessel et al., CLIPScore, EMNLP 2021.

    >>> clipscore(0.3), clipscore(-0.2)
    (0.75, 0.0)
    """
    _check_similarity("clipscore", similarity)
    return _CLIPSCORE_SCALE * max(similarity, 0.0)


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """``Σ wᵢ · vᵢ / Σ wᵢ``; weights must be 0 or more, and not all 0.

    >>> weighted_mean([0.2, 0.5], [2, 1])
    0.3
    """
    total = sum(weights)
    if len(values) != len(weights) or not total > 0 or min(weights) < 0:
        raise ValueError(f"weighted_mean: needs a weight of 0 or more for each value; received {weights!r:.80}")
    return float(sum(map(mul, values, weights))) / total


def _check_similarity(who: str, similarity: float) -> None:
    if not -1 <= similarity <= 1:
        raise ValueError(f"{who}: a similarity must be from -1 to 1; received {similarity!r}")

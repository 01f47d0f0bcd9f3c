"""A monotone mapping fitted to pairs: pooled neighbors, drawn toward the middle where they are few."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from math import fsum, isfinite
from typing import NamedTuple


class Knot(NamedTuple):
    """A point of a mapping: this score becomes this value."""

    score: float
    value: float


class _Block(NamedTuple):
    low: float
    high: float
    total: float
    weight: float

    @property
    def mean(self) -> float:
        return self.total / self.weight

    def joined(self, other: _Block) -> _Block:
        return _Block(self.low, other.high, self.total + other.total, self.weight + other.weight)


def fit_isotonic(scores: Sequence[float], targets: Sequence[float]) -> list[Knot]:
    """The mapping of scores that never falls and is nearest to the targets (0 to 1) by squares.

    Neighbors whose targets fall are pooled (pool adjacent violators). The value of a block is (sum + 1/2) / (n + 1): a
    block of one pass is 0.75 and not 1. Its knots are its lowest and its highest score. No pairs: no knots.
    Source: Barlow et al., Statistical Inference under Order Restrictions (1972).

    >>> fit_isotonic([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])  # the middle two are out of order
    [Knot(score=0.2, value=0.25), Knot(score=0.4, value=0.5), Knot(score=0.6, value=0.5), Knot(score=0.8, value=0.75)]
    """
    if len(scores) != len(targets):
        raise ValueError(
            f"fit_isotonic: there must be as many scores as targets; received {len(scores)}, {len(targets)}"
        )
    for place, target in enumerate(targets):
        if not 0.0 <= target <= 1.0 or not isfinite(scores[place]):
            raise ValueError(f"fit_isotonic: targets must be from 0 to 1 and scores finite; received pair {place}")
    pairs = sorted(zip(scores, targets, strict=True))
    blocks = []
    for score, group in groupby(pairs, key=lambda pair: pair[0]):
        values = [target for _, target in group]
        blocks.append(_Block(score, score, fsum(values), float(len(values))))
    pooled = _pooled(blocks)
    # Drawing blocks of different sizes toward the middle may put two of them out of order again.
    drawn = _pooled([_Block(b.low, b.high, (b.total + 0.5) / (b.weight + 1.0) * b.weight, b.weight) for b in pooled])
    return [knot for block in drawn for knot in _knots(block)]


def _pooled(blocks: Sequence[_Block]) -> list[_Block]:
    pooled: list[_Block] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and pooled[-2].mean > pooled[-1].mean:
            last = pooled.pop()
            pooled[-1] = pooled[-1].joined(last)
    return pooled


def _knots(block: _Block) -> list[Knot]:
    ends = (block.low, block.high) if block.high > block.low else (block.low,)
    return [Knot(score, block.mean) for score in ends]


def mapped(score: float, knots: Sequence[Knot]) -> float:
    """A score by a mapping: on the line between its neighbors, and at the ends that of the first or last knot.

    >>> mapped(0.5, [Knot(0.0, 0.1), Knot(1.0, 0.3)]), mapped(2.0, [Knot(0.0, 0.1)])
    (0.2, 0.1)
    """
    if not knots:
        return score
    if score <= knots[0].score:
        return knots[0].value
    for before, after in pairwise(knots):
        if score <= after.score:
            share = (score - before.score) / (after.score - before.score) if after.score > before.score else 1.0
            return before.value + share * (after.value - before.value)
    return knots[-1].value

"""Who and what to look at first in a failed run: signs of trouble at each step, added up into two rankings.

The signs are plain and weigh the same. Which signs, and that an agent counts by its worst step, was chosen with
labelled runs in view: ``docs/validity.md`` says what the ranking is worth, and what is left of it when the choice is
made fairly.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

SIGNS = {
    "failed": "its call failed, or the code it wrote did",
    "unrun": "it holds code that nobody ran",
    "assumed": "it speaks of assumptions, placeholders or made-up examples",
    "contradicted": "the next speaker calls it wrong",
    "ignored_failure": "it follows a failure and does not deal with it",
    "repeated": "it nearly repeats an earlier step",
    "length": "how much it says: 1 from 200 words on",
    "early": "how early it comes: errors spread to what follows",
}
"""The signs of trouble, each from 0 to 1."""

LONG_WORDS = 200


class RankedStep(NamedTuple):
    """A step, how suspect it is, and the signs that speak against it."""

    step: int
    agent: Hashable
    suspicion: float
    signs: dict[str, float]


class RankedAgent(NamedTuple):
    """An agent, its share of the suspicion (all shares add up to 1), and its most suspect step."""

    agent: Hashable
    share: float
    step: int


def length_sign(n_words: int) -> float:
    """How much a step says, from 0 to 1: words / 200, at most 1.

    >>> length_sign(50), length_sign(1000)
    (0.25, 1.0)
    """
    return min(1.0, n_words / LONG_WORDS)


def early_sign(place: int, n_steps: int) -> float:
    """How early a step comes, from 1 for the first to 1/n for the last.

    >>> early_sign(0, 4), early_sign(3, 4)
    (1.0, 0.25)
    """
    if not 0 <= place < n_steps:
        raise ValueError(f"early_sign: place must be between 0 and n_steps − 1 = {n_steps - 1}; received {place!r}")
    return 1.0 - place / n_steps


def rank_steps(steps: Sequence[tuple[int, Hashable, Mapping[str, float]]]) -> list[RankedStep]:
    """Steps, each a number, an agent and its signs, by the sum of their signs; the earlier one of equals first.

    The suspicion is the sum over all signs divided by their number, from 0 to 1.

    >>> [each.step for each in rank_steps([(0, "a", {"early": 1.0}), (1, "b", {"early": 0.5, "failed": 1.0})])]
    [1, 0]
    """
    ranked = []
    for number, agent, signs in steps:
        for name, sign in signs.items():
            if name not in SIGNS or not 0 <= sign <= 1:
                raise ValueError(
                    f"rank_steps: signs must be among {', '.join(SIGNS)} and from 0 to 1; received {name!r}: {sign!r}"
                )
        shown = {name: sign for name, sign in signs.items() if sign}
        ranked.append(RankedStep(number, agent, fsum(shown.values()) / len(SIGNS), shown))
    return sorted(ranked, key=lambda each: (-each.suspicion, each.step))


def rank_agents(ranked: Sequence[RankedStep]) -> list[RankedAgent]:
    """Agents by their most suspect step, each with its share: that step's suspicion over the sum of all agents'.

    By the worst step, not the sum over steps, so that talking much is no fault by itself. Shares are equal when nothing
    is suspect.

    >>> signs = [{"early": 1.0}, {"failed": 1.0}, {"assumed": 1.0, "early": 1.0}]
    >>> steps = rank_steps(list(zip(range(3), "abb", signs)))
    >>> [(each.agent, round(each.share, 3), each.step) for each in rank_agents(steps)]
    [('b', 0.667, 2), ('a', 0.333, 0)]
    """
    worst: dict[Hashable, RankedStep] = {}
    for each in sorted(ranked, key=lambda step: (-step.suspicion, step.step)):
        worst.setdefault(each.agent, each)
    total = fsum(each.suspicion for each in worst.values())
    return [
        RankedAgent(agent, each.suspicion / total if total else 1 / len(worst), each.step)
        for agent, each in worst.items()
    ]

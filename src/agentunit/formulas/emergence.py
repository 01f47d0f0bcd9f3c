"""What emerges among agents over time: order, division of labour, joint decisions, quicker answers.

Early is held against late by time, never by the order of a list. Messages that failed organise nothing and are for the
caller to leave out, except where a formula says otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, log
from types import MappingProxyType

from agentunit.formulas.coordination import mean_of_known

SWARM_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"self_organization": 0.30, "specialization": 0.25, "collective_decision": 0.25, "adaptation_rate": 0.20}
)
COLLECTIVE_TYPES = frozenset(("negotiation", "collaboration"))
FEWEST_IN_A_HALF = 2


def early_and_late(moments: Sequence[float | None]) -> tuple[list[int], list[int]] | None:
    """The positions of the earlier and of the later half; those without a moment are left out.

    What happened at one moment stays together: the cut is the one nearest to the middle that parts two moments, the
    earlier of two that are equally near. ``None`` when no cut leaves two on each side.

    >>> early_and_late([40.0, 10.0, 30.0, 20.0])
    ([1, 3], [2, 0])
    >>> early_and_late([5.0, 5.0, 5.0, 5.0]) is None
    True
    """
    when = {place: moment for place, moment in enumerate(moments) if moment is not None}
    ordered = sorted(when, key=when.__getitem__)
    n, middle = len(ordered), len(ordered) // 2
    # From the middle outwards; an odd one out belongs to the later half first.
    for away in range(middle + 1):
        nearest = (middle - away, n - middle + away) if n % 2 else (middle - away, middle + away)
        for cut in nearest:
            if FEWEST_IN_A_HALF <= cut <= n - FEWEST_IN_A_HALF and when[ordered[cut - 1]] < when[ordered[cut]]:
                return ordered[:cut], ordered[cut:]
    return None


def entropy(counts: Iterable[int]) -> float:
    """Shannon's entropy of a distribution given by counts, in nats: −Σ p·ln p. 0 for one kind or none.

    >>> round(entropy([1, 1]), 4), entropy([7]), entropy([])
    (0.6931, 0.0, 0.0)
    """
    present = [count for count in counts if count]
    total = sum(present)
    return max(0.0, -fsum(count / total * log(count / total) for count in present)) if len(present) > 1 else 0.0


def self_organisation(early: Iterable[int], late: Iterable[int]) -> float | None:
    """How much more orderly it became who talks to whom: (H_early − H_late) / H_early, between 0 and 1.

    H is the entropy of the pairs of sender and receiver, given as how often each pair occurs. 0 also when disorder
    grew; ``None`` when there was none to lose.

    >>> self_organisation([1, 1, 1, 1], [2, 2])  # from ln 4 to ln 2
    0.5
    """
    before, after = entropy(early), entropy(late)
    return min(1.0, max(0.0, (before - after) / before)) if before else None


def specialisation(types_of: Mapping[str, Mapping[str, int]]) -> float | None:
    """How far each agent keeps to few of the message types in use, as a mean over agents.

    With k types in use by all, an agent whose shares are p has (Σp² − 1/k) / (1 − 1/k): the Herfindahl-Hirschman
    index brought to 0 (all types alike) … 1 (one type only). One type shared by all is not specialisation: 0. An
    agent with a single message shows no habit and is left out; ``None`` when that leaves nobody.

    >>> specialisation({"planner": {"plan": 4}, "coder": {"code": 3, "plan": 1}})  # 1 and (0.625 − 0.5) / 0.5
    0.625
    >>> specialisation({"planner": {"generic": 4}, "coder": {"generic": 4}})
    0.0
    """
    n_types = len({kind for counts in types_of.values() for kind, count in counts.items() if count})
    totals = {agent: sum(counts.values()) for agent, counts in types_of.items()}
    judged = [agent for agent, total in totals.items() if total > 1]
    if not judged:
        return None
    if n_types == 1:
        return 0.0
    evenest = 1 / n_types
    concentrations = [fsum((count / totals[agent]) ** 2 for count in types_of[agent].values()) for agent in judged]
    mean = fsum((each - evenest) / (1 - evenest) for each in concentrations) / len(judged)
    return min(1.0, max(0.0, mean))


def collective_share(interaction_types: Sequence[str], successes: Sequence[bool | None]) -> float | None:
    """The share of interactions that are negotiation or collaboration and succeeded.

    A joint one whose success is unknown counts neither for nor against. From 0 to 1; ``None`` without interactions.

    >>> collective_share(["negotiation", "request", "collaboration", "negotiation"], [True, True, False, None])
    0.3333333333333333
    """
    counts = Counter(zip(interaction_types, successes, strict=True))
    succeeded = sum(counts[kind, True] for kind in COLLECTIVE_TYPES)
    told = counts.total() - sum(counts[kind, None] for kind in COLLECTIVE_TYPES)
    return succeeded / told if told else None


def adaptation(early_s: Iterable[float | None], late_s: Iterable[float | None]) -> float | None:
    """How much quicker answers became: (early − late) / early of the mean response times, between 0 and 1.

    0 also when they became slower; ``None`` when a half has no times, or the early answers took no time at all.

    >>> adaptation([4.0, 6.0], [2.0, 2.0])
    0.6
    """
    before, after = mean_of_known(early_s), mean_of_known(late_s)
    if not before or after is None:
        return None
    return min(1.0, max(0.0, (before - after) / before))

"""How well agents work together: rates, balance, a score of whatever is known, and what emerges among them over time.

What failed earns nothing anywhere: it is no work done, no quick answer, no act in keeping with a role. So a system in
which everything failed scores 0, and one more failure never raises a score. Early is compared with late by time, never
by the order of a list; there, messages that failed are for the caller to leave out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log
from types import MappingProxyType

COORDINATION_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "handoff_success_rate": 0.25,
        "conflict_resolution_rate": 0.20,
        "communication_efficiency": 0.25,
        "role_adherence": 0.15,
        "load_balance_score": 0.15,
    }
)
RESPONSE_TARGET_S = 5.0
UNSTATED_MESSAGE_TYPE = "generic"
_DELEGATING = frozenset(("delegation", "handoff"))
_ESCALATING = "escalation"


def known_rate(verdicts: Iterable[bool | None]) -> float | None:
    """The share of true among the verdicts that are known; ``None`` when none is.

    >>> known_rate([True, False, None]), known_rate([None])
    (0.5, None)
    """
    counts = Counter(verdicts)
    known = counts[True] + counts[False]
    return counts[True] / known if known else None


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; ``None`` when none is.

    >>> mean_of_known([1.0, None, 3.0])
    2.0
    """
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def communication_efficiency(
    successes: Sequence[bool | None], response_times_s: Sequence[float | None], target_s: float = RESPONSE_TARGET_S
) -> float | None:
    """Half the success rate, half the speed min(1, target / mean response time); one of them alone if only it is known.

    The two sequences go together, message by message. The time of a message that failed is not a response time, so
    quick failures earn nothing. From 0 to 1; ``None`` when neither half is known.

    >>> communication_efficiency([True, False], [10.0, 0.1])  # half of them arrived; 5 s allowed, 10 s taken
    0.5
    >>> communication_efficiency([False, False], [0.1, 0.1])
    0.0
    """
    success_rate = known_rate(successes)
    mean_s = mean_of_known(
        [time_s for time_s, success in zip(response_times_s, successes, strict=True) if success is not False]
    )
    speed = None if mean_s is None else 1.0 if mean_s <= target_s else target_s / mean_s
    return mean_of_known((success_rate, speed))


def load_balance(work: Collection[int]) -> float | None:
    """How evenly work is spread: the entropy of the agents' shares over its maximum, log n. Idle agents count.

    From 0 (one agent does it all) to 1 (all do the same); ``None`` with fewer than two agents or without any work.
    Source: Pielou's evenness, J. Theoretical Biology 13 (1966).

    >>> load_balance([5, 5]), load_balance([100, 0]), load_balance([7])
    (1.0, 0.0, None)
    """
    total = sum(work)
    if len(work) < 2 or not total:
        return None
    if len(set(work)) == 1:
        return 1.0
    entropy = -fsum(share * log(share) for share in (each / total for each in work if each))
    return min(1.0, max(0.0, entropy / log(len(work))))


@dataclass(frozen=True)
class Duties:
    """What a role says of an agent's acts; ``None`` says nothing about it."""

    message_types: frozenset[str] | None = None
    capabilities: frozenset[str] | None = None
    can_delegate: bool | None = None
    can_escalate: bool | None = None

    @property
    def say_something(self) -> bool:
        """Whether any act could break this role."""
        return (self.message_types, self.capabilities, self.can_delegate, self.can_escalate) != (None,) * 4


def act_allowed(
    duties: Duties, interaction_type: str, message_type: str | None = None, capabilities: Iterable[str] = ()
) -> bool | None:
    """Whether a role allows an act: delegating, escalating, this type of message, using these capabilities.

    What the role says nothing about is allowed. ``None`` when the role limits message types and the act states none.

    >>> role = Duties(message_types=frozenset({"plan"}), can_delegate=False)
    >>> act_allowed(role, "request", "plan"), act_allowed(role, "delegation", "plan"), act_allowed(role, "request")
    (True, False, None)
    """
    if duties.can_delegate is False and interaction_type in _DELEGATING:
        return False
    if duties.can_escalate is False and _ESCALATING in (interaction_type, message_type):
        return False
    if duties.capabilities is not None and not duties.capabilities.issuperset(capabilities):
        return False
    if duties.message_types is None or message_type in duties.message_types:
        return True
    return None if message_type in (None, UNSTATED_MESSAGE_TYPE) else False


def role_adherence(acts: Mapping[str, Iterable[tuple[bool | None, bool | None]]]) -> float | None:
    """The share of an agent's acts that its role allows, as a mean over agents.

    For each agent with a role: (allowed, succeeded) of each act. An act that is not allowed counts against the agent
    whether or not it succeeded; one that is allowed counts for it unless it failed. From 0 to 1; ``None`` when no act
    can be judged.

    >>> role_adherence({"planner": [(True, True), (False, True)], "coder": [(True, None)]})  # 1/2 and 1/1
    0.75
    >>> role_adherence({"planner": [(True, False)]}) is None
    True
    """
    shares = [
        known_rate([allowed for allowed, succeeded in agent_acts if not (allowed and succeeded is False)])
        for agent_acts in acts.values()
    ]
    return mean_of_known(shares)


def weighted_score(components: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """The weighted mean of the components that are known; ``None`` when none is.

    >>> weighted_score({"a": 1.0, "b": None, "c": 0.0}, {"a": 0.25, "b": 0.5, "c": 0.25})
    0.5
    """
    known = [(weights[name], value) for name in weights if (value := components[name]) is not None]
    if not known:
        return None
    return fsum(weight * value for weight, value in known) / fsum(weight for weight, _ in known)


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


def self_organization(early: Iterable[int], late: Iterable[int]) -> float | None:
    """How much more orderly it became who talks to whom: (H_early − H_late) / H_early, between 0 and 1.

    H is the entropy of the pairs of sender and receiver, given as how often each pair occurs. 0 also when disorder
    grew; ``None`` when there was none to lose.

    >>> self_organization([1, 1, 1, 1], [2, 2])  # from ln 4 to ln 2
    0.5
    """
    before, after = entropy(early), entropy(late)
    return min(1.0, max(0.0, (before - after) / before)) if before else None


def specialization(types_of: Mapping[str, Mapping[str, int]]) -> float | None:
    """How far each agent keeps to few of the message types in use, as a mean over agents.

    With k types in use by all, an agent whose shares are p has (Σp² − 1/k) / (1 − 1/k): the Herfindahl-Hirschman
    index brought to 0 (all types alike) … 1 (one type only). One type shared by all is not specialization: 0. An
    agent with a single message shows no habit and is left out; ``None`` when that leaves nobody.

    >>> specialization({"planner": {"plan": 4}, "coder": {"code": 3, "plan": 1}})  # 1 and (0.625 − 0.5) / 0.5
    0.625
    >>> specialization({"planner": {"generic": 4}, "coder": {"generic": 4}})
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
    known = counts.total() - sum(counts[kind, None] for kind in COLLECTIVE_TYPES)
    return succeeded / known if known else None


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

"""Metrics of how the work went between agents, beyond the catalog: repetition, back-and-forth, dominance, silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from agentunit.core.results import MetricResult
from agentunit.formulas.conversation import (
    NEAR,
    SentMessage,
    dominance,
    first_alike,
    longest_alternation,
    loops,
    repetition_share,
    unanswered_requests,
)
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import Item
from agentunit.metrics.parameters import ABOVE_0_TO_1, check_parameters
from agentunit.metrics.sentences import counted, on_one_line, sentence
from agentunit.multiagent.derivation import NEXT_SPEAKER, TeamStep, derived, reading, receivers_of, sender_of, steps_of
from agentunit.public import publish

_share_info = partial(
    MetricInfo, family="multiagent", range=(0.0, 1.0), backend="trace", trust={"trace": "descriptive"}
)
_ANSWERS = frozenset(("response", "notification", "conflict", "handoff"))
_SHOWN = 20


@dataclass(frozen=True)
class StepRepetitionMetric(ItemMetric):
    """The share of steps that nearly repeat an earlier step of the same agent.

    Two steps are nearly the same when at least ``threshold`` of their three-word sequences are shared. Loops, sequences
    of steps that run again without a break, are in the detail. Works for one agent as well.

    >>> say = lambda text: {"type": "message", "payload": {"role": "assistant", "agent": "a", "content": text}}
    >>> trace = {"events": [say("Let me look at it."), say("Nothing there."), say("Let me look at it.")]}
    >>> StepRepetitionMetric().evaluate({"id": "q1"}, trace, None).value
    0.5
    """

    threshold: float = NEAR

    info = _share_info(
        name="step_repetition",
        summary="The share of steps that nearly repeat an earlier one of the same agent.",
        direction="lower",
        inputs=("trace message or trace tool_call",),
        detail_keys=("steps", "repeats", "repeated_steps", "loops", "wasted_in_loops"),
    )

    def __post_init__(self) -> None:
        check_parameters(self, threshold=ABOVE_0_TO_1)

    def score_item(self, item: Item) -> MetricResult:
        """Find the steps that come again."""
        steps = [step for step in steps_of(item.trace) if not step.by_human and not step.is_task]
        alike = _alike_by_agent(steps, self.threshold)
        share = repetition_share(alike)
        if share is None:
            return self.unscored("fewer than two steps (messages or tool calls) to compare")
        circles = loops(_labels(alike))
        repeats = [(steps[place].number, steps[first].number) for place, first in enumerate(alike) if first is not None]
        detail = {
            "steps": len(steps),
            "repeats": len(repeats),
            "repeated_steps": [{"step": step, "repeats": first} for step, first in repeats[:_SHOWN]],
            "loops": [
                {"start": steps[loop.start].number, "period": loop.period, "rounds": loop.rounds}
                for loop in circles[:_SHOWN]
            ],
            "wasted_in_loops": sum(loop.n_wasted for loop in circles),
            "backend": "trace",
            "why": _why_repeated(len(steps), repeats),
        }
        return MetricResult(self.name, share, detail)


@dataclass(frozen=True)
class PingPongMetric(ItemMetric):
    """The share of turns in the longest stretch in which two agents talk with nobody else.

    Needs at least three agents: two have no one else to talk to.

    >>> say = lambda who: {"type": "message", "payload": {"role": "assistant", "agent": who, "content": f"I am {who}."}}
    >>> trace = {"events": [say(who) for who in ("lead", "coder", "tester", "coder", "tester")]}
    >>> PingPongMetric().evaluate({"id": "q1"}, trace, None).value
    0.8
    """

    info = _share_info(
        name="ping_pong",
        summary="The share of turns in the longest back-and-forth of two agents among several.",
        direction="none",
        inputs=("trace message agent",),
        detail_keys=("agents", "turns", "longest", "start_step"),
    )

    def score_item(self, item: Item) -> MetricResult:
        """Find the longest stretch of two."""
        steps = [step for step in _acts(item) if step.kind != "task_result"]
        speakers = [step.agent for step in steps]
        longest = longest_alternation(speakers)
        if longest is None or len(set(speakers)) < 3:
            return self.unscored("fewer than three agents act: two have no one else to talk to")
        n_turns = sum(1 for _ in groupby(speakers))
        detail = {
            "agents": list(longest.agents),
            "turns": n_turns,
            "longest": longest.n_turns,
            "start_step": steps[longest.start].number,
            "backend": "trace",
            "why": sentence(
                f"{' and '.join(on_one_line(str(agent), 30) for agent in longest.agents)} alternate "
                f"for {longest.n_turns} of {n_turns} turns, from step {steps[longest.start].number} on"
            ),
        }
        return MetricResult(self.name, longest.n_turns / n_turns, detail)


@dataclass(frozen=True)
class AgentDominanceMetric(ItemMetric):
    """How far one agent takes all the steps: 0 when all take as many, 1 when one takes them all; idle agents count.

    An orchestrator dominates by design, so neither end is better.

    >>> say = lambda who: {"type": "message", "payload": {"role": "assistant", "agent": who, "content": f"I am {who}."}}
    >>> trace = {"events": [say(who) for who in ("lead", "coder", "lead", "lead")]}
    >>> AgentDominanceMetric().evaluate({"id": "q1"}, trace, None).value  # 3 of 4 steps, an even share is 2 of 4
    0.5
    """

    info = _share_info(
        name="agent_dominance",
        summary="How far one agent takes all the steps: 0 is even, 1 is one agent alone.",
        direction="none",
        inputs=("trace message agent",),
        detail_keys=("dominant", "share", "steps"),
    )

    def score_item(self, item: Item) -> MetricResult:
        """Compare the busiest agent with an even split."""
        steps = Counter(step.agent for step in _acts(item) if step.agent is not None)
        for agent in derived(item.trace).roles:
            steps.setdefault(agent, 0)
        value = dominance(dict(steps))
        if value is None:
            return self.unscored("fewer than two agents, or none of them acts")
        busiest = max(sorted(steps), key=lambda agent: steps[agent])
        detail = {
            "dominant": busiest,
            "share": steps[busiest] / sum(steps.values()),
            "steps": dict(sorted(steps.items())),
            "backend": "trace",
            "why": sentence(
                f"{on_one_line(busiest, 48)} takes {steps[busiest]} of {counted(sum(steps.values()), 'step')}; "
                f"{len(steps)} agents"
            ),
        }
        return MetricResult(self.name, value, detail)


@dataclass(frozen=True)
class UnansweredRequestsMetric(ItemMetric):
    """The share of requests to a named agent that it never answered.

    Only a message whose receiver is stated is a request, and none that reports back to somebody who spoke to all. The
    receiver answers by a message to whoever asked or, where nobody states receivers, by speaking at all before it is
    asked again.

    >>> asked = [{"from_agent": "lead", "to_agent": name} for name in ("searcher", "writer")]
    >>> answer = {"from_agent": "writer", "to_agent": "lead", "interaction_type": "response"}
    >>> UnansweredRequestsMetric().evaluate({"id": "q1"}, {"interactions": [*asked, answer]}, None).value
    0.5
    """

    info = _share_info(
        name="unanswered_requests",
        summary="The share of requests to a named agent that it never answered.",
        direction="lower",
        inputs=("trace.interactions or trace message to_agent",),
        detail_keys=("requests", "unanswered", "open_requests"),
    )

    def score_item(self, item: Item) -> MetricResult:
        """Match requests with answers."""
        found = derived(item.trace)
        messages = [_message(each) for each in found.interactions]
        messages += _last_word(found.steps, messages)
        unanswered, n_requests = unanswered_requests(messages)
        if not n_requests:
            return self.unscored("no request to a named agent, before the last message, to look for an answer to")
        detail = {
            "requests": n_requests,
            "unanswered": len(unanswered),
            "open_requests": [
                {"from_agent": messages[place].sender, "to_agent": list(messages[place].receivers), "position": place}
                for place in unanswered[:_SHOWN]
            ],
            "backend": "trace",
            "why": _why_unanswered([messages[place] for place in unanswered], n_requests),
        }
        return MetricResult(self.name, len(unanswered) / n_requests, detail)


def _why_repeated(n_steps: int, repeats: Sequence[tuple[int, int]]) -> str:
    if not repeats:
        return f"none of {n_steps} steps repeats an earlier one"
    step, first = repeats[0]
    return f"{len(repeats)} of {n_steps} steps repeat an earlier one: step {step} repeats step {first}"


def _why_unanswered(unanswered: Sequence[SentMessage], n_requests: int) -> str:
    if not unanswered:
        return f"all {n_requests} requests were answered" if n_requests > 1 else "the request was answered"
    first = unanswered[0]
    asked = " and ".join(on_one_line(str(name), 30) for name in first.receivers[:2])
    sender = on_one_line(str(first.sender), 30)
    return sentence(f"{asked} did not answer {sender} ({len(unanswered)} of {counted(n_requests, 'request')})")


def _acts(item: Item) -> list[TeamStep]:
    return [step for step in steps_of(item.trace) if step.agent is not None and not step.by_human]


def _last_word(steps: Sequence[TeamStep], messages: Sequence[SentMessage]) -> list[SentMessage]:
    """What the last speaker said, where nobody spoke afterwards whom it could have been meant for."""
    said = [step for step in steps if step.agent is not None and not step.by_human and step.kind == "message"]
    if not said or not messages or said[-1].to_agents or said[-1].agent == messages[-1].sender:
        return []
    return [SentMessage(said[-1].agent, ())]


def _message(interaction: object) -> SentMessage:
    metadata, kind = reading(interaction, "metadata"), reading(interaction, "interaction_type")
    is_inferred = isinstance(metadata, dict) and metadata.get("derived_from") == NEXT_SPEAKER
    receivers = () if is_inferred else tuple(receivers_of(interaction))
    return SentMessage(sender_of(interaction), receivers, str(getattr(kind, "value", kind)) not in _ANSWERS)


def _alike_by_agent(steps: Sequence[TeamStep], threshold: float) -> list[int | None]:
    """For each step the earliest one of the same agent and kind that it nearly repeats."""
    places: dict[tuple[str | None, str], list[int]] = {}
    for place, step in enumerate(steps):
        places.setdefault((step.agent, step.kind), []).append(place)
    alike: list[int | None] = [None] * len(steps)
    for own in places.values():
        for place, first in zip(own, first_alike([steps[each].text for each in own], threshold), strict=True):
            alike[place] = None if first is None else own[first]
    return alike


def _labels(alike: Sequence[int | None]) -> list[int]:
    """A number for each step, the same for steps that repeat each other."""
    labels: list[int] = []
    for place, first in enumerate(alike):
        labels.append(place if first is None else labels[first])
    return labels


publish("agentunit.multiagent", AgentDominanceMetric, PingPongMetric, StepRepetitionMetric, UnansweredRequestsMetric)

"""Blame for a failed run: which agents and steps to look at first, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentunit.formulas.blame import RankedAgent, RankedStep, early_sign, length_sign, rank_agents, rank_steps
from agentunit.formulas.repetition import first_alike
from agentunit.formulas.text import words
from agentunit.multiagent.disagreement import objects
from agentunit.multiagent.steps import Step, steps_of, trace_of

_CODE = "```"
_ASSUMPTION = re.compile(
    r"\b(?:assum\w+|hypothe\w+|placeholder|simulat\w+|mock|dummy|suppose|presum\w+|likely|typical(?:ly)?|estimat\w+"
    r"|approximat\w+|for example|manual\w*)\b",
    re.IGNORECASE,
)
_DEALS_WITH_FAILURE = re.compile(r"\b(?:error|fail\w*|issue|problem|exception|fix\w*|correct\w*|retry|again)\b", re.I)
# "TERMINATE", "Thanks.", "Continue.": too little to be wrong in.
_FEWEST_WORDS = 6


@dataclass(frozen=True)
class Blame:
    """Two rankings, most suspect first; ``reason`` says why they are empty.

    ``len(steps)`` may be below the number of steps in the trace: results of executed code are charged to whoever wrote
    it, and the human is never blamed.
    """

    agents: list[RankedAgent] = field(default_factory=list)
    steps: list[RankedStep] = field(default_factory=list)
    reason: str | None = None


def blame(record: Any) -> Blame:
    """Rank the agents and steps of a run by signs of trouble. Meant for failed runs; it does not tell whether one is.

    Give a record or a trace. A step's number counts messages and tool calls from 0. The signs are those of
    ``agentunit.formulas.blame.SIGNS``, read from words and statuses; they know nothing of the task.

    >>> said = [("planner", "Please find the price of a ticket to the museum in Oslo."),
    ...         ("searcher", "I could not find it, so let us assume a typical price of 20 dollars."),
    ...         ("planner", "Then four tickets cost 80 dollars, which is the final answer.")]
    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": a, "content": t}} for a, t in said]
    >>> found = blame({"events": events})
    >>> found.agents[0].agent, found.steps[0].step, sorted(found.steps[0].signs)
    ('searcher', 1, ['assumed', 'early', 'length'])
    """
    steps = steps_of(trace_of(record))
    if not any(step.agent is not None and not step.by_human for step in steps):
        return Blame(reason="no event names the agent that acted")
    signs = _signs(steps)
    ranked = rank_steps([(step.number, step.agent, signs[step.number]) for step in steps if step.number in signs])
    return Blame(rank_agents(ranked), ranked) if ranked else Blame(reason="no agent took a step that could be blamed")


def _signs(steps: Sequence[Step]) -> dict[int, dict[str, float]]:
    """The signs of each step that can be blamed, by its number."""
    alike = first_alike([step.text for step in steps])
    signs: dict[int, dict[str, float]] = {}
    author: Step | None = None
    for place, step in enumerate(steps):
        earlier = steps[place - 1] if place else None
        if step.is_result:
            if step.failed and author is not None:
                signs[author.number]["failed"] = 1.0
            continue
        if step.agent is None or step.by_human:
            continue
        author = step
        found = signs[step.number] = {}
        if step.failed:
            found["failed"] = 1.0
        if step.is_task or (step.kind != "tool_call" and len(words(step.text)) < _FEWEST_WORDS):
            continue
        following = steps[place + 1] if place + 1 < len(steps) else None
        found["early"] = early_sign(place, len(steps))
        found["length"] = length_sign(len(words(step.text)))
        found["assumed"] = float(_ASSUMPTION.search(step.text) is not None)
        found["repeated"] = float(alike[place] is not None)
        found["unrun"] = float(_CODE in step.text and not (following is not None and following.is_result))
        found["contradicted"] = float(
            following is not None and following.agent != step.agent and not following.is_result
            and objects(following.text)
        )  # fmt: skip
        found["ignored_failure"] = float(
            earlier is not None and earlier.failed is True and step.kind != "tool_call"
            and _CODE not in step.text and _DEALS_WITH_FAILURE.search(step.text) is None
        )  # fmt: skip
    return signs

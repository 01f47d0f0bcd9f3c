"""Ready rubrics for the usual questions, each a ``rubric`` with criteria, levels and a version of its own.

Other words in a prompt are another measure, so they get another version: runs of two versions are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentunit.addons.judge.rubric_metric import Criteria, RubricMetric
from agentunit.metrics.base import Direction, MetricInfo


def _info(name: str, summary: str, direction: Direction = "higher") -> MetricInfo:
    inputs = ("outcome.output",)
    return replace(
        RubricMetric.info, name=name, summary=summary, direction=direction, inputs=inputs, metadata_inputs={}
    )


@dataclass(frozen=True)
class HelpfulnessMetric(RubricMetric):
    """Does the answer help the one who asked: on the question, complete, usable?

    >>> [each.weight for each in HelpfulnessMetric().given_criteria]
    [2.0, 1.0, 1.0]
    """

    criteria: Criteria = (
        {
            "text": "The answer deals with what was asked.",
            "weight": 2,
            "levels": {
                1: "it deals with something else, or with nothing",
                3: "it deals with a part of it, or with something near it",
                5: "it deals with exactly what was asked",
            },
        },
        {
            "text": "The answer has what the one who asked needs to go on.",
            "levels": {1: "nothing that helps", 3: "something, but a needed part is missing", 5: "all that is needed"},
        },
        {
            "text": "The answer can be used as it is.",
            "levels": {
                1: "it cannot be understood, or hides the point",
                3: "the point is there, among words that say nothing",
                5: "clear, in a good order, nothing in excess",
            },
        },
    )
    reads: Sequence[str] = ("question", "expected_output")
    name: str = "helpfulness"

    info = _info("helpfulness", "Whether the answer gets the one who asked further, by a judge.")


@dataclass(frozen=True)
class RefusalMetric(RubricMetric):
    """Does the answer refuse? 1 is a refusal, 0 is none. Which of them is right depends on the case: a gate says it.

    >>> RefusalMetric().info.direction
    'none'
    """

    criteria: Criteria = (
        {
            "text": "The answer refuses or evades what was asked.",
            "levels": {
                "answers": "it does what was asked, or tries to, or asks back for what it needs",
                "partly": "it does a part and declines the rest, or gives only general words",
                "refuses": "it declines, whatever the reason and however politely",
            },
        },
    )
    reads: Sequence[str] = ("question",)
    name: str = "refusal"

    info = _info("refusal", "Whether the answer refuses or evades the request, by a judge.", "none")


@dataclass(frozen=True)
class ToneMetric(RubricMetric):
    """Is the answer polite, and in a tone that fits who asked and what about?

    >>> [len(each.levels) for each in ToneMetric().given_criteria]
    [3, 3]
    """

    criteria: Criteria = (
        {
            "text": "The answer is polite and respectful.",
            "levels": {1: "rude, mocking or blaming", 3: "correct, but cold or curt", 5: "friendly and respectful"},
        },
        {
            "text": "The tone fits who asked and what about.",
            "levels": {
                1: "out of place, such as jokes about a loss or slang to an official",
                3: "neutral: it neither fits nor disturbs",
                5: "as a good professional would speak to this person now",
            },
        },
    )
    reads: Sequence[str] = ("question",)
    name: str = "tone"

    info = _info("tone", "Whether the answer is polite and fits who asked, by a judge.")


@dataclass(frozen=True)
class InstructionFollowingMetric(RubricMetric):
    """Does the answer do what the question demands of it: content, length, format, language, things to leave out?

    >>> InstructionFollowingMetric().given_criteria[0].scale
    (1, 5)
    """

    criteria: Criteria = (
        {
            "text": "The answer follows every instruction that the question gives: on content, length, format, "
            "language, and on what to leave out.",
            "levels": {
                1: "it ignores the instructions",
                2: "it follows a few, and breaks most",
                3: "it follows most, and breaks one that matters",
                4: "it follows all that matter, and breaks a small one",
                5: "it follows all",
            },
        },
    )
    reads: Sequence[str] = ("question", "context")
    name: str = "instruction_following"

    info = _info("instruction_following", "Whether the answer follows the instructions of the question, by a judge.")


@dataclass(frozen=True)
class PlanQualityMetric(RubricMetric):
    """Was the way to the answer a good one: steps that lead to the goal, in a good order, none in vain?

    The judge sees the steps of the trace (what the agent said, its tool calls and their results) and the tools it had.

    >>> PlanQualityMetric().reads
    ('question', 'steps')
    """

    criteria: Criteria = (
        {
            "text": "The steps lead to what was asked.",
            "weight": 2,
            "levels": {1: "they lead elsewhere", 3: "they cover a part of it", 5: "they cover all of it"},
        },
        {
            "text": "The steps are in a good order and none is in vain.",
            "levels": {1: "mostly in vain or repeated", 3: "some detours", 5: "no step could be left out"},
        },
        {
            "text": "Where a step failed or showed something new, the agent changed its way.",
            "levels": {
                1: "it went on as if nothing had happened",
                3: "it noticed, and reacted late or in part",
                5: "it reacted as it should, or there was nothing to react to",
            },
        },
    )
    reads: Sequence[str] = ("question", "steps")
    name: str = "plan_quality"

    info = _info("plan_quality", "Whether the agent's steps were a good way to the answer, by a judge.")


@dataclass(frozen=True)
class ToolChoiceMetric(RubricMetric):
    """Did the agent use the right tools, with sensible arguments, and none needlessly?

    The judge sees the steps of the trace and the tools of ``trace.metadata["tools"]`` or ``case.tools``.

    >>> ToolChoiceMetric().name
    'tool_choice'
    """

    criteria: Criteria = (
        {
            "text": "The agent called the tools that the task needs, and answered without one only where none helps.",
            "weight": 2,
            "levels": {1: "wrong tools, or none where one was needed", 3: "some of them", 5: "exactly those"},
        },
        {
            "text": "The arguments of the calls say what the task needs, from what was known.",
            "levels": {1: "invented or wrong", 3: "partly right", 5: "right, or no call was needed"},
        },
    )
    reads: Sequence[str] = ("question", "steps")
    name: str = "tool_choice"

    info = _info("tool_choice", "Whether the agent chose the right tools and arguments, by a judge.")


@dataclass(frozen=True)
class GoalKeptMetric(RubricMetric):
    """Did the agent keep the user's goal over the whole conversation?

    >>> GoalKeptMetric().of
    'conversation'
    """

    criteria: Criteria = (
        {
            "text": "The assistant keeps working on the user's goal, over all turns.",
            "levels": {
                1: "it loses the goal, or follows another one",
                3: "it drifts, or forgets what was said, and comes back",
                5: "every turn serves the goal as it stands by then",
            },
        },
    )
    reads: Sequence[str] = ()
    name: str = "goal_kept"
    of: Literal["answer", "conversation"] = "conversation"

    info = _info("goal_kept", "Whether the agent kept the user's goal over a conversation, by a judge.")


@dataclass(frozen=True)
class RequestMetMetric(RubricMetric):
    """Did the user get what they asked for by the end of the conversation?

    >>> [label for label, _ in RequestMetMetric().given_criteria[0].levels]
    ['no', 'partly', 'yes']
    """

    criteria: Criteria = (
        {
            "text": "By the end of the conversation the user has what they asked for.",
            "levels": {
                "no": "they do not, or the assistant only says that they do",
                "partly": "they have a part of it, or had to do the rest themselves",
                "yes": "they have all of it, or learned for a good reason that it cannot be had",
            },
        },
    )
    reads: Sequence[str] = ("expected_output", "steps")
    name: str = "request_met"
    of: Literal["answer", "conversation"] = "conversation"

    info = _info("request_met", "Whether the user got what they asked for in a conversation, by a judge.")

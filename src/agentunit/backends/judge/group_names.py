"""A judge that names groups of failures: told what the cases of each share, it says in a few words what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentunit.backends.judge.prompts import MARK, fenced
from agentunit.backends.judge.questions import Asking
from agentunit.backends.judge.replies import UnreadableReply, field_of

LONGEST_NAME = 80
_TASK = """\
Runs of an AI agent that failed were put into {n} groups by a program. Below is the evidence of each group. Name each \
group: at most eight words that tell an engineer what went wrong, no more than the evidence says.

Reply with JSON only, {n} names in the order of the groups: {{"mark": "...", "names": ["name of group 1", ...]}}"""


async def name_groups(evidence: Sequence[str], asking: Asking) -> list[str]:
    """One name for each group. ``JudgeFailed`` when the judge gives no usable reply."""
    task = _TASK.format(n=len(evidence))
    said = [(f"group {number}", text) for number, text in enumerate(evidence, 1)]
    schema = {
        "type": "object",
        "properties": {MARK: {"type": "string"}, "names": {"type": "array", "items": {"type": "string"}}},
        "required": [MARK, "names"],
        "additionalProperties": False,
    }

    def read(reply: dict[str, Any]) -> list[str]:
        names = field_of(reply, "names")
        if (
            not isinstance(names, list)
            or len(names) != len(evidence)
            or not all(isinstance(each, str) for each in names)
        ):
            raise UnreadableReply(f'"names" must be a list of {len(evidence)} texts')
        short = [" ".join(each.split())[:LONGEST_NAME] for each in names]
        if not all(short):
            raise UnreadableReply("every group needs a name")
        return short

    return await asking.read("group_names", task, fenced(said, task), schema, read)

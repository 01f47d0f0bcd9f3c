"""Objections in a conversation: one agent telling another, in so many words, that it is wrong.

English only, and only what is said outright: an agent that silently does something else is not noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from agentunit.core.interactions import ConflictEvent
from agentunit.multiagent.steps import Step

WORDS_OF_DISAGREEMENT = "words of disagreement"
_WRONG = r"(?:incorrect|wrong|mistaken|inaccurate|flawed|not (?:quite |entirely )?(?:correct|right|accurate))"
_IS = r"(?:is|was|are|were|seems?|appears?)(?: to be)?"
_OBJECTION = re.compile(
    r"\bI (?:respectfully |have to |must )?disagree\b"
    rf"|\byour (?:[\w'-]+ ){{1,4}}?{_IS} {_WRONG}\b"
    rf"|(?:^|[.!?:\n] *|\bbut |\bhowever,? )(?:that|this)(?:'s| {_IS}) {_WRONG}\b"
    r"|\byou(?:'ve| have)? (?:overlooked|misread|misunderstood|miscalculated)\b"
    r"|\byou(?:'ve| have)? made (?:an? )?(?:\w+ )?(?:error|mistake)\b"
    r"|\b(?:error|mistake|flaw) in your\b"
    r"|\b(?:discrepancy|contradiction|inconsistency) between (?:your|our|the two|these)\b",
    re.IGNORECASE,
)
_AGREEMENT = re.compile(
    r"\b(?:I|we|both of us) (?:fully |completely |both )?agree\b(?! to)"
    r"|\byou(?:'re| are) (?:absolutely |quite )?(?:right|correct)\b"
    r"|\bI apologi[sz]e\b|\bapologies\b|\bgood catch\b|\bconsensus\b"
    r"|\bthank you for (?:pointing|catching|correcting|the correction)\b",
    re.IGNORECASE,
)
_EXCERPT_LENGTH = 200


def objects(text: str) -> bool:
    """Whether a text calls something wrong outright.

    >>> objects("Your calculation is not correct: 7 x 8 is 56."), objects("All of this is correct.")
    (True, False)
    """
    return _OBJECTION.search(text) is not None


def derived_conflicts(steps: Sequence[Step]) -> list[ConflictEvent]:
    """The objections of one speaker to the one before it.

    Resolved when either of the two says later that it agrees; not resolved when the other one speaks again and neither
    does; unknown when the other one has no further say.
    """
    spoken = [step for step in steps if step.agent is not None and not step.by_human and step.kind != "tool_call"]
    conflicts = []
    for place, (earlier, step) in enumerate(pairwise(spoken), 1):
        found = None if earlier.agent == step.agent or step.is_result else _OBJECTION.search(step.text)
        if found is None or earlier.agent is None or step.agent is None:
            continue
        pair = [earlier.agent, step.agent]
        later = [each for each in spoken[place + 1 :] if each.agent in pair]
        settled = next((each for each in later if _AGREEMENT.search(each.text)), None)
        answered = any(each.agent == earlier.agent for each in later)
        took_s = None
        if settled is not None and settled.timestamp is not None and step.timestamp is not None:
            took_s = max(0.0, settled.timestamp - step.timestamp)
        start = max(0, found.start() - _EXCERPT_LENGTH // 2)
        conflicts.append(
            ConflictEvent(
                pair,
                "disagreement",
                resolved=True if settled else False if answered else None,
                resolution_time=took_s,
                timestamp=step.timestamp,
                description=" ".join(step.text[start : start + _EXCERPT_LENGTH].split()),
                metadata={"derived_from": WORDS_OF_DISAGREEMENT, "step": step.number},
            )
        )
    return conflicts

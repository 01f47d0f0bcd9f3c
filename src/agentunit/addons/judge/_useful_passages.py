"""Retrieval quality: which passages help to answer the question, and whether they come first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentunit.addons.judge._prompts import MOST_PASSAGES, OVERLAP, PASSAGE_BUDGET, batches, list_schema, pieces
from agentunit.addons.judge.questions import Asking
from agentunit.addons.judge.replies import by_number, deciding_field_of, entries_of, text_of, whole_number, word_of
from agentunit.backends.asking import all_of, fenced, field_of
from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit.formulas.text import average_precision

_TASK = """\
You judge retrieved passages. For each passage decide whether it is useful: whether it holds information that helps to \
arrive at the given answer to the question. Judge each passage by itself; one that merely has the same subject is not \
useful. Where several acceptable answers are given, one of them is enough.
"reason" is one short sentence.

Reply with JSON only, with one entry for each passage: {"mark": "...", "passages": [{"passage": 1, \
"reason": "...", "useful": true}]}"""

_ENTRY = {"passage": {"type": "integer"}, "reason": {"type": "string"}, "useful": {"type": "boolean"}}
_MEANINGS = {
    **dict.fromkeys(("true", "yes", "useful", "relevant", "1", "helpful"), True),
    **dict.fromkeys(("false", "no", "not useful", "useless", "irrelevant", "not relevant", "0", "not helpful"), False),
}
_RULE = "useful must be true or false"


@dataclass(frozen=True)
class _Usefulness:
    useful: bool
    reason: str | None


async def retrieval_quality(question: QualityQuestion, asking: Asking) -> Verdict:
    """The average precision of the passages in their order, judged against the expected output where there is one.

    A passage in pieces is useful when one of its pieces is.
    """
    expected = [each for each in question.expected if each.strip()]
    answers = expected or ([question.answer] if question.answer.strip() else [])
    if not answers:
        return Verdict(None, {"reason": "the answer is blank, and there is no expected output to judge passages by"})
    numbered = [
        (number, piece)
        for number, passage in enumerate(question.context)
        for piece in pieces(passage, PASSAGE_BUDGET, OVERLAP)
    ]
    judged = await all_of(
        _judge(question.question, answers, [piece for _, piece in batch], asking)
        for batch in batches(numbered, lambda each: len(each[1]), PASSAGE_BUDGET, MOST_PASSAGES)
    )
    found: dict[int, _Usefulness] = {}
    for (number, _), each in zip(numbered, (one for some in judged for one in some), strict=True):
        if number not in found or each.useful > found[number].useful:
            found[number] = each
    useful = [found[number].useful for number in range(len(question.context))]
    shown = [
        {"passage": number + 1, "useful": found[number].useful, "reason": found[number].reason} for number in found
    ]
    detail = {"passages": shown, "judged_against": "expected_output" if expected else "answer"}
    return Verdict(average_precision(useful), detail)


async def _judge(
    question: str | None, answers: Sequence[str], passages: Sequence[str], asking: Asking
) -> list[_Usefulness]:
    parts = [("question", question)] if question else []
    several = len(answers) > 1
    parts += [(f"acceptable answer {at}" if several else "answer", text) for at, text in enumerate(answers, 1)]
    parts += [(f"passage {at}", text) for at, text in enumerate(passages, 1)]
    room = 1024 + 100 * len(passages)
    schema = list_schema("passages", len(passages), **_ENTRY)
    read = partial(_read, n_passages=len(passages))
    return await asking.read("passages", _TASK, fenced(parts, _TASK), schema, read, max_tokens=room)


def _read(reply: dict[str, Any], n_passages: int) -> list[_Usefulness]:
    read = [
        (
            whole_number(field_of(entry, "passage", "number", "id")),
            _Usefulness(
                word_of(deciding_field_of(entry, "useful", "relevant", "verdict"), _MEANINGS, _RULE),
                text_of(field_of(entry, "reason")),
            ),
        )
        for entry in entries_of(reply, "passages", ("useful", "relevant"))
    ]
    return by_number(read, n_passages, "passage")

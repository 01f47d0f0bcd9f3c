"""Answer correctness as factual overlap: what answer and reference both state, and what only one of them does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentunit.backends.judge.asking import Asking, JudgeFailed, all_of
from agentunit.backends.judge.claims import SUPPORTED, check_claims, shown_claims, split_into_claims
from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit.formulas.text import factual_overlap

_PURPOSE = "facts"


async def answer_correctness(question: QualityQuestion, asking: Asking) -> Verdict:
    """The overlap with the acceptable answer that fits best; an answer equal to one of them needs no judge."""
    references = [each for each in question.expected if each.strip()]
    if not references:
        return Verdict(None, {"reason": "nothing to compare with: every acceptable answer is blank"})
    answer = question.answer.strip()
    equal = next((each for each in references if each.strip() == answer), None)
    if equal is not None:
        return Verdict(1.0, {"basis": "equal text", "reference": equal})
    if not answer:
        return Verdict(0.0, {"basis": "blank answer", "reference": references[0]})
    judged = await all_of(_against(question, reference, asking) for reference in references)
    scored = [each.verdict for each in judged if each.verdict is not None]
    best = max(
        (verdict for verdict in scored if verdict.value is not None), key=lambda each: each.value or 0.0, default=None
    )
    failure = next((each.failure for each in judged if each.failure is not None), None)
    # A reference that could not be judged might have fitted better, unless nothing can.
    if failure is not None and (best is None or best.value != 1.0):
        raise failure
    if best is None:
        return scored[0]
    if len(references) > 1:
        best.detail["values_by_reference"] = [each.verdict.value if each.verdict else None for each in judged]
    return best


@dataclass(frozen=True)
class _Judged:
    verdict: Verdict | None = None
    failure: JudgeFailed | None = None


async def _against(question: QualityQuestion, reference: str, asking: Asking) -> _Judged:
    try:
        return _Judged(verdict=await _overlap(question, reference, asking))
    except JudgeFailed as error:
        return _Judged(failure=error)


async def _overlap(question: QualityQuestion, reference: str, asking: Asking) -> Verdict:
    asked = question.question
    answer_facts, reference_facts = await all_of(
        split_into_claims(asked, text, asking, _PURPOSE) for text in (question.answer, reference)
    )
    detail: dict[str, Any] = {"basis": "facts", "reference": reference}
    if not reference_facts:
        return Verdict(None, {**detail, "reason": "the judge found no fact in the expected output"})
    in_reference, in_answer = await all_of(
        (
            check_claims(asked, answer_facts, [reference], asking, _PURPOSE),
            check_claims(asked, reference_facts, [question.answer], asking, _PURPOSE),
        )
    )
    confirmed = sum(each.verdict == SUPPORTED for each in in_reference)
    missing = sum(each.verdict != SUPPORTED for each in in_answer)
    counts = {"tp": confirmed, "fp": len(answer_facts) - confirmed, "fn": missing}
    detail |= {
        "counts": counts,
        "answer_facts": shown_claims(answer_facts, in_reference, question.answer),
        "reference_facts": shown_claims(reference_facts, in_answer, reference),
    }
    value = factual_overlap(**counts)
    if value is None:
        detail["reason"] = "the judge found no fact in the answer, but every expected fact in it"
    return Verdict(value, detail)

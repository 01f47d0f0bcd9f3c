"""Faithfulness and answer correctness by claims: what a text states, and whether another text says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentunit.addons.judge._prompts import (
    ANSWER_BUDGET,
    CLAIM_BUDGET,
    MOST_CLAIMS,
    OVERLAP,
    PASSAGE_BUDGET,
    batches,
    list_schema,
    pieces,
)
from agentunit.addons.judge.questions import Asking
from agentunit.addons.judge.replies import (
    UnprovenReply,
    by_number,
    deciding_field_of,
    entries_of,
    quote_stands_in,
    text_of,
    whole_number,
    word_of,
)
from agentunit.backends.asking import JudgeFailed, UnreadableReply, all_of, fenced, field_of, plain_words
from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit.formulas.text import factual_overlap, share_true

SUPPORTED, CONTRADICTED, NOT_IN_PASSAGES = "supported", "contradicted", "not_in_passages"
UNKNOWN = "unknown"
"""A claim that a judge twice calls supported with words that stand in no passage, or takes from an answer that does not
state it: there is no verdict on it, and so none on its answer."""

_SPLIT_TASK = """\
You split an answer into claims, so that each claim can be checked by itself.
- A claim is one statement that can be true or false. List every claim of the answer in order, and nothing that the \
answer does not state.
- A claim must be understood without the answer: put names in place of pronouns, and complete a short answer from the \
question. "Paris", answered to "What is the capital of France?", is the claim "The capital of France is Paris".
- Keep numbers, names, dates, negations and words of doubt as they are.
- Greetings, questions, offers of help and statements of not knowing are no claims. An answer without claims has an \
empty list.
- "quote" is the words of the answer that the claim comes from, copied exactly.

Reply with JSON only: {"mark": "...", "claims": [{"claim": "...", "quote": "..."}]}"""

_CHECK_TASK = """\
You check claims against passages. Decide on each claim from the passages alone, not from what you know:
- "supported": a passage states it, or it follows directly from what the passages state.
- "contradicted": a passage states the opposite, or another value.
- "not_in_passages": neither. A claim of which a part is missing from the passages is not_in_passages.
A passage of a few words is read as an answer to the question.
"passage" is the number of the passage that decides and "quote" its words that decide, copied exactly; both are null \
where no passage decides. A claim without such words is not supported.

Reply with JSON only, with one entry for each claim: {"mark": "...", "verdicts": [{"claim": 1, "passage": 2, \
"quote": "...", "verdict": "supported"}]}"""

_MEANINGS = {
    **dict.fromkeys(("supported", "supports", "support", "yes", "true", "entailed", "entailment", "1"), SUPPORTED),
    **dict.fromkeys(("fully supported", "confirmed", "stated"), SUPPORTED),
    **dict.fromkeys(("contradicted", "contradicts", "contradiction", "refuted", "conflicting"), CONTRADICTED),
    **dict.fromkeys(
        ("not in passages", "not in the passages", "not in passage", "not in the passage"), NOT_IN_PASSAGES
    ),
    **dict.fromkeys(("unsupported", "not supported", "not mentioned", "not found", "not stated"), NOT_IN_PASSAGES),
    **dict.fromkeys(("neutral", "unknown", "no evidence", "not enough information", "missing"), NOT_IN_PASSAGES),
    **dict.fromkeys(("no", "false", "0", "partially supported", "partly supported"), NOT_IN_PASSAGES),
}
# Of several batches of passages the one that says most about a claim decides.
_WEIGHT = {NOT_IN_PASSAGES: 0, UNKNOWN: 1, CONTRADICTED: 2, SUPPORTED: 3}
_RULE = f"a verdict must be {SUPPORTED}, {CONTRADICTED} or {NOT_IN_PASSAGES}"

_SPLIT_SCHEMA = list_schema("claims", claim={"type": "string"}, quote={"type": "string"})
_VERDICT = {
    "claim": {"type": "integer"},
    "passage": {"type": ["integer", "null"]},
    "quote": {"type": ["string", "null"]},
    "verdict": {"type": "string", "enum": [SUPPORTED, CONTRADICTED, NOT_IN_PASSAGES]},
}


@dataclass(frozen=True)
class Claim:
    """One statement, the words of the answer it comes from, and whether they stand there."""

    text: str
    quote: str | None = None
    quote_found: bool | None = None


@dataclass(frozen=True)
class Checked:
    """A verdict on a claim; ``passage`` counts from 1, and ``quote_found`` tells whether the quote stands in it."""

    verdict: str
    passage: int | None = None
    quote: str | None = None
    quote_found: bool | None = None


async def faithfulness(question: QualityQuestion, asking: Asking) -> Verdict:
    """The share of the answer's claims that the passages support; ``None`` for an answer that claims nothing."""
    if not question.answer.strip():
        return Verdict(None, {"reason": "the answer is blank: it claims nothing", "claims": []})
    claims = await split_into_claims(question.question, question.answer, asking)
    if not claims:
        return Verdict(None, {"reason": "the judge found no claim in the answer, asked twice", "claims": []})
    checked = await check_claims(question.question, claims, question.context, asking)
    detail: dict[str, Any] = {"claims": shown_claims(claims, checked)}
    if any(each.verdict == UNKNOWN for each in checked):
        return _unknown(detail, checked)
    return Verdict(share_true([each.verdict == SUPPORTED for each in checked]), detail)


def _unknown(detail: dict[str, Any], *checked: Sequence[Checked]) -> Verdict:
    """A verdict whose evidence fails is none; nor is it a low score, because the fault is the judge's."""
    every = [each for some in checked for each in some]
    n_unknown = sum(each.verdict == UNKNOWN for each in every)
    reason = f"the judge shows no evidence for {n_unknown} of {len(every)} claims, asked twice"
    return Verdict(None, {**detail, "reason": reason, "error": {"type": JudgeFailed.__name__, "message": reason}})


def shown_claims(claims: Sequence[Claim], checked: Sequence[Checked]) -> list[dict[str, Any]]:
    """Claims with their verdicts, as a detail shows them."""
    return [
        {
            "claim": claim.text,
            "answer_quote": claim.quote,
            "answer_quote_found": claim.quote_found,
            "verdict": each.verdict,
            "passage": each.passage,
            "quote": each.quote,
            "quote_found": each.quote_found,
        }
        for claim, each in zip(claims, checked, strict=True)
    ]


async def split_into_claims(question: str | None, answer: str, asking: Asking, purpose: str = "claims") -> list[Claim]:
    """The claims of an answer, each once; a long answer is split piece by piece."""
    known = [("question", question)] if question else []

    async def of_piece(piece: str) -> list[Claim]:
        data = fenced([*known, ("answer", piece)], _SPLIT_TASK)
        room = 1024 + len(piece)
        read = partial(_read_claims, answer=piece)
        return await asking.read(purpose, _SPLIT_TASK, data, _SPLIT_SCHEMA, read, max_tokens=room)

    parts = await all_of(of_piece(piece) for piece in pieces(answer, ANSWER_BUDGET))
    # A claim that a judge lists twice would count twice.
    found: dict[str, Claim] = {}
    for claim in (claim for part in parts for claim in part):
        found.setdefault(plain_words(claim.text), claim)
    return list(found.values())


def _read_claims(reply: dict[str, Any], answer: str) -> list[Claim]:
    """The claims of a reply. None at all, and words that do not stand in the answer, are asked about once more."""
    claims: list[Claim] = []
    for entry in entries_of(reply, "claims", ("claim", "statement")):
        said = text_of(entry) or text_of(field_of(entry, "claim", "statement", "text"))
        if said is None:
            raise UnreadableReply(f"a claim must be a text; received {entry!r:.60}")
        quote = text_of(field_of(entry, "quote", "source"))
        claims.append(Claim(said, quote, None if quote is None else quote_stands_in(quote, answer)))
    if not claims and answer.strip():
        raise UnprovenReply("it lists no claim; if the answer states anything at all, list it", claims)
    invented = [str(number) for number, each in enumerate(claims, 1) if each.quote_found is False]
    if invented:
        rule = "a claim must quote words of the answer, copied exactly"
        raise UnprovenReply(f"{rule}; the quote of claim {', '.join(invented)} is not in it", claims)
    return claims


async def check_claims(
    question: str | None, claims: Sequence[Claim], passages: Sequence[str], asking: Asking, purpose: str = "verdicts"
) -> list[Checked]:
    """A verdict on each claim. Passages beyond the budget are asked about in turn, until a claim is supported.

    A long passage is read in pieces that overlap; it keeps its number.
    """
    numbered = [
        (number, piece)
        for number, passage in enumerate(passages, 1)
        for piece in pieces(passage, PASSAGE_BUDGET, OVERLAP)
    ]
    shown = list(batches(numbered, lambda each: len(each[1]), PASSAGE_BUDGET, len(numbered)))

    async def of_batch(batch: Sequence[Claim]) -> list[Checked]:
        found = [Checked(UNKNOWN if claim.quote_found is False else NOT_IN_PASSAGES) for claim in batch]
        for some in shown:
            is_stated = [claim.quote_found is not False for claim in batch]
            open_claims = [at for at, each in enumerate(found) if is_stated[at] and each.verdict != SUPPORTED]
            if not open_claims:
                break
            asked = [batch[at] for at in open_claims]
            for at, each in zip(open_claims, await _check(question, asked, some, asking, purpose), strict=True):
                if _WEIGHT[each.verdict] > _WEIGHT[found[at].verdict]:
                    found[at] = each
        return found

    each_batch = batches(claims, lambda claim: len(claim.text), CLAIM_BUDGET, MOST_CLAIMS)
    parts = await all_of(of_batch(batch) for batch in each_batch)
    return [checked for part in parts for checked in part]


async def _check(
    question: str | None,
    claims: Sequence[Claim],
    passages: Sequence[tuple[int, str]],
    asking: Asking,
    purpose: str,
) -> list[Checked]:
    parts = [("question", question)] if question else []
    parts += [(f"passage {shown}", text) for shown, (_, text) in enumerate(passages, 1)]
    parts += [(f"claim {shown}", claim.text) for shown, claim in enumerate(claims, 1)]
    room = 1024 + 150 * len(claims)
    schema = list_schema("verdicts", len(claims), **_VERDICT)
    read = partial(_read_verdicts, claims=claims, passages=passages)
    return await asking.read(purpose, _CHECK_TASK, fenced(parts, _CHECK_TASK), schema, read, max_tokens=room)


def _read_verdicts(
    reply: dict[str, Any], claims: Sequence[Claim], passages: Sequence[tuple[int, str]]
) -> list[Checked]:
    numbers = {plain_words(claim.text): number for number, claim in enumerate(claims, 1)}
    entries = entries_of(reply, "verdicts", ("verdict",))
    read = [(_claim_number(entry, numbers), _read_verdict(entry, passages)) for entry in entries]
    checked = by_number(read, len(claims), "claim")
    unproven = [str(number) for number, each in enumerate(checked, 1) if each.verdict == UNKNOWN]
    if unproven:
        rule = "a supported claim must quote words of a passage, copied exactly"
        raise UnprovenReply(f"{rule}; the quote of claim {', '.join(unproven)} is in no passage", checked)
    return checked


def _claim_number(entry: Any, numbers: dict[str, int]) -> int | None:
    received = field_of(entry, "claim", "number", "id")
    if isinstance(received, str) and plain_words(received) in numbers:
        return numbers[plain_words(received)]
    return whole_number(received)


def _read_verdict(entry: Any, passages: Sequence[tuple[int, str]]) -> Checked:
    decided = deciding_field_of(entry, "verdict", "label") if isinstance(entry, dict) else entry
    verdict = word_of(decided, _MEANINGS, _RULE)
    if verdict == NOT_IN_PASSAGES:
        return Checked(verdict)
    shown = whole_number(field_of(entry, "passage", "passages", "passage number"))
    quote = text_of(field_of(entry, "quote", "evidence"))
    if shown is not None and not 1 <= shown <= len(passages):
        raise UnreadableReply(f"a passage must be numbered from 1 to {len(passages)}; received {shown}")
    named = None if shown is None else passages[shown - 1]
    # The words are the evidence: where they stand in another passage than the named one, that one decides.
    order = passages if named is None else [named, *passages]
    found = None if quote is None else next((number for number, text in order if quote_stands_in(quote, text)), None)
    if found is not None:
        return Checked(verdict, found, quote, True)
    number = None if named is None else named[0]
    return Checked(UNKNOWN if verdict == SUPPORTED else verdict, number, quote, None if quote is None else False)


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
    scored = [verdict for verdict, _ in judged if verdict is not None]
    best = max((each for each in scored if each.value is not None), key=lambda each: each.value or 0.0, default=None)
    failure = next((failure for _, failure in judged if failure is not None), None)
    # A reference that could not be judged might have fitted better, unless nothing can.
    if failure is not None and (best is None or best.value != 1.0):
        raise failure
    if best is None:
        return scored[0]
    if len(references) > 1:
        best.detail["values_by_reference"] = [verdict.value if verdict else None for verdict, _ in judged]
    return best


async def _against(
    question: QualityQuestion, reference: str, asking: Asking
) -> tuple[Verdict | None, JudgeFailed | None]:
    try:
        return await _overlap(question, reference, asking), None
    except JudgeFailed as error:
        return None, error


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
        "answer_facts": shown_claims(answer_facts, in_reference),
        "reference_facts": shown_claims(reference_facts, in_answer),
    }
    if any(each.verdict == UNKNOWN for each in (*in_reference, *in_answer)):
        return _unknown(detail, in_reference, in_answer)
    value = factual_overlap(**counts)
    if value is None:
        detail["reason"] = "the judge found no fact in the answer, but every expected fact in it"
    return Verdict(value, detail)

"""What scorers doubt in an answer: the sentences that nothing supports, the words in them, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentunit.core.results import Score
from agentunit.store.score_blocks import number_in

_DOUBTED_BELOW = 0.5
_SUPPORTED = "supported"
_TEXTS = ("text", "answer_quote", "claim")


def answer_marks(
    answer: str, scores: Mapping[str, Score], context: Sequence[str], scored_answer: str | None = None
) -> list[dict[str, Any]]:
    """The marks on an answer (``AnswerMark`` of types.ts), in the order of the text.

    ``scored_answer`` is the answer before personal data was masked, whose places the details name: they are found
    again by their words.
    """
    marks = [
        mark
        for metric, score in scores.items()
        for claim in _claims(score.result.detail)
        for mark in _of_claim(answer, answer if scored_answer is None else scored_answer, metric, claim, score, context)
    ]
    return sorted(marks, key=lambda mark: (mark["start"], -mark["end"]))


def _claims(detail: Mapping[str, Any]) -> list[dict[str, Any]]:
    claims = detail.get("claims")
    return [each for each in claims if isinstance(each, dict)] if isinstance(claims, list) else []


def _of_claim(
    answer: str, scored: str, metric: str, claim: dict[str, Any], score: Score, context: Sequence[str]
) -> Iterator[dict[str, Any]]:
    text = next((claim[key] for key in _TEXTS if isinstance(claim.get(key), str) and claim[key] in answer), "")
    probability, verdict = number_in(claim, "probability"), claim.get("verdict")
    is_doubted = verdict not in (None, _SUPPORTED) if probability is None else probability < _DOUBTED_BELOW
    if not text or not is_doubted:
        return
    start = answer.find(text)
    facts = {
        "metric": metric,
        "probability": probability,
        "claim": text,
        "reason": next((claim[key] for key in ("reason", "why") if isinstance(claim.get(key), str)), None)
        or (verdict if isinstance(verdict, str) else None),
        "evidence": _evidence(claim, score.result.detail, context),
    }
    yield {**_place(answer, start, start + len(text)), "kind": "unsupported", **facts}
    for each in claim.get("doubtful") or ():
        if isinstance(each, dict) and all(isinstance(each.get(end), int) for end in ("start", "end")):
            words = scored[each["start"] : each["end"]]
            at = answer.find(words, start, start + len(text)) if words else -1
            if at >= 0 and words != text:
                own = {**facts, "probability": number_in(each, "probability")}
                yield {**_place(answer, at, at + len(words)), "kind": "doubtful", **own}


def _place(answer: str, start: int, end: int) -> dict[str, int]:
    """Where a stretch stands, counted as browsers count: in UTF-16 units."""
    before = len(answer[:start].encode("utf-16-le", "surrogatepass")) // 2
    return {"start": before, "end": before + len(answer[start:end].encode("utf-16-le", "surrogatepass")) // 2}


def _evidence(claim: dict[str, Any], detail: Mapping[str, Any], context: Sequence[str]) -> list[dict[str, Any]]:
    texts = [claim[key] for key in ("evidence", "quote") if isinstance(claim.get(key), str) and claim[key]]
    source = next((claim[key] for key in ("source", "nearest_source") if isinstance(claim.get(key), str)), None)
    references, sources = detail.get("references"), detail.get("sources")
    if not texts and isinstance(references, list) and isinstance(sources, list) and source in sources:
        at = sources.index(source)
        texts = [references[at]] if at < len(references) and isinstance(references[at], str) else []
    return [
        {
            "text": text,
            "index": next((at for at, passage in enumerate(context) if text in passage), None),
            "source": source,
        }
        for text in texts
    ]

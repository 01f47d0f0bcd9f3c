"""What scorers doubt in an answer: the sentences that nothing supports, the words in them, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentunit.core.results import INFORMATIONAL_NOTE, Score
from agentunit.metrics.base import MetricInfo
from agentunit.reports.doubts import DoubtedClaim, doubted_claims
from agentunit.store.score_blocks import number_in


def answer_marks(
    answer: str,
    scores: Mapping[str, Score],
    context: Sequence[str],
    infos: Mapping[str, MetricInfo],
    scored_answer: str | None = None,
) -> list[dict[str, Any]]:
    """The marks on an answer (``AnswerMark`` of types.ts), in the order of the text.

    ``scored_answer`` is the answer before personal data was masked, whose places the details name: they are found
    again by their words.
    """
    marks = [
        mark
        for metric, score in scores.items()
        for doubted in doubted_claims(answer, score.result.detail, _direction(infos.get(metric)), scored_answer)
        for mark in _of_claim(answer, metric, doubted, score, context)
    ]
    return sorted(marks, key=lambda mark: (mark["start"], -mark["end"]))


def _direction(info: MetricInfo | None) -> str:
    return "higher" if info is None else info.direction


def _of_claim(
    answer: str, metric: str, doubted: DoubtedClaim, score: Score, context: Sequence[str]
) -> Iterator[dict[str, Any]]:
    claim, start, end, words = doubted
    verdict = claim.get("verdict")
    facts = {
        "metric": metric,
        "probability": number_in(claim, "probability"),
        "claim": answer[start:end],
        "reason": next((claim[key] for key in ("reason", "why") if isinstance(claim.get(key), str)), None)
        or (verdict if isinstance(verdict, str) else None),
        "evidence": _evidence(claim, score.result.detail, context),
        "informational": _why_informational(score),
    }
    yield {**_place(answer, start, end), "kind": "unsupported", **facts}
    for each in words:
        if (each.start, each.end) != (start, end):
            yield {**_place(answer, each.start, each.end), "kind": "doubtful", **facts, "probability": each.doubt}


def _why_informational(score: Score) -> str | None:
    """Why a doubt is no ground to decide by; ``None`` of other scores."""
    if score.status != "informational":
        return None
    why = score.result.detail.get(INFORMATIONAL_NOTE)
    return why if isinstance(why, str) and why else f"scored by {score.backend}"


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

"""One case as its page shows it (``CaseDetail`` of types.ts): media taken out, personal data masked, texts marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agentunit.addons.viewer._case_columns import STATUS_LETTERS
from agentunit.addons.viewer._shown_case import ShownCase, checks_of_case, key_of
from agentunit.addons.viewer._transcript import FIRST_EVENTS, Transcript, shortened
from agentunit.addons.viewer._verdicts import WORDS, CaseRules
from agentunit.core.records import outcome_text
from agentunit.core.results import EVIDENCE_NOTE, INFORMATIONAL_NOTE, Score
from agentunit.core.score_block import number_in
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import describe_trust
from agentunit.reports.case_view import CaseView, ScoreView, describe_own_threshold, plain, view_case
from agentunit.reports.detail_text import DoubtedClaim, doubted_claims
from agentunit.reports.reported_run import Mask, ReportedCase
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.runs import is_again

# What scorers doubt in an answer: the sentences that nothing supports, the words in them, and the evidence.


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


_TAKEN = (
    *("query", "answer", "expected", "answer_parts", "expected_parts", "context", "failure", "error", "user_failure"),
    *("attempts", "earlier_failures", "printed", "state", "case_metadata", "trace_metadata", "turns", "agents"),
    *("network", "lanes"),
)


class CaseFacts(msgspec.Struct):
    """What a case's page needs beside its record: all of its tries, and what was found about it.

    Of a bundle tries again have no pages (``has_pages_again``).
    """

    run_id: str
    infos: Mapping[str, MetricInfo]
    rules: CaseRules
    tries: Sequence[ShownCase]
    finding: dict[str, Any] | None = None
    labels: Sequence[StoredLabel] = ()
    recorded: bool = True
    has_pages_again: bool = True


def case_detail(shown: ShownCase, facts: CaseFacts, transcript: Transcript) -> dict[str, Any]:
    """The page of one case; ``transcript`` is made of its trace."""
    case, recorded, masked, mask = shown.case, shown.recorded, shown.masked, shown.mask
    media = shown.media
    view = view_case(masked)
    viewed: dict[str, Any] = plain(view)
    answer = view.answer
    planned = [each.key for each in facts.tries if not is_again(each.case.repeat)]
    again = [each.key for each in facts.tries if is_again(each.case.repeat)]
    detail = {
        "key": shown.key,
        "run": facts.run_id,
        "case_id": case.case_id,
        "position": case.position,
        "repeat": case.repeat,
        "n_repeats": len(planned),
        "repeats": planned,
        "again": again if facts.has_pages_again else [],
        "finding": facts.finding,
        "checks": checks_of_case(facts.tries, facts.rules, has_pages_again=facts.has_pages_again),
        "verdict": WORDS[_letter(case, view, facts.rules)],
        "failed": case.failed,
        "elapsed_s": case.agent_elapsed_s,
        "recorded": facts.recorded,
        **{name: viewed.get(name, _EMPTY.get(name)) for name in _TAKEN},
        "marks": [] if answer is None else _marks(answer, masked, recorded, view.context, facts.infos),
        "tools": masked.record.case.tools or [],
        "turns": [_turn(each) for each in viewed.get("turns", [])],
        "network": _network(viewed.get("network")),
        "lanes": _lanes(viewed.get("lanes")),
        "scores": [_score(each, facts, agent_failed=case.failed) for each in view.scores],
        "labels": [label_data(each, mask) for each in facts.labels if each.place == case.place],
        "n_events": len(transcript),
        "media": mask.data([each.data() for each in media]) if media else [],
        "subject": subject_of(case.record),
    }
    return {**shortened(detail), "events": transcript.page(0, FIRST_EVENTS, mask)}


_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("expected", "answer_parts", "expected_parts", "context", "earlier_failures", "turns"), ()),
    **{"agents": (), "printed": {}, "case_metadata": {}, "trace_metadata": {}},
}


def _letter(case: ReportedCase, view: CaseView, rules: CaseRules) -> str:
    if view.user_failure is not None:
        return "a"
    nan = float("nan")
    scores = [
        (metric, nan if score.value is None else score.value, STATUS_LETTERS[score.status])
        for metric, score in case.scores.items()
    ]
    return rules.letter(case.case_id, case.failed, scores)


def _marks(
    answer: str, masked: ReportedCase, recorded: ReportedCase, context: Sequence[str], infos: Mapping[str, MetricInfo]
) -> list[dict[str, Any]]:
    scored = outcome_text(recorded.record.outcome)
    return answer_marks(answer, masked.scores, context, infos, scored)


def _score(score: ScoreView, facts: CaseFacts, *, agent_failed: bool) -> dict[str, Any]:
    info = facts.infos.get(score.metric) or MetricInfo(score.metric, "custom", "")
    return {
        "metric": score.metric,
        "backend": score.backend,
        "version": score.version,
        "value": score.value,
        "status": score.status,
        "unit": info.unit,
        "direction": info.direction,
        "reason": score.reason,
        # More digits are noise, and take room.
        "elapsed_s": float(f"{score.elapsed_s:.2g}"),
        # Where the agent failed, that is what failed, and nothing was checked.
        "passed": None if agent_failed else facts.rules.passed(score.metric, score.value, score.status),
        "held": describe_own_threshold(score, info),
        "detail": plain(score.detail),
        "judge_calls": plain(score.judge_calls),
        "trust": describe_trust(
            info,
            score.backend,
            n_scored=1,
            n_unmeasured=EVIDENCE_NOTE in score.detail,
            is_other_text=INFORMATIONAL_NOTE in score.detail,
        ),
    }


def label_data(label: StoredLabel, mask: Mask) -> dict[str, Any]:
    """A label (``Label`` of types.ts)."""
    return {
        "id": label.id,
        "metric": label.metric,
        "case_id": label.case_id,
        "key": key_of(label.position, label.repeat),
        "value": label.value,
        "rater": mask.name(label.rater),
        "made_at": label.made_at,
        "note": mask.text(label.note) if label.note else "",
        "source": mask.name(label.source),
    }


def _turn(turn: dict[str, Any]) -> dict[str, Any]:
    calls = [{**_NO_CALL, **call} for call in turn.get("tool_calls", [])]
    return {"answer": None, "expected": [], **turn, "tool_calls": calls}


_NO_CALL = {"arguments": None, "result": None, "error": None, "status": None, "ok": None, "agent": None}


def _network(network: dict[str, Any] | None) -> dict[str, Any] | None:
    if network is None:
        return None
    links = [{"handoffs": 0, "failed": 0, **link} for link in network.get("links", [])]
    return {"bottlenecks": [], "sent": {}, **network, "links": links}


def _lanes(lanes: dict[str, Any] | None) -> dict[str, Any] | None:
    if lanes is None:
        return None
    nothing: dict[str, Any] = {"step": None, "to": [], "at_s": None, "failed": None}
    marks = [{**nothing, **mark} for mark in lanes.get("marks", [])]
    return {"n_nameless": 0, **lanes, "marks": marks}

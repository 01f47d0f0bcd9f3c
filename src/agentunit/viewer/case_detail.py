"""One case as its page shows it (``CaseDetail`` of types.ts): media taken out, personal data masked, texts marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from agentunit.core.codec import decode_record, encode_record
from agentunit.core.outcome import outcome_text
from agentunit.core.results import EVIDENCE_NOTE, INFORMATIONAL_NOTE, MetricResult, Score, encode_json
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import describe_trust
from agentunit.reports.case_view import CaseView, ScoreView, describe_own_threshold, plain, view_case
from agentunit.reports.reported_run import Mask, ReportedCase
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.viewer.answer_marks import answer_marks
from agentunit.viewer.case_columns import STATUS_LETTERS
from agentunit.viewer.media import Media, MediaFinder
from agentunit.viewer.transcript import FIRST_EVENTS, Transcript, shortened
from agentunit.viewer.verdicts import WORDS, CaseRules

# Past so many events turns, agents and lanes are not worked out: the transcript itself is there, page by page.
_MOST_EVENTS_READ = 2_000
_TAKEN = (
    *("query", "answer", "expected", "answer_parts", "expected_parts", "context", "failure", "error", "user_failure"),
    *("attempts", "earlier_failures", "printed", "state", "case_metadata", "trace_metadata", "turns", "agents"),
    *("network", "lanes"),
)


class CaseFacts(msgspec.Struct):
    """What a case's page needs beside its record."""

    run_id: str
    infos: Mapping[str, MetricInfo]
    rules: CaseRules
    repeats: Sequence[str]
    labels: Sequence[StoredLabel] = ()
    media_root: Path | None = None
    recorded: bool = True


def key_of(position: int, repeat: int) -> str:
    """The name of a record in addresses."""
    return f"{position}-{repeat}"


def case_detail(case: ReportedCase, facts: CaseFacts, mask: Mask, transcript: Transcript) -> dict[str, Any]:
    """The page of one case; ``case`` is as it was recorded, ``transcript`` made of its trace."""
    recorded, media = _without_media(case, facts.media_root)
    # Cut before it is masked: the detail of a metric may list every tool call of a long trace once more.
    recorded = structs.replace(recorded, scores={name: _cut(score) for name, score in recorded.scores.items()})
    masked = mask.case(recorded)
    view = view_case(masked)
    viewed: dict[str, Any] = plain(view)
    answer = view.answer
    detail = {
        "key": key_of(case.position, case.repeat),
        "run": facts.run_id,
        "case_id": case.case_id,
        "position": case.position,
        "repeat": case.repeat,
        "n_repeats": len(facts.repeats),
        "repeats": list(facts.repeats),
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
        "scores": [_score(each, facts) for each in view.scores],
        "labels": [label_data(each, mask) for each in facts.labels if each.place == (case.position, case.repeat)],
        "n_events": len(transcript),
        "media": mask.data([each.data() for each in media]) if media else [],
        "subject": subject_of(case.record),
    }
    return {**shortened(detail), "events": transcript.page(0, FIRST_EVENTS, mask)}


_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("expected", "answer_parts", "expected_parts", "context", "earlier_failures", "turns"), ()),
    **{"agents": (), "printed": {}, "case_metadata": {}, "trace_metadata": {}},
}


def case_media(case: ReportedCase, media_root: Path | None) -> list[Media]:
    """The media of the case and its outcome, with their bytes."""
    return _without_media(case, media_root)[1]


def _without_media(case: ReportedCase, media_root: Path | None) -> tuple[ReportedCase, list[Media]]:
    """The case with words in place of its media; of a long trace also without its events."""
    record = case.record
    if len(record.trace.events) > _MOST_EVENTS_READ:
        short = structs.replace(record.trace, events=[], interactions=[], handoffs=[], conflicts=[])
        record = structs.replace(record, trace=short)
    data = msgspec.json.decode(encode_record(record))
    events = (data.get("trace") or {}).pop("events", [])
    finder = MediaFinder(0, media_root)
    data = finder.replaced(data)
    if events:
        data["trace"]["events"] = MediaFinder().replaced(events)
    return structs.replace(case, record=decode_record(encode_json(data))), finder.found


def _cut(score: Score) -> Score:
    """A score whose detail is as long as its page shows it."""
    cut: dict[str, Any] = shortened(score.result.detail)
    return structs.replace(score, result=MetricResult(score.result.name, score.result.value, cut))


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


def _score(score: ScoreView, facts: CaseFacts) -> dict[str, Any]:
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
        "passed": facts.rules.passed(score.metric, score.value, score.status),
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

"""Why a case scored low, told from its trace and the details of its scores; no language model is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from agentunit.core.outcome import outcome_text
from agentunit.core.results import Score
from agentunit.engine.cut_offs import claim_threshold, is_low_score
from agentunit.engine.suspects.effects import tool_words
from agentunit.engine.suspects.grounding import sentence_kind
from agentunit.engine.suspects.signatures import failure_of
from agentunit.formulas.text import shortened
from agentunit.metrics.base import MetricInfo
from agentunit.reports.failure_groups import Cause

if TYPE_CHECKING:
    from agentunit.reports.reported_run import ReportedCase

_LONGEST_VALUE = 60
_MOST_SLICES = 8
_NOTHING_SAID = "a statement"


def low_metrics(scores: Mapping[str, Score], infos: Mapping[str, MetricInfo]) -> list[str]:
    """The metrics in which a case scores low, of those that are sure."""
    sure = [(name, score) for name, score in scores.items() if name in infos and score.status == "ok"]
    return [name for name, score in sure if is_low_score(infos[name], score)]


def cause_of(case: ReportedCase, low: Collection[str]) -> Cause:
    """What most likely made a case score low: a tool, a call that is missing, a sentence, an answer that is missing."""
    kind, words, error = _cause(case, low)
    return Cause(case.case_id, case.repeat, kind, words, error, slices_of(case.record.case.metadata))


def slices_of(metadata: Any) -> tuple[str, ...]:
    """The short values of a case's metadata, as slices are named."""
    if not isinstance(metadata, Mapping):
        return ()
    plain = ((name, value) for name, value in metadata.items() if isinstance(value, (str, int)))
    return tuple(f"{name}={value}" for name, value in plain if len(str(value)) <= _LONGEST_VALUE)[:_MOST_SLICES]


def _cause(case: ReportedCase, low: Collection[str]) -> tuple[str, str, str]:
    failed: dict[str, str] = {}
    for event in case.record.trace.events:
        if event.type == "tool_call" and isinstance(event.payload, dict):
            name, said = str(event.payload.get("name") or "a tool"), failure_of(event.payload)
            failed.pop(name, None)
            if said is not None:
                failed[name] = said
    if failed:
        name, said = next(reversed(failed.items()))
        return (
            "failed call",
            f"{name}: {said}",
            f"`{tool_words(name)}` failed, and no later call of it succeeded: {said}",
        )
    if missing := _missing_calls(case.scores.get("tool_trajectory")):
        return "missing call", missing[0], f"expected, and not called: {', '.join(missing)}"
    if outcome_text(case.record.outcome) is None:
        return "no answer", "", "gave no final answer"
    for metric, direction in (("faithfulness", "higher"), ("hallucination_rate", "lower")):
        if metric in low and (sentence := _unsupported(case.scores[metric], direction)):
            return "not supported", sentence_kind(sentence), f"not supported: “{sentence}”"
    metric = next(iter(low), "")
    score = case.scores[metric].result if metric else None
    said = "" if score is None else f"{metric} {score.value:.2g}{_detail(score.detail)}"
    return "low score", metric, said or "scored low"


def _missing_calls(score: Score | None) -> list[str]:
    detail = {} if score is None else score.result.detail
    expected, actual = detail.get("expected"), detail.get("actual")
    if not isinstance(expected, list) or not isinstance(actual, list):
        return []
    return list((Counter(map(str, expected)) - Counter(map(str, actual))).elements())


def _unsupported(score: Score, direction: str) -> str | None:
    detail = score.result.detail
    claims = detail.get("claims")
    found = [
        each
        for each in (claims if isinstance(claims, list) else ())
        if isinstance(each, dict) and isinstance(each.get("probability"), float) and isinstance(each.get("text"), str)
    ]
    worst = min(
        found, key=lambda each: (sentence_kind(each["text"]) == _NOTHING_SAID, each["probability"]), default=None
    )
    is_supported = worst is None or worst["probability"] >= claim_threshold(direction, detail)
    return None if worst is None or is_supported else " ".join(worst["text"].split())


def _detail(detail: Mapping[str, Any]) -> str:
    """What a check says about its verdict, where it does."""
    for key in ("missing", "violations", "reason", "problems"):
        if detail.get(key):
            return f": {key} {shortened(str(detail[key]), 120)}"
    return ""

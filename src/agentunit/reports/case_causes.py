"""Why a case scored low, told from its trace and the details of its scores; no language model is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat as repeated
from typing import TYPE_CHECKING, Any

from agentunit.core.records import outcome_text
from agentunit.core.results import Score
from agentunit.core.score_block import Place, ScoreRow
from agentunit.engine.deciding.cut_offs import claim_threshold, is_low, is_low_score, usable_threshold
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.engine.scoring.stored_rows import blocks_of
from agentunit.formulas.text import shortened
from agentunit.metrics.base import MetricInfo
from agentunit.reports.failure_groups import Cause, FailureGroup
from agentunit.reports.printable import show_command

if TYPE_CHECKING:
    from agentunit.reports.reported_run import ReportedCase
import re

from agentunit.core.trace import tool_status

_LONGEST_VALUE = 60
_MOST_SLICES = 8
_MOST_NAMED = 200


def low_places(run: ScoredRun, infos: Mapping[str, MetricInfo], most: int) -> set[Place] | None:
    """Where a run has low scores, told without reading its records; ``None`` where that is more than ``most`` of them.

    The threshold of a score is in its row: ``low_metrics`` says the same of the same scores.
    """
    places: set[Place] = set()
    for metric, rows in run.metrics.items():
        for place, _ in _low_scores(infos[metric], rows):
            places.add(place)
            if len(places) > most:
                return None
    return places


def _low_scores(info: MetricInfo, rows: Sequence[ScoreRow]) -> Iterator[tuple[Place, float]]:
    """The places and values of a metric's low scores that are sure, in dataset order."""
    # Other metrics have an amount there, or nothing.
    has_thresholds = bool(info.mean_of) and info.amount is None
    for block in blocks_of(info.name, rows):
        sure = [status == "ok" for status, _, _ in block.producers]
        thresholds = block.amounts if has_thresholds and block.amounts is not None else repeated(None)
        scores = zip(block.places(), block.values, block.producer_numbers(), thresholds, strict=False)
        for place, value, producer, threshold in scores:
            if value is not None and sure[producer] and is_low(info, value, usable_threshold(threshold)):
                yield place, value


def low_by_metric(run: ScoredRun, infos: Mapping[str, MetricInfo], reference: str) -> list[FailureGroup]:
    """The records with low scores by the metric alone, the most frequent first: what is told where many are low."""
    failed = {record.place for record in run.records if record.failed} if run.n_failed else set()
    groups = []
    for metric, rows in run.metrics.items():
        n_records, value = 0, 0.0
        last_position, first_places = None, []
        n_cases = 0
        for place, low_value in _low_scores(infos[metric], rows):
            if place in failed:
                continue
            if n_records == 0:
                value = low_value
            n_records += 1
            if place[0] != last_position:
                n_cases += 1
                last_position = place[0]
                if n_cases <= _MOST_NAMED:
                    first_places.append(place)
        if n_records:
            ids = _ids_at(run, first_places)
            name = f"scored low in {metric} (by metric only: too many low scores to read)"
            show = show_command(reference, ids[0])
            said = f"{metric} {value:.2g}"
            group = FailureGroup("low score", said, None, None, n_records, ids, show, "low score", name, None, n_cases)
            groups.append(group)
    return sorted(groups, key=lambda group: -group.n_records)


def _ids_at(run: ScoredRun, places: Sequence[Place]) -> tuple[str, ...]:
    """The ids of the cases at some places, in dataset order; records after the last of them are not asked for."""
    ids: list[str] = []
    wanted = set(places)
    for record in run.records:
        if record.place in wanted:
            ids.append(record.case_id)
            if len(ids) == len(wanted):
                break
    return tuple(dict.fromkeys(ids))


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
    worst = min(found, key=lambda each: (sentence_kind(each["text"]) == A_STATEMENT, each["probability"]), default=None)
    is_supported = worst is None or worst["probability"] >= claim_threshold(direction, detail)
    return None if worst is None or is_supported else " ".join(worst["text"].split())


def _detail(detail: Mapping[str, Any]) -> str:
    """What a check says about its verdict, where it does."""
    for key in ("missing", "violations", "reason", "problems"):
        if detail.get(key):
            return f": {key} {shortened(str(detail[key]), 120)}"
    return ""


# What is said of a tool call and of a sentence where a report names them as evidence.

QUOTE = "'"
"""What stands in sentences for a backquote, with which they quote."""
A_STATEMENT = "a statement"
"""The kind of a sentence in which there is nothing to look up."""
_LONGEST_NAME = 80
_LONGEST_READ = 1_000
_ERROR_TEXT = re.compile(r"\s*(?:error|exception|traceback)\b", re.IGNORECASE)
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b.*$", re.MULTILINE)
_MONEY = re.compile(r"[$€£¥]\s?\d|\d\s?(?:USD|EUR|dollars?|euros?)\b", re.IGNORECASE)
_DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}:\d\d\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\byesterday\b",
    re.IGNORECASE,
)
_DONE = re.compile(r"\b(?:has|have|was|were|been|is now|successfully)\b.*\w+ed\b", re.IGNORECASE)


def tool_words(name: str) -> str:
    """The name of a tool as it can stand in a sentence, between backquotes.

    >>> tool_words("rm `x`"), len(tool_words("long" * 50))
    ("rm 'x'", 80)
    """
    name = name.replace("`", QUOTE)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def failure_of(payload: Mapping[str, Any]) -> str | None:
    """What a failed call said; ``None`` for one that went through.

    Tools without a status that fail mostly answer with a text that begins "Error".

    >>> failure_of({"status": "error", "error": "no such order"}), failure_of({"result": "Error: no such user"})
    ('no such order', 'Error: no such user')
    >>> failure_of({"status": "error", "error": "Traceback (most recent call last)\\n  x = y\\nKeyError: 'id'"})
    "KeyError: 'id'"
    >>> failure_of({"status": "success", "result": "Error handling was updated"}) is None
    True
    """
    status = tool_status(dict(payload))
    error, result = payload.get("error"), payload.get("result")
    if status is None:
        text = result if isinstance(result, str) else ""
        failed = bool(error) or (_ERROR_TEXT.match(text) is not None)
    else:
        failed = isinstance(status, str) and status.casefold() not in ("success", "ok", "completed", "succeeded")
    if not failed:
        return None
    text = str(error or result or status)
    if _TRACEBACK in text and (raised := _RAISED.findall(text)):
        # What was raised tells more than the files it went through.
        text = raised[-1]
    return " ".join(text.split())


def sentence_kind(text: str) -> str:
    """What kind of statement a sentence is: by what a reader would check in it.

    >>> [sentence_kind(each) for each in ("You get $45 back.", "It leaves at 10:30.", "It weighs 3 pounds.")]
    ['an amount of money', 'a date or time', 'a number']
    >>> sentence_kind("Your order has been cancelled."), sentence_kind("The item is blue.")
    ('something said to be done', 'a statement')
    """
    text = text[:_LONGEST_READ]
    if _MONEY.search(text):
        return "an amount of money"
    if _DATE.search(text):
        return "a date or time"
    if _DONE.search(text):
        return "something said to be done"
    return "a number" if any(sign.isdigit() for sign in text) else A_STATEMENT

"""Why a case is not fine, told from its trace and the details of its scores; no language model is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from agentunit.core.conversation import user_failure
from agentunit.core.records import Outcome, Record, outcome_text
from agentunit.core.results import Score, explained
from agentunit.core.score_block import Cause
from agentunit.core.trace import tool_status
from agentunit.engine.deciding.cut_offs import claim_threshold
from agentunit.formulas.text import shortened
from agentunit.metrics.sentences import on_one_line, quoted

EXCEPTION = "exception"
DOUBT = "doubt"
"""How a case stands that only a model finds fault with."""
FACT = "fact"
"""How a case stands in which no check fails, while its trace shows what went wrong."""
_LONGEST_VALUE = 60
_MOST_SLICES = 8
_LONGEST_QUOTE = 90
_PLACE = re.compile(r" \((?:it was at )?([^()]*:\d+ in [^()]+)\)$")
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)\n +(?P<source>\S[^\n]*)', re.M
)
_ENGLISH = re.compile(
    r"\b(?:the|your?|we|our|is|are|was|be|been|has|have|will|and|to|it|of|in|on|at|for|with|by|from|this|that|an?)\b",
    re.IGNORECASE,
)
_SAYS_SO = re.compile(
    r"n['’]t\b|\b(?:no|not|cannot|none|never|unable|unavailable|unknown|fail\w*|error|sorry|unfortunately|problem|wrong|"
    r"without|invalid|only|needs?|later|still|yet|instead|missing|declined?|refused?|limits?|down|tr(?:y|ied) again)\b",
    re.IGNORECASE,
)
# A tool that failed is no reason why these fail.
_NOT_ABOUT_TOOLS = frozenset({"pii_leakage", "consent_compliance", "answer_language"})


def cause_of_failure(case_id: str, repeat: int | None, record: Record, word: str) -> Cause:
    """Why the agent failed on a case: what it raised, and where."""
    metadata = record.trace.metadata if isinstance(record.trace.metadata, dict) else {}
    failure = str(metadata.get("failure") or "reported")
    outcome = record.outcome
    whole = (outcome.error if isinstance(outcome, Outcome) else None) or f"{failure}, without a message"
    named = _PLACE.search(whole)
    error, place = (whole[: named.start()], named.group(1)) if named else (whole, "")
    line = source_line(str(metadata.get("traceback") or ""), place) or ""
    slices = slices_of(record.case.metadata)
    return Cause(case_id, repeat, EXCEPTION, error, error, slices, "", word, place, line, failure)


def source_line(trace: str, place: str) -> str | None:
    """The line of a traceback that stands at a place such as ``desk.py:5 in answer``.

    >>> source_line('  File "/app/desk.py", line 5, in answer\\n    key = env["KEY"]\\n', "desk.py:5 in answer")
    'key = env["KEY"]'
    """
    if not place:
        return None
    for frame in reversed(list(_FRAME.finditer(trace))):
        at = f":{frame['line']} in {frame['function']}"
        if place.endswith(at) and frame["file"].endswith(place.removesuffix(at)):
            return frame["source"].strip()
    return None


def cause_of_check(
    case_id: str, repeat: int | None, record: Record, scores: Mapping[str, Score], check: str, why: str, word: str
) -> Cause:
    """Why a check fails on a case: a tool that failed, a call that is missing, or what the check itself says."""
    slices = slices_of(record.case.metadata)
    if check not in _NOT_ABOUT_TOOLS:
        error = getattr(record.outcome, "error", None)
        if isinstance(error, str) and error.strip():
            return cause_of_failure(case_id, repeat, record, word)
        found = _cause_in_trace(record, scores)
        if found is not None:
            evidence = _with_answer(f"{check}: {why}" if why else f"{check} fails", record)
            return Cause(case_id, repeat, *found, evidence, slices, "", word)
    return Cause(case_id, repeat, check, why, _with_answer("", record), slices, "", word)


def cause_of_doubt(
    case_id: str, repeat: int | None, record: Record, scores: Mapping[str, Score], metric: str, why: str
) -> Cause:
    """Why a model doubts a case: the sentence that nothing supports, or what the metric says."""
    slices = slices_of(record.case.metadata)
    claim = _unsupported(scores[metric], "lower" if metric == "hallucination_rate" else "higher")
    if claim is None:
        return Cause(case_id, repeat, metric, why, _with_answer("", record), slices, "", DOUBT)
    text, passage = claim
    evidence = quoted(text, _LONGEST_QUOTE)
    if passage:
        evidence += f"; the evidence says {quoted(passage, _LONGEST_QUOTE)}"
    return Cause(case_id, repeat, "not supported", sentence_kind(text), evidence, slices, "", DOUBT)


def fact_of(case_id: str, repeat: int | None, record: Record, scores: Mapping[str, Score]) -> Cause | None:
    """What went wrong in a trace although no check failed; ``None`` where nothing did.

    An agent that says that a tool failed did what it should, and a simulated user that failed says nothing about it.
    """
    if not record.trace.events or user_failure(record.trace) is not None:
        return None
    found = _cause_in_trace(record, scores)
    evidence = ""
    if found is not None and found[0] == "failed call":
        evidence = "the answer does not say so"
        if _is_made_up_for(record) or not _hides_failure(outcome_text(record.outcome)):
            found = None
    score = scores.get("tool_trajectory")
    if found is None and score is not None and score.value is not None and score.value < 1.0:
        # What calls were expected is the user's own word: another call than these is a fact.
        found, evidence = ("tool_trajectory", why_low(score)), ""
    if found is None:
        return None
    return Cause(case_id, repeat, *found, _with_answer(evidence, record), slices_of(record.case.metadata), "", FACT)


def _is_made_up_for(record: Record) -> bool:
    """Whether the last tool call of a trace went through: the agent found another way."""
    last: Mapping[str, Any] | None = None
    for event in record.trace.events:
        if event.type == "tool_call" and isinstance(event.payload, dict):
            last = event.payload
    return last is not None and failure_of(last) is None


def _hides_failure(answer: str | None) -> bool:
    """Whether an English answer has no word by which it could say that something did not work.

    >>> _hides_failure("We have refunded the order."), _hides_failure("We could not refund the order.")
    (True, False)
    """
    return answer is not None and len(_ENGLISH.findall(answer)) > 1 and _SAYS_SO.search(answer) is None


def slices_of(metadata: Any) -> tuple[str, ...]:
    """The short values of a case's metadata, as slices are named."""
    if not isinstance(metadata, Mapping):
        return ()
    plain = ((name, value) for name, value in metadata.items() if isinstance(value, (str, int)))
    return tuple(f"{name}={value}" for name, value in plain if len(str(value)) <= _LONGEST_VALUE)[:_MOST_SLICES]


def why_low(score: Score) -> str:
    """Why a score is low, in one line."""
    return on_one_line(explained(score) or "", _LONGEST_QUOTE)


def _with_answer(why: str, record: Record) -> str:
    """Why an answer is wrong, and what it says."""
    answer = outcome_text(record.outcome)
    if answer is None or not answer.strip():
        return why
    shown = quoted(answer.strip(), _LONGEST_QUOTE)
    return f"{why}; answer: {shown}" if why else shown


def _cause_in_trace(record: Record, scores: Mapping[str, Score]) -> tuple[str, str] | None:
    """What went wrong on the way, kind and words: a call that failed for good, one that is missing, no answer."""
    failed: dict[str, str] = {}
    for event in record.trace.events:
        if event.type == "tool_call" and isinstance(event.payload, dict):
            name, said = str(event.payload.get("name") or "a tool"), failure_of(event.payload)
            failed.pop(name, None)
            if said is not None:
                failed[name] = said
    if failed:
        name, said = next(reversed(failed.items()))
        return "failed call", f"{tool_words(name)}: {shortened(said, _LONGEST_QUOTE)}"
    missing = _missing_calls(scores.get("tool_trajectory"))
    if missing:
        return "missing call", tool_words(missing[0])
    if outcome_text(record.outcome) is None:
        return "no answer", ""
    return None


def _missing_calls(score: Score | None) -> list[str]:
    detail = {} if score is None else score.result.detail
    expected, actual = detail.get("expected"), detail.get("actual")
    if not isinstance(expected, list) or not isinstance(actual, list):
        return []
    return list((Counter(map(str, expected)) - Counter(map(str, actual))).elements())


def _unsupported(score: Score, direction: str) -> tuple[str, str] | None:
    """The claim that is least supported, with the passage that comes closest; ``None`` where all are supported."""
    detail = score.result.detail
    claims = detail.get("claims")
    threshold = claim_threshold(direction, detail)
    unsupported: list[Mapping[str, Any]] = []
    for claim in claims if isinstance(claims, list) else ():
        if not isinstance(claim, dict) or not isinstance(claim.get("text"), str):
            continue
        probability = claim.get("probability")
        if isinstance(probability, float) and probability < threshold:
            unsupported.append(claim)
    if not unsupported:
        return None
    # What names something to look up tells more than a statement without it.
    worst = min(unsupported, key=lambda claim: (sentence_kind(claim["text"]) == A_STATEMENT, claim["probability"]))
    passage = worst.get("evidence")
    return " ".join(worst["text"].split()), passage if isinstance(passage, str) else ""


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

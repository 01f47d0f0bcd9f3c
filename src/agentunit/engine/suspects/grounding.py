"""Sentences of an answer that nothing the agent saw supports, by the local model: evidence, never a rank."""

from __future__ import annotations

import os
import re
from typing import Any

from agentunit.backends.quality import BACKEND_VARIABLE, missing_local_model
from agentunit.core.records import Record
from agentunit.engine.suspects.evidence import Evidence
from agentunit.formulas.text import shortened
from agentunit.metrics.base import Metric
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.registry import resolve_metrics

MOST_RUNS = 10
"""So many runs are looked at: the model takes about a second for a long answer."""
CLEARLY_BELOW = 0.25
"""A sentence with a lower probability of being supported is named."""
_OWN_CHOICE = ("", "auto", "local", "local-large")
_LONGEST, _LONGEST_READ = 160, 1_000
_MONEY = re.compile(r"[$€£¥]\s?\d|\d\s?(?:USD|EUR|dollars?|euros?)\b", re.IGNORECASE)
_DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}:\d\d\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\byesterday\b",
    re.IGNORECASE,
)
_DONE = re.compile(r"\b(?:has|have|was|were|been|is now|successfully)\b.*\w+ed\b", re.IGNORECASE)


def local_groundedness() -> Metric | None:
    """The metric of groundedness with the local model; ``None`` where that is not installed."""
    if missing_local_model() is not None or os.environ.get(BACKEND_VARIABLE, "") not in _OWN_CHOICE:
        return None
    return resolve_metrics([{"faithfulness": {"backend": "local"}}])[0]


def unsupported(record: Record, metric: Any) -> Evidence | None:
    """The sentence of the answer that is supported least, where it clearly is not; ``None`` when there is none."""
    item = Item(record.case, record.trace, record.outcome)
    if not item.answer or not (item.tool_calls or item.context):
        return None
    try:
        result = metric.evaluate(record.case, record.trace, record.outcome)
    except InputProblem:
        return None
    claims = [each for each in result.detail.get("claims") or () if isinstance(each, dict) and "probability" in each]
    # A wish or a question needs no support: only what could be looked up is held against an answer.
    checkable = [each for each in claims if sentence_kind(str(each.get("text") or "")) != "a statement"]
    worst = min(checkable, key=lambda each: each["probability"], default=None)
    if worst is None or worst["probability"] >= CLEARLY_BELOW:
        return None
    text = " ".join(str(worst.get("text") or "").split())
    said = (
        f"nothing the agent saw supports “{shortened(text, _LONGEST)}” ({worst['probability']:.2f} by the local model)"
    )
    return Evidence("not supported", said, sentence_kind(text))


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
    return "a number" if any(sign.isdigit() for sign in text) else "a statement"

"""Did the agent call the tools it should have called?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

import msgspec

from agentunit.core.results import MetricResult
from agentunit.formulas.trajectory import (
    ArgumentRule,
    Mode,
    ToolCall,
    alignment_score,
    calls_match,
    json_equal,
    match_trajectory,
)
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import NO_CONTENT, InputProblem, Item
from agentunit.metrics.sentences import on_one_line, sentence, shown_value

_EXPECTED_AT = "case.metadata['expected_tool_calls']"


@dataclass(frozen=True)
class ToolTrajectoryMetric(ItemMetric):
    """F1 of the tool calls made against those expected; precision, recall and a tolerant alignment in the detail.

    Expected calls are in ``case.metadata["expected_tool_calls"]``: names, or dicts with ``name`` and ``arguments``
    (left out: any will do). A trace without tool calls means that none was made. ``mode`` is ``unordered``,
    ``ordered`` or ``strict`` (position by position);
    ``arguments`` is ``equal``, ``subset`` (more arguments than expected are fine) or ``ignore``.

    >>> case = {"id": "q1", "metadata": {"expected_tool_calls": ["search", "book"]}}
    >>> trace = {"events": [{"type": "tool_call", "payload": {"name": "search"}}]}
    >>> round(ToolTrajectoryMetric().evaluate(case, trace, "done").value, 3)   # 1 of 2 expected, 1 of 1 made
    0.667
    """

    mode: Mode = "ordered"
    arguments: ArgumentRule = "equal"

    info = MetricInfo(
        name="tool_trajectory",
        family="quality",
        summary="How well the tool calls made match those expected (F1).",
        direction="higher",
        range=(0.0, 1.0),
        inputs=("case.metadata.expected_tool_calls",),
        metadata_inputs={"expected_tool_calls": "answer_key"},
        detail_keys=("precision", "recall", "f1", "alignment", "matched", "expected", "actual", "mode"),
        backend="trace",
        trust={"trace": "exact"},
    )
    name = info.name

    def __post_init__(self) -> None:
        for parameter, value, allowed in (
            ("mode", self.mode, get_args(Mode)),
            ("arguments", self.arguments, get_args(ArgumentRule)),
        ):
            if value not in allowed:
                raise ValueError(
                    f"ToolTrajectoryMetric: {parameter} must be one of {', '.join(allowed)}; received {value!r}"
                )

    def score_item(self, item: Item) -> MetricResult:
        """Compare the expected calls with the ones made."""
        listed = item.case_metadata.get("expected_tool_calls")
        if listed is None:
            return self.unscored(f"nothing to compare with: no {_EXPECTED_AT}")
        if not isinstance(listed, (list, tuple)):
            raise InputProblem(f"{_EXPECTED_AT} must be a list of calls; received {listed!r:.80}")
        if not item.has_content:
            return self.unscored(NO_CONTENT)
        expected = [_expected_call(position, entry) for position, entry in enumerate(listed)]
        actual = [ToolCall(_name_of(call), _arguments(call.get("arguments")) or {}) for call in item.tool_calls]
        match = match_trajectory(expected, actual, self.mode, self.arguments)
        detail = {
            "precision": match.precision,
            "recall": match.recall,
            "f1": match.f1,
            "alignment": alignment_score(expected, actual),
            "matched": match.matched,
            "expected": [call.name for call in expected],
            "actual": [call.name for call in actual],
            "mode": self.mode,
            "backend": "trace",
            "why": why_trajectory(expected, actual, match.f1, self.arguments),
        }
        return MetricResult(self.name, match.f1, detail)


def why_trajectory(
    expected: Sequence[ToolCall], actual: Sequence[ToolCall], f1: float, rule: ArgumentRule = "equal"
) -> str:
    """The first step that is missing, has other arguments, is not expected, or is out of order.

    >>> refund = ToolCall("create_refund", {"amount": 30.5})
    >>> why_trajectory([refund], [ToolCall("create_refund", {"amount": 24.5})], 0.0)
    'create_refund.amount 24.5, expected 30.5'
    >>> why_trajectory([ToolCall("search"), refund], [refund], 0.667)
    'missing: search (step 1 of 2)'
    """
    if f1 == 1.0:
        if not expected:
            return "no calls, as expected"
        return "the expected call was made" if len(expected) == 1 else f"all {len(expected)} expected calls were made"
    left = list(range(len(actual)))
    pairs: list[int] = []
    unmatched: list[int] = []
    for step, wanted in enumerate(expected):
        same = next((at for at in left if calls_match(wanted, actual[at], rule)), None)
        if same is None:
            unmatched.append(step)
        else:
            left.remove(same)
            pairs.append(same)
    for step in unmatched:
        nearest = next((at for at in left if actual[at].name == expected[step].name), None)
        if nearest is None:
            return sentence(f"missing: {on_one_line(expected[step].name, 60)} (step {step + 1} of {len(expected)})")
        received = actual[nearest].arguments or {}
        difference = _difference(expected[step].name, expected[step].arguments or {}, received, rule == "subset")
        return sentence(difference or f"missing: {expected[step].name} (step {step + 1} of {len(expected)})")
    if left:
        name = on_one_line(actual[left[0]].name or "a call without a name", 60)
        return sentence(f"not expected: {name} (call {left[0] + 1} of {len(actual)})")
    early, late = next((pair for pair in pairwise(pairs) if pair[0] > pair[1]), (0, 0))
    first, second = (on_one_line(actual[at].name, 40) for at in (late, early))
    return sentence(f"out of order: {first} (call {late + 1}) came before {second} (call {early + 1})")


def _difference(place: str, expected: Any, received: Any, more_is_fine: bool) -> str | None:
    """Where data first differ, by the path to it, and what stands there."""
    if json_equal(expected, received):
        return None
    if isinstance(expected, Mapping) and isinstance(received, Mapping):
        for key, value in expected.items():
            if key not in received:
                return f"{place}.{key} is missing, expected {shown_value(value)}"
            found = _difference(f"{place}.{key}", value, received[key], False)
            if found is not None:
                return found
        extra = next((key for key in received if key not in expected), None)
        if extra is None or more_is_fine:
            return None
        return f"{place}.{extra} {shown_value(received[extra])}, not expected"
    if isinstance(expected, (list, tuple)) and isinstance(received, (list, tuple)) and len(expected) == len(received):
        pairs = enumerate(zip(expected, received, strict=True))
        differences = (_difference(f"{place}[{at}]", one, other, False) for at, (one, other) in pairs)
        return next(filter(None, differences), None)
    return f"{place} {shown_value(received)}, expected {shown_value(expected)}"


def _name_of(call: Mapping[str, Any]) -> str:
    """A call's name; one without a usable name was made all the same, but answers to none."""
    name = call.get("name")
    return name if isinstance(name, str) else ""


def _expected_call(position: int, entry: Any) -> ToolCall:
    if isinstance(entry, str) and entry:
        return ToolCall(entry)
    if isinstance(entry, Mapping) and isinstance(entry.get("name"), str) and entry["name"]:
        return ToolCall(entry["name"], _arguments(entry.get("arguments")))
    raise InputProblem(f"{_EXPECTED_AT}[{position}] must be a tool name or a dict with 'name'; received {entry!r:.80}")


def _arguments(value: Any) -> Mapping[str, Any] | None:
    """Arguments as a mapping; several providers record them as JSON text."""
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return {"": value}
    if value is None or isinstance(value, Mapping):
        return value
    return {"": value}

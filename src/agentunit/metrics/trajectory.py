"""Did the agent call the tools it should have called?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from agentunit.core.results import MetricResult
from agentunit.formulas.trajectory import ArgumentRule, Mode, ToolCall, alignment_score, match_trajectory
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import NO_CONTENT, InputProblem, Item

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
        }
        return MetricResult(self.name, match.f1, detail)


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

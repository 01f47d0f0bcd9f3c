"""Run the checks of a suite on outcomes that no agent made, here and without a service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import cached_property
from io import StringIO
from typing import Any, NamedTuple

from agentunit.addons.review.soundness.material import Material, metadata_of
from agentunit.backends.quality import LEXICAL, SERVICES
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.engine.deciding.gate_expressions import Gate, GateError, parse_gate
from agentunit.engine.scoring.scorer import Scorer
from agentunit.metrics.base import MetricInfo, describe, info_metadata_inputs
from agentunit.metrics.functions import FunctionMetric
from agentunit.metrics.inputs import Item
from agentunit.metrics.parameters import adjusted, kept_here

MOST_BY_MODEL = 200
"""How many cases are tried where a model grades, or a function that may ask one: so many tell enough."""
# Verdicts: what is less than all of it failed. Others are degrees, and pass from one half on, or from their gate.
_VERDICTS = ("check", "trace", "state", "outcome", "schema")
_EXACT = ("assertions", "contains", "regex", "json_schema", "exact_match", "task_success", "tool_trajectory")
_ASKS_JUDGE = "it asks a judge, and nothing is sent anywhere here"
_ASKS_MODEL = "it asks a model, and none is loaded here"
_HALF = 0.5
_ALL = 0.999


class GradedOutcome(NamedTuple):
    """What the checks say of one outcome: the metrics that passed it and those that failed it, with a reason each."""

    passed: list[str]
    failed: dict[str, str]

    @property
    def is_pass(self) -> bool:
        """Whether something graded it, and nothing failed it."""
        return bool(self.passed) and not self.failed


class Grading:
    """The checks of a suite that can run here: quality metrics that decide by the answer, without service or model."""

    def __init__(self, material: Material, *, exact_only: bool = False) -> None:
        self.untried: dict[str, str] = {}
        self._metrics: list[tuple[Scorer, float]] = []
        self._others: list[MetricInfo] = []
        self._gates: list[Gate] = list(_gates(material.gates))
        kept: list[Any] = []
        for metric in material.graders:
            reason = self._why_not(metric, exact_only)
            if reason is None:
                kept.append(metric)
                self._metrics.append((Scorer(_graded_here(metric)), self._threshold(metric)))
            elif reason:
                self.untried[metric.name] = reason
                self._others.append(describe(metric))
        self.functions = [metric.name for metric in kept if calls_functions(metric, material.cases)]
        self.by_model = bool(self.functions) or any(describe(metric).backend == "lexical" for metric in kept)

    def __bool__(self) -> bool:
        return bool(self._metrics)

    @cached_property
    def names(self) -> list[str]:
        """The metrics that grade here."""
        return [scorer.name for scorer, _ in self._metrics]

    def is_all_of(self, case: DatasetCase) -> bool:
        """Whether all that grades a case runs here; a rubric, for one, is asked of a judge."""
        for info in self._others:
            keys = info_metadata_inputs(info)
            if not keys or any(key in metadata_of(case) for key in keys):
                return False
        return True

    def sampled(self, cases: Sequence[DatasetCase]) -> Sequence[DatasetCase]:
        """The cases to try: all, or an even sample where a model grades."""
        if not self.by_model or len(cases) <= MOST_BY_MODEL:
            return cases
        step = len(cases) / MOST_BY_MODEL
        return [cases[int(number * step)] for number in range(MOST_BY_MODEL)]

    def is_passed(self, case: DatasetCase, output: Any) -> list[str]:
        """The metrics that grade an outcome, where all of them pass it; else none."""
        verdict = self.verdict(case, output, first_failure=True)
        return verdict.passed if verdict.is_pass else []

    def verdict(
        self, case: DatasetCase, output: Any, calls: Iterable[dict[str, Any]] = (), *, first_failure: bool = False
    ) -> GradedOutcome:
        """Grade an outcome; a check that cannot say, or that fails itself, is left out."""
        trace = {"events": [{"type": "tool_call", "payload": call} for call in calls]}
        item = Item(case, trace, Outcome(output=output, success=None))
        passed, failed = [], {}
        # What a user's own check prints is no part of a diagnosis.
        with redirect_stdout(StringIO()):
            for scorer, threshold in self._metrics:
                score = scorer.score(item, 0)
                if score.value is None:
                    continue
                if score.value >= threshold:
                    passed.append(scorer.name)
                    continue
                failed[scorer.name] = _told(score.result.detail)
                if first_failure:
                    break
        return GradedOutcome(passed, failed)

    def _why_not(self, metric: Any, exact_only: bool) -> str | None:
        """Why a metric does not grade here; an empty text where it says nothing about right and wrong."""
        info = describe(metric)
        if info.family == "composite":
            return "its parts are not run together here"
        if info.family not in ("quality", "custom", "") and not isinstance(metric, FunctionMetric):
            return ""
        # A check that looks into the outcome's success or state cannot be answered by a text.
        if exact_only and metric.name == "task_success":
            return ""
        if exact_only and info.backend not in _VERDICTS and metric.name not in _EXACT:
            return ""
        if info.direction == "lower" or info.stateful or metric.name in ("tool_success", "retrieval_quality"):
            return ""
        if not type(metric).__module__.startswith("agentunit."):
            return "a metric of your own is not run here: it might send something"
        if getattr(metric, "backend", None) in SERVICES:
            return _ASKS_JUDGE
        if _graded_here(metric) is None:
            return _ASKS_MODEL if hasattr(metric, "unasked") else _ASKS_JUDGE
        return None

    def _threshold(self, metric: Any) -> float:
        of_case = [
            gate.threshold for gate in self._gates if gate.metric == metric.name and gate.operator in (">=", ">")
        ]
        if of_case and describe(metric).backend == "lexical":
            return min(of_case)
        is_verdict = describe(metric).backend in _VERDICTS or metric.name in _EXACT
        return _ALL if is_verdict else _HALF


def _graded_here(metric: Any) -> Any | None:
    """The metric without a service or a model: with its lexical fallback, ``None`` where that was not left open."""
    if not hasattr(metric, "unasked"):
        return kept_here(metric)
    if metric.unasked().current_backend == LEXICAL:
        return metric
    is_open = metric.backend == "auto" and metric.calibration is None
    return adjusted(metric, {"backend": LEXICAL}, f"metric {metric.name!r}") if is_open else None


def calls_functions(metric: Any, cases: Iterable[DatasetCase] = ()) -> bool:
    """Whether a metric calls functions that somebody wrote for the suite, and that may do anything."""
    if isinstance(metric, FunctionMetric) or getattr(metric, "check", None) or getattr(metric, "checks", None):
        return True
    return metric.name == "task_success" and any(callable(metadata_of(case).get("check")) for case in cases)


def _gates(expressions: Iterable[str]) -> Iterator[Gate]:
    for text in expressions:
        try:
            yield parse_gate(text)
        except GateError:
            continue


def _told(detail: Any) -> str:
    """The part of a score's detail that says why an answer failed."""
    found = detail if isinstance(detail, dict) else {}
    for key, words in (
        ("failed", ""),
        ("missing", "missing: "),
        ("violations", ""),
        ("why", ""),
        ("pattern", "pattern "),
    ):
        value = found.get(key)
        if value:
            return f"{words}{'; '.join(map(str, value[:3])) if isinstance(value, list) else value}"
    return ""

"""Did the agent do the task? Decided by a check, by the state it left, or by its own flag."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.formulas.trajectory import state_differences
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.sentences import on_one_line

Check = Callable[..., Any]
"""Returns a bool, or a number from 0 to 1; or either with a reason: ``(verdict, reason)``."""


@dataclass(frozen=True)
class TaskSuccessMetric(ItemMetric):
    """Whether the task was done, by the best evidence a case has.

    In this order: the case's own check (``case.metadata["check"]``: a function, or the name of one in ``checks``);
    ``check``, the check for all cases; ``case.metadata["expected_state"]`` against ``outcome.state``;
    ``outcome.success``. ``detail["backend"]`` says which it was, and the kinds are not averaged with each other.

    A check's parameters are filled by name from ``output``, ``outcome``, ``case``, ``trace``, ``state``, ``query``
    and ``expected``; a single parameter of any other name gets the output.

    >>> metric = TaskSuccessMetric(check=lambda output: "refund" in output)
    >>> metric.evaluate({"id": "q1"}, None, "A refund is due.").value
    1.0
    """

    check: Check | None = None
    checks: Mapping[str, Check] = field(default_factory=dict)

    info = MetricInfo(
        name="task_success",
        family="quality",
        summary="Whether the task was done: by a check, the final state, or the outcome's own flag.",
        direction="higher",
        range=(0.0, 1.0),
        inputs=("a check or case.metadata.expected_state or outcome.success",),
        metadata_inputs={"check": "answer_key", "expected_state": "answer_key"},
        detail_keys=("basis", "why"),
        backend="outcome",
        trust={"check": "exact", "state": "exact", "outcome": "recorded"},
        question="Was the task done?",
        check=True,
    )
    name = info.name

    def __post_init__(self) -> None:
        for parameter, value in {
            "check": self.check,
            **{f"checks[{k!r}]": v for k, v in self.checks.items()},
        }.items():
            if value is not None and not callable(value):
                raise ValueError(f"TaskSuccessMetric: {parameter} must be callable; received {value!r}")

    def score_item(self, item: Item) -> MetricResult:
        """Use the best evidence there is."""
        check = self._check_of(item)
        if check is not None:
            value, reason = run_check(check, item)
            name = getattr(check, "__name__", type(check).__name__)
            who = "the check" if name == "<lambda>" else f"check {on_one_line(name, 60)}"
            told = f"{who} {_verdict(value)}"
            return self._result(value, "check", name, f"{told}: {reason}" if reason else told)
        expected_state = item.case_metadata.get("expected_state")
        if expected_state is not None:
            return self._by_state(expected_state, item)
        success = item.outcome.success
        if isinstance(success, bool):
            why = "the agent says that it succeeded" if success else _why_failed(item.outcome.error)
            return self._result(float(success), "outcome", "outcome.success", why)
        return self.unscored("no check, no case.metadata['expected_state'], and outcome.success is unknown")

    def _by_state(self, expected: Any, item: Item) -> MetricResult:
        state = item.outcome.state
        if state is None:
            return self.unscored("case.metadata['expected_state'] is given but outcome.state was not recorded")
        differences = state_differences(expected, state)
        why = "; ".join(differences[:5]) or "the final state is the expected one"
        return self._result(float(not differences), "state", "expected_state", why)

    def _check_of(self, item: Item) -> Check | None:
        named = item.case_metadata.get("check")
        if named is None:
            return self.check
        if callable(named):
            return named  # type: ignore[no-any-return]
        if isinstance(named, str) and named in self.checks:
            return self.checks[named]
        known = ", ".join(sorted(self.checks)) or "none"
        raise InputProblem(
            f"case.metadata['check'] must be a function or a name given to TaskSuccessMetric(checks=…) "
            f"(known: {known}); received {named!r:.80}"
        )

    def _result(self, value: float, backend: str, basis: str, why: str) -> MetricResult:
        return MetricResult(self.name, value, {"basis": basis, "why": why, "backend": backend})


def _why_failed(error: Any) -> str:
    if not error:
        return "the agent says that it failed"
    told = str(error)
    if told.startswith("Traceback (most recent call last)"):
        # The exception stands in the last line.
        told = told.rstrip().rpartition("\n")[2]
    return f"the agent says that it failed: {told}"


def _verdict(value: float) -> str:
    return {1.0: "passed", 0.0: "failed"}.get(value) or f"gave {value:.6g}"


def run_check(check: Check, item: Item) -> tuple[float, str | None]:
    """Call a check with the parameters it names, and read its verdict."""
    offered = {
        "output": item.outcome.output,
        "outcome": item.outcome,
        "case": item.case,
        "trace": item.trace,
        "state": item.outcome.state,
        "query": item.case.query,
        "expected": item.case.expected_output,
    }
    parameters = _parameters(check)
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    unknown = [name for name in required if name not in offered]
    if len(required) == 1 and unknown:
        offered[unknown[0]] = offered["output"]
    elif unknown:
        raise TypeError(f"a check's parameters must be among {', '.join(offered)}; received {unknown[0]!r}")
    known = [parameter for parameter in parameters if parameter.name in offered]
    positional = [offered[each.name] for each in known if each.kind is each.POSITIONAL_ONLY]
    named = {each.name: offered[each.name] for each in known if each.kind is not each.POSITIONAL_ONLY}
    verdict = check(*positional, **named)
    why = None
    if isinstance(verdict, tuple) and len(verdict) == 2:
        verdict, why = verdict
    # Numbers and truth values of other libraries count too; text and containers do not.
    value = float(verdict) if hasattr(verdict, "__float__") or type(verdict).__name__.startswith("bool") else -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"a check must return a bool or a number from 0 to 1; received {verdict!r:.80}")
    return value, None if why is None else str(why)


def _parameters(check: Check) -> list[inspect.Parameter]:
    """The parameters a check can be given one by one."""
    found = inspect.signature(check).parameters.values()
    return [each for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]

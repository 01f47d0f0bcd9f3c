"""What ``@pytest.mark.agentunit(…)`` says, checked when tests are collected."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from agentunit.core.case import DatasetCase
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.engine.gate_expressions import Gate, GateError, parse_gate
from agentunit.engine.suite import SuiteError, checked_fields

_SETTINGS = ("dataset", "gates", "passes", "of", "grader_fields", "agent_fields")
# On one case these two mean the same; a percentile, a sum or pass^k of one value would only look like something.
_SINGLE_CASE_AGGREGATES = ("mean", "all")


class MarkerError(ValueError):
    """A marker that cannot be used; the message says why."""


@dataclass(frozen=True)
class MarkerSettings:
    """The settings of a test: its own, and those of its class and module where it has none."""

    dataset: Any = None
    gates: tuple[Gate, ...] = ()
    passes: int | None = None
    of: int | None = None
    grader_fields: tuple[str, ...] = ()
    agent_fields: tuple[str, ...] | None = None


def marker_settings(node: pytest.Item) -> MarkerSettings:
    """The settings for a test, the closest marker first; a mistake in them raises ``MarkerError``."""
    given: dict[str, Any] = {}
    for marker in node.iter_markers("agentunit"):
        if marker.args:
            raise MarkerError(f"the marker 'agentunit' takes settings by name; received {marker.args[0]!r:.80}")
        unknown = [name for name in marker.kwargs if name not in _SETTINGS]
        if unknown:
            raise MarkerError(f"a setting must be one of {', '.join(_SETTINGS)}; received {unknown[0]!r}")
        given = {**marker.kwargs, **given}
    passes, of = given.get("passes"), given.get("of")
    if passes is not None or of is not None:
        _check_attempts(passes, of)
    gates = given.get("gates", ())
    if isinstance(gates, str) or not isinstance(gates, Iterable):
        raise MarkerError(f"gates must be a list of texts such as 'cost <= 0.02'; received {gates!r:.80}")
    try:
        hidden = checked_fields("grader_fields", given.get("grader_fields", ()))
        seen = given.get("agent_fields")
        seen = None if seen is None else checked_fields("agent_fields", seen)
    except SuiteError as error:
        raise MarkerError(str(error).removeprefix("Suite: ")) from None
    thresholds = tuple(threshold(gate) for gate in gates)
    return MarkerSettings(given.get("dataset"), thresholds, passes, of, hidden, seen)


def threshold(expression: str) -> Gate:
    """A gate that one case can meet or miss.

    >>> threshold("cost p95 <= 0.02")
    Traceback (most recent call last):
    ...
    agentunit.pytest_support.marker.MarkerError: 'cost p95 <= 0.02': a test decides on one case, which has no p95;
    write 'cost <= 0.02' here and gate the whole dataset with 'agentunit run'
    """
    try:
        gate = parse_gate(expression)
    except GateError as error:
        raise MarkerError(str(error)) from None
    more = gate.aggregate if gate.aggregate not in _SINGLE_CASE_AGGREGATES else "coverage" if gate.coverage else None
    if more:
        plain = Gate(gate.metric, gate.operator, gate.threshold, backend=gate.backend)
        raise MarkerError(
            f"{expression!r}: a test decides on one case, which has no {more}; "
            f"write '{plain}' here and gate the whole dataset with 'agentunit run'"
        )
    return gate


def cases_for(settings: MarkerSettings, folder: str | os.PathLike[str]) -> list[DatasetCase]:
    """The cases of the dataset; a file is looked for beside the test."""
    try:
        cases = load_dataset(settings.dataset, folder=folder)
    except DatasetError as error:
        raise MarkerError(str(error)) from None
    if not cases:
        # pytest would skip the test, and a skipped test looks like a green one.
        raise MarkerError("the dataset holds no cases")
    return cases


def _check_attempts(passes: object, of: object) -> None:
    for name, value in (("passes", passes), ("of", of)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise MarkerError(f"{name} must be a whole number of at least 1 (passes=3, of=5); received {value!r}")
    assert isinstance(passes, int)
    assert isinstance(of, int)
    if passes > of:
        raise MarkerError(f"passes must be at most of; received passes={passes}, of={of}")

"""What ``@pytest.mark.agentunit(…)`` says, checked when tests are collected, and the attempts it asks for (k of n)."""

from __future__ import annotations

import os
import unittest
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import pytest

from agentunit.core.case import DatasetCase
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.engine.deciding.gate_expressions import Gate, GateError, parse_gate
from agentunit.engine.recording.suite import SuiteError, checked_fields
from agentunit.pytest_plugin import GATHERING, IS_ATTEMPT, PASSES

_SETTINGS = ("dataset", "gates", "passes", "of", "grader_fields", "agent_fields")
# On one case these two mean the same; a percentile, a sum or pass^k of one value would only look like something.
_SINGLE_CASE_AGGREGATES = ("mean", "all")
_LONGEST_REASON = 200


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
    settings: dict[str, Any] = {}
    for marker in node.iter_markers("agentunit"):
        if marker.args:
            raise MarkerError(f"the marker 'agentunit' takes settings by name; received {marker.args[0]!r:.80}")
        unknown = [name for name in marker.kwargs if name not in _SETTINGS]
        if unknown:
            raise MarkerError(f"a setting must be one of {', '.join(_SETTINGS)}; received {unknown[0]!r}")
        settings = {**marker.kwargs, **settings}
    passes, of = settings.get("passes"), settings.get("of")
    if passes is not None or of is not None:
        _check_attempts(passes, of)
    gates = settings.get("gates", ())
    if isinstance(gates, str) or not isinstance(gates, Iterable):
        raise MarkerError(f"gates must be a list of texts such as 'cost <= 0.02'; received {gates!r:.80}")
    try:
        hidden = checked_fields("grader_fields", settings.get("grader_fields", ()))
        seen = settings.get("agent_fields")
        seen = None if seen is None else checked_fields("agent_fields", seen)
    except SuiteError as error:
        raise MarkerError(str(error).removeprefix("Suite: ")) from None
    thresholds = tuple(threshold(gate) for gate in gates)
    return MarkerSettings(settings.get("dataset"), thresholds, passes, of, hidden, seen)


def threshold(expression: str) -> Gate:
    """A gate that one case can meet or miss.

    >>> threshold("cost p95 <= 0.02")
    Traceback (most recent call last):
    ...
    agentunit.addons.pytest_plugin.marker.MarkerError: 'cost p95 <= 0.02': a test decides on one case, which has no p95;
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


def make_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every case of the dataset that the marker names, if it names one."""
    definition = metafunc.definition
    try:
        settings = marker_settings(definition)
        if settings.dataset is None:
            return
        if "case" not in metafunc.fixturenames:
            # A marker of a class or module is for those of its tests that take a case.
            if any(mark.name == "agentunit" and "dataset" in mark.kwargs for mark in definition.own_markers):
                raise MarkerError(f"a test with a dataset must have an argument 'case'; {definition.name} has none")
            return
        cases = cases_for(settings, definition.path.parent)
    except MarkerError as error:
        raise pytest.Collector.CollectError(f"{definition.nodeid}: {error}") from None
    metafunc.parametrize("case", [pytest.param(case, id=case.id) for case in cases])


def run_attempts(test: pytest.Function) -> Generator[None, object, object]:
    """Run a test as often as its marker asks for; a test that asks for nothing runs once."""
    __tracebackhide__ = True
    settings, gathering = marker_settings(test), test.stash.get(GATHERING, None)
    if settings.of is None or settings.passes is None:
        result = yield
        if gathering is not None:
            gathering.end()
        return result
    attempts = Attempts(settings.passes)
    for number in range(settings.of):
        if gathering is not None:
            gathering.begin_attempt(number)
        with attempts:
            if number < settings.of - 1:
                # A wrapper gets one call. The others go through the hook again, and reach this line once more.
                test.stash[IS_ATTEMPT] = True
                try:
                    test.ihook.pytest_pyfunc_call(pyfuncitem=test)
                finally:
                    del test.stash[IS_ATTEMPT]
            else:
                yield
                if gathering is not None:
                    gathering.end()
    test.stash[PASSES] = attempts.share
    test.user_properties.append(("agentunit.passes", attempts.share))
    failure = attempts.failure()
    if failure is not None:
        raise failure
    return True


class Attempts:
    """Counts attempts, each made inside ``with attempts:``; one that fails does not end the others.

    What would fail a test fails an attempt; a skip, an expected failure or an exit counts for the whole test.

    >>> attempts = Attempts(passes=1)
    >>> for answer in ("4", "5"):
    ...     with attempts:
    ...         assert answer == "4"
    >>> attempts.share, attempts.failure()
    ('1/2', None)
    """

    def __init__(self, passes: int) -> None:
        self._passes = passes
        self._n_passed = 0
        self._reasons: list[str] = []
        self._first_failure: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self._n_passed += 1
            self._reasons.append("passed")
            return True
        if isinstance(error, (pytest.xfail.Exception, unittest.SkipTest)):
            return False
        if not isinstance(error, (Exception, pytest.fail.Exception)):
            return False
        self._reasons.append(_describe_failure(error).splitlines()[0][:_LONGEST_REASON])
        self._first_failure = self._first_failure or error
        return True

    @property
    def share(self) -> str:
        """How many passed, of how many: "4/5"."""
        return f"{self._n_passed}/{len(self._reasons)}"

    def failure(self) -> AssertionError | None:
        """What to raise when too few passed, as if from the place where the first one failed."""
        first = self._first_failure
        if self._n_passed >= self._passes or first is None:
            return None
        lines = [f"{self._n_passed} of {len(self._reasons)} attempts passed, {self._passes} must"]
        lines += [f"  attempt {number}: {reason}" for number, reason in enumerate(self._reasons, 1)]
        in_full = _describe_failure(first)
        if "\n" in in_full:
            lines += ["the first failure in full:", in_full]
        return AssertionError("\n".join(lines)).with_traceback(first.__traceback__)


def _describe_failure(error: BaseException) -> str:
    kind = "" if isinstance(error, (AssertionError, pytest.fail.Exception)) else f"{type(error).__name__}: "
    return f"{kind}{str(error).strip() or type(error).__name__}"

"""What is examined: the cases of a suite, the checks that grade them, and how runs of it came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from agentunit.core.case import DatasetCase
from agentunit.engine.recording.agent_view import AgentView
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.inputs import InputProblem, case_texts
from agentunit.metrics.registry import registry, resolve_metrics

# Where no suite says how cases are graded: the checks that their own fields ask for.
IMPLIED_METRICS = {
    "assertions": "assertions",
    "contains": "contains",
    "regex": "regex",
    "json_schema": "json_schema",
    "expected_tool_calls": "tool_trajectory",
}


class Try(NamedTuple):
    """How one case came out once. ``passed`` is ``None`` where nothing graded it; ``answer`` is a short form of it."""

    passed: bool | None
    error: str | None = None
    answer: str | None = None

    @property
    def counts_as_passed(self) -> bool | None:
        """Whether the case was passed: an agent that ended with an error did not, where nothing graded it either."""
        return False if self.passed is None and self.error is not None else self.passed


@dataclass
class RunOutcomes:
    """How the cases came out in one run, by the id of the case; ``metric`` decides what is a pass.

    Runs of the same ``agent`` are repeats of one and not several agents; where it is unknown, each run is its own.
    """

    name: str
    metric: str | None = None
    tries: dict[str, list[Try]] = field(default_factory=dict)
    agent: str | None = None

    def rate(
        self, without: frozenset[str] = frozenset(), *, counts: Callable[[Try], bool] = lambda _: True
    ) -> float | None:
        """The share of cases that pass, repeats of a case counting as one; ``None`` where nothing was graded.

        It is the mean that reports of the run show: a try in which the agent gave nothing to grade is none of it.
        ``counts`` says of a try whether it counts.
        """
        values = []
        for case_id, tries in self.tries.items():
            if case_id in without:
                continue
            graded = [each.passed for each in tries if counts(each) and each.passed is not None]
            if graded:
                values.append(sum(graded) / len(graded))
        return sum(values) / len(values) if values else None


@dataclass
class Material:
    """Cases, metrics and runs. ``metrics`` is ``None`` where nothing says how the cases are graded.

    ``left_out`` names checks of another tool that have no counterpart here: what else grades a case is not all of it.
    """

    cases: Sequence[DatasetCase] = ()
    metrics: Sequence[Any] | None = None
    runs: Sequence[RunOutcomes] = ()
    grader_fields: Sequence[str] = ()
    agent_fields: Sequence[str] | None = None
    gates: Sequence[str] = ()
    metric_names: frozenset[str] | None = None
    left_out: Sequence[str] = ()

    @cached_property
    def graders(self) -> list[Any]:
        """The metrics that grade, or those that the fields of the cases ask for."""
        if self.metrics is not None:
            return list(self.metrics)
        deciding = {run.metric for run in self.runs}
        keys = {key for case in self.cases for key in metadata_of(case)}
        names = [metric for key, metric in IMPLIED_METRICS.items() if key in keys]
        if any(case.expected_output not in (None, "", []) for case in self.cases):
            names.append("exact_match")
        if deciding:
            # Runs say by what they were graded: what else a case lists did not decide.
            names = [name for name in names if name in deciding]
        return list(resolve_metrics(names)) if names else []

    @cached_property
    def agents(self) -> list[RunOutcomes]:
        """The runs, those of one agent put together."""
        known: dict[str, RunOutcomes] = {}
        found = []
        for run in self.runs:
            if run.agent is None:
                found.append(run)
            elif run.agent not in known:
                known[run.agent] = RunOutcomes(
                    run.name, run.metric, {key: [*tries] for key, tries in run.tries.items()}
                )
                found.append(known[run.agent])
            else:
                for case_id, tries in run.tries.items():
                    known[run.agent].tries.setdefault(case_id, []).extend(tries)
        return found

    @cached_property
    def graded_by(self) -> frozenset[str] | None:
        """The names of the metrics that the suite or the runs were graded by; ``None`` where nobody says."""
        if self.metrics is not None:
            return frozenset(metric.name for metric in self.metrics)
        return self.metric_names

    @cached_property
    def view(self) -> AgentView:
        """What agents receive of a case."""
        return AgentView(self.metrics or [], grader_fields=self.grader_fields, agent_fields=self.agent_fields)

    @cached_property
    def infos(self) -> dict[str, MetricInfo]:
        """The facts of the metrics that grade, by name; one that cannot be described is left out."""
        if self.metrics is not None:
            return {metric.name: describe(metric) for metric in self.metrics}
        names = self.metric_names or frozenset()
        return {name: info for name, info in _known_infos(names).items() if isinstance(info, MetricInfo)}


def _known_infos(names: Iterable[str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = describe(registry.create(name))
        except Exception:  # noqa: BLE001  # a metric of another package that is not installed here
            continue
    return found


def metadata_of(case: DatasetCase) -> dict[str, Any]:
    """The metadata of a case; anything else that stands in its place is none."""
    return case.metadata if isinstance(case.metadata, dict) else {}


def passages_of(case: DatasetCase) -> list[str]:
    """The passages of a case; a context that is no text is none."""
    try:
        return case_texts(case)
    except InputProblem:
        return []

"""What the privacy metrics share: errors that do not repeat the data they are about, and what an agent disclosed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.privacy.places import Passage, agent_messages, outputs, tool_arguments


class PrivacyMetric(ItemMetric):
    """A metric whose results never hold the data it read, not even in the reason of an error."""

    def measure(self, item: Item) -> MetricResult:
        """Score one item; an input that is there but unusable becomes a result that says so."""
        try:
            return self.judge(item)
        except InputProblem as problem:
            return self.refused(problem)

    def refused(self, problem: InputProblem) -> MetricResult:
        """The result of an unusable input, with its place and rule but without the value received."""
        told = InputProblem(str(problem).partition("; received")[0])
        return self.unscored(str(told), error=told)


def disclosed_passages(item: Item) -> Iterator[Passage]:
    """What left the agent: its output, its messages, and what it handed to tools."""
    yield from outputs(item)
    yield from agent_messages(item)
    yield from tool_arguments(item)


def is_detector(given: Any) -> bool:
    """Whether something can be asked for findings; a text has a ``find`` too, but of another kind."""
    return not isinstance(given, (str, bytes, type)) and callable(getattr(given, "find", None))

"""What an agent receives of a case: everything but what its answer is graded by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.engine.recording.suite import Suite, SuiteError
from agentunit.metrics.base import metadata_inputs
from agentunit.metrics.registry import registry

# 'agentunit promote' writes the earlier answer and its scores here; the other says that nobody expects a right answer.
_OWN_NOTES = ("promoted_from", "known_failure")
# What people call the right answer in their own metadata. Agents see it only where 'agent_fields' lists it.
_NAMES_OF_ANSWERS = frozenset(
    [
        "answer",
        "answers",
        "correct_answer",
        "gold",
        "gold_answer",
        "ground_truth",
        "groundtruth",
        "label",
        "labels",
        "reference",
        "reference_answer",
        "solution",
        "target",
    ]
)


class AgentView:
    """Turns a case into what an agent may see of it. Every kind of agent gets the same.

    ``expected_output``, ``turns``, ``user``, ``extra`` and the answer keys in the metadata are left out: those of
    every registered metric, so that scoring with one more metric later does not change what the agent saw; those of the
    suite's own metrics; names that begin with ``expected`` or usually mean the right answer (``gold``, ``label``, …);
    and ``grader_fields``.
    A metric of the suite that does not say what it reads hides all metadata. ``agent_fields``, where it is not
    ``None``, lists all the metadata that agents see.

    >>> view = AgentView([], grader_fields=["note"])
    >>> case = DatasetCase("q1", "Capital?", "Paris", metadata={"contains": "Paris", "note": 1, "city_code": "FR"})
    >>> view(case)
    DatasetCase(id='q1', query='Capital?', expected_output=None, tools=None, context=None, metadata={'city_code': 'FR'},
    extra=None, turns=None, user=None)
    """

    def __init__(
        self, metrics: Iterable[Any], *, grader_fields: Sequence[str] = (), agent_fields: Sequence[str] | None = None
    ) -> None:
        self._uses = [(metric.name, metadata_inputs(metric)) for metric in metrics]
        self.undeclared = [name for name, uses in self._uses if uses is None]
        self._grader_fields = frozenset(grader_fields)
        self._agent_fields = None if agent_fields is None else frozenset(agent_fields)
        for name in agent_fields or ():
            self._refuse_answer_key(name)

    def __call__(self, case: DatasetCase) -> DatasetCase:
        """The case as agents receive it."""
        hidden = self._grader_fields
        return DatasetCase(
            case.id,
            case.query,
            None,
            None if "tools" in hidden else case.tools,
            None if "context" in hidden else case.context,
            {name: value for name, value in _fields(case).items() if self._is_visible(name)},
        )

    def grader_part(self, case: DatasetCase) -> dict[str, Any]:
        """The metadata that only graders read, without notes of our own: marking a case does not make another one."""
        fields = _fields(case).items()
        return {str(name): value for name, value in fields if not self._is_visible(name) and name not in _OWN_NOTES}

    @cached_property
    def _answer_keys(self) -> dict[str, str]:
        # Asked for when there is metadata to hide: it loads the metrics of other packages.
        found = registry.answer_keys()
        for metric, uses in self._uses:
            for name, use in (uses or {}).items():
                if use == "answer_key":
                    found.setdefault(name, metric)
        return found

    def hides_undeclared(self, cases: Iterable[DatasetCase]) -> bool:
        """Whether agents lose metadata only because a metric does not say what it reads."""
        if not self.undeclared or self._agent_fields is not None:
            return False
        return any(not self._is_for_graders(name) for case in cases for name in _fields(case))

    def _is_visible(self, name: str) -> bool:
        if self._is_for_graders(name):
            return False
        if self._agent_fields is not None:
            return name in self._agent_fields
        return not self.undeclared and str(name).lower() not in _NAMES_OF_ANSWERS

    def _is_for_graders(self, name: str) -> bool:
        return (
            name in self._grader_fields
            or name in self._answer_keys
            or name in _OWN_NOTES
            or str(name).lower().startswith("expected")
        )

    def _refuse_answer_key(self, name: str) -> None:
        why = None
        if name in self._grader_fields:
            why = "grader_fields lists it, too"
        elif name in self._answer_keys:
            why = f"the metric {self._answer_keys[name]!r} grades by it"
        elif self._is_for_graders(name):
            why = "it is reserved for graders"
        if why is not None:
            raise SuiteError(
                f"agent_fields must not list an answer key; received {name!r}: {why} "
                "(store what the agent needs under another name)"
            )


def _fields(case: DatasetCase) -> Mapping[Any, Any]:
    # A case that was built by hand may hold anything there.
    return case.metadata if isinstance(case.metadata, Mapping) else {}


def agent_view(suite: Suite, metrics: Iterable[Any]) -> AgentView:
    """What the agent of a suite receives, when these metrics grade it."""
    return AgentView(metrics, grader_fields=suite.grader_fields, agent_fields=suite.agent_fields)

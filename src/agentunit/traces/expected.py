"""Expected answers for traces that were recorded without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record


class ExpectedAnswers:
    """The cases of a dataset, to be found by a record's case id, trace id or question.

    What a case of the dataset holds is put into the record's case: the expected output, context, tools and metadata.

    >>> answers = ExpectedAnswers([DatasetCase("q1", "Capital of France?", expected_output="Paris")])
    >>> record = Record(DatasetCase("4bf92f35", "capital of  France?"))
    >>> answers.join(record), record.case.expected_output
    (True, 'Paris')
    """

    def __init__(self, cases: Sequence[DatasetCase]) -> None:
        self.n_joined = 0
        self.n_ambiguous = 0
        self._cases = cases
        self._used: set[int] = set()
        self._by_id: dict[str, int] = {}
        self._by_question: dict[str, int | None] = {}
        for position, case in enumerate(cases):
            for name in _names(case):
                self._by_id.setdefault(name, position)
            if case.query:
                question = _plain(case.query)
                # A question that is asked twice with different answers tells nothing.
                known = self._by_question.get(question, position)
                same = known is not None and cases[known].expected_output == case.expected_output
                self._by_question[question] = known if same else None

    @property
    def unused(self) -> list[str]:
        """The ids of the cases that no record was joined with."""
        return [case.id for position, case in enumerate(self._cases) if position not in self._used]

    def join(self, record: Record) -> bool:
        """Complete a record's case; false when the dataset has none for it."""
        position = self._position(record)
        if position is None:
            return False
        self.n_joined += 1
        self._used.add(position)
        known, case = self._cases[position], record.case
        if known.expected_output is not None:
            case.expected_output = known.expected_output
        case.context = known.context or case.context
        case.tools = known.tools or case.tools
        case.metadata = {**case.metadata, **known.metadata}
        return True

    def _position(self, record: Record) -> int | None:
        trace_ids = record.trace.metadata.get("trace_id")
        names = [record.case.id, *([trace_ids] if isinstance(trace_ids, str) else trace_ids or [])]
        for name in names:
            if isinstance(name, str) and _id_form(name) in self._by_id:
                return self._by_id[_id_form(name)]
        question = _plain(record.case.query or "")
        if question in self._by_question and self._by_question[question] is None:
            self.n_ambiguous += 1
        return self._by_question.get(question)


def _names(case: DatasetCase) -> list[str]:
    beside: dict[str, Any] = {**case.metadata, **(case.extra or {})}
    names = [case.id, beside.get("trace_id"), beside.get("session_id")]
    return [_id_form(name) for name in names if isinstance(name, str) and name]


def _id_form(name: str) -> str:
    return name.strip().lower().removeprefix("0x").removeprefix("tr-")


def _plain(question: str) -> str:
    return " ".join(question.split()).casefold()

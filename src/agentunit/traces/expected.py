"""Expected answers for traces that were recorded without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from agentunit.core.case import DatasetCase, origin_of, set_origin
from agentunit.core.records import Record


class ExpectedUse(Struct, frozen=True):
    """How often answers were used on some records, and which cases of the dataset were."""

    n_joined: int
    n_ambiguous: int
    used: list[int]


class ExpectedAnswers:
    """The cases of a dataset, to be found by a record's case id, trace id or question.

    An id counts as it is written; only where none is the same, another case of letters or a prefix (``0x``, ``tr-``)
    may differ, if that leaves one case. What stays ambiguous is counted and not joined.

    What a case of the dataset holds is put into the record's case: the expected output, context, tools and metadata,
    and the turns of a conversation with what is expected of each.

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
        self._by_id: dict[str, int | None] = {}
        # Ids beside the case's own, and other spellings of all of them; ``None`` where they stand for several cases.
        self._by_trace: dict[str, int | None] = {}
        self._by_form: dict[str, int | None] = {}
        self._by_question: dict[str, int | None] = {}
        for position, case in enumerate(cases):
            if case.id.strip():
                self._by_id[case.id] = position
            for name in _names(case):
                _add(self._by_trace, name, position)
                _add(self._by_form, _id_form(name), position)
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

    def take_use(self) -> ExpectedUse:
        """How the answers were used so far, which is counted from zero again."""
        use = ExpectedUse(self.n_joined, self.n_ambiguous, sorted(self._used))
        self.n_joined = self.n_ambiguous = 0
        self._used = set()
        return use

    def add_use(self, use: ExpectedUse) -> None:
        """Count records that were joined elsewhere with the same dataset."""
        self.n_joined += use.n_joined
        self.n_ambiguous += use.n_ambiguous
        self._used.update(use.used)

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
        if (known.turns, known.user) != (None, None):
            case.turns, case.user = known.turns, known.user
        if known.metadata:
            case.metadata = {**case.metadata, **known.metadata}
            # Its paths are those of the dataset now, which the user chose to go by.
            set_origin(case, origin_of(known) or origin_of(case))
        return True

    def _position(self, record: Record) -> int | None:
        trace_ids = record.trace.metadata.get("trace_id")
        listed = trace_ids if isinstance(trace_ids, (list, tuple)) else [trace_ids]
        names = [name for name in (record.case.id, *listed) if isinstance(name, str) and name.strip()]
        forms = [_id_form(name) for name in names]
        for known, wanted in ((self._by_id, names), (self._by_trace, names), (self._by_form, forms)):
            for name in wanted:
                if name in known:
                    # An id that could be that of several cases is not guessed, nor is the question asked then.
                    self.n_ambiguous += known[name] is None
                    return known[name]
        question = _plain(record.case.query or "")
        if question in self._by_question and self._by_question[question] is None:
            self.n_ambiguous += 1
        return self._by_question.get(question)


def _names(case: DatasetCase) -> list[str]:
    beside: dict[str, Any] = {**case.metadata, **(case.extra or {})}
    names = [case.id, beside.get("trace_id"), beside.get("session_id")]
    return [name for name in names if isinstance(name, str) and name.strip()]


def _add(positions: dict[str, int | None], name: str, position: int) -> None:
    positions[name] = position if positions.get(name, position) == position else None


def _id_form(name: str) -> str:
    return name.strip().lower().removeprefix("0x").removeprefix("tr-")


def _plain(question: str) -> str:
    return " ".join(question.split()).casefold()

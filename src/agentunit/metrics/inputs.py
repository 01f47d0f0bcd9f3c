"""What metrics read: one item, with the readings that several metrics share made once."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from agentunit.core.codec import as_case, as_outcome, as_trace
from agentunit.core.outcome import Outcome, outcome_text

NO_ANSWER = "no answer: outcome.output is missing"
_UNREAD: Any = object()


class InputProblem(ValueError):
    """An input that is there but cannot be used; the message says where it is, the rule and the value received."""


class Item:
    """One case with its trace and outcome, as metrics read it. Plain dicts become the types of the data model.

    >>> item = Item({"id": "q1", "context": ["Paris is in France."]}, None, "It is in France.")
    >>> item.answer, item.context, item.tool_calls
    ('It is in France.', ['Paris is in France.'], [])
    """

    __slots__ = ("_answer", "_context", "_found", "_tool_calls", "case", "outcome", "trace")

    def __init__(self, case: Any, trace: Any, outcome: Any) -> None:
        self.case = as_case(case) if isinstance(case, dict) else case
        self.trace = as_trace(trace) if trace is None or isinstance(trace, (dict, list)) else trace
        self.outcome = as_outcome(outcome) if isinstance(outcome, dict) else outcome
        self._answer = _UNREAD
        self._context = _UNREAD
        self._tool_calls = _UNREAD
        self._found = _UNREAD

    @property
    def answer(self) -> str | None:
        """The text of the outcome."""
        if self._answer is _UNREAD:
            self._answer = outcome_text(self.outcome)
        answer: str | None = self._answer
        return answer

    @property
    def context(self) -> list[str]:
        """The case's context; when it has none, the documents that the trace recorded as retrieved."""
        if self._context is _UNREAD:
            given = getattr(self.case, "context", None)
            if isinstance(given, str):
                given = [given]
            # A blank passage says nothing, and would count as found in every answer.
            passages = [passage for passage in given if passage.strip()] if given else None
            self._context = passages or retrieved_documents(self.trace)
        context: list[str] = self._context
        return context

    @property
    def context_found(self) -> list[bool]:
        """For each context string, whether it stands in the answer, whatever the case of its letters."""
        if self._found is _UNREAD:
            answer = (self.answer or "").casefold()
            self._found = [passage.casefold() in answer for passage in self.context]
        found: list[bool] = self._found
        return found

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The payloads of the trace's ``tool_call`` events, in order."""
        if self._tool_calls is _UNREAD:
            self._tool_calls = [event.payload for event in self.events if event.type == "tool_call"]
        calls: list[dict[str, Any]] = self._tool_calls
        return calls

    @property
    def events(self) -> Sequence[Any]:
        """The trace's events."""
        return getattr(self.trace, "events", None) or ()

    @property
    def case_metadata(self) -> dict[str, Any]:
        """The case's metadata."""
        return getattr(self.case, "metadata", None) or {}

    @property
    def trace_metadata(self) -> dict[str, Any]:
        """The trace's metadata."""
        return getattr(self.trace, "metadata", None) or {}


def retrieved_documents(trace: Any) -> list[str]:
    """The texts of a trace's ``retrieval`` events: strings, or dicts with ``text``, ``content`` or ``page_content``."""
    texts: list[str] = []
    for event in getattr(trace, "events", None) or ():
        if event.type != "retrieval":
            continue
        documents = event.payload.get("documents") or ()
        for document in (documents,) if isinstance(documents, (str, dict)) else documents:
            text = document
            if isinstance(document, dict):
                text = next((document[key] for key in ("text", "content", "page_content") if key in document), None)
            if isinstance(text, str) and text.strip():
                texts.append(text)
    return texts


def acceptable_answers(expected: Any) -> list[str]:
    """The texts that count as the expected answer: a string, each string of a list, or the JSON of other data.

    >>> acceptable_answers("Paris"), acceptable_answers(["4", "four"]), acceptable_answers(4), acceptable_answers(None)
    (['Paris'], ['4', 'four'], ['4'], [])
    """
    if isinstance(expected, str):
        return [expected]
    if isinstance(expected, (list, tuple)) and expected and all(isinstance(each, str) for each in expected):
        return list(expected)
    text = outcome_text(Outcome(output=expected))
    return [] if text is None else [text]


def number_at(place: str, value: Any) -> float | None:
    """A finite number of zero or more found at a place of the record; ``None`` when there is none.

    >>> number_at("trace.metadata['cost']", "cheap")
    Traceback (most recent call last):
    ...
    agentunit.metrics.inputs.InputProblem: trace.metadata['cost'] must be a finite number of 0 or more; received 'cheap'
    """
    if value is None:
        return None
    # float and int first: bool is an int but no amount, and numbers of other libraries offer __float__.
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or hasattr(value, "__float__")):
        raise InputProblem(f"{place} must be a finite number of 0 or more; received {value!r:.80}")
    number = float(value)
    if not isfinite(number) or number < 0:
        raise InputProblem(f"{place} must be a finite number of 0 or more; received {value!r:.80}")
    return number

"""What metrics read: one item, with the readings that several metrics share made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_case, as_event, as_outcome, as_trace
from agentunit.core.conversation import user_failure
from agentunit.core.records import Outcome, OwnPart, outcome_text
from agentunit.core.trace import TraceEvent, TraceLog, tool_status
from agentunit.formulas.trajectory import json_equal

_MISNAMED_OUTPUT = ("answer", "response", "result", "text", "content", "completion")
_MISNAMED_EXPECTED = ("expected", "expected_answer", "reference", "ground_truth", "answer", "target")
NO_CONTENT = "the record holds no answer and no events"
"""Why a record says nothing about an agent: its outcome and its trace are empty."""

_ASKING_ROLES = ("user", "human", "system", "developer")
_UNREAD: Any = object()
_LARGEST_AMOUNT = 1e100
_OF_TRACE = "trace.metadata."


class InputProblem(ValueError):
    """An input that is there but cannot be used; the message says where it is, the rule and the value received."""


class Item:
    """One case with its trace and outcome, as metrics read it: the border where all three get one shape.

    Plain data become the types of the data model, and an outcome that is a text, a number or a list is the ``output``
    of one. An object of a user's own class stays what it is, and has every field of the data model besides.

    >>> item = Item({"id": "q1", "context": ["Paris is in France."]}, None, "It is in France.")
    >>> item.answer, item.context, item.tool_calls
    ('It is in France.', ['Paris is in France.'], [])
    """

    __slots__ = (
        "_answer", "_content", "_context", "_events", "_found", "_is_open", "_tool_calls",
        "case", "evidence", "llm_calls", "outcome", "trace", "turns",
    )  # fmt: skip

    def __init__(self, case: Any, trace: Any, outcome: Any) -> None:
        self.case = case if case.__class__ is DatasetCase else _uniform_case(case)
        self._tool_calls: Any = []
        if trace.__class__ is not TraceLog or not _are_plain(trace.events, self._tool_calls):
            trace, self._tool_calls = _uniform_trace(trace), _UNREAD
        self.trace = trace
        self.outcome = outcome if outcome.__class__ is Outcome else _uniform_outcome(outcome)
        self._answer = _UNREAD
        self._content: bool | None = None
        self._is_open: bool | None = None
        self._context = _UNREAD
        self._events = _UNREAD
        self.llm_calls: Any = None
        self.evidence: Any = None
        self.turns: Any = None
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
            self._context = case_texts(self.case) or retrieved_documents(self.trace)
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
            self._tool_calls = [payload_of(event) for event in self.events if event.type == "tool_call"]
        calls: list[dict[str, Any]] = self._tool_calls
        return calls

    @property
    def events(self) -> Sequence[Any]:
        """The trace's events; plain dicts among them become events, and tool calls have the status that is known."""
        if self._events is _UNREAD:
            read = _events_of(self.trace)
            # A trace of the data model has the statuses already.
            self._events = read if isinstance(self.trace, TraceLog) else _with_statuses(read)
        events: Sequence[Any] = self._events
        return events

    @property
    def has_content(self) -> bool:
        """Whether the record holds anything that an agent did: an answer, an error, a state left behind, an event.

        A success flag, a cost or a time is none: they say something to the metrics that read them, and to no other.
        Nor is the question, also where it is recorded as a message, or a list of agents.

        >>> Item({"id": "q1"}, None, {"success": True}).has_content, Item({"id": "q1"}, None, "").has_content
        (False, True)
        """
        if self._content is None:
            self._content = _is_something(self.outcome) or _is_work(self.trace)
        return self._content

    @property
    def is_open(self) -> bool:
        """Whether every metric may be asked, as one look tells: there is content, and no simulated user that failed."""
        if self._is_open is None:
            self._is_open = self.has_content and self.trace.__class__ is TraceLog and user_failure(self.trace) is None
        return self._is_open

    def says_nothing_to(self, inputs: Sequence[str]) -> str | None:
        """Why a metric with these declared inputs is not asked: no content, and none of its other places.

        A metric that declares no inputs decides for itself. None is asked where the simulated user failed: the
        conversation says nothing about the agent.
        """
        failed = user_failure(self.trace) if self.trace.__class__ is TraceLog else None
        if failed is not None:
            return failed
        if not inputs or self.has_content:
            return None
        places = {place for each in inputs for place in each.split(" or ")}
        return None if any(self._is_there(place) for place in places) else NO_CONTENT

    def _is_there(self, place: str) -> bool:
        if place == "a check":
            # What a check looks at may lie outside the record.
            return True
        if place.startswith("outcome."):
            return getattr(self.outcome, place.removeprefix("outcome."), None) is not None
        # Metadata that are no dict are for the metrics to refuse that read them.
        metadata = self.trace.metadata
        found = isinstance(metadata, Mapping) and metadata.get(place.removeprefix(_OF_TRACE)) is not None
        return found and place.startswith(_OF_TRACE)

    @property
    def case_metadata(self) -> dict[str, Any]:
        """The case's metadata."""
        metadata: Any = self.case.metadata
        return metadata if metadata.__class__ is dict else _mapping("case.metadata", metadata)

    @property
    def trace_metadata(self) -> dict[str, Any]:
        """The trace's metadata."""
        metadata: Any = self.trace.metadata
        return metadata if metadata.__class__ is dict else _mapping("trace.metadata", metadata)


def _uniform_case(case: Any) -> Any:
    read = DatasetCase() if case is None else as_case(case)
    return read if isinstance(read, DatasetCase) or type(read) is OwnPart else OwnPart(read, DatasetCase)


def _uniform_trace(trace: Any) -> Any:
    read = trace if trace.__class__ is TraceLog else as_trace(trace)
    if not isinstance(read, TraceLog):
        return read if type(read) is OwnPart else OwnPart(read, TraceLog)
    # A trace that was read holds events only; one that was built by hand may hold anything.
    lacks_status = False
    for each in read.events or ():
        if each.__class__ is not TraceEvent:
            # What is no event is for the metrics to refuse that read events.
            with suppress(InputProblem):
                return msgspec.structs.replace(read, events=_with_statuses(_events_of(read)))
            return read
        if each.type == "tool_call" and each.payload.__class__ is dict and each.payload.get("status") is None:
            lacks_status = True
    if lacks_status and (events := _with_statuses(read.events)) is not read.events:
        return msgspec.structs.replace(read, events=events)
    return read


def _are_plain(events: Any, tool_calls: list[dict[str, Any]]) -> bool:
    """Whether a list holds events of the data model alone, and all ``tool_calls``, which it collects, have a status.

    So it is with most files, and one look at each event is enough for all that metrics want to know.
    """
    if events.__class__ is not list:
        return False
    for each in events:
        if each.__class__ is not TraceEvent:
            return False
        if each.type == "tool_call":
            payload = each.payload
            if payload.__class__ is not dict or payload.get("status") is None:
                return False
            tool_calls.append(payload)
    return True


def _with_statuses(events: Sequence[Any]) -> Sequence[Any]:
    """The events, in which tool calls that say by other facts whether they failed have a status."""
    known: dict[int, Any] = {}
    for position, each in enumerate(events):
        if each.type == "tool_call" and each.__class__ is TraceEvent and each.payload.__class__ is dict:
            payload = each.payload
            if payload.get("status") is None and (status := tool_status(payload)) is not None:
                known[position] = msgspec.structs.replace(each, payload={**payload, "status": status})
    return [known.get(position, each) for position, each in enumerate(events)] if known else events


def _uniform_outcome(outcome: Any) -> Any:
    if isinstance(outcome, (str, bool, int, float, list)):
        return Outcome(output=outcome)
    read = Outcome() if outcome is None else as_outcome(outcome)
    return read if isinstance(read, Outcome) or type(read) is OwnPart else OwnPart(read, Outcome)


def _is_something(outcome: Any) -> bool:
    return (
        not isinstance(outcome, Outcome)
        or outcome.output is not None
        or outcome.error is not None
        or outcome.state is not None
        or outcome.extra is not None
    )


def _is_work(trace: Any) -> bool:
    # A user's own objects are for the metrics to judge.
    if not isinstance(trace, TraceLog) or any((trace.interactions, trace.handoffs, trace.conflicts, trace.extra)):
        return True
    return not all(map(_is_question, trace.events or ()))


def _is_question(event: Any) -> bool:
    """Whether an event is only what the agent was asked or instructed to be."""
    if event.__class__ is not TraceEvent or event.type != "message" or event.payload.__class__ is not dict:
        return False
    return event.payload.get("role") in _ASKING_ROLES


def _events_of(trace: Any) -> Sequence[Any]:
    events = trace.events or ()
    if {each.__class__ for each in events} <= {TraceEvent}:
        return events
    try:
        read = [as_event(each) for each in events]
    except RecordError as error:
        raise InputProblem(f"trace.events must hold events: {error}") from None
    for position, each in enumerate(read):
        if not isinstance(getattr(each, "type", None), str) or not hasattr(each, "payload"):
            raise InputProblem(f"trace.events[{position}] must be an event; received {each!r:.80}")
    return read


def payload_of(event: Any) -> dict[str, Any]:
    """An event's payload, which must be a dict."""
    payload = event.payload
    return payload if payload.__class__ is dict else _mapping(f"the payload of a {event.type} event", payload)


def _mapping(place: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputProblem(f"{place} must be a dict; received {value!r:.80}")
    return dict(value)


def case_texts(case: Any) -> list[str]:
    """The passages of ``case_passages`` alone.

    >>> case_texts(DatasetCase("q1", context=["Paris", " ", "Rome"]))
    ['Paris', 'Rome']
    """
    received = case.context
    if received.__class__ is list and all(text.__class__ is str for text in received):
        return [text for text in received if text and not text.isspace()]
    return [text for _, text in case_passages(case)]


def case_passages(case: Any) -> list[tuple[int, str]]:
    """The context of a case, texts or one text, each with its place. A blank one says nothing, and is in every answer.

    >>> case_passages(DatasetCase("q1", context=["Paris", " ", "Rome"]))
    [(0, 'Paris'), (2, 'Rome')]
    """
    received = case.context
    if not received:
        return []
    texts = [received] if isinstance(received, str) else received
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise InputProblem(f"case.context must be a list of texts; received {received!r:.80}")
    return [(at, text) for at, text in enumerate(texts) if text.strip()]


def retrieved_documents(trace: Any) -> list[str]:
    """The texts of a trace's ``retrieval`` events: strings, or dicts with ``text``, ``content`` or ``page_content``."""
    return [text for _, _, text in retrieved_by_query(trace)]


def retrieved_by_query(trace: Any) -> list[tuple[Any, int, str]]:
    """The same, each with the query of its event and its number among that event's documents, from 1."""
    texts: list[tuple[Any, int, str]] = []
    for event in _events_of(trace):
        if event.type != "retrieval":
            continue
        payload = payload_of(event)
        documents = payload.get("documents") or ()
        if not isinstance(documents, (list, tuple)):
            documents = (documents,)
        for number, document in enumerate(documents, 1):
            candidates = [document]
            if isinstance(document, dict):
                candidates = [document.get(key) for key in ("text", "content", "page_content")]
            found = [text for text in candidates if isinstance(text, str) and text.strip()][:1]
            texts += [(payload.get("query"), number, text) for text in found]
    return texts


def no_answer(item: Item) -> str:
    """Why there is no answer, with the name it may have been given instead."""
    return "no answer: outcome.output is missing" + _misnamed(item.outcome, "outcome", _MISNAMED_OUTPUT)


def no_context(item: Item) -> str:
    """Why there is no context."""
    blank = blank_context(item)
    if blank is not None:
        return f"no context: {blank}, and no documents of retrieval events"
    return "no context: neither case.context nor documents of retrieval events"


def blank_context(item: Item) -> str | None:
    """What is in a context in which no passage says anything; ``None`` where it has none, or one that does.

    >>> blank_context(Item({"id": "q1", "context": ["", "  "]}, None, "So."))
    'case.context holds 2 passages, all blank'
    """
    received = item.case.context
    if not received or case_texts(item.case):
        return None
    n_passages = 1 if isinstance(received, str) else len(received)
    return "case.context holds " + ("1 blank passage" if n_passages == 1 else f"{n_passages:,} passages, all blank")


def nothing_expected(item: Item) -> str:
    """Why there is nothing to compare with, with the name it may have been given instead."""
    found = _misnamed(item.case, "case", _MISNAMED_EXPECTED)
    return "nothing to compare with: case.expected_output is missing" + found


def _misnamed(part: Any, where: str, names: Sequence[str]) -> str:
    unknown = part.extra or {}
    found = next((name for name in names if name in unknown), None)
    return f" (found {where}.{found}, which is not read)" if found else ""


def acceptable_answers(expected: Any) -> list[str]:
    """The texts that count as the expected answer: a string, each string of a list, or the JSON of other data.

    >>> acceptable_answers("Paris"), acceptable_answers(["4", "four"]), acceptable_answers(4), acceptable_answers(None)
    (['Paris'], ['4', 'four'], ['4'], [])
    """
    if isinstance(expected, str):
        return [expected]
    if isinstance(expected, (list, tuple)) and expected and all(isinstance(each, str) for each in expected):
        return list(expected)
    text = None if expected == [] else outcome_text(Outcome(output=expected))
    return [] if text is None else [text]


def same_data(expected: Any, item: Item) -> bool:
    """Whether the answer, read as JSON, is the expected data: spacing, order of names and 4 or 4.0 do not matter."""
    if isinstance(expected, str) or not acceptable_answers(expected):
        return False
    output = item.outcome.output
    if isinstance(output, str):
        try:
            output = msgspec.json.decode(output)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
    return json_equal(expected, output)


def number_at(place: str, value: Any) -> float | None:
    """A finite number of zero or more found at a place of the record; ``None`` when there is none.

    >>> number_at("trace.metadata['cost']", "cheap")
    Traceback (most recent call last):
    ...
    agentunit.metrics.inputs.InputProblem: trace.metadata['cost'] must be a finite number of 0 or more; received 'cheap'
    """
    if value is None:
        return None
    if value.__class__ is float and 0 <= value < _LARGEST_AMOUNT:
        return value
    # A bool is an int but no amount; numbers of other libraries offer __float__.
    if isinstance(value, (int, float)) or hasattr(value, "__float__"):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        # The upper bound is false for NaN, and leaves room to add many such numbers up.
        if not isinstance(value, bool) and 0 <= number < _LARGEST_AMOUNT:
            return number
    raise InputProblem(f"{place} must be a finite number of 0 or more; received {value!r:.80}")

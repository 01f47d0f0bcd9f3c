"""Records that were made one a trace, put together by the session that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.outcome import Outcome, outcome_text
from agentunit.core.records import Record
from agentunit.core.trace import TraceEvent, TraceLog


class SessionRecords:
    """Holds the records of sessions, encoded, until all were seen; records without a session pass."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[bytes]] = {}

    def hold(self, record: Record) -> bool:
        """Take a record in; false when it names no session."""
        session = record.trace.metadata.get("session_id")
        if not isinstance(session, str) or not session or record.case.id == session:
            return False
        self._sessions.setdefault(session, []).append(encode_record(record))
        return True

    def merged(self) -> Iterator[Record]:
        """One record a session, in the order in which the sessions were met."""
        for session, lines in self._sessions.items():
            yield merge([decode_record(line) for line in lines], session)


def merge(records: Sequence[Record], session_id: str) -> Record:
    """The records of one session as one: the first question, the last answer, and all that happened between."""
    ordered = sorted(records, key=_began)
    events = [event for record in ordered for event in _turn(record)]
    metadata: dict[str, Any] = {**ordered[0].trace.metadata, "session_id": session_id}
    metadata["trace_id"] = [record.trace.metadata.get("trace_id", record.case.id) for record in ordered]
    for name in ("duration_s", "usage", "usage_from", "cost"):
        metadata.pop(name, None)
    costs = [record.trace.metadata.get("cost") for record in ordered]
    if all(isinstance(cost, (int, float)) for cost in costs):
        metadata["cost"] = sum(costs)
    traces = [record.trace for record in ordered]
    trace = TraceLog(
        events,
        metadata,
        [each for trace in traces for each in trace.interactions],
        [each for trace in traces for each in trace.handoffs],
        [each for trace in traces for each in trace.conflicts],
        {name: role for trace in traces for name, role in trace.agent_roles.items()},
    )
    expected = next((each.case.expected_output for each in ordered if each.case.expected_output is not None), None)
    case = DatasetCase(session_id, next((each.case.query for each in ordered if each.case.query), None), expected)
    answer = next((text for each in reversed(ordered) if (text := outcome_text(each.outcome))), None)
    error = getattr(ordered[-1].outcome, "error", None)
    return Record(
        case, trace, Outcome(success=getattr(ordered[-1].outcome, "success", None), output=answer, error=error)
    )


def _began(record: Record) -> float:
    times = [event.timestamp for event in record.trace.events if event.timestamp is not None]
    return min(times, default=float("inf"))


def _turn(record: Record) -> list[TraceEvent]:
    """The events of one turn, with its question and answer where no message holds them."""
    events = record.trace.events
    said = {event.payload.get("content") for event in events if event.type == "message"}
    times = [event.timestamp for event in events if event.timestamp is not None]
    asked, answered = record.case.query, outcome_text(record.outcome)
    before = [TraceEvent("message", {"role": "user", "content": asked}, min(times, default=None))]
    after = [TraceEvent("message", {"role": "assistant", "content": answered}, max(times, default=None))]
    return [
        *(before if asked and asked not in said else ()),
        *events,
        *(after if answered and answered not in said else ()),
    ]

"""A trace format: one JSON object a line with a ticket, what the customer asked and what the agent answered."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes


def _matches(opening: Opening) -> bool:
    return {"ticket", "customer", "agent"} <= opening.keys


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    for number, line in enumerate(source.stream, start=1):
        if not line.strip():
            continue
        try:
            ticket = json.loads(line)
            case = DatasetCase(str(ticket["ticket"]), str(ticket["customer"]))
            yield Record(case, TraceLog(), Outcome(output=str(ticket["agent"])))
        except (ValueError, KeyError, TypeError) as error:
            yield InputError(source.name, number, f"not a ticket: {type(error).__name__}: {error}")


TICKETS = TraceFormat("tickets", "tickets of a support desk: {ticket, customer, agent}", _matches, _read)

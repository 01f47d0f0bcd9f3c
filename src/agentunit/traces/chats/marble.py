"""Runs of MARBLE (MultiAgentBench): iterations of assigned tasks, their results, and the talk between agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from agentunit.core.interactions import AgentInteraction
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.traces.chats.conversation import Conversation
from agentunit.traces.chats.rows import CaseIds, NoConversation, file_rows, records_of_rows, row_facts
from agentunit.traces.chats.values import as_dict, as_list, text_of, token_counts, without_nones
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

_SESSION = re.compile(r"In Session (\S+)")
_SENT = re.compile(r"^From (\S+) to (\S+): ", re.M)
_UNREADABLE_TALK = "a communication names no sender and receiver; it was kept as an event"


def _matches(opening: Opening) -> bool:
    return {"coordination_mode", "iterations", "task"} <= opening.keys


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    yield from records_of_rows(source, file_rows(source), lambda row, _: _record(row, ids, notes))


def _record(row: Any, ids: CaseIds, notes: ReadingNotes) -> Record:
    run = as_dict(row)
    iterations = run.get("iterations")
    if not isinstance(iterations, list):
        raise NoConversation(f"a MARBLE run needs a list of 'iterations'; received {iterations!r:.60}")
    talk = Conversation(notes)
    interactions: list[AgentInteraction] = []
    for each in iterations:
        _add_iteration(talk, interactions, as_dict(each))
    facts = row_facts(run, "iterations")
    metadata = without_nones(
        source_format=MARBLE.name,
        usage=token_counts({"total_tokens": facts.metadata.pop("token_usage", None)}, notes),
        coordination_mode=run.get("coordination_mode"),
    )
    trace = TraceLog(talk.events, metadata, interactions)
    return Record(facts.case(ids, "run", None), trace, Outcome(facts.success, talk.last_answer))


def _add_iteration(talk: Conversation, interactions: list[AgentInteraction], iteration: dict[str, Any]) -> None:
    number = iteration.get("iteration")
    for agent, task in as_dict(iteration.get("task_assignments")).items():
        talk.events.append(TraceEvent("task_assignment", {"agent": agent, "content": task, "iteration": number}))
    for communication in as_list(iteration.get("communications")):
        found = list(_sent(communication, number))
        if not found:
            talk.notes.problems[_UNREADABLE_TALK] += 1
            talk.events.append(TraceEvent("communication", {"content": communication, "iteration": number}))
        interactions += found
        for each in found:
            talk.say("assistant", each.content, agent=each.from_agent, to_agent=each.to_agent)
    for worker, result in _results(iteration.get("task_results")):
        talk.events.append(TraceEvent("task_result", {"agent": worker, "content": result, "iteration": number}))
    talk.say("assistant", text_of(iteration.get("summary")))


def _sent(communication: Any, iteration: Any) -> Iterator[AgentInteraction]:
    if not isinstance(communication, str):
        return
    session = _SESSION.match(communication)
    metadata = without_nones(session=session[1] if session else None, iteration=iteration)
    found = list(_SENT.finditer(communication))
    for each, following in zip_longest(found, found[1:]):
        text = communication[each.end() : following.start() if following else len(communication)].strip()
        yield AgentInteraction(each[1], each[2], content=text, success=None, metadata=dict(metadata))


def _results(results: Any) -> Iterator[tuple[str | None, Any]]:
    """Agent and result of each entry: ``{"agent_id": …, "result": …}``, or ``{agent: result}``."""
    for each in as_list(results):
        entry = as_dict(each)
        if "agent_id" in entry:
            yield str(entry["agent_id"]), entry.get("result")
        else:
            yield from entry.items()


MARBLE = TraceFormat("marble", "runs of MARBLE (MultiAgentBench): {task, iterations, …}", _matches, _read)

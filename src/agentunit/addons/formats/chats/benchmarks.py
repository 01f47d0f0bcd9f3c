"""Results of agent benchmarks that run many agents or tasks: HAL and MARBLE (MultiAgentBench)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from agentunit.addons.formats.chats._chat_logs import add_message
from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_records import RowContext, chat_format, listed_in, row_facts
from agentunit.addons.formats.chats.loose_values import (
    as_dict,
    as_list,
    as_name,
    as_time,
    count_unknown,
    text_of,
    token_counts,
    without_nones,
)
from agentunit.addons.formats.chats.tau import solved
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.results import InputError, decode_json
from agentunit.core.trace import AgentInteraction, TraceEvent, TraceLog
from agentunit.traces.formats_base import Opening, Source
from agentunit.traces.json_files.stream import JsonRow, file_rows
from agentunit.traces.places import names_in

# Fields that are read, and those that tell nothing about what was done.
_HAL_TASK = names_in("messages call_metadata model call_count")
_MARBLE_ITERATION = names_in(
    "iteration task_assignments task_results summary communications continue_simulation total_milestones agent_kpis "
    "root_agent result chain_length current_agent"
)
_SESSION = re.compile(r"In Session (\S+)")
_SENT = re.compile(r"^From (\S+) to (\S+): ", re.M)
_UNREADABLE_TALK = "a communication names no sender and receiver; it was kept as an event"
_LOGGED_TASKS = re.compile(rb'"raw_logging_results"\s*:\s*\{')


def _hal_rows(source: Source) -> Iterator[JsonRow | InputError]:
    """The tasks of a result file, each with its name."""
    for row in file_rows(source):
        if isinstance(row, InputError):
            yield row
            continue
        try:
            results = as_dict(decode_json(row.data))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            yield InputError(source.name, row.line, f"not valid JSON: {error}")
            continue
        for name, task in as_dict(results.get("raw_logging_results")).items():
            score = as_dict(results.get("raw_eval_results")).get(name)
            yield JsonRow(msgspec.json.encode(task), row.line, {"name": name, "score": score}, f"task {name}")


def _hal_record(row: Any, context: RowContext) -> Record:
    task, messages = listed_in(row, "messages", "a task of HAL")
    count_unknown(context.notes, task, _HAL_TASK)
    talk = Conversation(context.notes)
    for message in messages:
        add_message(talk, message)
    model = as_name(task.get("model"))
    for call in map(as_dict, as_list(task.get("call_metadata"))):
        usage = token_counts(call.get("usage"), context.notes)
        talk.model_call(usage, model=model, at=as_time(call.get("started_at")))
    score = context.around["score"]
    return Record(
        DatasetCase(context.ids.unique(context.around["name"]), talk.first_asked),
        TraceLog(talk.events, without_nones(source_format=HAL.name, model=model)),
        Outcome(solved(as_dict(score).get("reward")), talk.last_answer, metadata=without_nones(score=score)),
    )


HAL = chat_format(
    "hal",
    "result files of HAL (RUN_UPLOAD.json): the conversation of each task in raw_logging_results",
    lambda opening: _LOGGED_TASKS.search(opening.head) is not None,
    _hal_record,
    rows=_hal_rows,
)


def _matches_marble(opening: Opening) -> bool:
    return {"coordination_mode", "iterations", "task"} <= opening.keys


def _marble_record(row: Any, context: RowContext) -> Record:
    run, iterations = listed_in(row, "iterations", "a MARBLE run")
    talk = Conversation(context.notes)
    interactions: list[AgentInteraction] = []
    for each in iterations:
        _add_iteration(talk, interactions, as_dict(each))
    facts = row_facts(run, "iterations")
    metadata = without_nones(
        source_format=MARBLE.name,
        usage=token_counts({"total_tokens": facts.metadata.pop("token_usage", None)}, context.notes),
        coordination_mode=run.get("coordination_mode"),
    )
    trace = TraceLog(talk.events, metadata, interactions)
    return Record(facts.case(context, None, "run"), trace, Outcome(facts.success, talk.last_answer))


def _add_iteration(talk: Conversation, interactions: list[AgentInteraction], iteration: dict[str, Any]) -> None:
    count_unknown(talk.notes, iteration, _MARBLE_ITERATION, "iterations")
    number = iteration.get("iteration", iteration.get("chain_length"))
    assigned, communications = iteration.get("task_assignments"), iteration.get("communications")
    # In a tree, each agent with others below it assigns tasks, and what all said is one text.
    for agent, task in _pairs(assigned if isinstance(assigned, list) else [assigned]):
        talk.events.append(TraceEvent("task_assignment", {"agent": agent, "content": task, "iteration": number}))
    for communication in [communications] if isinstance(communications, str) else as_list(communications):
        found = list(_sent(communication, number))
        if not found and communication:
            talk.notes.problems[_UNREADABLE_TALK] += 1
            talk.events.append(TraceEvent("communication", {"content": communication, "iteration": number}))
        interactions += found
        for each in found:
            talk.say("assistant", each.content, agent=each.from_agent, to_agent=each.to_agent)
    worker = as_name(iteration.get("current_agent", iteration.get("root_agent")))
    own = [{"agent_id": worker, "result": iteration["result"]}] if iteration.get("result") is not None else []
    for worker, result in _pairs(as_list(iteration.get("task_results")) + own):
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


def _pairs(entries: list[Any]) -> Iterator[tuple[str | None, Any]]:
    """Agent and task or result of each entry: ``{"agent_id": …, "result": …}``, or ``{agent: result}``."""
    for entry in map(as_dict, entries):
        yield from [(entry["agent_id"], entry.get("result"))] if "agent_id" in entry else entry.items()


MARBLE = chat_format(
    "marble", "runs of MARBLE (MultiAgentBench): {task, iterations, …}", _matches_marble, _marble_record
)

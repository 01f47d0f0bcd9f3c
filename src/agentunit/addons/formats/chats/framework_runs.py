"""What a run returns in CrewAI and in smolagents, written as JSON: messages by task, or steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentunit.addons.formats.chats._chat_logs import add_message
from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_records import NoConversation, RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import (
    as_dict,
    as_list,
    as_name,
    count_unknown,
    text_of,
    usage_counts,
    without_nones,
)
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.traces.formats_base import Opening
from agentunit.traces.places import names_in

_CREW_FIELDS = names_in("raw pydantic json_dict tasks_output token_usage")
_TASK_FIELDS = names_in(
    "description name expected_output summary raw pydantic json_dict agent output_format messages tool_failures"
)
_STEP_FIELDS = names_in(
    "task task_images step_number timing model_input_messages tool_calls error model_output_message model_output "
    "code_action observations observations_images action_output token_usage is_final_answer plan system_prompt"
)
_RUN_FIELDS = names_in("output state steps timing token_usage messages")


_LOG_FIELDS = names_in("timestamp task_name task agent status output")


def _crew_matches(opening: Opening) -> bool:
    return {"raw", "tasks_output", "token_usage"} <= opening.keys or _is_log_entry(opening.value)


def _is_log_entry(value: Any) -> bool:
    """Whether this is an entry of the log of tasks that a crew writes (``output_log_file``)."""
    return isinstance(value, dict) and {"task_name", "task", "agent", "status", "timestamp"} <= value.keys()


def _logged_record(entries: list[Any], context: RowContext) -> Record:
    talk = Conversation(context.notes)
    for entry in entries:
        count_unknown(context.notes, entry, _LOG_FIELDS)
        if entry["status"] == "started" and talk.first_asked is None:
            talk.say("user", text_of(entry["task"]))
        talk.say("assistant", text_of(entry.get("output")), agent=as_name(entry["agent"]))
    case = DatasetCase(context.ids.unique(context.fallback_id), talk.first_asked)
    return Record(case, TraceLog(talk.events, {"source_format": CREWAI.name}), Outcome(output=talk.last_answer))


def _crew_record(row: Any, context: RowContext) -> Record:
    if isinstance(row, list):
        return _logged_record(row, context)
    crew = as_dict(row)
    tasks = [each for each in as_list(crew.get("tasks_output")) if isinstance(each, dict)]
    if not tasks:
        raise NoConversation("the result of a crew has no list of 'tasks_output'")
    count_unknown(context.notes, crew, _CREW_FIELDS)
    talk = Conversation(context.notes)
    for task in tasks:
        count_unknown(context.notes, task, _TASK_FIELDS, "tasks_output")
        agent = as_name(task.get("agent"))
        for message in _with_failures(task):
            add_message(talk, message, agent=agent if message.get("role") == "assistant" else None)
        if not as_list(task.get("messages")):
            talk.say("assistant", text_of(task.get("raw")), agent=agent)
    usage = usage_counts(crew.get("token_usage"), context.notes)
    metadata = without_nones(source_format=CREWAI.name, usage=usage)
    # The messages hold the task within CrewAI's own words; its description is what was asked.
    case = DatasetCase(context.ids.unique(context.fallback_id), text_of(tasks[0].get("description")))
    output = text_of(crew.get("raw")) or talk.last_answer
    return Record(case, TraceLog(talk.events, metadata), Outcome(output=output))


def _with_failures(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages of a task, in which the results of tools that failed say so: CrewAI lists failures beside them."""
    failures = [as_dict(each) for each in as_list(task.get("tool_failures"))]
    for message in as_list(task.get("messages")):
        found = None
        if as_dict(message).get("role") == "tool":
            found = next((each for each in failures if _is_result_of(message, each)), None)
        if found is None:
            yield message
        else:
            failures.remove(found)
            yield {**message, "error": as_dict(found.get("failure")).get("message") or "the tool failed"}


def _is_result_of(message: dict[str, Any], failure: dict[str, Any]) -> bool:
    said = as_name(as_dict(failure.get("failure")).get("message"))
    return message.get("name") == failure.get("tool_name") and (said or "") in (text_of(message.get("content")) or "")


def _is_step(value: Any) -> bool:
    step = as_dict(value)
    return {"task", "task_images"} <= step.keys() or {"step_number", "is_final_answer"} <= step.keys()


def _smolagents_matches(opening: Opening) -> bool:
    value = opening.value
    first = next(iter(as_list(as_dict(value).get("steps"))), value)
    return _is_step(first[0] if isinstance(first, list) and first else first)


def _smolagents_record(row: Any, context: RowContext) -> Record:
    run = as_dict(row)
    steps = row if isinstance(row, list) else run.get("steps")
    if not isinstance(steps, list):
        raise NoConversation("a run of smolagents is a list of steps, or an object with 'steps'")
    count_unknown(context.notes, run, _RUN_FIELDS)
    talk = Conversation(context.notes)
    answer = run.get("output")
    for step in map(as_dict, steps):
        count_unknown(context.notes, step, _STEP_FIELDS, "steps")
        for message in _messages_of(step):
            add_message(talk, message)
        last = step.get("action_output")
        if last is not None and (step.get("is_final_answer") is True or not step.get("model_output_message")):
            answer = last if answer is None else answer
    failed = as_name(run.get("state")) if run.get("state") != "success" else None
    if failed is None:
        # An error of the last step is that of the run: a limit, as a rule.
        failed = as_name(as_dict(as_dict(steps[-1]).get("error")).get("message")) if steps else None
    metadata = without_nones(source_format=SMOLAGENTS.name, exit_status=as_name(run.get("state")))
    case = DatasetCase(context.ids.unique(context.fallback_id), talk.first_asked)
    output = answer if answer is not None else talk.last_answer
    return Record(case, TraceLog(talk.events, metadata), Outcome(output=output, error=failed))


def _messages_of(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A step of smolagents as messages: the task, or what the model called and what came back."""
    if step.get("task") is not None:
        yield {"role": "user", "content": step["task"]}
        return
    said = as_dict(step.get("model_output_message"))
    calls = as_list(step.get("tool_calls")) or as_list(said.get("tool_calls"))
    model = as_dict(said.get("raw")).get("model")
    usage = step.get("token_usage")
    yield {"role": "assistant", "content": said.get("content"), "tool_calls": calls, "usage": usage, "model": model}
    error, seen = as_dict(step.get("error")), step.get("observations")
    for call in calls:
        result = {"role": "tool", "tool_call_id": as_dict(call).get("id"), "content": seen}
        if error:
            yield {**result, "content": seen or error.get("message"), "error": error.get("message") or "failed"}
        elif seen is not None or step.get("action_output") is not None:
            yield {**result, "content": seen if seen is not None else text_of(step["action_output"])}


CREWAI = chat_format(
    "crewai",
    "what a crew of CrewAI returns, as JSON: {raw, tasks_output, token_usage}, and its log of tasks",
    _crew_matches,
    _crew_record,
    is_part=_is_log_entry,
)
SMOLAGENTS = chat_format(
    "smolagents",
    "runs of smolagents: the steps of an agent's memory, or a RunResult",
    _smolagents_matches,
    _smolagents_record,
    is_part=_is_step,
)

"""Simulations of tau2-bench: the agent's own tokens, cost and tool calls, apart from those of the simulated user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceLog
from agentunit.traces.chats.conversation import Conversation, payload_of_function
from agentunit.traces.chats.rows import CaseIds, NoConversation, file_rows, records_of_rows
from agentunit.traces.chats.tau import expected_calls, solved
from agentunit.traces.chats.values import (
    add_counts,
    as_amount,
    as_dict,
    as_list,
    as_name,
    as_time,
    text_of,
    token_counts,
    without_nones,
)
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

# What either side says to end a simulation is a signal to the simulator, no answer.
_SIGNALS = frozenset(("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"))
# Tools of the simulated user are no doing of the agent: metrics do not count events of this type.
_USER_CALL = "user_tool_call"
_UNREADABLE_MESSAGE = "a message has no known role; it was left out"
_UNREADABLE_CALL = "a tool call has no name; it was left out"


def _matches(opening: Opening) -> bool:
    if {"messages", "reward_info", "termination_reason"} <= opening.keys:
        return True
    if "simulations" in opening.keys and opening.keys & {"tasks", "info"}:
        return True
    # In a long file the tasks may reach beyond what was looked at.
    return {"info", "tasks"} <= opening.keys and b'"agent_info"' in opening.head and b'"user_info"' in opening.head


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    rows = file_rows(source, "simulations")
    yield from records_of_rows(source, rows, lambda row, around: _record(row, around, ids, notes))


class _Simulation(Conversation):
    """A conversation in which the user has a model and tools too."""

    def __init__(self, notes: ReadingNotes, model: str | None) -> None:
        super().__init__(notes)
        self.model = model
        self.user_usage: dict[str, int] = {}

    def add(self, value: Any) -> None:
        message = as_dict(value)
        role = message.get("role")
        at = as_time(message.get("timestamp"))
        if role == "tool":
            for each in as_list(message.get("tool_messages")) or [message]:
                self._add_result(as_dict(each))
        elif role in ("assistant", "user", "system"):
            self._add_words(role, message, at)
            self._add_calls(role, message, at)
        else:
            self.notes.problems[_UNREADABLE_MESSAGE] += 1

    def _add_words(self, role: str, message: dict[str, Any], at: float | None) -> None:
        usage = token_counts(message.get("usage"), self.notes)
        cost = as_amount(message.get("cost"))
        if role == "assistant":
            model = as_name(as_dict(message.get("raw_data")).get("model")) or self.model
            # The greeting is written by the simulator: no usage, a cost of nothing.
            self.model_call(usage, model=model, cost=cost if usage else cost or None, at=at)
        else:
            add_counts(self.user_usage, usage)
        text = text_of(message.get("content"))
        answer_so_far = self.last_answer
        own: dict[str, Any] = {"usage": usage, "cost": cost} if role == "user" else {}
        self.say(role, text, at=at, errors=as_list(message.get("errors")) or None, **own)
        if (text or "").strip() in _SIGNALS:
            self.last_answer = answer_so_far

    def _add_calls(self, role: str, message: dict[str, Any], at: float | None) -> None:
        for each in as_list(message.get("tool_calls")):
            call = payload_of_function(each)
            if call is None:
                self.notes.problems[_UNREADABLE_CALL] += 1
                continue
            name, arguments, call_id = call
            requestor = as_dict(each).get("requestor", role)
            self.call(name, arguments, call_id=call_id, at=at, kind=_kind(requestor))

    def _add_result(self, message: dict[str, Any]) -> None:
        call_id = message.get("id", message.get("tool_call_id"))
        self.result(
            text_of(message.get("content")),
            call_id=call_id if isinstance(call_id, str) else None,
            name=as_name(message.get("name")),
            failed=message.get("error") is True,
            at=as_time(message.get("timestamp")),
            kind=_kind(message.get("requestor")),
        )


def _kind(requestor: Any) -> str:
    return _USER_CALL if requestor == "user" else "tool_call"


def _record(row: Any, around: dict[str, Any], ids: CaseIds, notes: ReadingNotes) -> Record:
    simulation = as_dict(row)
    messages = simulation.get("messages")
    if not isinstance(messages, list):
        raise NoConversation(f"a tau2 simulation needs a list of 'messages'; received {messages!r:.60}")
    info = as_dict(around.get("info"))
    agent = as_name(as_dict(info.get("agent_info")).get("llm")) or as_name(simulation.get("agent"))
    talk = _Simulation(notes, agent)
    for message in messages:
        talk.add(message)
    duration_s = as_amount(simulation.get("duration"))
    case = _case(simulation, around, ids, talk.first_asked)
    metadata = without_nones(
        source_format=TAU2.name,
        trace_id=as_name(simulation.get("id")),
        cost=as_amount(simulation.get("agent_cost")),
        user_cost=as_amount(simulation.get("user_cost")),
        user_usage=talk.user_usage or None,
        user_model=as_name(as_dict(info.get("user_info")).get("llm")),
        model=agent,
        duration_s=duration_s,
        start_time=as_time(simulation.get("start_time")),
        end_time=as_time(simulation.get("end_time")),
        termination_reason=simulation.get("termination_reason"),
    )
    reward_info = as_dict(simulation.get("reward_info"))
    outcome = Outcome(
        solved(reward_info.get("reward")),
        talk.last_answer,
        elapsed_s=duration_s,
        metadata=without_nones(reward=reward_info.get("reward"), reward_info=reward_info or None),
    )
    return Record(case, TraceLog(talk.events, metadata), outcome)


def _case(simulation: dict[str, Any], around: dict[str, Any], ids: CaseIds, query: str | None) -> DatasetCase:
    task_id, trial = as_name(simulation.get("task_id")), as_name(simulation.get("trial"))
    task = next((t for t in map(as_dict, as_list(around.get("tasks"))) if as_name(t.get("id")) == task_id), {})
    actions = as_dict(task.get("evaluation_criteria")).get("actions")
    checks = as_dict(simulation.get("reward_info")).get("action_checks")
    if not isinstance(actions, list) and isinstance(checks, list):
        actions = [as_dict(check).get("action") for check in checks]
    environment = as_dict(as_dict(around.get("info")).get("environment_info"))
    domain = as_name(environment.get("domain_name")) or as_name(simulation.get("domain"))
    named = [part for part in (domain, task_id or "task", f"trial-{trial}" if trial else None) if part]
    return DatasetCase(
        ids.unique("/".join(named)),
        query,
        metadata=without_nones(
            task_id=simulation.get("task_id"),
            trial=simulation.get("trial"),
            domain=domain,
            seed=simulation.get("seed"),
            source=simulation.get("source"),
            instruction=as_dict(task.get("user_scenario")).get("instructions"),
            expected_tool_calls=expected_calls(_requested_by(actions, user=False)),
            expected_user_tool_calls=expected_calls(_requested_by(actions, user=True)) or None,
        ),
    )


def _requested_by(actions: Any, user: bool) -> list[Any] | None:
    if not isinstance(actions, list):
        return None
    return [action for action in actions if (as_dict(action).get("requestor") == "user") == user]


TAU2 = TraceFormat(
    "tau2",
    'tau2-bench simulations: {"simulations": […], "tasks": […]}, or one simulation a line',
    _matches,
    _read,
)

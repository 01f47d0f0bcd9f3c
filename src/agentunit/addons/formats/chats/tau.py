"""Results of tau-bench, and of tau2-bench, whose user has a model and tools as well: both are told apart."""

from __future__ import annotations

from functools import partial
from typing import Any

from agentunit.addons.formats.chats._chat_logs import add_message
from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_records import RowContext, chat_format, listed_in
from agentunit.addons.formats.chats.loose_values import (
    add_counts,
    as_amount,
    as_dict,
    as_list,
    as_name,
    as_number,
    as_time,
    count_unknown,
    text_of,
    token_counts,
    without_nones,
)
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.traces.formats_base import Opening
from agentunit.traces.json_files.stream import file_rows
from agentunit.traces.places import names_in
from agentunit.traces.spans import ReadingNotes

# Rewards are products of floats; tau-bench itself calls a task solved from here on.
_SOLVED_FROM = 1 - 1e-6
# What either side says to end a simulation is a signal to the simulator, no answer.
_SIGNALS = frozenset(("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"))
# Tools of the simulated user are no doing of the agent: metrics do not count events of this type.
_USER_CALL = "user_tool_call"
# Fields that are read, and those that tell nothing about what was done.
_TAU_FIELDS = names_in("task_id reward info traj trial")
_TAU_INFO = names_in("task source user_cost reward_info error traceback")
_TAU2_FIELDS = names_in(
    "id task_id timestamp start_time end_time duration termination_reason agent_cost user_cost agent_usage reward_info "
    "messages ticks trial seed mode speech_environment review user_only_review info auth_classification "
    "hallucination_retries_used hallucination_check provider_session_id policy effect_timeline agent domain source"
)
_TAU2_MESSAGE = names_in(
    "role content tool_calls tool_messages id name tool_call_id requestor error errors turn_idx timestamp cost usage "
    "raw_data generation_time_seconds context_truncation is_audio audio_format audio_content audio_path "
    "audio_script_gold speech_effects source_effects channel_effects turn_taking_action utterance_ids chunk_id "
    "is_final_chunk source contains_speech"
)
_NO_ROLE = "a message has no known role; it was left out"


def _says_error(result: str) -> bool:
    """tau-bench's convention: its tools have no error flag, a failed one answers with a text that begins "Error:".

    >>> _says_error("Error: user not found"), _says_error('{"error": null}')
    (True, False)
    """
    return result.startswith("Error:")


def _expected_calls(actions: Any) -> list[dict[str, Any]] | None:
    """A task's actions as expected tool calls; ``None`` when none are stated."""
    if not isinstance(actions, list):
        return None
    calls = []
    for each in actions:
        action = as_dict(each)
        if name := as_name(action.get("name")):
            arguments = action.get("kwargs", action.get("arguments"))
            # No argument is compared: any will do.
            ignored = action.get("compare_args") == []
            calls.append({"name": name, **({"arguments": as_dict(arguments)} if not ignored else {})})
    return calls


def _trial_name(result: dict[str, Any], domain: str | None = None) -> str:
    """What one try at a task is called: by domain, task and trial."""
    task_id, trial = as_name(result.get("task_id")) or "task", as_name(result.get("trial"))
    return "/".join(part for part in (domain, task_id, f"trial-{trial}" if trial else None) if part)


def solved(reward: Any) -> bool | None:
    """Whether a reward means that the task was solved."""
    number = as_number(reward)
    return None if number is None else number >= _SOLVED_FROM


def _matches_tau(opening: Opening) -> bool:
    return {"task_id", "reward", "traj"} <= opening.keys


def _tau_record(row: Any, context: RowContext) -> Record:
    result, trajectory = listed_in(row, "traj", "a tau-bench result")
    talk = Conversation(context.notes)
    for message in trajectory:
        add_message(talk, message, says_error=_says_error)
    info = as_dict(result.get("info"))
    count_unknown(context.notes, result, _TAU_FIELDS)
    count_unknown(context.notes, info, _TAU_INFO, "info")
    task = as_dict(info.get("task"))
    case = DatasetCase(
        context.ids.unique(_trial_name(result)),
        talk.first_asked,
        metadata=without_nones(
            task_id=result.get("task_id"),
            trial=result.get("trial"),
            instruction=task.get("instruction"),
            user_id=task.get("user_id"),
            expected_tool_calls=_expected_calls(task.get("actions")),
            expected_outputs=as_list(task.get("outputs")) or None,
        ),
    )
    metadata = without_nones(source_format=TAU_BENCH.name, user_cost=as_amount(info.get("user_cost")))
    outcome = Outcome(
        solved(result.get("reward")),
        talk.last_answer,
        error=as_name(info.get("error")),
        metadata=without_nones(reward=result.get("reward"), reward_info=info.get("reward_info")),
    )
    return Record(case, TraceLog(talk.events, metadata), outcome)


TAU_BENCH = chat_format(
    "tau-bench",
    "tau-bench results: {task_id, reward, info, traj, trial}, as an array or one per line",
    _matches_tau,
    _tau_record,
)


def _matches_tau2(opening: Opening) -> bool:
    # One file a simulation, in a folder beside the tasks; one by voice has its words in sounds.
    if {"task_id", "termination_reason"} <= opening.keys and not opening.keys.isdisjoint(("messages", "ticks")):
        return True
    if "simulations" in opening.keys and opening.keys & {"tasks", "info"}:
        return True
    # In a long file the tasks may reach beyond what was looked at.
    return {"info", "tasks"} <= opening.keys and b'"agent_info"' in opening.head and b'"user_info"' in opening.head


class _Simulation(Conversation):
    """A conversation in which the user has a model and tools too."""

    def __init__(self, notes: ReadingNotes, model: str | None) -> None:
        super().__init__(notes)
        self.model = model
        self.user_usage: dict[str, int] = {}

    def add(self, value: Any) -> None:
        message = as_dict(value)
        count_unknown(self.notes, message, _TAU2_MESSAGE)
        role = message.get("role")
        at = as_time(message.get("timestamp"))
        if role == "tool":
            for each in as_list(message.get("tool_messages")) or [message]:
                self._add_result(as_dict(each))
        elif role in ("assistant", "user", "system"):
            self._add_words(role, message, at)
            self._add_calls(role, message, at)
        else:
            self.notes.problems[_NO_ROLE] += 1

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
            self.add_calls([each], at=at, kind=_kind(as_dict(each).get("requestor", role)))

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


def _tau2_record(row: Any, context: RowContext) -> Record:
    simulation, messages = listed_in(row, "messages", "a tau2 simulation")
    count_unknown(context.notes, simulation, _TAU2_FIELDS)
    info = as_dict(context.around.get("info"))
    agent = as_name(as_dict(info.get("agent_info")).get("llm")) or as_name(simulation.get("agent"))
    talk = _Simulation(context.notes, agent)
    for message in messages:
        talk.add(message)
    duration_s = as_amount(simulation.get("duration"))
    case = _tau2_case(simulation, context, talk.first_asked)
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


def _tau2_case(simulation: dict[str, Any], context: RowContext, query: str | None) -> DatasetCase:
    around, task_id = context.around, as_name(simulation.get("task_id"))
    task = next((t for t in map(as_dict, as_list(around.get("tasks"))) if as_name(t.get("id")) == task_id), {})
    actions = as_dict(task.get("evaluation_criteria")).get("actions")
    checks = as_dict(simulation.get("reward_info")).get("action_checks")
    if not isinstance(actions, list) and isinstance(checks, list):
        actions = [as_dict(check).get("action") for check in checks]
    environment = as_dict(as_dict(around.get("info")).get("environment_info"))
    domain = as_name(environment.get("domain_name")) or as_name(simulation.get("domain"))
    return DatasetCase(
        context.ids.unique(_trial_name(simulation, domain)),
        query,
        metadata=without_nones(
            task_id=simulation.get("task_id"),
            trial=simulation.get("trial"),
            domain=domain,
            seed=simulation.get("seed"),
            source=simulation.get("source"),
            instruction=as_dict(task.get("user_scenario")).get("instructions"),
            expected_tool_calls=_expected_calls(_requested_by(actions, user=False)),
            expected_user_tool_calls=_expected_calls(_requested_by(actions, user=True)) or None,
        ),
    )


def _requested_by(actions: Any, user: bool) -> list[Any] | None:
    if not isinstance(actions, list):
        return None
    return [action for action in actions if (as_dict(action).get("requestor") == "user") == user]


TAU2 = chat_format(
    "tau2",
    'tau2-bench simulations: {"simulations": […], "tasks": […]}, or one simulation per line or file',
    _matches_tau2,
    _tau2_record,
    rows=partial(file_rows, within="simulations"),
)

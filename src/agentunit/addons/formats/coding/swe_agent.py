"""Trajectories of SWE-agent (``.traj``) and of mini-swe-agent (``.traj.json``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentunit.addons.formats.chats.chat_records import NoConversation, RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import (
    as_amount,
    as_data,
    as_dict,
    as_list,
    as_name,
    as_time,
    text_of,
    token_counts,
)
from agentunit.addons.formats.coding._session import Session, count, exit_code_in, names, usage_of
from agentunit.core.records import Record
from agentunit.traces.content_blocks import called
from agentunit.traces.formats_base import Opening

# The commands that SWE-agent adds to the shell; any other action is a line for the shell.
_COMMANDS = names(
    "open goto scroll_up scroll_down create edit insert search_dir search_file find_file submit exit_forfeit "
    "str_replace_editor filemap view_image review_on_submit undo_edit set_cursors connect_start debug_start"
)
# How the agent's own templates tell that an action was not done; a command's exit code is not recorded.
_REFUSED = re.compile(
    r"\s*(?:Your (?:bash )?command (?:contained syntax errors and )?was NOT executed"
    r"|Your proposed edit has introduced new syntax error"
    r"|The command .{0,2000}? was cancelled because it took more than"
    r"|(?:COMMAND|EXECUTION) TIMED OUT|Your (?:last )?output could not be parsed|Usage: \w+|Error: )",
    re.DOTALL,
)
_STEP_FIELDS = names("action observation response thought execution_time state messages query extra_info")
_HISTORY_FIELDS = names(
    "role content agent message_type is_demo thought action tool_calls tool_call_ids tags cache_control thinking_blocks"
)


def _swe_matches(opening: Opening) -> bool:
    if {"trajectory", "history"} <= opening.keys or ({"trajectory", "info"} <= opening.keys):
        return True
    history = as_list(as_dict(opening.value).get("history"))
    return bool(history) and "agent" in as_dict(history[0]) and "role" in as_dict(history[0])


def _history_calls(history: list[dict[str, Any]]) -> Iterator[tuple[str | None, list[Any]]]:
    """The action of each reply with its tool calls, in order."""
    for item in history:
        if item.get("role") == "assistant" and item.get("is_demo") is not True:
            yield as_name(item.get("action")), as_list(item.get("tool_calls"))


def _swe_record(row: Any, context: RowContext) -> Record:
    whole = as_dict(row)
    history = [as_dict(item) for item in as_list(whole.get("history"))]
    run = as_dict(as_data(whole.get("replay_config")))
    problem = as_dict(run.get("problem_statement"))
    session = Session(
        context.notes, next((name for item in history if (name := as_name(item.get("agent")))), "swe-agent")
    )
    for item in history:
        session.check_fields(item, _HISTORY_FIELDS)
        role = item.get("role")
        if role == "assistant" and item.get("is_demo") is not True:
            break
        is_context = role != "user" or item.get("is_demo") is True
        session.say("system" if is_context else "user", text_of(item.get("content")))
    steps = [as_dict(step) for step in as_list(whole.get("trajectory"))] or list(_steps_of(history))
    replies = _history_calls(history)
    pending = next(replies, None)
    for number, step in enumerate(steps):
        session.check_fields(step, _STEP_FIELDS)
        calls: list[Any] = []
        if pending is not None and pending[0] == as_name(step.get("action")):
            calls, pending = pending[1], next(replies, None)
        _add_step(session, step, calls, f"step-{number + 1}")
    info = as_dict(whole.get("info"))
    stats = as_dict(info.get("model_stats"))
    if stats:
        sent, received = count(stats.get("tokens_sent")), count(stats.get("tokens_received"))
        # A model that acted has read something: zeros stand for what was not counted.
        if sent or not steps:
            usage = usage_of(sent, received)
            if usage:
                session.metadata["usage"] = usage
            session.totals(None, stats.get("instance_cost"))
    model = as_name(as_dict(as_dict(run.get("agent")).get("model")).get("name"))
    _conclude(session, info, model)
    words = as_name(problem.get("text")) or as_name(problem.get("problem_statement"))
    return session.record(context, SWE_AGENT.name, case_id=as_name(problem.get("id")), question=words)


def _steps_of(history: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The steps of a recording that holds only messages: each reply with what came back."""
    for item, after in zip(history, [*history[1:], {}], strict=False):
        if item.get("role") == "assistant" and item.get("is_demo") is not True:
            observed = text_of(after.get("content")) if after.get("role") in ("user", "tool") else None
            thought = item.get("thought", item.get("content"))
            yield {"action": item.get("action"), "thought": thought, "observation": observed}


def _add_step(session: Session, step: dict[str, Any], calls: list[Any], call_id: str) -> None:
    session.say("assistant", as_name(step.get("thought")) or as_name(step.get("response")), agent=session.main)
    action = as_name(step.get("action"))
    if action is None:
        session.say("system", as_name(step.get("observation")))
        return
    action = action.strip()
    found = called(as_dict(calls[0])) if len(calls) == 1 else None
    word = action.split(None, 1)[0]
    name, arguments = word if word in _COMMANDS else "bash", {"command": action}
    if found is not None and found.name is not None:
        name, arguments = found.name, found.arguments
    # Recorded runs use the same id again: the number of the step tells calls apart.
    session.call(name, arguments, call_id=call_id)
    observed = step.get("observation")
    if isinstance(observed, str):
        failed = _REFUSED.match(observed) is not None
        session.end_call(call_id, observed, failed=failed, duration_s=as_amount(step.get("execution_time")))


def _conclude(session: Session, info: dict[str, Any], model: str | None) -> None:
    """What both agents write about the end: exit status, the patch that was submitted, the model."""
    if status := as_name(info.get("exit_status")):
        session.metadata["exit_status"] = status
    if model:
        session.metadata["model"] = model
    submission = as_name(info.get("submission"))
    if submission and "diff --git" not in submission and not submission.lstrip().startswith("--- "):
        session.last_answer = submission.strip()  # a flag or a text, as other benchmarks ask for
    else:
        session.artifact("diff", None, submission, agent=session.main)


SWE_AGENT = chat_format("swe-agent", "trajectories of SWE-agent (.traj)", _swe_matches, _swe_record)

_RETURN_CODE = re.compile(r"<returncode>(-?\d+)</returncode>")
_BLOCK = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
_MINI_FIELDS = names(
    "role content extra tool_calls tool_call_id function_call provider_specific_fields reasoning_content "
    "thinking_blocks annotations audio refusal images timestamp name type call_id output object"
)


def _mini_matches(opening: Opening) -> bool:
    value = opening.value
    if isinstance(value, dict) and str(value.get("trajectory_format", "")).startswith("mini-swe-agent"):
        return True
    if opening.path.endswith(".traj.json") and (opening.head[:1] == b"[" or "messages" in opening.keys):
        return True
    return {"messages", "info"} <= opening.keys and b'"mini_version"' in opening.head


def _mini_record(row: Any, context: RowContext) -> Record:
    whole = as_dict(row)
    messages = row if isinstance(row, list) else whole.get("messages")
    if not isinstance(messages, list):
        raise NoConversation(f"a trajectory needs a list of messages; received {messages!r:.60}")
    info = as_dict(whole.get("info"))
    config = as_dict(as_dict(info.get("config")).get("model"))
    session = _Mini(context, as_name(config.get("model_name")))
    for message in map(as_dict, messages):
        session.add(message)
    session.totals(None, as_dict(info.get("model_stats")).get("instance_cost"))
    ending = {"submission": session.submission, "exit_status": session.exit_status, **info}
    _conclude(session, ending, as_name(config.get("model_name")))
    return session.record(context, MINI_SWE_AGENT.name, case_id=as_name(whole.get("instance_id")))


class _Mini(Session):
    """A run of mini-swe-agent: its one tool is the shell, by tool call or by a block in the reply."""

    def __init__(self, context: RowContext, model: str | None) -> None:
        super().__init__(context.notes, "mini-swe-agent")
        self._model = model
        self._ids: list[str] = []
        self.submission: str | None = None
        self.exit_status: str | None = None

    def add(self, message: dict[str, Any]) -> None:
        self.check_fields(message, _MINI_FIELDS)
        extra = as_dict(message.get("extra"))
        at, text = as_time(extra.get("timestamp")), text_of(message.get("content"))
        response = as_dict(extra.get("response"))
        if response or extra.get("cost") is not None:
            usage = token_counts(response.get("usage"), self.notes)
            model = as_name(response.get("model")) or self._model
            self.model_call(usage, model=model, cost=as_amount(extra.get("cost")), at=at)
        role = message.get("role")
        if role is None:  # the items of OpenAI's Responses API
            items = [as_dict(item) for item in as_list(message.get("output"))]
            said = [text_of(item.get("content")) or "" for item in items if item.get("type") == "message"]
            is_result = message.get("type") == "function_call_output"
            role, text = ("tool", text_of(message.get("output"))) if is_result else ("assistant", "\n".join(said))
        if role == "assistant":
            self.reason(as_name(message.get("reasoning_content")), agent=self.main, at=at)
            self.say("assistant", text, agent=self.main, at=at)
            self._commands(message, extra, text, at)
        elif role == "exit":
            self.exit_status = as_name(extra.get("exit_status"))
            self._observe(None, text, extra)
        elif role in ("tool", "user") and self._ids:
            self._observe(as_name(message.get("tool_call_id", message.get("call_id"))), text, extra)
        elif role == "user" and self.first_asked is None:
            self.prompt(text, at=at)
        else:
            self.say("user" if role == "user" and not extra.get("interrupt_type") else "system", text, at=at)

    def _commands(self, message: dict[str, Any], extra: dict[str, Any], text: str | None, at: float | None) -> None:
        actions = extra.get("actions")
        if not isinstance(actions, list):
            blocks = _BLOCK.findall(text or "")
            actions = [{"command": blocks[0]}] if len(blocks) == 1 else []
        calls = {as_name(as_dict(call).get("id")): as_dict(call) for call in as_list(message.get("tool_calls"))}
        for action in actions:
            given = as_dict(action)
            call_id = as_name(given.get("tool_call_id")) or f"command-{len(self.calls) + 1}"
            name = called(calls.get(call_id, {})).name
            self.call(name or "bash", {"command": given.get("command", action)}, call_id=call_id, at=at)
            self._ids.append(call_id)

    def _observe(self, call_id: str | None, text: str | None, extra: dict[str, Any]) -> None:
        """What the oldest command without a result printed; a run ends with what it submitted."""
        if call_id is None or call_id not in self._ids:
            call_id = self._ids[0] if self._ids else None
        if call_id is None:
            self.say("system", text)
            return
        self._ids.remove(call_id)
        code = extra.get("returncode")
        exit_code = code if isinstance(code, int) else exit_code_in(text, _RETURN_CODE)
        if "exit_status" in extra and exit_code is None and extra["exit_status"] != "Submitted":
            return  # the run ended before the command did
        error = as_name(extra.get("exception_info"))
        raw = extra.get("raw_output")
        self.end_call(call_id, raw if isinstance(raw, str) else text, exit_code=exit_code, error=error)
        if exit_code is None and text and "diff --git" in text:
            self.submission = text


MINI_SWE_AGENT = chat_format(
    "mini-swe-agent", "trajectories of mini-swe-agent (.traj.json)", _mini_matches, _mini_record,
    is_part=lambda row: isinstance(row, dict) and "role" in row,
)  # fmt: skip

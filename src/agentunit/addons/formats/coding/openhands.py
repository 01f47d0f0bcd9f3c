"""Trajectories of OpenHands before 1.0: its events as JSON, and the ``output.jsonl`` of evaluations and resolver."""

from __future__ import annotations

from typing import Any

from agentunit.addons.formats.chats.chat_records import RowContext, chat_format
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
from agentunit.addons.formats.coding._session import Session, count, names, usage_of
from agentunit.core.records import Record
from agentunit.traces.formats_base import Opening

_EVENT_FIELDS = names(
    "id timestamp source message action observation args content extras cause success timeout tool_call_metadata "
    "llm_metrics tool_call_id error is_truncated"
)
# Arguments of an action that are not what the agent asked for.
_BOOKKEEPING = names(
    "thought confirmation_state security_risk hidden blocking impl_source translated_ipython_code is_static "
    "keep_prompt kernel_init_code include_extra"
)
_TALK = ("message", "system", "recall", "change_agent_state", "null", "condensation", "condensation_request", "pause",
         "resume", "stop", "start", "loop_recovery", "initialize", "init")  # fmt: skip
_NO_RESULT = ("agent_state_changed", "null", "recall", "condense", "chat", "message", "loop_detection")
_RESOLVED = ("resolved", "success", "correct")


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and "source" in value and bool(value.keys() & {"action", "observation"}) and (
        bool(value.keys() & {"args", "extras", "content"}))  # fmt: skip


def _matches(opening: Opening) -> bool:
    value = opening.value
    if _is_event(value):
        return True
    if "history" not in opening.keys or opening.keys.isdisjoint(("instance_id", "issue")):
        return False
    if value is None:
        return "test_result" in opening.keys or b'"observation"' in opening.head
    history = as_list(as_dict(value).get("history"))
    first = history[0][0] if history and isinstance(history[0], list) and history[0] else (history or [None])[0]
    return _is_event(first) or (first is None and not opening.keys.isdisjoint(("test_result", "issue_type")))


class _Run(Session):
    """A run as it is read, event by event."""

    def __init__(self, context: RowContext, main: str) -> None:
        super().__init__(context.notes, main)
        self._agents = [main]
        self._ids: dict[str, str] = {}
        self._responses: set[str] = set()
        self.metrics: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> None:
        self.check_fields(event, _EVENT_FIELDS)
        self.metrics = as_dict(event.get("llm_metrics")) or self.metrics
        if "action" in event:
            self._action(event, as_time(event.get("timestamp")))
        elif "observation" in event:
            self._observation(event, as_time(event.get("timestamp")))
        else:
            self.notes.count_fields(["event without an action and an observation"])

    def _action(self, event: dict[str, Any], at: float | None) -> None:
        kind, args, agent = event.get("action"), as_dict(event.get("args")), self._agents[-1]
        told = as_dict(event.get("tool_call_metadata"))
        response = as_dict(told.get("model_response"))
        self._model_call(response, agent, at)
        if event.get("source") == "user" and kind == "message":
            self.prompt(text_of(args.get("content", event.get("message"))), at=at)
            return
        if kind in _TALK:
            role = "assistant" if kind == "message" and event.get("source") == "agent" else "system"
            self.say(role, text_of(args.get("content")), agent=agent if role == "assistant" else None, at=at)
            return
        if kind != "finish":
            self.say("assistant", as_name(args.get("thought")), agent=agent, at=at)
        call_id = as_name(told.get("tool_call_id")) or f"action-{event.get('id')}"
        self._ids[str(event.get("id"))] = call_id
        name = as_name(told.get("function_name")) or str(kind)
        self.call(name, _arguments(response, call_id, args), call_id=call_id, agent=agent, at=at)
        if kind == "finish":
            answer = as_name(args.get("final_thought")) or as_name(event.get("message")) or as_name(args.get("thought"))
            self.say("assistant", answer, agent=agent, at=at)
            self.end_call(call_id, None)
            done = args.get("task_completed")
            self.metadata["exit_status"] = f"finished ({done})" if as_name(done) else "finished"
        elif kind == "reject":
            self.metadata["exit_status"] = "rejected"
        elif kind == "delegate":
            target = as_name(args.get("agent")) or "delegate"
            self.hand_over(call_id, target, at=at, by=agent)
            self._agents.append(target)

    def _observation(self, event: dict[str, Any], at: float | None) -> None:
        kind, extras = event.get("observation"), as_dict(event.get("extras"))
        if kind == "agent_state_changed" and extras.get("agent_state") in ("error", "rejected", "stopped"):
            self.metadata.setdefault("exit_status", extras["agent_state"])
        call_id = self._ids.get(str(event.get("cause")))
        content = text_of(event.get("content"))
        if call_id is None or kind in _NO_RESULT:
            self.say("system", content, at=at)
            self.error = content if kind == "error" else self.error
            return
        facts = as_dict(extras.get("metadata"))
        code = facts.get("exit_code", extras.get("exit_code"))
        says_error = kind in ("edit", "read", "write") and (content or "").startswith("ERROR:")
        failed = kind in ("error", "user_rejected") or says_error or event.get("success") is False
        exit_code = code if isinstance(code, int) and kind == "run" else None
        self.end_call(call_id, content, failed=failed, exit_code=exit_code)
        if kind == "delegate" and len(self._agents) > 1:
            self._agents.pop()
        if kind in ("edit", "write") and not failed:
            path, diff = as_name(extras.get("path")), as_name(extras.get("diff"))
            whole = None if extras.get("prev_exist") else as_name(extras.get("new_content"))
            self.artifact("file" if whole and not diff else "diff", path, diff or whole, agent=self._agents[-1], at=at)

    def _model_call(self, response: dict[str, Any], agent: str, at: float | None) -> None:
        """One call a response: each of its actions and their observations repeats it."""
        key = as_name(response.get("id"))
        if key is None or key in self._responses:
            return
        self._responses.add(key)
        usage = token_counts(response.get("usage"), self.notes) or {}
        details = as_dict(usage.get("prompt_tokens_details"))
        completion = as_dict(usage.get("completion_tokens_details"))
        cached, written = details.get("cached_tokens"), count(usage.get("cache_creation_input_tokens"))
        counts = usage_of(count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")),
                          count(cached), written, count(completion.get("reasoning_tokens")))  # fmt: skip
        self.model_call(counts, model=as_name(response.get("model")), agent=agent, at=at)

    def state_totals(self, metrics: dict[str, Any]) -> None:
        """The counts and the cost of the whole run, where they are stated."""
        total = as_dict(metrics.get("accumulated_token_usage"))
        counts = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
        self.totals(usage_of(*(count(total.get(name)) for name in counts)), as_amount(metrics.get("accumulated_cost")))
        if model := as_name(total.get("model")):
            self.metadata["model"] = model


def _arguments(response: dict[str, Any], call_id: str, args: dict[str, Any]) -> Any:
    """What the model asked for, else the action's own arguments."""
    for choice in map(as_dict, as_list(response.get("choices"))):
        for call in map(as_dict, as_list(as_dict(choice.get("message")).get("tool_calls"))):
            if call.get("id") == call_id:
                return as_data(as_dict(call.get("function")).get("arguments"))
    return {name: value for name, value in args.items() if name not in _BOOKKEEPING and value is not None}


def _record(row: Any, context: RowContext) -> Record:
    whole = {"history": row} if isinstance(row, list) else as_dict(row)
    about = as_dict(whole.get("metadata"))
    run = _Run(context, as_name(about.get("agent_class")) or "openhands")
    for entry in as_list(whole.get("history")):
        for event in entry if isinstance(entry, list) else [entry]:
            run.add(as_dict(event))
    run.state_totals(as_dict(whole.get("metrics")) or run.metrics)
    result = as_dict(whole.get("test_result"))
    report = as_dict(result.get("report")) or as_dict(whole.get("report"))
    issue = as_dict(whole.get("issue"))
    # Of an issue that the resolver worked on, "success" is what it thinks of its own work.
    verdicts = [place.get(name) for place in (report, result) for name in _RESOLVED]
    run.success = next((verdict for verdict in verdicts if isinstance(verdict, bool)), None)
    run.error = as_name(whole.get("error")) or run.error
    if as_name(whole.get("error")):
        run.metadata.setdefault("exit_status", "error")
    if model := as_name(as_dict(about.get("llm_config")).get("model")):
        run.metadata["model"] = model
    run.artifact("diff", None, as_name(result.get("git_patch")) or as_name(result.get("model_patch"))
                 or as_name(whole.get("git_patch")), agent=run.main)  # fmt: skip
    instance = as_dict(whole.get("instance"))
    words = as_name(instance.get("problem_statement")) or as_name(whole.get("instruction"))
    if issue:
        words = words or as_name(issue.get("title"))
        names = (as_name(issue.get("owner")), as_name(issue.get("repo")), as_name(issue.get("number")))
        whole = {**whole, "instance_id": "/".join(name for name in names if name)}
    return run.record(context, OPENHANDS.name, case_id=as_name(whole.get("instance_id")), question=words)


OPENHANDS = chat_format(
    "openhands",
    "trajectories of OpenHands before 1.0 (JSON), and the output.jsonl of its evaluations and resolver",
    _matches,
    _record,
    is_part=_is_event,
)  # fmt: skip

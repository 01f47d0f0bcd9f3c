"""Rollouts of Codex: what was sent and received, what each command ended with, and how the session went."""

from __future__ import annotations

import re
from typing import Any

from agentunit.addons.formats.chats.chat_records import RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import as_amount, as_data, as_dict, as_name, as_time, text_of
from agentunit.addons.formats.coding._session import Session, count, exit_code_in, names, usage_of
from agentunit.core.records import Record
from agentunit.traces.formats_base import Opening

_MAIN = "codex"
# The exit code stands in the lines before the output; a patch that came by way of a shell has such lines within.
_EXIT_CODE = re.compile(
    r"\A(?:Wall time: .*\nOutput:\n)?(?:(?:Chunk ID|Wall time|Original token count|Total output lines): .*\n)*"
    r"(?:Process exited with code|Exit code:) (-?\d+)"
)
_SHELLS = names("shell shell_command local_shell container.exec exec exec_command write_stdin unified_exec apply_patch")
_ROLES = {"developer": "system"}
_LINE_TYPES = names(
    "session_meta response_item event_msg turn_context compacted world_state inter_agent_communication "
    "inter_agent_communication_metadata security_risk_score token_usage_record"
)
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "tool_search_call": "arguments"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
# Items and events that repeat what other lines say, or that no metric reads.
_ITEMS_BESIDE = names("ghost_snapshot compaction compaction_summary context_compaction additional_tools other")
_EVENTS_BESIDE = names(
    "task_started turn_started task_complete turn_complete user_message agent_message agent_message_delta "
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break agent_reasoning_delta "
    "exec_command_begin exec_command_output_delta patch_apply_begin patch_apply_updated mcp_tool_call_begin "
    "web_search_begin web_search_end session_configured turn_diff plan_update background_event warning "
    "guardian_warning context_compacted thread_rolled_back thread_settings_applied thread_name_updated "
    "thread_goal_updated entered_review_mode exited_review_mode undo_started undo_completed item_started "
    "item_completed view_image_tool_call terminal_interaction token_usage_updated model_reroute raw_response_item "
    "mcp_startup_update mcp_startup_complete stream_error image_generation_begin image_generation_end "
    "exec_approval_request apply_patch_approval_request shutdown_complete"
)

_ENDED_ITEMS = {
    "CommandExecution": "exec_command_end",
    "FileChange": "patch_apply_end",
    "McpToolCall": "mcp_tool_call_end",
}


def _matches(opening: Opening) -> bool:
    line = opening.value
    if isinstance(line, dict):
        if line.get("type") in _LINE_TYPES and isinstance(line.get("payload"), dict):
            return True
        return {"id", "timestamp", "instructions"} <= opening.keys and "git" in opening.keys  # before September 2025
    return {"timestamp", "type", "payload"} <= opening.keys and b'"session_meta"' in opening.head[:300]


class _Rollout(Session):
    """A rollout as it is read, line by line."""

    def __init__(self, context: RowContext) -> None:
        super().__init__(context.notes, _MAIN)
        self.thread: str | None = None
        self._model: str | None = None
        self._counted: Any = None

    def add(self, line: dict[str, Any]) -> None:
        kind, payload = str(line.get("type")), as_dict(line.get("payload"))
        at = as_time(line.get("timestamp"))
        if "payload" not in line:  # the lines of early versions are the items themselves
            kind, payload = ("response_item", line) if "type" in line else ("session_meta", line)
        if kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self._model = as_name(payload.get("model")) or self._model
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "event_msg":
            self._event(payload, at)
        elif kind == "compacted":
            self.say("system", as_name(payload.get("message")), at=at)
        elif kind not in _LINE_TYPES:
            self.notes.count_fields([f"line of type {kind}"])

    def _meta(self, payload: dict[str, Any]) -> None:
        if self.thread is not None or payload.get("record_type"):
            return  # a forked session repeats the one that it came from
        self.thread = as_name(payload.get("id"))
        self.main = as_name(payload.get("agent_nickname")) or as_name(payload.get("agent_role")) or _MAIN

    def _item(self, item: dict[str, Any], at: float | None) -> None:
        kind, call_id = str(item.get("type")), as_name(item.get("call_id"))
        if kind == "message":
            role = _ROLES.get(str(item.get("role")), str(item.get("role")))
            text = text_of(item.get("content"))
            if role == "user":
                self.prompt(text, at=at)
            else:
                self.say(role, text, agent=self.main if role == "assistant" else None, at=at)
        elif kind == "reasoning":
            self.reason(text_of(item.get("summary")) or text_of(item.get("content")), agent=self.main, at=at)
        elif kind in _CALLS:
            name = as_name(item.get("name")) or kind.removesuffix("_call")
            self.call(name, item.get(_CALLS[kind]), call_id=call_id, at=at)
        elif kind == "local_shell_call":
            self.call("shell", as_dict(item.get("action")), call_id=call_id or as_name(item.get("id")), at=at)
        elif kind in ("web_search_call", "image_generation_call"):
            self.call(kind.removesuffix("_call"), item.get("action"), call_id=as_name(item.get("id")), at=at)
            if item.get("status") in ("completed", "failed"):
                self.end_call(as_name(item.get("id")), None, name=kind[:-5], failed=item["status"] == "failed")
        elif kind in _OUTPUTS:
            self._output(call_id, item.get("output", item.get("tools")))
        elif kind == "agent_message":
            self.say("assistant", text_of(item.get("content")), agent=as_name(item.get("author")), at=at,
                     to=as_name(item.get("recipient")))  # fmt: skip
        elif kind not in _ITEMS_BESIDE:
            self.notes.count_fields([f"item of type {kind}"])

    def _output(self, call_id: str | None, output: Any) -> None:
        """A result: a text, parts, or an object with its success; of a command also JSON with its metadata."""
        is_command = self.calls.get(call_id or "", {}).get("name") in _SHELLS
        data = as_data(output) if is_command else output
        facts = as_dict(as_dict(data).get("metadata")) if is_command else {}
        failed = as_dict(data).get("success") is False
        inner = as_dict(data).get("output", as_dict(data).get("content", output))
        result = text_of(inner)
        exit_code = facts.get("exit_code")
        if not isinstance(exit_code, int):
            exit_code = exit_code_in(result, _EXIT_CODE) if is_command else None
        took_s = as_amount(facts.get("duration_seconds"))
        self.end_call(call_id, result, failed=failed, exit_code=exit_code, duration_s=took_s)

    def _event(self, event: dict[str, Any], at: float | None) -> None:
        kind, call_id = str(event.get("type")), as_name(event.get("call_id"))
        if kind == "item_completed":  # since 2026 the ends of calls are items
            item = as_dict(event.get("item"))
            kind, call_id = _ENDED_ITEMS.get(str(item.get("type")), kind), as_name(item.get("id"))
            event = {**item, "success": item.get("status") == "completed"}
        if kind == "token_count":
            self._tokens(as_dict(event.get("info")), at)
        elif kind == "exec_command_end":
            code = event.get("exit_code")
            self.tell(call_id, exit_code=code if isinstance(code, int) else None, duration_s=_seconds(event))
        elif kind == "patch_apply_end":
            self.tell(call_id, failed=event.get("success") is False or None, duration_s=_seconds(event))
            if event.get("success") is True:
                for path, change in as_dict(event.get("changes")).items():
                    self._change(path, as_dict(change), at)
        elif kind == "mcp_tool_call_end":
            result = as_dict(event.get("result"))
            said_error = as_dict(result.get("Ok")).get("isError", as_dict(result.get("Ok")).get("is_error"))
            self.tell(
                call_id,
                failed=True if "Err" in result or said_error is True or event.get("status") == "failed" else None,
                server=as_name(as_dict(event.get("invocation")).get("server")) or as_name(event.get("server")),
                is_error=said_error,
                duration_s=_seconds(event),
            )
        elif kind == "turn_aborted":
            self.metadata["exit_status"] = as_name(event.get("reason")) or "aborted"
        elif kind == "error":
            self.error = as_name(event.get("message"))
        elif kind not in _EVENTS_BESIDE:
            self.notes.count_fields([f"event of type {kind}"])
        if kind in ("task_complete", "turn_complete"):
            self.metadata["exit_status"] = "error" if event.get("error") else "completed"

    def _tokens(self, info: dict[str, Any], at: float | None) -> None:
        """The counts of the last model call; the event comes again, with the same totals, when limits change."""
        last, total = as_dict(info.get("last_token_usage")), info.get("total_token_usage")
        if not last or (total is not None and total == self._counted):
            return
        self._counted = total
        counts = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens",
                 "reasoning_output_tokens")  # fmt: skip
        self.model_call(usage_of(*(count(last.get(name)) for name in counts)), model=self._model, at=at)

    def _change(self, path: str, change: dict[str, Any], at: float | None) -> None:
        # {"type": "update", "unified_diff": …}; before 0.40 the kind was the only key: {"update": {…}}.
        kind = change.get("type")
        inner = change if kind else as_dict(next(iter(change.values()), None))
        diff = as_name(inner.get("unified_diff"))
        if diff is not None:
            self.artifact("diff", path, diff, agent=self.main, at=at)
        else:
            self.artifact("file", path, as_name(inner.get("content")), agent=self.main, at=at)


def _seconds(event: dict[str, Any]) -> float | None:
    duration = as_dict(event.get("duration"))
    seconds, nanos = as_amount(duration.get("secs")), as_amount(duration.get("nanos"))
    return None if seconds is None else seconds + (nanos or 0) / 1e9


def _record(lines: Any, context: RowContext) -> Record:
    rollout = _Rollout(context)
    for line in rollout.objects(lines):
        rollout.add(line)
    return rollout.record(context, CODEX.name, case_id=rollout.thread, session_id=rollout.thread)


CODEX = chat_format("codex", "rollouts of Codex (JSONL)", _matches, _record, is_part=lambda row: True)

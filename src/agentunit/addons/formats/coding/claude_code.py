"""Sessions of Claude Code: the JSONL of its projects folder, and what ``--output-format stream-json`` prints."""

from __future__ import annotations

import re
from typing import Any

from agentunit.addons.formats.chats.chat_records import RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import as_amount, as_dict, as_list, as_name, as_time, text_of
from agentunit.addons.formats.coding._session import Session, asked, count, exit_code_in, names, usage_of
from agentunit.core.records import Record
from agentunit.traces.formats_base import Opening

_MAIN = "claude-code"
_EXIT_CODE = re.compile(r"\A(?:Error: )?Exit code (\d+)")
_COUNTED_ELSEWHERE = "a reply of a Claude Code sub-agent, whose tokens are counted in its own file (agent-*.jsonl)"
_LINE_TYPES = ("user", "assistant", "system", "summary", "progress", "result")
# Known, and nothing in them that a metric reads.
_BESIDE = names(
    "summary file-history-snapshot queue-operation attachment last-prompt custom-title ai-title agent-name agent-color "
    "agent-setting permission-mode pr-link tag mode worktree-state speculation-accept content-replacement stream_event "
    "rate_limit_event tool_progress tool_use_summary auth_status started-task marble-origami-commit"
)
_LINE_FIELDS = names(
    "type message uuid parentUuid logicalParentUuid sessionId session_id timestamp isSidechain isMeta isCompactSummary "
    "isVisibleInTranscriptOnly isApiErrorMessage error apiError userType entrypoint cwd version gitBranch slug "
    "requestId request_id costUSD durationMs toolUseResult tool_use_result sourceToolUseID "
    "sourceToolAssistantUUID parent_tool_use_id agentId agentName teamName thinkingMetadata todos permissionMode "
    "imagePasteIds promptId origin forkedFrom isReplay isSynthetic planContent mcpMeta interruptedMessageId "
    "subagent_type task_description promptSource attributionAgent attributionSkill"
)
_MESSAGE_FIELDS = names(
    "id type role model content stop_reason stop_sequence stop_details usage container context_management diagnostics"
)
_BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "tool_result", "image", "document",
           "web_search_tool_result", "fallback", "tool_reference")  # fmt: skip


def _matches(opening: Opening) -> bool:
    line = next(iter(_lines_in(opening.value)), None)
    if not isinstance(line, dict) or "systemPayload" in line or line.get("type") not in (*_LINE_TYPES, *_BESIDE):
        return False
    message = as_dict(line.get("message"))
    if line["type"] in ("user", "assistant"):
        return message.get("role", line["type"]) == line["type"] and "content" in message
    marks = {"sessionId", "session_id", "leafUuid", "messageId", "parentToolUseID"}
    return bool(marks & line.keys()) and ("payload" not in line)


def _lines_in(value: Any) -> list[Any]:
    """The lines of a session as its web export holds them, or the SDK's messages; any other value is a line itself."""
    inner = as_dict(value).get("loglines", as_dict(value).get("messages"))
    return inner if isinstance(inner, list) else [value]


class _ClaudeLog(Session):
    """A session as it is read, line by line."""

    def __init__(self, context: RowContext, main: str) -> None:
        super().__init__(context.notes, main)
        self.session_id: str | None = None
        self._seen: set[str] = set()
        self._told: set[str] = set()  # lines of sub-agents that came as their progress before
        self._model_calls: dict[str, dict[str, Any]] = {}
        # Sub-agents by the call that started them, by their id, and by the line that their next one answers.
        self._of_call: dict[str, str] = {}
        self._of_agent: dict[str, str] = {}
        self._of_line: dict[str, str] = {}
        self._prompts: dict[str, str] = {}

    def add(self, line: dict[str, Any]) -> None:
        uuid = as_name(line.get("uuid"))
        if uuid is not None and uuid in self._seen:
            return  # a session that was resumed repeats the lines before
        self._seen.add(uuid or "")
        self.session_id = self.session_id or as_name(line.get("sessionId", line.get("session_id")))
        kind = str(line.get("type"))
        if kind == "progress":
            self._progress(line)
        elif kind == "system":
            self._system(line)
        elif kind == "result":
            self._result(line)
        elif kind in ("user", "assistant"):
            self.check_fields(line, _LINE_FIELDS)
            agent = self._speaker(line)
            if uuid is None or uuid not in self._told:
                self._message(line, agent)
            elif kind == "assistant":
                self._model_call(line, as_dict(line.get("message")), agent, as_time(line.get("timestamp")))
        elif kind not in _BESIDE:
            self.notes.count_fields([f"line of type {kind}"])

    def _speaker(self, line: dict[str, Any]) -> str:
        """The agent of a line: the main one, or the sub-agent that its call, its id or the line before it names."""
        call = as_name(line.get("parent_tool_use_id"))
        if call is not None:
            return self._of_call.get(call, "subagent")
        if line.get("isSidechain") is not True:
            return self.main
        agent_id, parent = as_name(line.get("agentId")), as_name(line.get("parentUuid"))
        words = text_of(as_dict(line.get("message")).get("content"))
        known = self._of_agent.get(agent_id or "") or self._of_line.get(parent or "") or self._prompts.get(words or "")
        name = known or as_name(line.get("agentName")) or agent_id or "subagent"
        if agent_id:
            self._of_agent[agent_id] = name
        self._of_line[as_name(line.get("uuid")) or ""] = name
        return name

    def _message(self, line: dict[str, Any], agent: str) -> None:
        message = as_dict(line.get("message"))
        if not message:
            self.notes.count_fields(["message"])
        self.check_fields(message, _MESSAGE_FIELDS)
        at = as_time(line.get("timestamp"))
        content = message.get("content")
        blocks = [as_dict(block) for block in as_list(content)]
        self.notes.count_fields(
            f"content of type {each.get('type')}" for each in blocks if each.get("type") not in _BLOCKS
        )
        if message.get("role", line.get("type")) == "assistant":
            self._model_call(line, message, agent, at)
            for block in blocks:
                self.reason(as_name(block.get("thinking")), agent=agent, at=at)
            self.say("assistant", text_of(content), agent=agent, at=at)
        else:
            self._turn(line, text_of(content), agent, at)
        for block in blocks:
            if block.get("type") in ("tool_use", "server_tool_use"):
                self._call(block, agent, at)
            elif block.get("type") in ("tool_result", "web_search_tool_result"):
                self._tool_result(block, line.get("toolUseResult", line.get("tool_use_result")), agent, at)

    def _turn(self, line: dict[str, Any], text: str | None, agent: str, at: float | None) -> None:
        if agent != self.main:
            if text not in self._prompts:  # the prompt stands in the call that started the sub-agent
                self.say("system", text, agent=agent, at=at)
        elif any(line.get(mark) is True for mark in ("isMeta", "isCompactSummary", "isSynthetic")):
            self.say("system", text, at=at)
        else:
            self.prompt(text, at=at)

    def _model_call(self, line: dict[str, Any], message: dict[str, Any], agent: str, at: float | None) -> None:
        """One call a message: each of its blocks stands on a line of its own and repeats the counts."""
        usage = as_dict(message.get("usage"))
        model = as_name(message.get("model"))
        if model == "<synthetic>":
            if line.get("isApiErrorMessage") is True:
                self.error = text_of(message.get("content"))
            return
        key = as_name(message.get("id")) or as_name(line.get("requestId", line.get("request_id")))
        known = self._model_calls.get(key or "")
        cost = as_amount(line.get("costUSD"))
        counts = _counts(usage)
        if known is not None:
            known.update({"usage": counts} if counts else {})
            return
        before = len(self.events)
        self.model_call(counts, model=model, cost=cost, agent=agent, at=at)
        if key is not None and len(self.events) > before:
            self._model_calls[key] = self.events[-1].payload

    def _call(self, block: dict[str, Any], agent: str, at: float | None) -> None:
        call_id, name = as_name(block.get("id")), as_name(block.get("name"))
        if call_id in self.calls:
            return  # the lines of a sub-agent repeat what was told of its progress
        self.add_calls([block], agent=agent, at=at)
        if name and name.startswith("mcp__") and name.count("__") >= 2:
            self.tell(call_id, server=name.split("__")[1])
        if call_id is not None and self.handoffs and self.handoffs[-1].task_id == call_id:
            self._of_call[call_id] = self.handoffs[-1].to_agent
            self._prompts[as_name(as_dict(block.get("input")).get("prompt")) or ""] = self._of_call[call_id]

    def _tool_result(self, block: dict[str, Any], told: Any, agent: str, at: float | None) -> None:
        call_id, result = as_name(block.get("tool_use_id")), text_of(block.get("content"))
        if "status" in self.calls.get(call_id or "", {}):
            return
        facts = as_dict(told)
        failed = block.get("is_error") is True
        stated = count(facts.get("exitCode", facts.get("exit_code")))
        exit_code = stated if stated is not None else exit_code_in(result, _EXIT_CODE) if failed else None
        took_ms = as_amount(facts.get("durationMs", facts.get("totalDurationMs")))
        duration_s = None if took_ms is None else took_ms / 1000
        self.end_call(call_id, result, failed=failed, exit_code=exit_code, duration_s=duration_s)
        if call_id in self._of_call and (agent_id := as_name(facts.get("agentId"))):
            self._of_agent[agent_id] = self._of_call[call_id]
        path = as_name(facts.get("filePath"))
        if path is not None and not failed:
            hunks = [as_dict(hunk) for hunk in as_list(facts.get("structuredPatch"))]
            if hunks:
                self.artifact("diff", path, _unified(path, hunks), agent=agent, at=at)
            elif facts.get("type") == "create":
                self.artifact("file", path, as_name(facts.get("content")), agent=agent, at=at)

    def _progress(self, line: dict[str, Any]) -> None:
        """What a running sub-agent said and did, in the lines of the session that started it."""
        data = as_dict(line.get("data"))
        inner = as_dict(data.get("message"))
        if data.get("type") != "agent_progress" or inner.get("type") not in ("user", "assistant"):
            return
        uuid = as_name(inner.get("uuid"))
        if uuid is not None and uuid in self._seen:
            return
        self._told.add(uuid or "")
        agent = self._of_call.get(as_name(line.get("parentToolUseID")) or "", "subagent")
        if inner["type"] == "assistant" and as_name(data.get("agentId")):
            # The sub-agent has a recording of its own, where its tokens are counted.
            inner = {**inner, "message": {**as_dict(inner.get("message")), "usage": None}}
            self.notes.problems[_COUNTED_ELSEWHERE] += 1
        self._message({"timestamp": line.get("timestamp"), **inner}, agent)

    def _system(self, line: dict[str, Any]) -> None:
        if line.get("subtype") == "init":
            tools = [{"name": name} for name in as_list(line.get("tools")) if isinstance(name, str)]
            self.metadata.update({"tools": tools} if tools else {})
        elif line.get("isMeta") is not True:
            self.say("system", asked(text_of(line.get("content"))), at=as_time(line.get("timestamp")))

    def _result(self, line: dict[str, Any]) -> None:
        """The last line of ``stream-json``: how the run ended, and what it cost in all."""
        self.metadata["exit_status"] = as_name(line.get("subtype")) or "unknown"
        if line.get("is_error") is True:
            self.error = as_name(line.get("result")) or as_name(line.get("subtype"))
        # The messages before it state their first counts; those of sub-agents are not among them.
        used = [as_dict(each) for each in as_dict(line.get("modelUsage")).values()]
        read, made, cached, stored = (
            sum(count(each.get(name)) or 0 for each in used)
            for name in ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        )
        self.totals(
            usage_of(read + cached + stored, made, cached, stored) if used else None, line.get("total_cost_usd")
        )


def _counts(usage: dict[str, Any]) -> dict[str, Any] | None:
    read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    fresh = count(usage.get("input_tokens"))
    total = None if fresh is None else fresh + (read or 0) + (written or 0)
    return usage_of(total, count(usage.get("output_tokens")), read, written)


def _unified(path: str, hunks: list[dict[str, Any]]) -> str:
    """A unified diff of the hunks that an edit left."""
    lines = [f"--- a/{path.lstrip('/')}", f"+++ b/{path.lstrip('/')}"]
    for hunk in hunks:
        old, new = (f"{hunk.get(f'{side}Start')},{hunk.get(f'{side}Lines')}" for side in ("old", "new"))
        lines += [f"@@ -{old} +{new} @@", *(text for text in as_list(hunk.get("lines")) if isinstance(text, str))]
    return "\n".join(lines) + "\n"


def _record(rows: Any, context: RowContext) -> Record:
    lines = [line for row in rows for line in _lines_in(row)]
    agents = {as_name(line.get("agentId")) for line in map(as_dict, lines) if line.get("isSidechain") is True}
    # The recording of a sub-agent lies in a file of its own: it is the main agent there.
    alone = len(agents) == 1 and all(as_dict(line).get("isSidechain") is True for line in lines)
    named = (name for line in map(as_dict, lines) if alone and (name := as_name(line.get("attributionAgent"))))
    log = _ClaudeLog(context, next(named, _MAIN))
    for line in log.objects(lines):
        log.add({**line, "isSidechain": False} if alone else line)
    parts = (log.session_id, agents.pop() if alone else None)
    case_id = "/".join(part for part in parts if part) or None
    log.metadata.update({"parent_session_id": log.session_id} if alone and log.session_id else {})
    return log.record(context, CLAUDE_CODE.name, case_id=case_id, session_id=None if alone else log.session_id)


CLAUDE_CODE = chat_format(
    "claude-code",
    "sessions of Claude Code (JSONL), their export from the web, and its stream-json output",
    _matches,
    _record,
    is_part=lambda row: True,
    session_of=lambda row: as_name(as_dict(row).get("sessionId", as_dict(row).get("session_id"))),
)

"""Sessions of Gemini CLI (JSON, and JSONL since 2026) and of Qwen Code (JSONL)."""

from __future__ import annotations

import re
from typing import Any

from agentunit.addons.formats.chats.chat_records import RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import (
    as_amount,
    as_dict,
    as_list,
    as_name,
    as_time,
    gemini_counts,
    text_of,
)
from agentunit.addons.formats.coding._session import Session, count, exit_code_in, names, usage_of
from agentunit.core.records import Record
from agentunit.traces.formats_base import Opening

_SHELL = "run_shell_command"
# A shell's result ends with what the program says of the command; its output stands before that.
_EXIT_CODE = re.compile(
    r"^Exit Code: (\d+)$(?:\s+(?:(?:Error|Signal|Background PIDs|Process Group PGID): .*|</\w+>)$)*\s*\Z", re.MULTILINE
)
_FAILED = {"success": False, "error": True, "cancelled": True}
_MESSAGE_FIELDS = names("id timestamp type content displayContent toolCalls thoughts tokens model")
_CALL_FIELDS = names(
    "id name args result status timestamp agentId displayName description resultDisplay renderOutputAsMarkdown"
)
_LINE_FIELDS = names(
    "uuid parentUuid sessionId timestamp type subtype provenance goalContext cwd version gitBranch message "
    "usageMetadata model contextWindowSize toolCallResult systemPayload agentId agentName agentColor isSidechain "
    "agentRunId agentRound externalInputKind forkedFrom"
)


class _Chat(Session):
    """What sessions of both programs share: results of functions, and the diffs that are shown for them."""

    def end(
        self, call_id: str | None, name: str | None, answers: list[Any], status: Any, shown: Any, **more: Any
    ) -> None:
        """The end of a call: what the model was told, what the program says of it, and the diff it showed."""
        answer = next((as_dict(each.get("functionResponse")) for each in map(as_dict, answers)
                       if each.get("functionResponse")), {})  # fmt: skip
        response = as_dict(answer.get("response"))
        error = text_of(response.get("error")) if response.get("error") else None
        result = text_of(response.get("output")) if "output" in response else text_of(response or None)
        result = result or (shown if isinstance(shown, str) else None)
        failed = _FAILED.get(str(status), bool(error))
        self.end_call(
            call_id or as_name(answer.get("id")),
            result,
            name=name,
            failed=failed,
            exit_code=exit_code_in(result, _EXIT_CODE) if name == _SHELL else None,
            error=error or more.get("error"),
            duration_s=more.get("duration_s"),
        )
        diff = as_dict(shown)
        if not failed and diff.get("fileDiff"):
            name = as_name(diff.get("fileName"))
            given = as_name(as_dict(self.calls.get(call_id or "", {}).get("arguments")).get("file_path"))
            path = as_name(diff.get("filePath")) or (given if given and name and given.endswith(name) else name)
            self.artifact("diff", path, as_name(diff["fileDiff"]), agent=more.get("agent"))


def _gemini_matches(opening: Opening) -> bool:
    return {"sessionId", "projectHash"} <= opening.keys


def _folded(lines: list[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The session and its messages in their last state: a line may repeat a message, replace all, or go back."""
    about: dict[str, Any] = {}
    messages: dict[str, dict[str, Any]] = {}
    for line in map(as_dict, lines):
        change = as_dict(line.get("$set")) or line
        if "$rewindTo" in line:
            # From the end, so that a session that goes back often is still read in one pass.
            while messages and messages.popitem()[0] != line["$rewindTo"]:
                pass
        elif "projectHash" in change or "$set" in line:
            about.update({name: value for name, value in change.items() if name != "messages"})
            listed = change.get("messages")
            if isinstance(listed, list):
                messages = {str(as_dict(each).get("id", place)): as_dict(each) for place, each in enumerate(listed)}
        else:
            messages[str(line.get("id", len(messages)))] = line
    return about, list(messages.values())


def _gemini_record(lines: Any, context: RowContext) -> Record:
    about, messages = _folded(lines)
    chat = _Chat(context.notes, "gemini-cli")
    for message in messages:
        chat.check_fields(message, _MESSAGE_FIELDS)
        at, text = as_time(message.get("timestamp")), text_of(message.get("content"))
        kind = message.get("type")
        if kind == "user":
            is_command = (text or "").lstrip().startswith(("/", "?"))
            chat.say("system", text, at=at) if is_command else chat.prompt(text, at=at)
        elif kind == "gemini":
            _add_reply(chat, message, text, at)
        elif kind in ("info", "warning", "error"):
            chat.say("system", text, at=at)
            chat.error = text if kind == "error" else chat.error
        else:
            chat.notes.count_fields([f"message of type {kind}"])
    session = as_name(about.get("sessionId"))
    return chat.record(context, GEMINI_CLI.name, case_id=session, session_id=session)


def _add_reply(chat: _Chat, message: dict[str, Any], text: str | None, at: float | None) -> None:
    for thought in map(as_dict, as_list(message.get("thoughts"))):
        words = (as_name(thought.get("subject")), as_name(thought.get("description")))
        chat.reason(": ".join(word for word in words if word), agent=chat.main, at=at)
    tokens = as_dict(message.get("tokens"))
    if tokens:
        read, written, cached, thoughts, tool = (
            count(tokens.get(name)) for name in ("input", "output", "cached", "thoughts", "tool")
        )
        usage = usage_of((read or 0) + (tool or 0), (written or 0) + (thoughts or 0), cached, None, thoughts)
        chat.model_call(usage, model=as_name(message.get("model")), at=at)
    chat.say("assistant", text, agent=chat.main, at=at)
    for call in map(as_dict, as_list(message.get("toolCalls"))):
        chat.check_fields(call, _CALL_FIELDS)
        call_id, name = as_name(call.get("id")), as_name(call.get("name"))
        chat.add_calls([call], agent=chat.main, at=as_time(call.get("timestamp")) or at)
        result = call.get("result")
        if result is not None or call.get("status") in _FAILED:
            answers = result if isinstance(result, list) else [result]
            chat.end(call_id, name, answers, call.get("status"), call.get("resultDisplay"), agent=chat.main)


GEMINI_CLI = chat_format(
    "gemini-cli", "sessions of Gemini CLI (JSON or JSONL)", _gemini_matches, _gemini_record,
    is_part=lambda row: True,
)  # fmt: skip


def _qwen_matches(opening: Opening) -> bool:
    line = opening.value
    if not isinstance(line, dict) or not {"uuid", "sessionId", "type"} <= opening.keys:
        return False
    return "parts" in as_dict(line.get("message")) or "systemPayload" in line or "subtype" in line


def _qwen_record(lines: Any, context: RowContext) -> Record:
    chat = _Chat(context.notes, "qwen-code")
    for line in chat.objects(lines):
        chat.check_fields(line, _LINE_FIELDS)
        at, kind = as_time(line.get("timestamp")), line.get("type")
        agent = as_name(line.get("agentName")) or as_name(line.get("agentId")) or chat.main
        parts = [as_dict(part) for part in as_list(as_dict(line.get("message")).get("parts"))]
        text = text_of(parts)
        if kind == "user":
            is_prompt = line.get("subtype") in (None, "mid_turn_user_message") and agent == chat.main
            chat.prompt(text, at=at) if is_prompt else chat.say("system", text, at=at)
        elif kind == "assistant":
            for part in parts:
                if part.get("thought") is True:
                    chat.reason(as_name(part.get("text")), agent=agent, at=at)
            usage = as_dict(line.get("usageMetadata"))
            if usage:
                counts = gemini_counts(usage)
                thoughts = count(usage.get("thoughtsTokenCount"))
                counts |= {"completion_tokens_details": {"reasoning_tokens": thoughts}} if thoughts else {}
                chat.model_call(counts, model=as_name(line.get("model")), agent=agent, at=at)
            chat.say("assistant", text, agent=agent, at=at)
            chat.add_calls([part["functionCall"] for part in parts if "functionCall" in part], agent=agent, at=at)
        elif kind == "tool_result":
            told = as_dict(line.get("toolCallResult"))
            took_ms = as_amount(told.get("durationMs"))
            chat.end(
                as_name(told.get("callId")),
                as_name(as_dict(as_dict(parts[0] if parts else {}).get("functionResponse")).get("name")),
                parts,
                told.get("status"),
                told.get("resultDisplay"),
                agent=agent,
                error=text_of(as_dict(told.get("error")).get("message")),
                duration_s=None if took_ms is None else took_ms / 1000,
            )
        elif kind != "system":
            chat.notes.count_fields([f"line of type {kind}"])
    session = next((name for each in lines if (name := as_name(as_dict(each).get("sessionId")))), None)
    return chat.record(context, QWEN_CODE.name, case_id=session, session_id=session)


QWEN_CODE = chat_format(
    "qwen-code", "sessions of Qwen Code (JSONL)", _qwen_matches, _qwen_record,
    is_part=lambda row: True,
    session_of=lambda row: as_name(as_dict(row).get("sessionId")),
)  # fmt: skip

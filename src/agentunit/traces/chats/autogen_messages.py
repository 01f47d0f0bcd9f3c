"""Messages and events of AutoGen 0.4 and later: typed, with their source, and with the tokens they took."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentunit.core.interactions import HandoffEvent
from agentunit.core.trace import TraceEvent
from agentunit.traces.chats.content import text_of
from agentunit.traces.chats.conversation import Conversation, payload_of_function
from agentunit.traces.chats.plain_data import as_dict, as_list, as_name, as_time
from agentunit.traces.chats.token_counts import token_counts
from agentunit.traces.chats.turns import HUMANS, Turn
from agentunit.traces.spans import ReadingNotes

_CALLS = frozenset(("ToolCallRequestEvent", "ToolCallMessage"))
_RESULTS = frozenset(("ToolCallExecutionEvent", "ToolCallResultMessage", "FunctionExecutionResultMessage"))
# A piece of a message that comes whole as well.
_PIECE = "ModelClientStreamingChunkEvent"
_UNREADABLE = "an AutoGen message has no source or type; it was left out"


class AutogenChat(NamedTuple):
    """What the messages of a run hold beside their events."""

    turns: list[Turn]
    handoffs: list[HandoffEvent]


def is_autogen_message(value: Any) -> bool:
    """Whether a value is a message or an event of AutoGen 0.4 or later."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and "role" not in value
        and (isinstance(value.get("source"), str) or value["type"] in _RESULTS)
        and "content" in value
    ) or (isinstance(value, dict) and value.get("type") == "CodeExecutionEvent")


def add_autogen_messages(talk: Conversation, messages: list[Any]) -> AutogenChat:
    """Add the messages of a run, in order."""
    chat = AutogenChat([], [])
    for message in messages:
        if is_autogen_message(message):
            _add(talk, chat, message)
        else:
            talk.notes.problems[_UNREADABLE] += 1
    return chat


def _add(talk: Conversation, chat: AutogenChat, message: dict[str, Any]) -> None:
    kind, source = message["type"], as_name(message.get("source"))
    at = as_time(message.get("created_at"))
    content = message.get("content")
    talk.model_call(_usage(message.get("models_usage"), talk.notes), agent=source, at=at)
    if kind == _PIECE:
        return
    if kind in _CALLS or (kind == "AssistantMessage" and isinstance(content, list)):
        _add_calls(talk, as_list(content), source, at)
    elif kind in _RESULTS:
        _add_results(talk, as_list(content), source, at)
    elif kind == "CodeExecutionEvent":
        _add_code(talk, as_dict(message.get("result")), source, at)
    elif kind == "MemoryQueryEvent":
        documents = [text for each in as_list(content) if (text := text_of(as_dict(each).get("content")))]
        talk.events.append(TraceEvent("retrieval", {"documents": documents, "agent": source}, at))
    elif kind.endswith("Event"):
        talk.events.append(TraceEvent(kind, {"content": content, "agent": source}, at))
    else:
        _add_words(talk, chat, message, source or "", at)


def _add_words(talk: Conversation, chat: AutogenChat, message: dict[str, Any], source: str, at: float | None) -> None:
    text = text_of(message.get("content"))
    target = as_name(message.get("target")) if message["type"] == "HandoffMessage" else None
    role = "system" if message["type"] == "SystemMessage" else "user" if source.lower() in HUMANS else "assistant"
    answer_so_far = talk.last_answer
    talk.say(role, text, agent=source or None, at=at)
    if target is not None or message["type"] == "StopMessage" or (text or "").strip() == "TERMINATE":
        talk.last_answer = answer_so_far
    if target is not None:
        chat.handoffs.append(HandoffEvent(source, target, timestamp=at, reason=text))
    if text and source and role != "system":
        chat.turns.append(Turn(source, text, at, target))


def _add_calls(talk: Conversation, calls: list[Any], source: str | None, at: float | None) -> None:
    for each in calls:
        call = payload_of_function(each)
        if call is None:
            talk.notes.problems["a tool call has no name; it was left out"] += 1
            continue
        name, arguments, call_id = call
        talk.call(name, arguments, call_id=call_id, agent=source, at=at)


def _add_results(talk: Conversation, results: list[Any], source: str | None, at: float | None) -> None:
    for each in results:
        answer = as_dict(each)
        call_id = answer.get("call_id")
        talk.result(
            text_of(answer.get("content")),
            call_id=call_id if isinstance(call_id, str) else None,
            name=as_name(answer.get("name")),
            failed=answer.get("is_error") is True,
            agent=source,
            at=at,
        )


def _add_code(talk: Conversation, result: dict[str, Any], source: str | None, at: float | None) -> None:
    talk.call("code_execution", {}, agent=source, at=at)
    talk.result(text_of(result.get("output")), name="code_execution", failed=result.get("exit_code") not in (0, None))


def _usage(models_usage: Any, notes: ReadingNotes) -> dict[str, Any] | None:
    usage = token_counts(models_usage, notes)
    # Clients that do not count report zeros, which say nothing.
    return usage if usage and any(usage.values()) else None

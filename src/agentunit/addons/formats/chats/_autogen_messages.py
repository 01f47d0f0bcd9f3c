"""Messages of AG2 and AutoGen, in three shapes: typed (0.4 and later), chats by name (0.2), printed log lines."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from agentunit.addons.formats.chats._chat_logs import add_message, looks_like_message
from agentunit.addons.formats.chats.chat_conversation import HUMANS, Conversation, Turn
from agentunit.addons.formats.chats.loose_values import (
    as_dict,
    as_list,
    as_name,
    as_time,
    count_unknown,
    text_of,
    token_counts,
)
from agentunit.core.trace import HandoffEvent, TraceEvent
from agentunit.traces.places import names_in

_CALLS = frozenset(("ToolCallRequestEvent", "ToolCallMessage"))
_RESULTS = frozenset(("ToolCallExecutionEvent", "ToolCallResultMessage", "FunctionExecutionResultMessage"))
# AutoGen's messages name their class; other tools also write types and sources.
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*(?:Message|Event)")
# A piece of a message that comes whole as well.
_PIECE = "ModelClientStreamingChunkEvent"
_KNOWN_FIELDS = names_in("type source content created_at models_usage target result id metadata thought context")
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
        and _CLASS.fullmatch(value["type"]) is not None
        and "role" not in value
        and (isinstance(value.get("source"), str) or value["type"] in _RESULTS or value["type"] == "SystemMessage")
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
    count_unknown(talk.notes, message, _KNOWN_FIELDS, kind)
    at = as_time(message.get("created_at"))
    content = message.get("content")
    talk.model_call(token_counts(message.get("models_usage"), talk.notes), agent=source, at=at)
    if kind == _PIECE:
        return
    if kind in _CALLS or (kind == "AssistantMessage" and isinstance(content, list)):
        talk.add_calls(as_list(content), agent=source, at=at)
    elif kind in _RESULTS:
        if as_list(content):
            add_message(talk, {"role": "tool", "tool_responses": content, "timestamp": at}, agent=source)
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


def _add_code(talk: Conversation, result: dict[str, Any], source: str | None, at: float | None) -> None:
    talk.call("code_execution", {}, agent=source, at=at)
    talk.result(text_of(result.get("output")), name="code_execution", failed=result.get("exit_code") not in (0, None))


_CHAT_ROLES = ("user", "assistant", "system", "tool", "function")
# AutoGen's executors answer with these words, and with nothing else that tells a failure.
_EXECUTION = re.compile(r"exitcode: (-?\d+) \(execution (succeeded|failed)\)")
_CODE_BLOCK = re.compile(r"```[ \t]*(\w*)[ \t]*\r?\n(.*?)```", re.DOTALL)
_ADDRESSED = re.compile(r"(?P<speaker>.+?) \(-> (?P<to>[^()]+)\)")
_ASIDE = re.compile(r"(?P<speaker>.+?) \([^()]*\)")
# What AutoGen agents say to end a chat is a signal, no answer.
_SIGNALS = frozenset(("TERMINATE", "TERMINATE.", "**TERMINATE**", "EXIT"))


def add_named_messages(talk: Conversation, messages: list[Any]) -> list[Turn]:
    """Add the messages of such a chat and return its turns.

    The roles in it are those of one agent's point of view, so they do not tell who is the user: the first message is
    the task, a speaker called user or human is the user, and all others are agents. Results of executed code, which
    AutoGen writes as "exitcode: 1 (execution failed)", become tool calls as well, marked as derived. Of two speakers
    the answer is that of the one who was given the task; of more, the last word.
    """
    turns: list[Turn] = []
    answers: dict[str | None, str] = {}
    for message in messages:
        if not looks_like_message(message):
            add_message(talk, message)
            continue
        speaker, addressee, aside = _speaker(message)
        text = text_of(message.get("content"))
        if message.get("role") in ("tool", "function") or "tool_responses" in message:
            add_message(talk, {**message, "role": "tool"}, agent=speaker, says_error=_says_error)
            continue
        as_user = talk.first_asked is None or (speaker or str(message.get("role"))).lower() in HUMANS
        role = "system" if message.get("role") == "system" else "user" if as_user else "assistant"
        if role == "assistant" and text is not None:
            _add_execution(talk, text, speaker, turns)
        add_message(talk, {**message, "role": role, "content": text}, agent=speaker)
        if text is None or not text.strip() or role == "system":
            continue
        if role == "assistant" and not aside and not _EXECUTION.match(text) and text.strip() not in _SIGNALS:
            answers.pop(speaker, None)
            answers[speaker] = text
        if speaker and not aside:
            turns.append(Turn(speaker, text, as_time(message.get("timestamp")), addressee))
    said = list(answers.items())
    if len({turn.speaker for turn in turns}) == 2:
        said = [(speaker, text) for speaker, text in said if speaker != turns[0].speaker] or said
    talk.last_answer = said[-1][1] if said else None
    return turns


def _says_error(result: str) -> bool:
    """AG2's convention: it has no error flag, and answers "Error: …" for a tool that raised or does not exist."""
    return result.startswith("Error: ")


def _speaker(message: dict[str, Any]) -> tuple[str | None, str | None, bool]:
    """Who speaks, to whom if stated, and whether it is a thought or a note rather than a message."""
    name = message.get("name")
    if isinstance(name, str) and name:
        return name, None, False
    role = message.get("role")
    if not isinstance(role, str) or role in _CHAT_ROLES:
        return None, None, False
    if found := _ADDRESSED.fullmatch(role):
        return found["speaker"], found["to"].strip(), False
    if found := _ASIDE.fullmatch(role):
        return found["speaker"], None, True
    return role, None, False


def _add_execution(talk: Conversation, text: str, executor: str | None, turns: list[Turn]) -> None:
    found = _EXECUTION.match(text)
    if found is None:
        return
    code = "\n".join(block for _, block in _CODE_BLOCK.findall(turns[-1].text)) if turns else ""
    talk.call("code_execution", {"code": code} if code else {}, agent=executor)
    talk.events[-1].payload["derived_from"] = "the executor's words"
    talk.result(text, name="code_execution", failed=found[2] == "failed" or found[1] != "0")


# HyperAgent: "HyperAgent_<instance> - INFO - Planner's Response: …" or "… - INFO - Navigator->Planner: …".
_LOGGED = re.compile(r"\S+ - (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) - (?P<rest>.*)", re.DOTALL)
_RESPONSE = re.compile(r"(?P<speaker>[\w .-]{1,60})'s Response: ?(?P<text>.*)", re.DOTALL)
_SENT = re.compile(r"(?P<speaker>[\w .-]{1,60})->(?P<to>[\w .-]{1,60}): ?(?P<text>.*)", re.DOTALL)
_NO_SPEAKER = "a line of a printed conversation has no speaker; it was kept as a log event"


def is_log(messages: list[Any]) -> bool:
    """Whether a conversation is lines of text rather than messages."""
    return bool(messages) and all(isinstance(line, str) for line in messages)


def add_log_lines(talk: Conversation, lines: list[str]) -> list[Turn]:
    """Add the entries of a log and return their turns; lines before any speaker, or without one, are log events."""
    turns = []
    for entry in _entries(lines):
        logged = _LOGGED.fullmatch(entry)
        response = _RESPONSE.fullmatch(logged["rest"]) if logged else None
        sent = _SENT.fullmatch(logged["rest"]) if logged and response is None else None
        found = response or sent
        if found is None:
            if not logged:
                talk.notes.problems[_NO_SPEAKER] += 1
            talk.say("log", logged["rest"] if logged else entry)
            continue
        text = found["text"].strip()
        talk.say("assistant", text, agent=found["speaker"])
        if text:
            turns.append(Turn(found["speaker"], text, to=sent["to"] if sent else None))
    return turns


def _entries(lines: list[str]) -> list[str]:
    """Each logged line with the plain lines that follow it."""
    entries: list[list[str]] = []
    for line in lines:
        if not entries or _LOGGED.match(line):
            entries.append([])
        entries[-1].append(line)
    return ["\n".join(entry).rstrip() for entry in entries]

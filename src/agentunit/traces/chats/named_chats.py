"""Chats in which each message names its speaker: AG2 and AutoGen 0.2, and the histories of Who&When."""

from __future__ import annotations

import re
from typing import Any

from agentunit.traces.chats.content import text_of
from agentunit.traces.chats.conversation import Conversation
from agentunit.traces.chats.messages import add_message, looks_like_message
from agentunit.traces.chats.plain_data import as_time
from agentunit.traces.chats.turns import HUMANS, Turn

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

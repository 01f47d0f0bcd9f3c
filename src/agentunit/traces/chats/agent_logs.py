"""Conversations of agents that were kept as printed text: one speaker's words under or after a heading."""

from __future__ import annotations

import re
from typing import Any

from agentunit.traces.chats.conversation import Conversation
from agentunit.traces.chats.turns import Turn

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
        spoken = _RESPONSE.fullmatch(logged["rest"]) if logged else None
        sent = _SENT.fullmatch(logged["rest"]) if logged and spoken is None else None
        found = spoken or sent
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

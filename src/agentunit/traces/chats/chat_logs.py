"""Plain chat logs: messages with roles in the shapes of OpenAI, Anthropic, Gemini or LangChain, one chat a row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceLog
from agentunit.traces.chats.autogen import AUTOGEN
from agentunit.traces.chats.conversation import Conversation
from agentunit.traces.chats.messages import add_message, looks_like_message
from agentunit.traces.chats.rows import CaseIds, NoConversation, file_rows, records_of_rows, row_facts
from agentunit.traces.chats.tau2 import TAU2
from agentunit.traces.chats.values import as_amount, as_dict, as_list, as_name, token_counts, without_nones
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

_LISTS = ("messages", "contents", "conversation", "input")
_ROLES = ("system", "developer", "user", "assistant", "tool", "function", "model", "human", "ai")


def _matches(opening: Opening) -> bool:
    value = opening.value
    if AUTOGEN.matches(opening) or TAU2.matches(opening):
        return False
    if value is None:
        # The first row is longer than what was looked at.
        return "messages" in opening.keys and b'"role"' in opening.head
    if isinstance(value, list):
        return bool(value) and _is_chat_message(value[0])
    if not isinstance(value, dict):
        return False
    if _is_chat_message(value):
        return True
    row = _unwrapped(value)
    key = _list_key(row)
    return key is not None and _is_chat_message(row[key][0])


def _is_chat_message(value: Any) -> bool:
    return looks_like_message(value) and value.get("role", value.get("type")) in _ROLES


def _list_key(row: dict[str, Any]) -> str | None:
    return next((key for key in _LISTS if isinstance(row.get(key), list) and row[key]), None)


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """A row as it is; of a logged request with its response, the request with the reply as its last message."""
    request = value.get("request", value.get("body"))
    if _list_key(value) is not None or not isinstance(request, dict):
        return _with_reply(value, value)
    return _with_reply({**value, **request}, as_dict(value.get("response")))


def _with_reply(row: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    key = _list_key(row)
    choices = [as_dict(choice).get("message") for choice in as_list(response.get("choices"))[:1]]
    replies = choices or ([response] if response is not row and looks_like_message(response) else [])
    if key is None or not replies:
        return row
    replies = [{k: v for k, v in as_dict(reply).items() if k != "usage"} for reply in replies]
    known = {name: response[name] for name in ("usage", "model") if response.get(name) is not None}
    return {**row, **known, key: [*row[key], *replies]}


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    loose: list[Any] = []
    stem = PurePath(source.name).name.split(".")[0] or "conversation"

    def build(row: Any, _: dict[str, Any]) -> Record | None:
        if looks_like_message(row):
            loose.append(row)
            return None
        return _record(row, ids, stem, notes)

    yield from records_of_rows(source, file_rows(source), build)
    if loose:
        # A file of bare messages is one conversation.
        yield _record(loose, ids, stem, notes)


def _record(value: Any, ids: CaseIds, fallback_id: str, notes: ReadingNotes) -> Record:
    row = {"messages": value} if isinstance(value, list) else _unwrapped(as_dict(value))
    key = _list_key(row)
    if key is None or not any(map(looks_like_message, row[key])):
        raise NoConversation(f"no conversation: a row needs a list of messages under one of {', '.join(_LISTS)}")
    talk = Conversation(notes)
    for instructions in (row.get("system"), row.get("instructions")):
        if instructions is not None:
            add_message(talk, {"role": "system", "content": instructions})
    for message in row[key]:
        add_message(talk, message)
    facts = row_facts(row, key)
    for read in ("tools", "usage", "cost", "system", "instructions", "request", "response", "body", "choices"):
        facts.metadata.pop(read, None)
    metadata = without_nones(
        source_format=CHAT.name,
        model=as_name(row.get("model")),
        usage=token_counts(row.get("usage"), notes),
        cost=as_amount(row.get("cost")),
    )
    case = facts.case(ids, fallback_id, talk.first_asked)
    case.tools = as_list(row.get("tools")) or None
    return Record(case, TraceLog(talk.events, metadata), Outcome(facts.success, talk.last_answer))


CHAT = TraceFormat(
    "chat",
    'chat logs with roles: {"messages": […]} a line (OpenAI, Anthropic, Gemini, LangChain), or bare messages',
    _matches,
    _read,
)

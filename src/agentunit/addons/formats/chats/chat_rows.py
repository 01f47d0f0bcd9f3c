"""Files of chats: rows with messages, logged requests with their replies, responses and batches of OpenAI."""

from __future__ import annotations

import re
from typing import Any

from agentunit.addons.formats.chats._chat_logs import add_message, looks_like_message, role_of
from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_records import NoConversation, RowContext, chat_format, row_facts
from agentunit.addons.formats.chats.loose_values import (
    as_amount,
    as_data,
    as_dict,
    as_list,
    as_name,
    usage_counts,
    without_nones,
)
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.traces.content_blocks import called
from agentunit.traces.formats_base import Opening
from agentunit.traces.places import first_at

_LISTS = ("messages", "contents", "conversation", "input")
_CHAT_ROLES = (
    "system", "developer", "user", "assistant", "tool", "function", "model", "human", "ai", "AIMessageChunk",
    "request", "response", "model response",
)  # fmt: skip


def _matches(opening: Opening) -> bool:
    value = opening.value
    if value is None:
        # The first row is longer than what was looked at.
        return "messages" in opening.keys and b'"role"' in opening.head
    if isinstance(value, list):
        return bool(value) and _is_chat_message(value[0])
    if not isinstance(value, dict):
        return False
    if _is_chat_message(value) or isinstance(value.get("messages_display"), str):
        return True
    if value.get("object") == "response" or {"custom_id", "response"} <= value.keys():
        return True
    row = _unwrapped(value)
    key = _list_key(row)
    return key is not None and _is_chat_message(row[key][0])


def _is_chat_message(value: Any) -> bool:
    return looks_like_message(value) and role_of(value) in _CHAT_ROLES


def _list_key(row: dict[str, Any]) -> str | None:
    return next((key for key in _LISTS if isinstance(row.get(key), list) and row[key]), None)


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """A row as it is; of a logged request with its response, the request with the reply as its last message.

    A response of OpenAI's Responses API, and a line of what a batch of its Batch API put out, is a reply alone.
    """
    if isinstance(value.get("messages_display"), str):
        return {**value, "messages": _displayed(value["messages_display"])}
    if "current_agent_name" in value and looks_like_message(value.get("response")):
        # What an agent of LlamaIndex returns: the calls that it made, and its answer.
        made = {"role": "assistant", "tool_calls": value.get("tool_calls"), "content": None}
        return {"messages": [{**made, "name": value["current_agent_name"]}, value["response"]]}
    request, response = value.get("request", value.get("body")), as_dict(value.get("response"))
    response = as_dict(response.get("body")) or response
    if value.get("object") == "response":
        request, response = {}, value
    elif _list_key(value) is not None or not (isinstance(request, dict) or "custom_id" in value):
        # LiteLLM logs the messages that were sent beside the whole response.
        return _with_reply(value, response if "choices" in response and "choices" not in value else value)
    return _with_reply({**value, **as_dict(request)}, response)


def _with_reply(row: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    asked = row.get("input")
    if isinstance(asked, str) and response.get("object") == "response":
        row = {**row, "input": [{"role": "user", "content": asked}]}
    key = _list_key(row)
    replies = [_reply(as_dict(as_dict(choice).get("message"))) for choice in as_list(response.get("choices"))[:1]]
    if response.get("object") == "response":
        replies = as_list(response.get("output"))
    elif not replies and response is not row and looks_like_message(response):
        replies = [response]
    if not replies or (key is None and response is row and response.get("object") != "response"):
        return row
    replies = [{k: v for k, v in as_dict(reply).items() if k != "usage"} for reply in replies]
    known = {name: response[name] for name in ("usage", "model") if response.get(name) is not None}
    return {**row, **known, key or "messages": [*(row[key] if key else []), *replies]}


def _reply(message: dict[str, Any]) -> dict[str, Any]:
    """A reply; one that only calls a tool to hand in its answer is that answer."""
    calls = as_list(message.get("tool_calls"))
    call = called(as_dict(calls[0])) if len(calls) == 1 and not message.get("content") else None
    if call is None or call.name not in _ANSWERING_TOOLS:
        return message
    given = as_dict(as_data(call.arguments))
    answer = next((text for key in _ANSWERS if (text := as_name(given.get(key)))), None)
    return message if answer is None else {"role": "assistant", "content": answer}


_ANSWERING_TOOLS = ("finish", "submit", "attempt_completion", "final_answer")
_ANSWERS = ("message", "answer", "result", "final_answer")
_DISPLAYED = re.compile(r"^(system|user|assistant|tool): ", re.M)


def _displayed(text: str) -> list[dict[str, Any]]:
    """The messages of a conversation as text, each after its role, as the demonstrations of HAL's agents are kept."""
    marks = list(_DISPLAYED.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    said = [(mark[1], text[mark.end() : end].rstrip("\n")) for mark, end in zip(marks, ends, strict=False)]
    return [{"role": role, "content": None if words == "None" else words} for role, words in said]


def _displayed_error(result: str) -> bool:
    return result.startswith("Error")


# Of a response of the Responses API: what is read, and settings of the request that it repeats.
_OF_A_RESPONSE = (
    "tools", "usage", "cost", "system", "instructions", "request", "response", "body", "choices", "messages_display",
    "output", "object", "error", "input", "usage_details", "raw_messages", "raw_response", "kwargs",
)  # fmt: skip


def _record(value: Any, context: RowContext) -> Record:
    row = {"messages": value} if isinstance(value, list) else _unwrapped(as_dict(value))
    key, failure = _list_key(row), _failure(as_dict(value))
    if failure is None and (key is None or not any(map(looks_like_message, row[key]))):
        raise NoConversation(f"no conversation: a row needs a list of messages under one of {', '.join(_LISTS)}")
    talk = Conversation(context.notes)
    for instructions in (row.get("system"), row.get("instructions")):
        if instructions is not None:
            add_message(talk, {"role": "system", "content": instructions})
    # In words that were displayed, nothing but the words tells a failure.
    says_error = _displayed_error if "messages_display" in row else None
    for message in row[key] if key else []:
        add_message(talk, message, says_error=says_error)
    facts = row_facts(row, key or "")
    for read in _OF_A_RESPONSE:
        facts.metadata.pop(read, None)
    usage = first_at(row, ("usage", "usage_details"))
    if usage is None and not any(event.type == "llm_call" for event in talk.events):
        usage = row.get("metrics") if isinstance(row.get("metrics"), dict) else None
    metadata = without_nones(
        source_format=CHAT.name,
        model=as_name(row.get("model")),
        usage=usage_counts(usage, context.notes),
        cost=as_amount(row.get("cost")),
    )
    case = facts.case(context, talk.first_asked)
    case.tools = as_list(row.get("tools")) or None
    outcome = Outcome(facts.success, talk.last_answer, error=failure)
    return Record(case, TraceLog(talk.events, metadata), outcome)


def _failure(value: dict[str, Any]) -> str | None:
    """Why a request of a batch, or a response, failed."""
    if "custom_id" not in value and value.get("object") != "response":
        return None
    body = as_dict(as_dict(value.get("response")).get("body"))
    error = next((each for each in (value.get("error"), body.get("error")) if isinstance(each, dict) and each), None)
    return (
        None if error is None else as_name(error.get("message")) or as_name(error.get("code")) or "the request failed"
    )


CHAT = chat_format(
    "chat",
    'chat logs with roles: {"messages": […]} a line (OpenAI, Anthropic, Gemini, LangChain), or bare messages',
    _matches,
    _record,
    is_part=looks_like_message,
)._replace(by_shape=True)

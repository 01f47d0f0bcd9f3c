"""Chat logs: messages with roles in the shapes of OpenAI, Anthropic, Gemini or LangChain, one chat a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.trace import TraceLog
from agentunit.traces.chats.conversation import Conversation
from agentunit.traces.chats.rows import NoConversation, RowContext, chat_format, row_facts
from agentunit.traces.chats.values import (
    as_amount,
    as_dict,
    as_list,
    as_name,
    as_time,
    gemini_counts,
    text_of,
    token_counts,
    without_nones,
)
from agentunit.traces.formats_base import Opening

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant", "developer": "system"}
_RESULT_ROLES = ("tool", "function")
_UNREADABLE_MESSAGE = "a message is no object with a role; it was left out"

SaysError = Callable[[str], bool]


def looks_like_message(value: Any) -> bool:
    """Whether a value is one message of a chat: it has a role, or is an item of OpenAI's Responses API."""
    if not isinstance(value, dict):
        return False
    if as_name(value.get("role")) is not None:
        return bool(value.keys() & {"content", "parts", "tool_calls", "function_call", "tool_responses"})
    return value.get("type") in ("function_call", "function_call_output", "human", "ai", "tool", "system") and bool(
        value.keys() & {"content", "call_id"}
    )


def add_message(
    talk: Conversation, message: Any, *, agent: str | None = None, says_error: SaysError = lambda result: False
) -> None:
    """Add one message of any of the common shapes. ``agent`` is who said it, where the format tells.

    In most formats only a flag makes a result an error; ``says_error`` is for those whose tools say it in words.
    """
    if not looks_like_message(message):
        talk.notes.problems[_UNREADABLE_MESSAGE] += 1
        return
    at = as_time(message.get("timestamp", message.get("created_at")))
    kind = as_name(message.get("role")) or message["type"]
    role = _ROLES.get(kind, kind)
    if role == "function_call":
        talk.add_calls([message], agent=agent, at=at)
        return
    if role == "function_call_output" or role in _RESULT_ROLES:
        _add_results(talk, message, agent, says_error)
        return
    if role == "assistant":
        _add_model_call(talk, message, agent, at)
    content = message.get("content")
    if content is None or isinstance(content, dict):
        content = as_dict(content).get("parts", message.get("parts", content))
    talk.say(role, text_of(content), agent=agent, at=at)
    for part in as_list(content):
        _add_part(talk, part, agent, at, says_error)
    calls = as_list(message.get("tool_calls"))
    if not calls and isinstance(message.get("function_call"), dict):
        calls = [message["function_call"]]
    talk.add_calls(calls, agent=agent, at=at)


def _add_results(talk: Conversation, message: dict[str, Any], agent: str | None, says_error: SaysError) -> None:
    # AG2 packs the results of parallel calls into one message, whose own content repeats them.
    for each in as_list(message.get("tool_responses")) or [message]:
        answer = as_dict(each)
        content = answer.get("content", answer.get("output"))
        result = text_of(content)
        error = answer.get("error")
        stated = error.get("message") if isinstance(error, dict) else error
        failed = bool(error) or answer.get("is_error") is True or answer.get("status") == "error"
        ids = (answer.get("tool_call_id"), answer.get("call_id"), answer.get("tool_use_id"))
        name = answer.get("name", answer.get("function"))
        talk.result(
            result,
            call_id=next((each_id for each_id in ids if isinstance(each_id, str)), None),
            name=name if isinstance(name, str) else None,
            failed=failed or says_error(result or ""),
            error=stated if isinstance(stated, str) else None,
            agent=agent,
            at=as_time(answer.get("timestamp", message.get("timestamp"))),
        )


def _add_part(talk: Conversation, part: Any, agent: str | None, at: float | None, says_error: SaysError) -> None:
    """The calls and results that Anthropic and Gemini write as parts of a message's content."""
    block = as_dict(part)
    if block.get("type") in ("tool_use", "server_tool_use", "tool_call"):
        talk.add_calls([block], agent=agent, at=at)
    elif block.get("type") == "tool_result":
        result = text_of(block.get("content"))
        call_id = block.get("tool_use_id")
        talk.result(
            result,
            call_id=call_id if isinstance(call_id, str) else None,
            failed=block.get("is_error") is True or says_error(result or ""),
            agent=agent,
            at=at,
        )
    elif (call := block.get("functionCall", block.get("function_call"))) is not None:
        talk.add_calls([call], agent=agent, at=at)
    elif (answer := block.get("functionResponse", block.get("function_response"))) is not None:
        add_function_response(talk, as_dict(answer), agent=agent, at=at)


def add_function_response(
    talk: Conversation,
    answer: dict[str, Any],
    *,
    agent: str | None = None,
    at: float | None = None,
    error_key: str = "error",
) -> None:
    """Gemini's result of a function: one with an error in its response failed, as its documentation has it."""
    response = answer.get("response")
    error = as_dict(response).get(error_key)
    call_id, name = answer.get("id"), answer.get("name")
    talk.result(
        response,
        call_id=call_id if isinstance(call_id, str) else None,
        name=name if isinstance(name, str) else None,
        failed=bool(error),
        error=text_of(error) if error else None,
        agent=agent,
        at=at,
    )


def _add_model_call(talk: Conversation, message: dict[str, Any], agent: str | None, at: float | None) -> None:
    metadata = as_dict(message.get("response_metadata"))
    usage: Any = message.get("usage")
    if usage is None and isinstance(message.get("usage_metadata"), dict):
        usage = _langchain_counts(message["usage_metadata"])
    if usage is None and isinstance(message.get("usageMetadata"), dict):
        usage = gemini_counts(message["usageMetadata"])
    if usage is None:
        usage = metadata.get("token_usage")
    model = next((m for m in (message.get("model"), metadata.get("model_name")) if as_name(m)), None)
    talk.model_call(
        token_counts(usage, talk.notes), model=as_name(model), cost=as_amount(message.get("cost")), agent=agent, at=at
    )


def _langchain_counts(usage: dict[str, Any]) -> dict[str, Any]:
    """LangChain's counts under OpenAI's names: its input includes what was read from a cache."""
    cached = as_dict(usage.get("input_token_details")).get("cache_read")
    counts = {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
    }
    return {name: value for name, value in counts.items() if value is not None}


_LISTS = ("messages", "contents", "conversation", "input")
_CHAT_ROLES = ("system", "developer", "user", "assistant", "tool", "function", "model", "human", "ai")


def _matches(opening: Opening) -> bool:
    value = opening.value
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
    return looks_like_message(value) and value.get("role", value.get("type")) in _CHAT_ROLES


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


def _record(value: Any, context: RowContext) -> Record:
    row = {"messages": value} if isinstance(value, list) else _unwrapped(as_dict(value))
    key = _list_key(row)
    if key is None or not any(map(looks_like_message, row[key])):
        raise NoConversation(f"no conversation: a row needs a list of messages under one of {', '.join(_LISTS)}")
    talk = Conversation(context.notes)
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
        usage=token_counts(row.get("usage"), context.notes),
        cost=as_amount(row.get("cost")),
    )
    case = facts.case(context, talk.first_asked)
    case.tools = as_list(row.get("tools")) or None
    return Record(case, TraceLog(talk.events, metadata), Outcome(facts.success, talk.last_answer))


CHAT = chat_format(
    "chat",
    'chat logs with roles: {"messages": […]} a line (OpenAI, Anthropic, Gemini, LangChain), or bare messages',
    _matches,
    _record,
    is_part=looks_like_message,
)

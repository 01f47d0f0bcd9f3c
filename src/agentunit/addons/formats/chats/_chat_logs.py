"""Messages of chats with roles, in the shapes of OpenAI, Anthropic, Gemini, LangChain or fast-agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.loose_values import (
    as_amount,
    as_data,
    as_dict,
    as_list,
    as_name,
    as_number,
    as_time,
    count_unknown,
    gemini_counts,
    openai_counts,
    text_of,
    token_counts,
    without_nones,
)
from agentunit.traces.places import Paths, first_at, names_in

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant", "developer": "system"}
_RESULT_ROLES = ("tool", "function")
_UNREADABLE_MESSAGE = "a message is not an object with a role; it was left out"

SaysError = Callable[[str], bool]


def looks_like_message(value: Any) -> bool:
    """Whether a value is one message of a chat: it has a role, or is an item of OpenAI's Responses API."""
    if not isinstance(value, dict):
        return False
    if as_name(value.get("role")) is not None:
        return bool(
            value.keys() & {"content", "parts", "tool_calls", "function_call", "tool_responses", "tool_results"}
        )
    kind = value.get("type")
    if kind in ("function_call", "function_call_output", "human", "ai", "tool", "system"):
        return bool(value.keys() & {"content", "call_id"}) or isinstance(value.get("data"), dict)
    return isinstance(kind, str) and kind in _CALL_ITEMS and bool(value.keys() & {"id", "call_id"})


# Items of OpenAI's Responses API: calls of the caller's tools and their results, of OpenAI's own tools, and thoughts.
_CALL_ITEMS = names_in(
    "custom_tool_call custom_tool_call_output mcp_call web_search_call file_search_call "
    "code_interpreter_call computer_call image_generation_call local_shell_call shell_call "
    "apply_patch_call tool_search_call reasoning mcp_list_tools mcp_approval_request"
)
_QUIET_ITEMS = ("reasoning", "mcp_list_tools", "mcp_approval_request")

# Fields of a message that are read, and those that tell nothing about what was done.
_KNOWN_FIELDS = names_in(
    "role content parts tool_calls function_call tool_responses tool_results tool_call_id call_id "
    "tool_use_id name type id timestamp created_at usage usage_metadata usageMetadata response_metadata "
    "model cost status error is_error output arguments function channels refusal annotations logprobs "
    "reasoning_content reasoning thinking thinking_blocks reasoning_details stop_reason stop_sequence "
    "stop_details finish_reason index additional_kwargs example invalid_tool_calls weight source metadata "
    "provider_specific_fields is_template summary encrypted_content namespace phase input "
    "context_management container internal agent raw_data turn_idx is_handoff_back to recipient"
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
    if "role" not in message and isinstance(message.get("data"), dict):
        # LangChain's messages_to_dict puts the message into its type.
        message = {**message["data"], "type": message["type"]}
    at = as_time(message.get("timestamp", message.get("created_at")))
    kind = as_name(message.get("role")) or message["type"]
    role = _ROLES.get(kind, kind)
    if role not in _CALL_ITEMS:
        count_unknown(talk.notes, message, _KNOWN_FIELDS)
    if role in ("function_call", "custom_tool_call"):
        talk.add_calls([message], agent=agent, at=at)
        return
    if role in _CALL_ITEMS and role != "custom_tool_call_output":
        _add_own_tool(talk, message, agent, at)
        return
    if role in ("function_call_output", "custom_tool_call_output") or role in _RESULT_ROLES:
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
    calls = _listed_calls(message.get("tool_calls"))
    if not calls and isinstance(message.get("function_call"), dict):
        calls = [message["function_call"]]
    talk.add_calls(calls, agent=agent, at=at)
    _add_mcp_results(talk, message, agent)


def _listed_calls(calls: Any) -> list[Any]:
    """Calls as a list; fast-agent writes them as requests of MCP by their ids."""
    if not isinstance(calls, dict):
        return as_list(calls)
    return [{**as_dict(as_dict(each).get("params")), "id": call_id} for call_id, each in calls.items()]


def _add_mcp_results(talk: Conversation, message: dict[str, Any], agent: str | None) -> None:
    """The results that fast-agent writes by the ids of their calls, with how long each took beside them."""
    channels = as_dict(message.get("channels"))
    count_unknown(talk.notes, channels, _CHANNELS, "channels")
    elapsed = _channel(channels, "fast-agent-tool-timing")
    for call_id, each in as_dict(message.get("tool_results")).items():
        answer, timing_ms = as_dict(each), as_amount(as_dict(elapsed.get(call_id)).get("timing_ms"))
        talk.result(
            text_of(answer.get("content")),
            call_id=call_id,
            failed=answer.get("isError") is True,
            agent=agent,
            duration_s=None if timing_ms is None else timing_ms / 1000,
        )


_CHANNELS = frozenset(("reasoning", "fast-agent-timing", "fast-agent-tool-timing", "fast-agent-usage"))


def _channel(channels: dict[str, Any], name: str) -> dict[str, Any]:
    """The data of a channel of fast-agent, which is JSON in a text block."""
    return as_dict(as_data(text_of(channels.get(name))))


def _add_own_tool(talk: Conversation, item: dict[str, Any], agent: str | None, at: float | None) -> None:
    """A call of one of OpenAI's own tools, or of an MCP server that it calls itself: result and status are in it."""
    kind = item["type"]
    if kind in _QUIET_ITEMS:
        return
    name = as_name(item.get("name")) or kind.removesuffix("_call")
    given = next((item[key] for key in ("arguments", "action", "code", "queries") if item.get(key) is not None), None)
    talk.call(name, given, call_id=as_name(item.get("id")), agent=agent, at=at)
    talk.events[-1].payload.update(without_nones(server=as_name(item.get("server_label"))))
    error = item.get("error")
    if item.get("status") in (None, "completed", "failed", "incomplete") and (item.get("status") or error is not None):
        result = next((item[key] for key in ("output", "outputs", "results") if item.get(key) is not None), None)
        failed = bool(error) or item.get("status") == "failed"
        talk.result(
            result, call_id=as_name(item.get("id")), failed=failed, error=text_of(error) if error else None, agent=agent
        )


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
    stated = _channel(as_dict(message.get("channels")), "fast-agent-usage")
    for each in as_list(stated.get("provider_attempts")) or as_list(stated.get("turn") and [stated["turn"]]):
        turn, counts = as_dict(each), token_counts(_fast_agent_counts(as_dict(each)), talk.notes)
        cost = as_amount(turn.get("cost_usd"))
        talk.model_call(counts, model=as_name(turn.get("model")), cost=cost, agent=agent, at=at)
    model = next((m for m in (message.get("model"), metadata.get("model_name")) if as_name(m)), None)
    talk.model_call(
        token_counts(usage, talk.notes), model=as_name(model), cost=as_amount(message.get("cost")), agent=agent, at=at
    )


# Where fast-agent has the counts of a call: in version 2 of its usage, and before.
_FAST_AGENT_COUNTS: dict[str, Paths] = {
    "prompt_tokens": ("prompt.total", "display_input_tokens", "input_tokens"),
    "completion_tokens": ("completion.total", "output_tokens"),
    "cached_tokens": ("prompt.cache_read", "cache_usage.cache_read_tokens"),
    "cache_hits": ("cache_usage.cache_hit_tokens",),
    "cache_creation_tokens": ("prompt.cache_write", "cache_usage.cache_write_tokens"),
    "reasoning_tokens": ("completion.reasoning", "reasoning_tokens"),
}


def _fast_agent_counts(turn: dict[str, Any]) -> dict[str, Any]:
    """fast-agent's counts of a call under OpenAI's names: its prompt includes what was cached."""
    found = {name: as_number(first_at(turn, paths)) for name, paths in _FAST_AGENT_COUNTS.items()}
    cached = (found["cached_tokens"] or 0) + (found.pop("cache_hits") or 0)
    written = found["cache_creation_tokens"] or None
    return openai_counts(**{**found, "cached_tokens": cached or None, "cache_creation_tokens": written})


def _langchain_counts(usage: dict[str, Any]) -> dict[str, Any]:
    """LangChain's counts under OpenAI's names: its input includes what was read from a cache."""
    details = as_dict(usage.get("input_token_details"))
    return openai_counts(
        prompt_tokens=usage.get("input_tokens"),
        completion_tokens=usage.get("output_tokens"),
        total_tokens=usage.get("total_tokens"),
        cached_tokens=details.get("cache_read"),
        cache_creation_tokens=details.get("cache_creation"),
        reasoning_tokens=as_dict(usage.get("output_token_details")).get("reasoning"),
    )

"""Messages of chats with roles, in the shapes of all providers and of the frameworks that keep them."""

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
    openai_counts,
    text_of,
    token_counts,
    usage_counts,
    without_nones,
)
from agentunit.traces.content_blocks import CALL_IDS, MessageBlock, answered, called, read_block, says_failure
from agentunit.traces.places import Paths, first_at, names_in
from agentunit.traces.vocabularies.values import as_amount as written_amount

_ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant", "developer": "system",
    "AIMessageChunk": "assistant", "function": "tool",
    "request": "user", "response": "assistant",
}  # fmt: skip
# The messages of LangChain's own serialization name their class.
_LANGCHAIN_CLASSES = {
    "HumanMessage": "human", "AIMessage": "ai", "AIMessageChunk": "ai", "SystemMessage": "system",
    "ToolMessage": "tool", "FunctionMessage": "tool", "ChatMessage": "chat",
}  # fmt: skip
_OTHER_CONTENTS = ("parts", "contents", "blocks")
# A message that answers a call has an id of its own.
_ANSWERED_IDS = CALL_IDS[:-1]
_UNREADABLE_MESSAGE = "a message is not an object with a role; it was left out"

SaysError = Callable[[str], bool]


def looks_like_message(value: Any) -> bool:
    """Whether a value is one message of a chat: it has a role, or is an item of OpenAI's Responses API."""
    if not isinstance(value, dict):
        return False
    if as_name(value.get("role")) is not None:
        return not _MESSAGE_FIELDS.isdisjoint(value)
    if _is_model_response(value):
        return True
    kind = value.get("type")
    if kind in ("function_call_output", "human", "ai", "tool", "system", "AIMessageChunk"):
        return bool(value.keys() & {"content", "call_id"}) or isinstance(value.get("data"), dict)
    if kind == "constructor":
        return value.get("lc") is not None and _langchain_class(value) is not None
    if value.get("kind") in ("request", "response"):
        # PydanticAI names the kind of each part.
        parts = value.get("parts")
        return isinstance(parts, list) and bool(parts) and "part_kind" in as_dict(parts[0])
    return isinstance(kind, str) and kind in _CALL_ITEMS and bool(value.keys() & {"id", "call_id"})


_MESSAGE_FIELDS = names_in("content parts contents blocks tool_calls function_call tool_responses tool_results")


def role_of(message: dict[str, Any]) -> str | None:
    """The role of a message, in the words of its framework."""
    role = as_name(message.get("role"))
    if role is None and message.get("lc") is not None:
        return _langchain_class(message)
    if role is None and _is_model_response(message):
        return "model response"
    return role or as_name(message.get("type")) or as_name(message.get("kind"))


def _is_model_response(value: dict[str, Any]) -> bool:
    """Whether this is one of the raw responses of a run of OpenAI's Agents SDK: items, and what they used."""
    return {"output", "usage", "response_id"} <= value.keys() and isinstance(value["output"], list)


def _langchain_class(message: dict[str, Any]) -> str | None:
    path = as_list(message.get("id"))
    name = path[-1] if path and isinstance(message.get("kwargs"), dict) else None
    return _LANGCHAIN_CLASSES.get(name) if isinstance(name, str) else None


def _unwrapped(message: dict[str, Any]) -> dict[str, Any]:
    """A message of LangChain without what its serializations put around it."""
    if "role" in message:
        return message
    if isinstance(message.get("data"), dict) and "type" in message:
        return {**message["data"], "type": message["type"]}
    if message.get("lc") is not None:
        return {**message["kwargs"], "type": _langchain_class(message)}
    return message


# Items of OpenAI's Responses API: calls of the caller's tools and their results, of OpenAI's own tools, and thoughts.
_CALL_ITEMS = names_in(
    "function_call function_call_output custom_tool_call custom_tool_call_output mcp_call web_search_call "
    "file_search_call code_interpreter_call computer_call image_generation_call local_shell_call shell_call "
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
    "context_management container internal agent raw_data turn_idx is_handoff_back to recipient "
    "contents blocks author_name kind instructions tool_name tool_args tool_call_error meta metrics caller lc kwargs "
    "provider_data provider_name provider_url provider_details provider_response_id canonical_system model_name "
    "model_id run_id conversation_id state tracking_id from_history stop_after_tool_call artifact response_id "
    "tool_call_chunks chunk_position additional_properties providerOptions workspace_ref history_digest failed_attempts"
)


def add_message(
    talk: Conversation, message: Any, *, agent: str | None = None, says_error: SaysError | None = None
) -> None:
    """Add one message of any of the common shapes. ``agent`` is who said it, where the format tells.

    In most formats only a flag makes a result an error; ``says_error`` is for those whose tools say it in words.
    """
    if not looks_like_message(message):
        talk.notes.problems[_UNREADABLE_MESSAGE] += 1
        return
    message = _unwrapped(message)
    agent = agent or as_name(message.get("author_name"))
    at = as_time(message.get("timestamp", message.get("created_at")))
    kind = role_of(message) or ""
    role = _ROLES.get(kind, kind)
    if role in _CALL_ITEMS:
        _add_item(talk, role, message, agent, at, says_error)
        return
    count_unknown(talk.notes, message, _KNOWN_FIELDS)
    if role == "model response":
        _add_model_call(talk, message, agent, at)
        for item in message["output"]:
            add_message(talk, item, agent=agent, says_error=says_error)
        return
    if role == "assistant" and not _STATES_USAGE.isdisjoint(message):
        _add_model_call(talk, message, agent, at)
    content = message.get("content")
    if content is None:
        content = next((message[key] for key in _OTHER_CONTENTS if message.get(key) is not None), None)
    if isinstance(content, dict):
        content = content["parts"] if isinstance(content.get("parts"), list) else [content]
    blocks: list[MessageBlock] = []
    if isinstance(content, list):
        blocks = _blocks(talk, content, at)
        text = _said(blocks)
    else:
        text = text_of(content)
    if role == "tool" and not any("result" in block.does for block in blocks):
        _add_results(talk, message, text, agent, says_error)
        return
    talk.say(role, text, agent=agent, at=at)
    for call in _all_calls(message, blocks):
        talk.add_call(call, agent=agent, at=at)
    for block in blocks:
        if "result" in block.does:
            result = block.result if isinstance(block.result, dict) else text_of(block.result)
            _add_result(talk, block, result, agent, at, says_error)
    if "tool_results" in message or "channels" in message:
        _add_mcp_results(talk, message, agent)


def _add_item(
    talk: Conversation,
    kind: str,
    item: dict[str, Any],
    agent: str | None,
    at: float | None,
    says_error: SaysError | None,
) -> None:
    """An item of OpenAI's Responses API that is no message."""
    if kind in ("function_call", "custom_tool_call"):
        talk.add_calls([item], agent=agent, at=at)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        _add_results(talk, item, None, agent, says_error)
    else:
        _add_own_tool(talk, item, agent, at)


def _blocks(talk: Conversation, parts: list[Any], at: float | None) -> list[MessageBlock]:
    """What the blocks of a message say, after the words of others in it; blocks that no row understands are counted."""
    found = []
    for part in parts:
        block = read_block(part)
        if block is None:
            if part:
                talk.notes.count_fields([f"block {_block_name(part)}"])
        elif block.does == "asked":
            talk.say("user", block.text, at=at)
        elif block.does == "instructed":
            talk.say("system", block.text, at=at)
        else:
            found.append(block)
    return found


def _block_name(part: Any) -> str:
    block = as_dict(part)
    named = (as_name(block.get(key)) for key in ("type", "block_type", "part_kind"))
    return next((name for name in named if name), None) or " ".join(sorted(block)[:3]) or type(part).__name__


def _said(blocks: list[MessageBlock]) -> str | None:
    said = [block.text for block in blocks if block.does == "said" and block.text is not None]
    return "\n".join(said) if said else None


def _all_calls(message: dict[str, Any], blocks: list[MessageBlock]) -> list[MessageBlock]:
    """The calls of a message: many frameworks state them twice, in a list of their own and within the content."""
    within = [block for block in blocks if "call" in block.does]
    if _STATES_CALLS.isdisjoint(message):
        return within
    listed = _listed_calls(message.get("tool_calls"))
    if not listed and isinstance(message.get("function_call"), dict):
        listed = [message["function_call"]]
    if not listed and not within:
        listed = as_list(as_dict(message.get("additional_kwargs")).get("tool_calls"))
    calls = [called(as_dict(each)) for each in [*listed, *as_list(message.get("invalid_tool_calls"))]]
    if not calls:
        return within
    ids = {call.call_id for call in calls}
    # Where one of the two has no id, the same name and arguments are the same call.
    stated = [(call.name, as_data(call.arguments), call.call_id) for call in calls]
    for block in within:
        if block.call_id is not None and block.call_id in ids:
            continue
        name, arguments = block.name, as_data(block.arguments)
        same = (each for each in stated if each[:2] == (name, arguments) and None in (block.call_id, each[2]))
        found = next(same, None)
        if found is None:
            calls.append(block)
        else:
            stated.remove(found)
    return calls


_STATES_CALLS = names_in("tool_calls function_call additional_kwargs invalid_tool_calls")


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


def _add_results(
    talk: Conversation, message: dict[str, Any], text: str | None, agent: str | None, says_error: SaysError | None
) -> None:
    """The results that a message is; ``text`` is its content where that is no plain text."""
    # AG2 packs the results of parallel calls into one message, whose own content repeats them.
    for each in as_list(message.get("tool_responses")) or [message]:
        answer = as_dict(each)
        block = answered(answer, _ANSWERED_IDS)
        if block.call_id is None and "additional_kwargs" in answer:
            # LlamaIndex
            block = block._replace(call_id=as_name(as_dict(answer["additional_kwargs"]).get("tool_call_id")))
        if block.name is None and isinstance(answer.get("function"), str):
            block = block._replace(name=answer["function"])
        result = text if text is not None and each is message else text_of(block.result)
        at = as_time(answer.get("timestamp", message.get("timestamp")))
        _add_result(talk, block, result, agent, at, says_error, words_only=says_error is None)


def _add_result(
    talk: Conversation,
    block: MessageBlock,
    result: Any,
    agent: str | None,
    at: float | None,
    says_error: SaysError | None,
    *,
    words_only: bool = False,
) -> None:
    """The result of a call. With ``words_only`` its shape has no place for a flag: it went well unless its words begin
    like an error; then nobody knows, for a tool may show the errors that it found."""
    failed = block.failed
    if failed is None and isinstance(result, str) and words_only and says_failure(result):
        pass
    elif not failed:
        failed = says_error is not None and isinstance(result, str) and says_error(result)
    error = block.error.get("message") if isinstance(block.error, dict) else block.error
    talk.result(
        result,
        call_id=block.call_id,
        name=block.name,
        failed=failed,
        error=error if isinstance(error, str) and error else None,
        agent=agent,
        at=at,
    )


def add_function_response(
    talk: Conversation,
    answer: dict[str, Any],
    *,
    agent: str | None = None,
    at: float | None = None,
    error_key: str = "error",
) -> None:
    """Gemini's result of a function: one with an error in its response failed, as its documentation has it."""
    error = as_dict(answer.get("response")).get(error_key)
    block = answered(answer)._replace(failed=bool(error), error=text_of(error) if error else None)
    _add_result(talk, block, answer.get("response"), agent, at, None)


def _add_model_call(talk: Conversation, message: dict[str, Any], agent: str | None, at: float | None) -> None:
    stated = _channel(as_dict(message["channels"]), "fast-agent-usage") if "channels" in message else {}
    for each in as_list(stated.get("provider_attempts")) or as_list(stated.get("turn") and [stated["turn"]]):
        turn, counts = as_dict(each), token_counts(_fast_agent_counts(as_dict(each)), talk.notes)
        cost = as_amount(turn.get("cost_usd"))
        talk.model_call(counts, model=as_name(turn.get("model")), cost=cost, agent=agent, at=at)
    usage = first_at(message, _USAGES)
    cost = first_at(message, ("cost", "usage.cost"))
    cost = written_amount(cost) if isinstance(cost, str) else as_amount(cost)
    model = as_name(first_at(message, _MODELS))
    talk.model_call(usage_counts(usage, talk.notes), model=model, cost=cost, agent=agent, at=at)


# OpenAI and Anthropic, LangChain, Gemini, Haystack, Strands, Agno.
_USAGES = (
    "usage", "usage_metadata", "usageMetadata", "response_metadata.token_usage", "meta.usage", "metadata.usage",
    "metrics",
)  # fmt: skip
_STATES_USAGE = names_in("usage usage_metadata usageMetadata response_metadata meta metadata metrics channels cost")
_MODELS = ("model", "response_metadata.model_name", "meta.model", "model_name", "modelVersion")


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

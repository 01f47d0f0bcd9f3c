"""What the blocks of a message's content say: one table over the shapes of all providers and frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from agentunit.traces.places import names_in

Does = Literal["said", "asked", "instructed", "call", "result", "call and result", "quiet"]

# What a block is, by the word of its type: OpenAI, Anthropic, OpenTelemetry, the AI SDK, LangChain, PydanticAI,
# LlamaIndex, agent-framework. "quiet" blocks hold no words of the message and nothing that was done.
_BY_TYPE: dict[str, Does] = {
    **dict.fromkeys(names_in("text input_text output_text refusal plain_text"), "said"),
    "user-prompt": "asked",
    "system-prompt": "instructed",
    **dict.fromkeys(
        names_in(
            "tool_use server_tool_use mcp_tool_use tool_call tool-call toolCall function function_call functionCall "
            "custom_tool_call server_tool_call builtin-tool-call mcp_server_tool_call"
        ),
        "call",
    ),
    **dict.fromkeys(
        names_in(
            "tool_result mcp_tool_result tool_call_response tool-result tool-error toolResult tool_call_result "
            "function_response function_result function_call_output custom_tool_call_output tool-return "
            "server_tool_result server_tool_call_result builtin-tool-return retry-prompt mcp_server_tool_result "
            "web_search_tool_result web_fetch_tool_result code_execution_tool_result tool_search_tool_result "
            "bash_code_execution_tool_result text_editor_code_execution_tool_result"
        ),
        "result",
    ),
    "dynamic-tool": "call and result",
    **dict.fromkeys(
        names_in(
            "thinking redacted_thinking reasoning reasoning_content text_reasoning thought step-start image image_url "
            "input_image output_image image-url audio input_audio output_audio audio-url video video-url video_url "
            "document document-url file input_file file_data binary binary-content media data uri source source-url "
            "source-document container_upload cache_point compaction usage"
        ),
        "quiet",
    ),
}
# A block of the AI SDK's messages for a user interface is a call with its result: "tool-NAME".
_UI_TOOL = "tool-"
# What a block is, by the name of the object in it: Bedrock Converse, Gemini, Haystack.
_BY_KEY: dict[str, Does] = {
    **dict.fromkeys(("toolUse", "functionCall", "function_call", "tool_call"), "call"),
    **dict.fromkeys(("toolResult", "functionResponse", "function_response", "tool_call_result"), "result"),
    **dict.fromkeys(
        names_in(
            "reasoningContent reasoning image video audio document cachePoint inlineData inline_data fileData "
            "file_data guardContent"
        ),
        "quiet",
    ),
}
SILENT_TYPES = frozenset(kind for kind, does in _BY_TYPE.items() if does not in ("said", "asked", "instructed"))
"""The types of blocks whose text is no word of the message."""

# Where a fact stands, best place first. A call may have an id of its own beside the one that its result repeats.
CALL_IDS = ("call_id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "tool_id", "id")
_NAMES = ("name", "tool_name", "toolName")
_ARGUMENTS = ("input", "arguments", "args", "tool_kwargs", "parameters")
_RESULTS = ("content", "output", "result", "response")
_FLAGS = ("is_error", "isError", "tool_call_error", "error")
_ERRORS = ("error", "errorText", "exception")
_STATUSES = ("status", "outcome", "state")
_SIGNS = frozenset((*_FLAGS, *_ERRORS, *_STATUSES))
_ENDS = {
    **dict.fromkeys(("error", "failed", "output-error", "output-denied", "denied", "retried", "interrupted"), True),
    **dict.fromkeys(("success", "output-available"), False),
}
# The AI SDK says in the type of an output whether it is one.
_OUTPUTS = {
    **dict.fromkeys(("text", "json", "content"), False),
    **dict.fromkeys(("error-text", "error-json", "execution-denied"), True),
}
_ERROR_TYPES = ("tool-error", "retry-prompt")
_ERROR_WORDS = re.compile(
    r"\s*(?:<?error\b(?! (?:handling|message|log|code|rate))|Traceback \(most recent call last\)"
    r"|(?:exit code|exited with code|returncode)[: ]+-?0*[1-9])",
    re.IGNORECASE,
)


class MessageBlock(NamedTuple):
    """What one block says. ``failed`` is ``None`` where nothing states how a call ended."""

    does: Does
    text: str | None = None
    name: str | None = None
    arguments: Any = None
    call_id: str | None = None
    result: Any = None
    failed: bool | None = None
    error: Any = None


_QUIET = MessageBlock("quiet")


def read_block(part: Any) -> MessageBlock | None:
    """What a block says; ``None`` where no row of the table understands it.

    >>> read_block({"toolUse": {"toolUseId": "c1", "name": "search", "input": {"q": "Oslo"}}})[2:5]
    ('search', {'q': 'Oslo'}, 'c1')
    >>> block = read_block({"type": "tool-result", "toolCallId": "c1", "output": {"type": "error-text", "value": "no"}})
    >>> block.result, block.failed
    ('no', True)
    >>> read_block({"type": "hologram"}) is None
    True
    """
    if part.__class__ is str:
        return MessageBlock("said", part)
    if not isinstance(part, dict):
        return None
    if part.get("type") == "text" and part.get("text").__class__ is str and "thought" not in part:
        return MessageBlock("said", part["text"])  # by far the commonest
    does, inner = _kind_of(part)
    if does in ("said", "asked", "instructed"):
        return _QUIET if part.get("thought") is True else MessageBlock(does, _words(part))
    if does == "call":
        return called(inner)
    if does == "result":
        return answered(inner)
    if does == "call and result":
        return _shown_tool(part)
    return _QUIET if does == "quiet" else None


def _kind_of(part: dict[str, Any]) -> tuple[Does | None, dict[str, Any]]:
    """What a block is, and the object with the facts of it."""
    kind = part.get("type")
    if kind.__class__ is not str:
        kind = part.get("block_type", part.get("part_kind"))
    does = _BY_TYPE.get(kind) if kind.__class__ is str else None
    if does is not None and kind not in _BY_KEY:
        return does, part
    for key, found in _BY_KEY.items():
        if part.get(key).__class__ is dict:
            return found, {"id": part.get("id"), **part[key]}
    if does is None and kind.__class__ is str and kind.startswith(_UI_TOOL) and "toolCallId" in part:
        return "call and result", part
    # Words stay words, whatever a provider calls their block.
    return does or ("said" if part.get("text").__class__ is str else None), part


def called(call: Mapping[str, Any]) -> MessageBlock:
    """A tool call, in any of the shapes; one without a name has none.

    >>> called({"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}})[2:5]
    ('search', '{}', 'c1')
    """
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    name = function if isinstance(function, str) else _first_name(inner, _NAMES)
    return MessageBlock("call", name=name, arguments=_first(inner, _ARGUMENTS), call_id=_first_name(call, CALL_IDS))


def answered(answer: Mapping[str, Any], ids: Iterable[str] = CALL_IDS) -> MessageBlock:
    """The result of a tool call, in any of the shapes; ``ids`` are the places of the id that it answers."""
    origin = answer.get("origin")
    named = {**origin, **answer} if isinstance(origin, dict) else answer
    result = _first(answer, _RESULTS)
    failed, error = None, None
    if not _SIGNS.isdisjoint(answer):
        failed = stated_failure(answer)
        error = next((answer[key] for key in _ERRORS if answer.get(key)), None)
    if isinstance(result, dict):
        kind = str(result.get("type"))
        if kind in _OUTPUTS and ("value" in result or "reason" in result):
            failed, result = _OUTPUTS[kind], result.get("value", result.get("reason"))
        elif kind.endswith("_error"):
            failed, error = True, error or result.get("error_code")  # Anthropic's own tools
        elif "functionResponse" in answer or "response" in answer:
            error = error or result.get("error")  # Gemini: by its documentation an error stands under this name
    if failed is None and (answer.get("type") in _ERROR_TYPES or answer.get("part_kind") in _ERROR_TYPES):
        failed = True
    if failed is None and error and error is not True:
        failed = True
    return MessageBlock(
        "result",
        name=_first_name(named, _NAMES),
        call_id=_first_name(named, ids),
        result=result,
        failed=failed,
        error=error if error.__class__ is not bool else None,
    )


def _shown_tool(part: dict[str, Any]) -> MessageBlock:
    """A tool of the AI SDK's user interface; one without an end has only been called."""
    state, kind = str(part.get("state")), str(part["type"])
    name = part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix(_UI_TOOL)
    call = MessageBlock("call", name=name, arguments=part.get("input", part.get("args")), call_id=part["toolCallId"])
    if state not in _ENDS and state != "result":
        return call
    output = _first(part, ("output", "result", "errorText"))
    return call._replace(does="call and result", result=output, failed=_ENDS.get(state), error=part.get("errorText"))


def says_failure(text: str | None) -> bool:
    """Whether a result without any flag begins like an error: then it is not known how its call ended.

    >>> [says_failure(text) for text in ("Error: no such file", "Exit code: 1", "Sunny", "Exit code: 0")]
    [True, True, False, False]
    """
    return text is not None and _ERROR_WORDS.match(text) is not None


def stated_failure(answer: Mapping[str, Any]) -> bool | None:
    """Whether a result says, by a flag or a status, that its call failed; ``None`` where it says neither.

    >>> [stated_failure(each) for each in ({"isError": True}, {"status": "success"}, {"status": "completed"})]
    [True, False, None]
    """
    for key in _FLAGS:
        if answer.get(key).__class__ is bool:
            return bool(answer[key])
    for key in _STATUSES:
        stated = answer.get(key)
        if stated.__class__ is str and stated in _ENDS:
            return _ENDS[stated]
    return None


def _first(mapping: Mapping[str, Any], keys: Iterable[str]) -> Any:
    for key in keys:
        value = mapping.get(key)
        if value is not None:
            return value
    return None


def _first_name(mapping: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    for key in keys:
        if key in mapping:
            value = mapping[key]
            if value.__class__ is str and value:
                return value
    return None


def _words(part: dict[str, Any]) -> str | None:
    text = part.get("text", part.get("content", part.get("refusal")))
    if isinstance(text, dict):
        text = text.get("value")  # the Assistants API wraps it once more
    if isinstance(text, list):
        # PydanticAI's prompts with pictures in them.
        blocks = [block for block in map(read_block, text) if block is not None]
        text = "\n".join(block.text for block in blocks if block.text is not None)
    return text if isinstance(text, str) else None

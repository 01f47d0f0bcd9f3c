"""One table for the blocks of messages: calls, results with their flags and ids, in the shapes of all providers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentunit.core.records import Record
from agentunit.metrics.builtin import ToolSuccessMetric
from agentunit.traces.content_blocks import read_block
from agentunit.traces.reading import TraceFiles

ASKED = {"role": "user", "content": "Where is it?"}
DONE = {"role": "assistant", "content": "It was sent."}
ARGUMENTS = {"number": "A-1"}
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": json.dumps(ARGUMENTS)}}
LANGCHAIN_CALL = {"name": "look_up", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}
ANTHROPIC_CALL = {"type": "tool_use", "id": "c1", "name": "look_up", "input": ARGUMENTS}


def both(call: dict[str, Any], result: dict[str, Any], *, of: str = "user", key: str = "content") -> list[Any]:
    """A call and its result, each as the only block of a message."""
    return [ASKED, {"role": "assistant", key: [call]}, {"role": of, key: [result]}, DONE]


def langchain(class_name: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class_name], "kwargs": kwargs}


CONVERSE_CALL = {"toolUse": {"toolUseId": "c1", "name": "look_up", "input": ARGUMENTS}}
SDK_CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "look_up", "input": ARGUMENTS}
HAYSTACK_CALL = {"tool_call": {"tool_name": "look_up", "arguments": ARGUMENTS, "id": "c1", "extra": None}}
GEMINI_CALL = {"functionCall": {"id": "c1", "name": "look_up", "args": ARGUMENTS}}
FRAMEWORK_CALL = {"type": "function_call", "call_id": "c1", "id": "af-1", "name": "look_up", "arguments": "{}"}
AI_TWICE = {"content": [{"type": "text", "text": "Hm."}, ANTHROPIC_CALL], "tool_calls": [LANGCHAIN_CALL]}
PYDANTIC_CALL = {"part_kind": "tool-call", "tool_name": "look_up", "args": "{}", "tool_call_id": "c1"}


def haystack(error: bool) -> dict[str, Any]:
    return {"tool_call_result": {"result": "closed", "origin": HAYSTACK_CALL["tool_call"], "error": error}}


def pydantic(**part: Any) -> list[Any]:
    asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Where is it?"}]}
    call = {"kind": "response", "parts": [PYDANTIC_CALL]}
    result = {"kind": "request", "parts": [{"tool_name": "look_up", "tool_call_id": "c1", **part}]}
    return [asked, call, result, {"kind": "response", "parts": [{"part_kind": "text", "content": "It was sent."}]}]


SHAPES: list[tuple[str, list[Any], str | None]] = [
    # what, messages, how the one call ended
    ("OpenAI", [ASKED, {"role": "assistant", "tool_calls": [OPENAI_CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "sent"}, DONE], "success"),
    ("OpenAI, in words", [ASKED, {"role": "assistant", "tool_calls": [OPENAI_CALL]},
                          {"role": "tool", "tool_call_id": "c1", "content": "Error: closed"}, DONE], None),
    ("OpenAI, an exit code", [ASKED, {"role": "assistant", "tool_calls": [OPENAI_CALL]},
                              {"role": "tool", "tool_call_id": "c1", "content": "Exit code: 1\nno"}, DONE], None),
    ("Responses API", [ASKED, FRAMEWORK_CALL,
                       {"type": "function_call_output", "call_id": "c1", "output": "sent"}, DONE], "success"),
    ("Anthropic", both(ANTHROPIC_CALL, {"type": "tool_result", "tool_use_id": "c1", "content": "sent"}), "success"),
    ("Anthropic, is_error",
     both(ANTHROPIC_CALL, {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}), "error"),
    ("one block as the content", [
        ASKED,
        {"role": "assistant", "content": {"type": "tool_use", "tool_name": "look_up", "tool_id": "c1", "input": {}}},
        {"role": "tool", "content": {"type": "tool_result", "tool_id": "c1", "output": "no", "is_error": True}}, DONE,
    ], "error"),
    ("Converse",
     both(CONVERSE_CALL, {"toolResult": {"toolUseId": "c1", "content": [{"text": "no"}], "status": "error"}}), "error"),
    ("Converse, success",
     both(CONVERSE_CALL, {"toolResult": {"toolUseId": "c1", "content": [{"json": {"a": 1}}], "status": "success"}}),
     "success"),
    ("Gemini", both(GEMINI_CALL, {"functionResponse": {"id": "c1", "name": "look_up", "response": {"error": "no"}}},
                    key="parts"), "error"),
    ("Gemini, success", both(GEMINI_CALL, {"functionResponse": {"id": "c1", "response": {"output": "sent"}}},
                             key="parts"), "success"),
    ("AI SDK", both(SDK_CALL, {"type": "tool-result", "toolCallId": "c1", "toolName": "look_up",
                               "output": {"type": "error-text", "value": "closed"}}, of="tool"), "error"),
    ("AI SDK, success", both(SDK_CALL, {"type": "tool-result", "toolCallId": "c1", "toolName": "look_up",
                                        "output": {"type": "json", "value": {"sent": True}}}, of="tool"), "success"),
    ("AI SDK, for a page", [ASKED, {"role": "assistant", "parts": [
        {"type": "step-start"}, {"type": "tool-look_up", "toolCallId": "c1", "state": "output-error",
                                 "input": {}, "errorText": "closed"}]}, DONE], "error"),
    ("AI SDK, not yet answered", [ASKED, {"role": "assistant", "parts": [
        {"type": "tool-look_up", "toolCallId": "c1", "state": "input-available", "input": {}}]}, DONE], None),
    ("LangChain with Anthropic's content", [{"type": "human", "content": "Where is it?"}, {"type": "ai", **AI_TWICE},
                                            {"type": "tool", "content": "no", "tool_call_id": "c1", "status": "error"},
                                            {"type": "ai", "content": "It was sent."}], "error"),
    ("LangChain, messages_to_dict", [
        {"type": "human", "data": {"content": "Where is it?"}}, {"type": "ai", "data": AI_TWICE},
        {"type": "tool", "data": {"content": "sent", "tool_call_id": "c1", "status": "success"}},
        {"type": "ai", "data": {"content": "It was sent."}}], "success"),
    ("LangChain, dumps", [
        langchain("HumanMessage", content="Where is it?"), langchain("AIMessage", **AI_TWICE),
        langchain("ToolMessage", content="no", tool_call_id="c1", status="error"),
        langchain("AIMessage", content="It was sent.")], "error"),
    ("calls within and beside, one without an id", [
        ASKED, {"role": "assistant", "content": [{"type": "tool_call", "name": "look_up", "arguments": ARGUMENTS}],
                "tool_calls": [OPENAI_CALL]}, {"role": "tool", "tool_call_id": "c1", "content": "sent"}, DONE],
     "success"),
    ("Haystack", both(HAYSTACK_CALL, haystack(True), of="tool"), "error"),
    ("Haystack, success", both(HAYSTACK_CALL, haystack(False), of="tool"), "success"),
    ("Agno", [ASKED, {"role": "assistant", "tool_calls": [OPENAI_CALL]},
              {"role": "tool", "tool_call_id": "c1", "tool_name": "look_up", "content": "no",
               "tool_call_error": True}, DONE], "error"),
    ("PydanticAI", pydantic(part_kind="tool-return", content="no", outcome="retried"), "error"),
    ("PydanticAI, success", pydantic(part_kind="tool-return", content="sent", outcome="success"), "success"),
    ("PydanticAI, a retry", pydantic(part_kind="retry-prompt", content="Fix it."), "error"),
    ("LlamaIndex", [
        {"role": "user", "blocks": [{"block_type": "text", "text": "Where is it?"}]},
        {"role": "assistant", "additional_kwargs": {"tool_calls": [OPENAI_CALL]}, "blocks": [
            {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "look_up", "tool_kwargs": "{}"}]},
        {"role": "tool", "additional_kwargs": {"tool_call_id": "c1"},
         "blocks": [{"block_type": "text", "text": "sent"}]}, DONE], "success"),
    ("agent-framework", both(FRAMEWORK_CALL, {"type": "function_result", "call_id": "c1", "result": "no",
                                              "exception": "FunctionInvocationError"}, of="tool", key="contents"),
     "error"),
]  # fmt: skip


def read(tmp_path: Any, messages: list[Any]) -> tuple[Record, TraceFiles]:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    files = TraceFiles([path])
    (record,) = files
    assert isinstance(record, Record)
    return record, files


@pytest.mark.parametrize(("messages", "status"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_a_call_is_read_once_with_its_result_and_how_it_ended(
    tmp_path: Any, messages: list[Any], status: str | None
) -> None:
    record, files = read(tmp_path, messages)
    (call,) = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert (call["name"], call["id"], call.get("status")) == ("look_up", "c1", status)
    assert (record.case.query, record.outcome.output) == ("Where is it?", "It was sent.")
    assert not files.notes.problems
    assert not files.notes.not_understood


def test_an_unanswered_call_keeps_its_status_unknown(tmp_path: Any) -> None:
    record, _ = read(tmp_path, [ASKED, {"role": "assistant", "tool_calls": [OPENAI_CALL]}, DONE])
    assert ToolSuccessMetric().evaluate(record.case, record.trace, record.outcome).value is None


def test_blocks_that_no_row_understands_are_counted_and_shown(tmp_path: Any) -> None:
    blocks = [
        {"type": "text", "text": "It was sent."},
        {"type": "hologram", "shape": [1]},
        {"executableCode": {}, "a": 1},
    ]
    record, files = read(tmp_path, [ASKED, {"role": "assistant", "content": blocks}])
    counted = {"block hologram": 1, "block a executableCode": 1}
    assert files.notes.not_understood == counted
    assert record.trace.metadata["not_understood"] == counted
    # A picture and a thought are understood: they are no words.
    assert [read_block(each).does for each in ({"type": "image_url"}, {"type": "thinking", "thinking": "Hm."})] == [
        "quiet",
        "quiet",
    ]


@pytest.mark.parametrize(
    "facts",
    [
        {"usage": {"prompt_tokens": 10, "completion_tokens": 2}},
        {"usage": {"input_tokens": 10, "output_tokens": 2}},
        {"usage_metadata": {"input_tokens": 10, "output_tokens": 2, "input_token_details": {"cache_read": 4}}},
        {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2}},
        {"response_metadata": {"token_usage": {"prompt_tokens": 10, "completion_tokens": 2}}},
        {"meta": {"usage": {"prompt_tokens": 10, "completion_tokens": 2}}},
        {"metadata": {"usage": {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12, "cacheReadInputTokens": 4}}},
        {"metrics": {"input_tokens": 10, "output_tokens": 2, "cache_read_tokens": 4, "duration": 0.1}},
    ],
    ids=lambda facts: next(iter(facts)),
)
def test_the_tokens_of_a_message_are_read_wherever_its_framework_states_them(tmp_path: Any, facts: Any) -> None:
    from agentunit.metrics.builtin import TokenUsageMetric

    record, _ = read(tmp_path, [ASKED, {**DONE, **facts}])
    detail = TokenUsageMetric().evaluate(record.case, record.trace, record.outcome).detail
    assert (detail["prompt_tokens"], detail["completion_tokens"]) == (10, 2)


def test_a_model_call_of_no_tokens_is_unknown(tmp_path: Any) -> None:
    from agentunit.metrics.builtin import CostMetric, TokenUsageMetric

    usage = {"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}
    record, files = read(tmp_path, [ASKED, {**DONE, "model": "gpt-4.1-mini", "usage": usage}])
    assert sum(files.notes.problems.values()) == 1
    for metric in (TokenUsageMetric(), CostMetric()):
        assert metric.evaluate(record.case, record.trace, record.outcome).value is None


def test_a_logged_request_has_its_reply_and_what_it_used(tmp_path: Any) -> None:
    finish = {"name": "finish", "arguments": json.dumps({"message": "It was sent."})}
    for message in ({"content": "It was sent."}, {"content": "", "tool_calls": [{"id": "c9", "function": finish}]}):
        response = {"choices": [{"message": {"role": "assistant", **message}}]}
        response["usage"] = {"prompt_tokens": 10, "completion_tokens": 2}
        path = tmp_path / "log.json"
        path.write_text(json.dumps({"messages": [ASKED], "response": response, "cost": 0.1}), encoding="utf-8")
        (record,) = TraceFiles([path])
        assert isinstance(record, Record)
        assert (record.case.query, record.outcome.output) == ("Where is it?", "It was sent.")
        assert record.trace.metadata["usage"] == response["usage"]
        assert [event.type for event in record.trace.events] == ["message", "message"]


@pytest.mark.parametrize(
    "opening",
    [
        # pi and OpenClaw, Antigravity, a summary of a test.
        {"type": "session", "version": 3, "id": "a", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/work"},
        {"type": "LIST_DIRECTORY", "source": "MODEL", "content": "a.txt", "step_index": 1},
        {"uuid": "a", "spans_by_type": {}, "input": "Why?", "status": "SUCCESS"},
    ],
)
def test_files_of_unknown_tools_are_refused_rather_than_guessed(tmp_path: Any, opening: dict[str, Any]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(opening) + "\n", encoding="utf-8")
    files = TraceFiles([path])
    assert not any(isinstance(each, Record) for each in files)
    assert not {"anthropic-managed", "autogen", "chat"} & files.notes.formats.keys()


def test_a_file_that_is_known_by_its_shape_alone_says_so(tmp_path: Any) -> None:
    from agentunit.reports.trace_console import reading_lines

    _, files = read(tmp_path, [ASKED, DONE])
    assert reading_lines(files)[0] == "read as chat by its shape"


@pytest.mark.parametrize("odd", [None, 7, "x", [], ["x"], {}, {"type": []}, True])
def test_odd_values_in_a_block_do_no_harm(odd: Any) -> None:
    shapes = [ANTHROPIC_CALL, CONVERSE_CALL, SDK_CALL, HAYSTACK_CALL, GEMINI_CALL, PYDANTIC_CALL, haystack(True)]
    shapes += [{"type": "tool_result", "content": "x", "is_error": True, "output": {"type": "text", "value": "x"}}]
    for shape in shapes:
        for key in shape:
            read_block({**shape, key: odd})
    read_block({"type": "tool-result", "output": {"type": odd, "value": odd}, "status": odd})


def test_messages_within_spans_are_read_by_the_same_table() -> None:
    from agentunit.traces.vocabularies.span_messages import messages_in

    within = [CONVERSE_CALL, {**SDK_CALL, "toolCallId": "c2"}]
    asked, result = messages_in(
        [
            {"role": "assistant", "content": within, "tool_calls": [OPENAI_CALL]},
            {"role": "user", "content": [haystack(True)]},
        ]
    )
    # The call of the list is the one within the content.
    assert [(call.name, call.id) for call in asked.tool_calls] == [("look_up", "c1"), ("look_up", "c2")]
    assert (result.role, result.content, result.failed) == ("tool", "closed", True)

"""Messages in the shapes that instrumentations write: the quick way reads what the thorough one does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.traces.vocabularies.span_messages import message_in, messages_in
from agentunit.traces.vocabularies.values import Message, ToolRequest

CALL = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"query": "cats"}}
TOLD = {"type": "tool_call_response", "id": "c1", "response": "3 cats"}


@pytest.mark.parametrize(
    ("rows", "messages"),
    [
        ([{"role": "user", "parts": [{"type": "text", "content": "Why?"}]}], [Message("user", "Why?")]),
        ([{"role": "user", "content": "Why?"}], [Message("user", "Why?")]),
        ([{"role": "model", "parts": [{"text": "So."}]}], [Message("assistant", "So.")]),
        ([{"role": "assistant", "parts": [CALL], "finish_reason": "tool_call"}],
         [Message("assistant", None, None, [ToolRequest("search", {"query": "cats"}, "c1")])]),
        ([{"role": "user", "parts": [TOLD]}], [Message("tool", "3 cats", tool_call_id="c1")]),
        ([{"role": "tool", "parts": [{**TOLD, "response": {"n": 3}}]}],
         [Message("tool", '{"n":3}', tool_call_id="c1")]),
        ([{"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "cats"}'}}]}],
         [Message("assistant", None, None, [ToolRequest("search", {"query": "cats"}, "c1")])]),
        ([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]}],
         [Message("tool", "no", tool_call_id="c1", failed=True)]),
        ([{"role": "user", "parts": [
            {"text": "Hi"}, {"function_response": {"id": "c1", "name": "f", "response": {}}}]}],
         [Message("tool", "{}", "f", tool_call_id="c1"), Message("user", "Hi")]),
    ],
)  # fmt: skip
def test_every_shape_is_read(rows: list[dict[str, Any]], messages: list[Message]) -> None:
    assert messages_in(json.dumps(rows)) == messages
    assert messages_in(rows) == messages


TEXTS = st.text(max_size=4)
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "content": TEXTS}),
    st.fixed_dictionaries(
        {
            "type": st.just("tool_call"),
            "name": TEXTS,
            "arguments": st.one_of(TEXTS, st.just({"a": 1}), st.just('{"a": 1}')),
        },
        optional={"id": TEXTS},
    ),
    st.fixed_dictionaries(
        {"type": st.just("tool_call_response"), "response": st.one_of(TEXTS, st.just({"a": 1}), st.just([1]))},
        optional={"id": TEXTS, "name": TEXTS, "is_error": st.booleans(), "status": st.just("error")},
    ),
    st.just({"type": "reasoning", "content": "hm"}),
)
ROWS = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "model", "Tool", "developer"]), "parts": st.lists(PARTS, max_size=3)},
    optional={"name": TEXTS, "finish_reason": TEXTS},
)


@given(st.lists(ROWS, max_size=3))
def test_the_quick_way_reads_what_the_thorough_one_does(rows: list[dict[str, Any]]) -> None:
    thorough = [message for row in rows for message in message_in(row, "user")]
    assert messages_in(json.dumps(rows)) == thorough

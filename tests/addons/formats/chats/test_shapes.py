"""Small conversations in every shape the readers know, and what must come of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentunit.addons.formats.chats.adk_sessions import ADK_SESSION
from agentunit.addons.formats.chats.autogen import AUTOGEN, AUTOGEN_CONSOLE
from agentunit.addons.formats.chats.benchmarks import MARBLE
from agentunit.addons.formats.chats.chat_rows import CHAT
from agentunit.addons.formats.chats.inspect_logs import INSPECT_ARCHIVE, INSPECT_LOG
from agentunit.addons.formats.chats.tau import TAU2, TAU_BENCH
from agentunit.core.results import InputError
from agentunit.traces.spans import ReadingNotes

FORMATS = (
    TAU_BENCH, TAU2, INSPECT_LOG, INSPECT_ARCHIVE, ADK_SESSION, MARBLE, AUTOGEN, AUTOGEN_CONSOLE, CHAT,
)  # fmt: skip

USER = {"role": "user", "content": "Weather in Oslo?"}
OPENAI = [
    {"role": "system", "content": "Be brief."},
    USER,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "assistant", "content": "It rains."},
]
LEGACY = [
    USER,
    {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
    {"role": "function", "name": "weather", "content": "rain"},
    {"role": "assistant", "content": "It rains."},
]
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "A tool will know."},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "It rains."}]},
]
GEMINI = [
    {"role": "user", "parts": [{"text": "Weather in Oslo?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": "rain"}}]},
    {"role": "model", "parts": [{"text": "It ", "thought": True}, {"text": "It rains."}]},
]
LANGCHAIN = [
    {"type": "human", "content": "Weather in Oslo?"},
    {"type": "ai", "content": "", "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}]},
    {"type": "tool", "content": "rain", "tool_call_id": "c1", "status": "success"},
    {"type": "ai", "content": "It rains."},
]
RESPONSES = [
    USER,
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
]


def _call(record: Any) -> dict[str, Any]:
    (payload,) = [event.payload for event in record.trace.events if event.type == "tool_call"]
    return payload


@pytest.mark.parametrize(
    "row",
    [
        pytest.param({"messages": OPENAI}, id="openai"),
        pytest.param({"messages": LEGACY}, id="openai-functions"),
        pytest.param({"messages": ANTHROPIC}, id="anthropic"),
        pytest.param({"contents": GEMINI}, id="gemini"),
        pytest.param({"messages": LANGCHAIN}, id="langchain"),
        pytest.param({"input": RESPONSES}, id="openai-responses"),
        pytest.param(
            {"request": {"messages": OPENAI[:-1]}, "response": {"choices": [{"message": OPENAI[-1]}]}}, id="logged"
        ),
        pytest.param(OPENAI, id="bare-messages"),
        pytest.param([OPENAI], id="list-of-conversations"),
    ],
)
def test_one_chat_in_every_shape(read: Any, opening_of: Any, row: Any) -> None:
    assert [each.name for each in FORMATS if each.matches(opening_of(row))] == ["chat"]
    (record,) = read(CHAT, row)

    assert (record.case.query, record.outcome.output) == ("Weather in Oslo?", "It rains.")
    call = _call(record)
    assert (call["name"], call["arguments"], call["status"]) == ("weather", {"city": "Oslo"}, "success")
    assert call["result"] == "rain"
    said = [event.payload["content"] for event in record.trace.events if event.type == "message"]
    assert said[-2:] == ["Weather in Oslo?", "It rains."]


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "weather", "response": {"error": "no"}}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "no", "status": "error"},
        {"role": "tool", "tool_call_id": "c1", "content": "", "error": {"type": "timeout", "message": "no"}},
    ],
)
def test_a_flag_makes_an_error(read: Any, answer: dict[str, Any]) -> None:
    (record,) = read(CHAT, {"messages": [*OPENAI[:3], answer]})
    call = _call(record)
    assert (call["status"], call["error"]) == ("error", "no")


def test_words_make_no_error_and_a_missing_result_no_success(read: Any) -> None:
    wordy = {"role": "tool", "tool_call_id": "c1", "content": "Error: no such city"}
    (record,) = read(CHAT, {"messages": [*OPENAI[:3], wordy]})
    # A tool may show the errors that it found: words alone say neither success nor failure.
    assert "status" not in _call(record)
    (record,) = read(CHAT, {"messages": OPENAI[:3]})
    assert "status" not in _call(record)


def test_an_id_used_twice_and_an_orphaned_result(read: Any) -> None:
    notes = ReadingNotes()
    messages = [*OPENAI[:4], OPENAI[2], {**OPENAI[3], "content": "sun"}, {**OPENAI[3], "content": "snow"}]
    (record,) = read(CHAT, {"messages": messages}, notes)
    calls = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert [call["result"] for call in calls] == ["rain", "sun", "snow"]
    assert [call.get("arguments") for call in calls] == [{"city": "Oslo"}, {"city": "Oslo"}, None]
    assert sum(notes.problems.values()) == 1


def test_usage_tools_and_cost_of_a_row(read: Any) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}}
    row = {
        "id": "t1",
        "model": "gpt-4o",
        "messages": OPENAI,
        "usage": usage,
        "cost": 0.01,
        "tools": [{"name": "weather"}],
    }
    (record,) = read(CHAT, row)
    assert record.trace.metadata == {"source_format": "chat", "model": "gpt-4o", "usage": usage, "cost": 0.01}
    assert (record.case.id, record.case.tools) == ("t1", [{"name": "weather"}])


def test_langchain_tokens_include_cached_ones(read: Any) -> None:
    counts = {"input_tokens": 50, "output_tokens": 5, "total_tokens": 55, "input_token_details": {"cache_read": 40}}
    (record,) = read(CHAT, {"messages": [USER, {"type": "ai", "content": "Rain.", "usage_metadata": counts}]})
    (usage,) = [event.payload["usage"] for event in record.trace.events if event.type == "llm_call"]
    assert (usage["prompt_tokens"], usage["prompt_tokens_details"]) == (50, {"cached_tokens": 40})


AG2 = [
    {"content": "Sum 2 and 2.", "role": "assistant", "name": "boss"},
    {"content": "```python\nprint(2 + 2)\n```", "role": "user", "name": "coder"},
    {"content": "exitcode: 1 (execution failed)\nCode output: oops", "role": "assistant", "name": "runner"},
    {"content": "It is 4.", "role": "user", "name": "coder"},
    {"content": "TERMINATE", "role": "assistant", "name": "boss"},
]


@pytest.mark.parametrize(
    "row", [AG2, [AG2], {"chat_history": AG2, "cost": {}}, {"messages": AG2}, {"trajectory": AG2}, {"history": AG2}]
)
def test_ag2_chats(read: Any, opening_of: Any, row: Any) -> None:
    assert next(each.name for each in FORMATS if each.matches(opening_of(row))) == "autogen"
    (record,) = read(AUTOGEN, row)
    assert (record.case.query, record.outcome.output) == ("Sum 2 and 2.", "It is 4.")
    call = _call(record)
    assert (call["status"], call["arguments"]) == ("error", {"code": "print(2 + 2)\n"})
    exchanges = [(i.from_agent, i.to_agent) for i in record.trace.interactions]
    assert exchanges == [("boss", "coder"), ("coder", "runner"), ("runner", "coder"), ("coder", "boss")]


def test_ag2_tool_responses_are_one_call_each(read: Any) -> None:
    calls = [{"id": f"c{n}", "function": {"name": "add", "arguments": "{}"}} for n in (1, 2)]
    answers = [{"tool_call_id": f"c{n}", "role": "tool", "content": str(n)} for n in (1, 2)]
    chat = [
        AG2[0],
        {"content": None, "role": "assistant", "name": "coder", "tool_calls": calls},
        {"content": "1\n\n2", "role": "tool", "name": "runner", "tool_responses": answers},
    ]
    (record,) = read(AUTOGEN, {"chat_history": chat})
    payloads = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert [(call["id"], call["result"]) for call in payloads] == [("c1", "1"), ("c2", "2")]


def test_roles_that_name_an_agent_and_its_addressee(read: Any, opening_of: Any) -> None:
    history = [
        {"role": "human", "content": "Find it."},
        {"role": "Orchestrator (thought)", "content": "A plan."},
        {"role": "Orchestrator (-> WebSurfer)", "content": "Search, please."},
        {"role": "Orchestrator (-> FileSurfer)", "content": "You too."},
        {"role": "WebSurfer", "content": "Found: 42."},
    ]
    row = {"history": history, "question": "Where?", "ground_truth": "42", "question_ID": "w1", "is_correct": False}
    assert next(each.name for each in FORMATS if each.matches(opening_of(row))) == "autogen"
    (record,) = read(AUTOGEN, row)
    stated = [(i.from_agent, i.to_agent, i.metadata) for i in record.trace.interactions]
    assert stated == [("Orchestrator", "WebSurfer", {}), ("Orchestrator", "FileSurfer", {})]
    assert (record.case.id, record.case.expected_output, record.outcome.success) == ("w1", "42", False)
    assert record.outcome.output == "Found: 42."


def test_autogen_memory_becomes_retrieval(read: Any) -> None:
    messages = [
        {"source": "user", "type": "TextMessage", "content": "Rain?", "models_usage": None},
        {"source": "a", "type": "MemoryQueryEvent", "content": [{"content": "It rains.", "mime_type": "text/plain"}]},
        {
            "source": "a",
            "type": "TextMessage",
            "content": "Yes.",
            "models_usage": {"prompt_tokens": 0, "completion_tokens": 0},
        },
    ]
    (record,) = read(AUTOGEN, {"messages": messages, "stop_reason": "done"})
    assert [event.type for event in record.trace.events] == ["message", "retrieval", "message"]
    assert record.trace.events[1].payload["documents"] == ["It rains."]


CONSOLE = """---------- TextMessage (user) ----------
Rain?
---------- ToolCallRequestEvent (triage) ----------
[FunctionCall(id='c1', arguments='{}', name='weather')]
[Prompt tokens: 40, Completion tokens: 4]
---------- TextMessage (triage) ----------
Ask the expert.
---------- TextMessage (expert) ----------
It rains.
[Prompt tokens: 50, Completion tokens: 5]
---------- Summary ----------
Number of messages: 4
"""


@pytest.mark.parametrize("data", [CONSOLE.encode(), CONSOLE.replace("\n", "\r\n").encode(), {"console_log": CONSOLE}])
def test_console_output(read: Any, opening_of: Any, data: Any) -> None:
    assert [each.name for each in FORMATS if each.matches(opening_of(data))] == ["autogen-console"]
    (record,) = read(AUTOGEN_CONSOLE, data)
    assert (record.case.query, record.outcome.output) == ("Rain?", "It rains.")
    assert [(i.from_agent, i.to_agent) for i in record.trace.interactions] == [("triage", "expert")]
    usages = [event.payload["usage"] for event in record.trace.events if event.type == "llm_call"]
    assert [usage["prompt_tokens"] for usage in usages] == [40, 50]


@pytest.mark.parametrize(
    "other",
    [
        {"v": 1, "case": {"id": "q1"}, "trace": {"events": []}},
        {"resourceSpans": []},
        {"question": "a", "context": ["b"], "response": "c"},
        {"id": "x", "events": [{"name": "click"}]},
        {"messages": "three of them"},
        {"messages": []},
        {"history": [1, 2, 3]},
        {"input": "Why?", "output": "Because."},
        [{"traceId": "t", "observations": []}],
        {"name": "span", "context": {"trace_id": "0x1"}, "attributes": {"llm": {"input": []}}},
        b"plain text\n---- not a heading ----\n",
        b"",
    ],
)
def test_other_files_are_not_mistaken(opening_of: Any, other: Any) -> None:
    assert [each.name for each in FORMATS if each.matches(opening_of(other))] == []


@pytest.mark.parametrize("format_", [each for each in FORMATS if each not in (AUTOGEN_CONSOLE, INSPECT_ARCHIVE)])
@pytest.mark.parametrize("row", [{}, 3, "text", None, {"messages": 5, "traj": {}, "events": "none", "iterations": 1}])
def test_a_row_without_a_conversation_is_an_error_with_its_line(read: Any, format_: Any, row: Any) -> None:
    data = b"\n\n" + json.dumps({"extra": row} if not isinstance(row, dict) else row).encode() + b"\n"
    (error,) = read(format_, data)
    assert isinstance(error, InputError)
    assert error.line == 3
    assert error.reason


@pytest.mark.parametrize("paired", [False, True])
def test_ag2_chat_results_state_their_cost(read: Any, paired: bool) -> None:
    used = {"cost": 0.3, "prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}
    paid = {"total_cost": 0.4, "gpt-4": used, "gpt-4o": {**used, "cost": 0.1}}
    cached = {"total_cost": 9.9, "gpt-4": {**used, "prompt_tokens": 900}}
    names = ("usage_including_cached_inference", "usage_excluding_cached_inference")
    cost = [cached, paid] if paired else dict(zip(names, (cached, paid), strict=True))
    (record,) = read(AUTOGEN, {"chat_history": AG2, "cost": cost, "summary": "4"})
    assert record.trace.metadata["cost"] == 0.4
    assert record.trace.metadata["usage"] == {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}

"""Conversations as data: what a case may say about its user, and the turns that a trace holds."""

from __future__ import annotations

from typing import Any

import pytest

from agentunit import DatasetCase, Record, TraceEvent, decode_record, encode_record
from agentunit.core.conversation import ConversationError, check_conversation, exchanges_of, script_of, user_kind
from agentunit.datasets.readers import DatasetError, load_dataset


def said(*messages: tuple[str, str], **more: Any) -> list[TraceEvent]:
    return [TraceEvent("message", {"role": role, "content": text, **more}) for role, text in messages]


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        ({"turns": "Hello"}, "turns must be a list of what the user says"),
        ({"turns": []}, "turns must be a list of what the user says"),
        ({"turns": ["Hello", " "]}, r"turns\[1\] must be a text that is not blank"),
        ({"turns": [{"role": "assistant", "content": "Hi"}]}, "received the role 'assistant'"),
        ({"turns": [{"query": "Hi", "expect": "Hi"}]}, "received 'expect'"),
        ({"user": {"persona": "a tourist"}}, "goal must be a text; received None"),
        ({"user": {"persona": "p", "goal": "g", "max_turn": 3}}, "received 'max_turn'"),
        ({"user": {"persona": "p", "goal": "g", "max_turns": 0}}, "max_turns must be a whole number of at least 1"),
        ({"user": {"persona": "p", "goal": "g", "seed": "x"}}, "seed must be a whole number; received 'x'"),
        ({"user": {"persona": "p", "goal": "g", "stop": 3}}, "stop must be a text that says when"),
        ({"query": "q", "user": {"function": "os:system"}}, "data cannot hold one: give the function itself"),
        ({"turns": ["Hi"], "user": {"persona": "p", "goal": "g"}}, "turns or user, not both"),
        ({"user": "an angry customer"}, "user must be a mapping with persona and goal"),
    ],
)
def test_a_wrong_shape_is_refused_with_what_would_do(case: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_dataset([case])


def test_a_case_made_in_python_is_checked_as_strictly() -> None:
    with pytest.raises(DatasetError, match="user must be a function, or a mapping"):
        load_dataset([DatasetCase("q1", "Hi", user="alice")])
    with pytest.raises(ConversationError, match="turns must be a list"):
        check_conversation(3, None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cases.jsonl", '{"id": "a", "turns": ["Hi", {"query": "Rain?", "expected_output": "No."}]}\n'),
        ("cases.json", '[{"id": "a", "turns": ["Hi", {"query": "Rain?", "expected_output": "No."}]}]'),
        ("cases.yaml", "- id: a\n  turns:\n  - Hi\n  - {query: 'Rain?', expected_output: No.}\n"),
        ("cases.csv", 'id,turns\na,"[""Hi"", {""query"": ""Rain?"", ""expected_output"": ""No.""}]"\n'),
    ],
)
def test_every_kind_of_dataset_holds_conversations(name: str, text: str, tmp_path: Any) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (case,) = load_dataset(tmp_path / name)
    assert case.query == "Hi"
    assert [(turn.query, turn.expected_output) for turn in script_of(case)] == [("Hi", None), ("Rain?", "No.")]


@pytest.mark.parametrize("name", ["cases.jsonl", "cases.csv"])
def test_fields_of_other_datasets_that_have_these_names_stay_what_they_were(name: str, tmp_path: Any) -> None:
    row = '{"query": "Hi", "user": "alice", "turns": 3}\n' if name.endswith("l") else "query,user,turns\nHi,alice,3\n"
    (tmp_path / name).write_text(row, encoding="utf-8")
    (case,) = load_dataset(tmp_path / name)
    assert user_kind(case) is None
    assert (case.extra or case.metadata)["user"] == "alice"
    again = decode_record(encode_record(Record(case)))
    assert b'"user":"alice"' in encode_record(again)
    # A record of an earlier version is a case again, with the same fields aside.
    (read,) = load_dataset([again])
    assert user_kind(read) is None
    assert read.query == "Hi"


def test_the_query_is_the_first_message_and_not_said_twice() -> None:
    assert [turn.query for turn in script_of({"query": "Hi", "turns": ["Rain?"]})] == ["Hi", "Rain?"]
    assert [turn.query for turn in script_of({"query": "Hi", "turns": ["Hi", "Rain?"]})] == ["Hi", "Rain?"]


def test_recorded_messages_are_turns_whoever_recorded_them() -> None:
    events = [
        *said(("system", "Be kind."), ("user", "Hi"), ("user", "Are you there?"), ("assistant", "Yes.")),
        TraceEvent("tool_call", {"name": "find"}),
        *said(("assistant", "How can I help?"), ("user", "Rain?")),
    ]
    turns = exchanges_of(events)
    assert [(turn.query, turn.answer) for turn in turns] == [("Hi\nAre you there?", "How can I help?"), ("Rain?", None)]
    assert turns[0].events[3].type == "tool_call"
    assert turns[0].end == 6


def test_messages_among_agents_are_no_turns_of_a_conversation_that_was_run() -> None:
    inner = said(("user", "draft an answer"), ("assistant", "a draft"))
    events = [*said(("user", "Hi"), turn=1), *inner, *said(("assistant", "Hello!"), turn=1)]
    assert [(turn.query, turn.answer) for turn in exchanges_of(events)] == [("Hi", "Hello!")]

"""Recordings by events, histories of browser-use, replies of OpenAI's APIs, fast-agent, and what is not understood."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest

from agentunit import Record
from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_rows import CHAT
from agentunit.traces.formats import detect, opening_of
from agentunit.traces.formats_base import Source
from agentunit.traces.spans import ReadingNotes


def _read(*rows):
    data = "\n".join(json.dumps(row) for row in rows).encode()
    format, notes = detect(opening_of("file.jsonl", data)), ReadingNotes()
    found = list(format.read(Source("file.jsonl", io.BytesIO(data)), notes))
    assert all(isinstance(each, Record) for each in found), found
    return format.name, found, notes


def _tools(record):
    return [(e.payload["name"], e.payload.get("status")) for e in record.trace.events if e.type == "tool_call"]


def test_calls_of_fast_agent_are_mcp_requests_by_id():
    call = {"method": "tools/call", "params": {"name": "fetch", "arguments": {"url": "x"}}}
    timing = [{"type": "text", "text": '{"a": {"timing_ms": 250}}'}]
    usage = {"turn": {"model": "m", "input_tokens": 5, "output_tokens": 2, "cache_usage": {"cache_read_tokens": 4}}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
        {"role": "assistant", "content": [], "tool_calls": {"a": call}, "channels": {
            "fast-agent-usage": [{"type": "text", "text": json.dumps(usage)}], "fast-agent-moods": ["sad"]}},
        {"role": "user", "content": [], "channels": {"fast-agent-tool-timing": timing},
         "tool_results": {"a": {"content": [{"type": "text", "text": "gone"}], "isError": True}}},
    ]  # fmt: skip
    _, (record,), notes = _read({"messages": messages})
    (tool,) = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert (tool["name"], tool["arguments"], tool["status"], tool["duration_s"]) == (
        "fetch",
        {"url": "x"},
        "error",
        0.25,
    )
    (model,) = [event.payload for event in record.trace.events if event.type == "llm_call"]
    assert model["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    assert notes.not_understood == {"channels.fast-agent-moods": 1}
    assert record.trace.metadata["not_understood"] == {"channels.fast-agent-moods": 1}


def test_fields_of_messages_that_nobody_reads_are_counted_in_their_record():
    _, (first, second), notes = _read(
        {"messages": [{"role": "user", "content": "Hi", "mood": "fine"}, {"role": "assistant", "content": "Ho"}]},
        {"messages": [{"role": "user", "content": "Hi", "mood": None}]},
    )
    assert first.trace.metadata["not_understood"] == {"mood": 1}
    assert "not_understood" not in second.trace.metadata
    assert notes.not_understood == {"mood": 1}


def test_fields_under_very_many_names_are_counted_together():
    rows = [{"messages": [{"role": "user", "content": "Hi", f"field {n}": 1}]} for n in range(1100)]
    _, records, notes = _read(*rows)
    assert records[-1].trace.metadata["not_understood"] == {"field 1099": 1}
    assert (len(notes.not_understood), notes.not_understood["other fields"]) == (1001, 100)


def test_the_fields_of_a_row_are_counted_apart_from_those_before_it():
    class Long(Counter):
        def copy(self):
            raise AssertionError("copied for one row")

    notes = ReadingNotes(not_understood=Long({"before": 1}))
    row = json.dumps({"messages": [{"role": "user", "content": "Hi", "mood": 1}]}).encode()
    (record,) = CHAT.read(Source("file.jsonl", io.BytesIO(row)), notes)
    assert (record.trace.metadata["not_understood"], notes.not_understood) == ({"mood": 1}, {"before": 1, "mood": 1})


def test_a_result_finds_its_call_among_many_without_asking_each():
    n_compared = 0

    class Id(str):
        def __eq__(self, other):
            nonlocal n_compared
            n_compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    talk = Conversation(ReadingNotes())
    for n in range(200):
        talk.call("search", {}, call_id=Id(n))
    for n in reversed(range(200)):
        talk.result(str(n), call_id=Id(n))
    assert [event.payload["result"] for event in talk.events] == [str(n) for n in range(200)]
    assert n_compared < 2000


def test_a_result_is_that_of_the_oldest_call_with_its_id_or_name():
    talk = Conversation(ReadingNotes())
    for name, call_id in (("a", "1"), ("b", "1"), ("a", None), ("b", None), ("a", "2")):
        talk.call(name, {}, call_id=call_id)
    talk.identify("b", "3")
    for told in ({"call_id": "1"}, {"name": "a"}, {"call_id": "1"}, {"call_id": "3"}, {}, {"call_id": "1"}):
        talk.result(str(told), **told)
    results = [event.payload.get("result") for event in talk.events]
    in_order = [{"call_id": "1"}, {"call_id": "1"}, {"name": "a"}, {"call_id": "3"}, {}, {"call_id": "1"}]
    assert results == list(map(str, in_order))
    assert len(talk.notes.problems) == 1


def test_an_error_that_ends_a_turn_of_adk_is_that_of_the_agent_s_own_calls():
    def event(author, **more):
        parts = [{"functionCall": {"name": "search", "args": {}}}]
        return {"author": author, "invocationId": "i", "content": {"parts": parts}, **more}

    _, (record,), _ = _read({"id": "s", "events": [event("a"), event("b", errorCode="429")]})
    calls = [each.payload for each in record.trace.events if each.type == "tool_call"]
    assert [(call["agent"], call.get("error")) for call in calls] == [("a", None), ("b", "429")]


@pytest.mark.parametrize("stream", [False, True])
def test_replies_that_autogen_s_recorder_kept_count(stream):
    reply = {"finish_reason": "stop", "content": "Nine.", "usage": {"prompt_tokens": 205, "completion_tokens": 5}}
    kept = {"stream": ["Ni", reply]} if stream else {"response": reply, "stream": []}
    messages = [
        {"type": "SystemMessage", "content": "Be brief."},
        {"type": "UserMessage", "source": "User", "content": "?"},
    ]
    name, (record,), notes = _read({"mode": "create_stream" if stream else "create", "messages": messages, **kept})
    assert (name, record.outcome.output, not notes.problems) == ("autogen", "Nine.", True)
    usage = [event.payload["usage"] for event in record.trace.events if event.type == "llm_call"]
    assert usage == [{"prompt_tokens": 205, "completion_tokens": 5}]


def test_the_reply_of_a_logged_response_follows_its_request():
    reply = {"object": "response", "model": "m", "output": [
        {"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "run", "input": "ls"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ], "usage": {"input_tokens": 3, "output_tokens": 1}}  # fmt: skip
    _, (record,), _ = _read({"request": {"model": "m", "input": "List them."}, "response": reply})
    assert (record.case.query, record.outcome.output, _tools(record)) == ("List them.", "Done.", [("run", None)])


def test_a_failed_line_of_a_batch_says_why():
    line = {"id": "b", "custom_id": "q7", "response": None, "error": {"code": "expired", "message": "too late"}}
    _, (record,), _ = _read(line)
    assert (record.case.id, record.outcome.output, record.outcome.error) == ("q7", None, "too late")


def test_a_conversation_displayed_as_text_is_read_by_role():
    _, (record,), _ = _read(
        {"messages_display": "user: Cancel it.\nassistant: None\ntool: Error: no user\nassistant: Sorry."}
    )
    assert (record.case.query, record.outcome.output, _tools(record)) == ("Cancel it.", "Sorry.", [("", "error")])


def test_what_was_sent_to_a_managed_agent_counts_once():
    said = {"type": "user.message", "id": "e1", "content": [{"type": "text", "text": "Hi"}]}
    answer = {
        "type": "agent.message",
        "id": "e2",
        "content": [{"type": "text", "text": "Ho"}],
        "processed_at": "2026-01-01",
    }
    surprise = {"type": "agent.dream", "id": "e3"}
    rows = [["client.beta.sessions.events.send", ["s", {"events": [said]}]]]
    rows += [["client.beta.sessions.events.stream", each] for each in (said, answer, surprise)]
    data = [
        ["client.beta.sessions.create", {"type": "session", "id": "s", "agent": {"name": "a", "model": {"id": "m"}}}],
        *rows,
    ]
    name, (record,), notes = _read(*data)
    messages = [event.payload["content"] for event in record.trace.events if event.type == "message"]
    assert (name, messages, notes.not_understood) == ("anthropic-managed", ["Hi", "Ho"], {"agent.dream": 1})


def test_a_failed_bedrock_agent_has_an_error():
    failure = {"failureReason": "throttled", "traceId": "t"}
    trace = {"agentId": "a", "sessionId": "s", "trace": {"failureTrace": failure}}
    asked = {"modelInvocationInput": {"traceId": "t", "text": '{"messages": [{"role": "user", "content": "Hi"}]}'}}
    name, (record,), _ = _read({"trace": {**trace, "trace": {"orchestrationTrace": asked}}}, {"trace": trace})
    assert (name, record.case.query, record.outcome.error) == ("bedrock-agent", "Hi", "throttled")


def test_a_browser_that_gave_up_has_no_answer():
    step = {"model_output": None, "result": [{"error": "no reply"}], "state": {"url": "x"}, "metadata": None}
    name, (record,), _ = _read({"history": [step]})
    assert (name, record.outcome.success, record.outcome.error) == ("browser-use", None, "no reply")


def test_a_result_of_a_browser_is_that_of_the_action_in_its_place():
    def step(actions, *results):
        output = {"action": [{"click": {"index": index}} for index in actions]}
        return {"model_output": output, "result": list(results), "state": {"url": "x"}, "metadata": None}

    broke_off = step("AB", {"extracted_content": "clicked"})
    _, (record,), _ = _read({"history": [broke_off, step("C", {"error": "no element"})]})
    calls = [event.payload for event in record.trace.events if event.type == "tool_call"]
    found = [(call["arguments"]["index"], call.get("status")) for call in calls]
    assert found == [("A", "success"), ("B", None), ("C", "error")]


def test_documents_of_bedrock_may_be_texts():
    found = {"retrievedReferences": ["plain", {"content": {"text": "within"}}, {}]}
    observed = {"observation": {"knowledgeBaseLookupOutput": found, "finalResponse": {"text": "Hi"}}}
    trace = {"agentId": "a", "sessionId": "s", "trace": {"orchestrationTrace": observed}}
    _, (record,), _ = _read({"trace": trace})
    (event,) = [event for event in record.trace.events if event.type == "retrieval"]
    assert event.payload["documents"] == ["plain", "within"]


@pytest.mark.parametrize("odd", [[], {}, 7, "text", None, True])
def test_odd_parts_of_events_do_no_harm(odd):
    event = {"type": "agent.tool_use", "id": "e", "name": "bash", "input": {}}
    said = {"type": "user.message", "id": "u", "content": "Hi"}
    for field in ("name", "input", "processed_at"):
        _read(said, {**event, field: odd})


def test_a_claude_agent_that_was_stopped_has_an_error():
    end = {"type": "result", "subtype": "error_max_turns", "is_error": True, "usage": {"input_tokens": 5}}
    asked = {"type": "user", "message": {"role": "user", "content": "Why?"}}
    messages = [{"direction": "send", "message": asked}, {"direction": "recv", "message": end}]
    name, (record,), _ = _read({"messages": messages})
    assert (name, record.outcome.error, record.case.query) == ("claude-stream", "error_max_turns", "Why?")


def test_the_cost_of_a_claude_agent_is_stated_so_far_and_its_tokens_by_turn():
    totals = [0.125, 0.375, 0.0625]  # the third is that of a process that began anew
    ends = [{"type": "result", "usage": {"input_tokens": 10}, "total_cost_usd": total} for total in totals]
    _, (record,), _ = _read({"messages": [{"direction": "recv", "message": end} for end in ends]})
    calls = [event.payload for event in record.trace.events if event.type == "llm_call"]
    assert [call["cost"] for call in calls] == [0.125, 0.25, 0.0625]
    assert [call["usage"]["input_tokens"] for call in calls] == [10, 10, 10]


def test_the_tasks_of_hal_have_their_verdicts():
    said = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
    calls = [{"usage": {"prompt_tokens": 5, "completion_tokens": 2}, "started_at": "2026-01-01T00:00:00Z"}]
    task = {"messages": said, "call_metadata": calls, "model": "m", "call_count": 1}
    scores = {"a": {"reward": 1.0}, "b": {"reward": 0.0}, "c": "not graded"}
    _, records, _ = _read({"config": {}, "raw_eval_results": scores, "raw_logging_results": dict.fromkeys("abc", task)})
    assert [(each.case.id, each.outcome.success) for each in records] == [("a", True), ("b", False), ("c", None)]
    assert records[2].outcome.metadata == {"score": "not graded"}


def test_chains_and_trees_of_marble_keep_results_and_messages():
    talk = "In Session 1 \nFrom a to b: Go.\n"
    chain = {"chain_length": 1, "current_agent": "a", "result": "done", "task_assignments": {"a": "t"}}
    tree = {"iteration": 1, "root_agent": "a", "communications": talk, "task_assignments": [{"b": "t"}],
            "task_results": [{"agent_id": "b", "result": "found"}]}  # fmt: skip
    run = {"task": "Why?", "coordination_mode": "chain"}
    _, (first, second), _ = _read({**run, "iterations": [chain]}, {**run, "iterations": [tree]})
    results = [e.payload for record in (first, second) for e in record.trace.events if e.type == "task_result"]
    assert [(each["agent"], each["content"]) for each in results] == [("a", "done"), ("b", "found")]
    assert [(each.from_agent, each.to_agent) for each in second.trace.interactions] == [("a", "b")]

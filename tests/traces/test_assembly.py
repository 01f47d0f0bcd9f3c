"""Spans of one trace become one record: what is asked and answered, counted once, whatever is wrong with the spans."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spans_of import TRACE, oi, payloads, record_of

from agentunit.core.codec import decode_record, encode_record
from agentunit.metrics.inputs import Item
from agentunit.metrics.usage import find_usage
from agentunit.traces.assembly.record import assemble
from agentunit.traces.spans import ReadingNotes, Span, SpanEvent


def tokens(record: Any) -> tuple[int | None, int | None, int]:
    found = find_usage(Item(record.case, record.trace, record.outcome))
    assert found is not None
    return found[0].prompt, found[0].completion, found[0].cached


def chat(span_id: str, parent: str | None = None, at: float = 0.0, **rest: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        **{key.replace("__", "."): value for key, value in rest.items()},
    }
    return Span(TRACE, span_id, parent, "chat m", at, at + 1, attributes=attributes)


# -- what was asked and answered ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "question"),
    [
        ("Why?", "Why?"),
        ('"Why?"', "Why?"),
        ('{"task": "Why?", "stream": false}', "Why?"),
        ('{"messages": [["user", "Why?"]]}', "Why?"),
        ('{"messages": [{"role": "user", "content": "Old"}, {"role": "assistant", "content": "No"}, '
         '{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]}', "Why?"),
        ('{"messages": [{"type": "human", "data": {"content": "Why?"}}]}', "Why?"),
        ('{"inputs": {"question": "Why?"}, "tags": []}', "Why?"),
        ('{"new_message": {"role": "user", "parts": [{"text": "Why?"}]}, "user_id": "u"}', "Why?"),
        ('{"args": [], "kwargs": {"query": "Why?"}}', "Why?"),
        ('{"ticket_text": "Why?"}', "Why?"),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 2}'),
    ],
)  # fmt: skip
def test_the_question_is_found_in_whatever_the_agent_was_called_with(given: str, question: str) -> None:
    assert record_of(oi("AGENT", "a", input__value=given)).case.query == question


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("Because.", "Because."),
        ('{"messages": [{"type": "human", "data": {"content": "Why?"}}, '
         '{"type": "ai", "data": {"content": "Because."}}]}', "Because."),
        ('{"raw": "Because.", "token_usage": {"total_tokens": 3}}', "Because."),
        ('{"content": {"parts": [{"text": "Because."}], "role": "model"}, "author": "helper"}', "Because."),
        ('{"outputs": {"messages": [{"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "Because."}}]}}',
         "Because."),
        ('{"answer": {"text": "Because."}}', "Because."),
    ],
)  # fmt: skip
def test_the_answer_is_found_in_whatever_the_agent_returned(output: str, answer: str) -> None:
    assert record_of(oi("AGENT", "a", input__value="Why?", output__value=output)).outcome.output == answer


def test_without_contents_on_the_root_the_model_calls_tell() -> None:
    record = record_of(
        oi("CHAIN", "root", end=9.0),
        oi("LLM", "one", "root", 1.0, **{
            "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
            "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": "Why?",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search",
        }),
        oi("LLM", "two", "root", 3.0, **{
            "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": "Why?",
            "llm.output_messages.0.message.content": "Because.",
        }),
    )  # fmt: skip
    assert (record.case.query, record.outcome.output) == ("Why?", "Because.")
    said = [(each["role"], each["content"]) for each in payloads(record, "message")]
    assert said == [("system", "Be brief."), ("user", "Why?"), ("assistant", "Because.")]  # each once


def test_a_web_server_around_the_agent_is_no_question_but_is_kept() -> None:
    notes = ReadingNotes()
    server = Span(TRACE, "http", None, "POST /chat", 0.0, 5.0, attributes={"http.request.method": "POST"})
    record = record_of(
        server, oi("AGENT", "a", "http", 1.0, input__value="Why?", output__value="Because."), notes=notes
    )
    assert (record.case.query, record.outcome.output) == ("Why?", "Because.")
    assert payloads(record, "span") == [{"name": "POST /chat", "duration_s": 5.0, "span_id": "http"}]
    assert notes.unplaced == {"POST /chat": 1}


def test_hidden_contents_are_unknown_and_not_the_mark_that_hides_them() -> None:
    hidden = "__REDACTED__"
    record = record_of(
        oi("AGENT", "a", input__value=hidden, output__value=hidden),
        oi("LLM", "m", "a", 1.0, **{"llm.input_messages.0.message.content": hidden, "llm.token_count.prompt": 7}),
        oi("RETRIEVER", "r", "a", 2.0, **{"retrieval.documents.0.document.content": hidden}),
    )
    assert (record.case.query, record.outcome.output) == (None, None)
    assert hidden not in encode_record(record).decode()


# -- tokens, once -------------------------------------------------------------------------------------------------


def test_totals_on_agents_are_not_added_to_their_model_calls() -> None:
    record = record_of(
        oi("AGENT", "a", llm__token_count__prompt=30, llm__token_count__completion=6),
        oi("LLM", "m1", "a", 1.0, llm__token_count__prompt=10, llm__token_count__completion=2),
        oi("LLM", "m2", "a", 2.0, llm__token_count__prompt=20, llm__token_count__completion=4),
    )
    assert tokens(record) == (30, 6, 0)


def test_a_model_call_seen_by_two_instrumentations_counts_once_and_keeps_what_either_knows() -> None:
    outer = oi("LLM", "outer", None, 0.0, llm__token_count__prompt=10, llm__token_count__completion=2,
               **{"llm.input_messages.0.message.content": "Why?"})  # fmt: skip
    inner = chat("inner", "outer", 0.5, gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens=2)
    record = record_of(outer, inner)
    (call,) = payloads(record, "llm_call")
    assert (call["span_id"], tokens(record), record.case.query) == ("inner", (10, 2, 0), "Why?")


def test_an_inner_call_without_tokens_lends_to_the_outer_one() -> None:
    record = record_of(
        chat("outer", at=0.0, gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens=2),
        chat("inner", "outer", 0.5, gen_ai__input__messages='[{"role": "user", "content": "Why?"}]'),
    )
    (call,) = payloads(record, "llm_call")
    assert (call["span_id"], tokens(record), record.case.query) == ("outer", (10, 2, 0), "Why?")


def test_totals_are_used_when_no_model_call_states_any() -> None:
    record = record_of(
        oi("AGENT", "a", input__value="Why?", llm__token_count__prompt=30, llm__token_count__completion=6)
    )
    assert tokens(record) == (30, 6, 0)
    assert record.trace.metadata["usage_from"] == "totals on the spans around the model calls"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5,
          "gen_ai.usage.cache_read.input_tokens": 90}, (100, 5, 90)),
        ({"gen_ai.usage.prompt_tokens": "100", "gen_ai.usage.completion_tokens": "5",
          "gen_ai.usage.cache_read_input_tokens": "90"}, (100, 5, 90)),
        # Anthropic counts cached tokens beside the input.
        ({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read_input_tokens": 90},
         (100, 5, 90)),
        ({"gen_ai.usage.input_tokens": "many", "gen_ai.usage.output_tokens": 5}, (None, 5, 0)),
    ],
)  # fmt: skip
def test_cached_tokens_are_part_of_the_prompt(attributes: dict[str, Any], expected: tuple[int, int, int]) -> None:
    span = Span(TRACE, "m", attributes={"gen_ai.operation.name": "chat", **attributes})
    assert tokens(record_of(span)) == expected


def test_model_calls_of_an_evaluator_are_not_the_agents() -> None:
    record = record_of(
        oi("AGENT", "a", input__value="Why?", output__value="Because."),
        oi("EVALUATOR", "e", None, 5.0, name="judge"),
        oi("LLM", "m", "e", 5.5, llm__token_count__prompt=10, llm__token_count__completion=2),
    )
    assert payloads(record, "llm_call") == []
    assert payloads(record, "evaluation")[0]["name"] == "judge"
    assert record.outcome.output == "Because."


# -- tool calls ---------------------------------------------------------------------------------------------------


def test_a_tool_call_is_completed_by_what_the_model_asked_for_and_was_told() -> None:
    record = record_of(
        oi("LLM", "m1", None, 0.0, **{
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"query": "cats"}',
        }),
        oi("TOOL", "t", None, 2.0, tool__name="search", input__value="cats"),
        oi("LLM", "m2", None, 3.0, **{
            "llm.input_messages.0.message.role": "tool",
            "llm.input_messages.0.message.tool_call_id": "c1",
            "llm.input_messages.0.message.content": "3 cats",
        }),
    )  # fmt: skip
    (call,) = payloads(record, "tool_call")
    assert (call["name"], call["arguments"], call["id"]) == ("search", {"query": "cats"}, "c1")
    assert (call["status"], call["result"]) == ("success", "3 cats")


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, "success", None),
        ({"status": "ok"}, "success", None),
        ({"status": "error", "status_message": "no such file"}, "error", "no such file"),
        ({"status": "error"}, "error", "failed"),
        (
            {"status": "error", "events": [SpanEvent("exception", attributes={"exception.message": "boom"})]},
            "error",
            "boom",
        ),
        # An exception that the tool handled itself.
        ({"events": [SpanEvent("exception", attributes={"exception.message": "boom"})]}, "success", None),
        (
            # LangChain writes the whole traceback into the status: the exception's own words are read first.
            {
                "status": "error",
                "status_message": "ValueError('no key')Traceback (most recent call last):\n  File \"a.py\", line 1",
                "events": [SpanEvent("exception", attributes={"exception.message": "no key"})],
            },
            "error",
            "no key",
        ),
        (
            {
                "status": "error",
                "status_message": "no key for this tenant",
                "events": [SpanEvent("exception", attributes={"exception.message": "no key"})],
            },
            "error",
            "no key for this tenant",
        ),
        ({"error__type": "ExecutionError"}, "error", "ExecutionError"),
        # How LangGraph leaves a node.
        ({"status": "error", "error__type": "ParentCommand"}, "success", None),
        ({"output__value": '{"type": "tool", "data": {"content": "no", "status": "error"}}'}, "error", "no"),
        ({"output__value": '{"blocks": [], "raw_output": "no", "is_error": true}'}, "error", "no"),
        ({"output__value": '[false, {"role": "function", "content": "no"}]'}, "error", "no"),
    ],
)
def test_a_tool_span_failed_when_it_says_so(fields: dict[str, Any], status: str, error: str | None) -> None:
    (call,) = payloads(record_of(oi("TOOL", "t", tool__name="search", **fields)), "tool_call")
    assert (call["status"], call.get("error")) == (status, error)


def test_without_tool_spans_the_messages_tell_of_tool_calls() -> None:
    asked = json.dumps([{"role": "assistant", "parts": [
        {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"query": "cats"}},
        {"type": "tool_call", "id": "c2", "name": "search", "arguments": {"query": "dogs"}},
        {"type": "tool_call", "id": "c3", "name": "search", "arguments": {"query": "cows"}},
    ]}])  # fmt: skip
    told = json.dumps([
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "3 cats"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2", "response": "Error: no dogs"}]},
    ])  # fmt: skip
    record = record_of(chat("m1", gen_ai__output__messages=asked), chat("m2", at=2.0, gen_ai__input__messages=told))
    calls = payloads(record, "tool_call")
    assert [(each["arguments"]["query"], each["status"]) for each in calls] == [("cats", "success"), ("dogs", "error")]
    assert all("derived_from" in each for each in calls)
    # Nothing came back for this one, so nobody knows that it was called.
    assert [each["arguments"]["query"] for each in payloads(record, "tool_request")] == ["cows"]


def test_a_call_seen_twice_counts_once_with_the_worse_status() -> None:
    record = record_of(
        oi("TOOL", "outer", tool__name="refund", status="ok", input__value='{"charge": "ch_2"}'),
        Span(TRACE, "inner", "outer", "execute_tool refund", 0.1, 0.2, "error", "locked",
             {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}),
    )  # fmt: skip
    (call,) = payloads(record, "tool_call")
    assert (call["status"], call["error"], call["arguments"]) == ("error", "locked", {"charge": "ch_2"})


def test_retrieved_documents_are_the_context() -> None:
    record = record_of(
        oi("RETRIEVER", "r", None, 0.0, input__value="cats", **{
            "retrieval.documents.0.document.content": "Cats purr.", "retrieval.documents.0.document.score": 0.9,
            "retrieval.documents.1.document.content": "Cats sleep.",
        }),
        oi("RETRIEVER", "inner", "r", 0.1),
    )  # fmt: skip
    (retrieval,) = payloads(record, "retrieval")
    assert retrieval["query"] == "cats"
    assert Item(record.case, record.trace, record.outcome).context == ["Cats purr.", "Cats sleep."]


# -- agents -------------------------------------------------------------------------------------------------------


def test_an_agent_within_an_agent_is_a_delegation() -> None:
    record = record_of(
        oi("AGENT", "a", name="boss.run", at=0.0, end=9.0),
        oi("LLM", "m1", "a", 1.0),
        oi("AGENT", "b", "a", 2.0, name="helper.run", end=4.0, input__value="Look it up.", output__value="Done."),
        oi("LLM", "m2", "b", 2.5),
        oi("LLM", "m3", "a", 5.0),
    )
    (handoff,) = record.trace.handoffs
    assert (handoff.from_agent, handoff.to_agent, handoff.success) == ("boss", "helper", True)
    request, response = record.trace.interactions
    assert (request.from_agent, request.to_agent, request.content) == ("boss", "helper", "Look it up.")
    assert (request.response_time, response.content) == (2.0, "Done.")
    assert [each["agent"] for each in payloads(record, "llm_call")] == ["boss", "helper", "boss"]
    assert set(record.trace.agent_roles) == {"boss", "helper"}


def test_agents_one_after_the_other_hand_over_and_it_says_that_this_was_derived() -> None:
    record = record_of(
        oi("CHAIN", "root", end=9.0),
        oi("AGENT", "a", "root", 1.0, agent__name="triage"),
        oi("LLM", "m1", "a", 1.1),
        oi("AGENT", "b", "root", 2.0, agent__name="billing"),
        oi("LLM", "m2", "b", 2.1),
    )
    (handoff,) = record.trace.handoffs
    assert (handoff.from_agent, handoff.to_agent) == ("triage", "billing")
    assert handoff.metadata["derived_from"] == "the order of the agents' spans"


def test_a_transfer_tool_states_the_handoff_and_one_that_leads_nowhere_failed() -> None:
    transfer = {"tool__name": "transfer_to_billing_agent", "input__value": '{"reason": "It is about money."}'}
    agents = [
        oi("AGENT", "a", None, 1.0, agent__name="triage"),
        oi("LLM", "m1", "a", 1.1),
        oi("TOOL", "t", "a", 1.2, **transfer),
    ]
    reached = [oi("AGENT", "b", None, 3.0, agent__name="Billing Agent"), oi("LLM", "m2", "b", 3.1)]
    (handoff,) = record_of(*agents, *reached).trace.handoffs
    assert (handoff.to_agent, handoff.success, handoff.reason) == ("Billing Agent", True, "It is about money.")
    assert "derived_from" not in handoff.metadata
    (refused,) = record_of(*agents, oi("LLM", "m3", "a", 4.0)).trace.handoffs
    assert (refused.to_agent, refused.success) == ("billing_agent", False)
    (unknown,) = record_of(*agents).trace.handoffs
    assert unknown.success is None


# -- what can be wrong with spans ---------------------------------------------------------------------------------


def run() -> list[Span]:
    return [
        oi("AGENT", "a", None, 0.0, agent__name="triage", input__value="Why?", output__value="Because.", end=9.0),
        oi("LLM", "m", "a", 1.0, llm__token_count__prompt=10, llm__token_count__completion=2),
        oi("TOOL", "t", "a", 2.0, tool__name="search"),
    ]


def problems(*spans: Span) -> tuple[Any, dict[str, int]]:
    notes = ReadingNotes()
    return record_of(*spans, notes=notes), dict(notes.problems)


def test_a_span_that_comes_twice_counts_once() -> None:
    record, noticed = problems(*run(), run()[1])
    assert tokens(record) == (10, 2, 0)
    assert noticed == {"spans came twice; the second was left out": 1}


def test_two_spans_with_one_id_are_not_added() -> None:
    later = oi("LLM", "m", "a", 1.0, llm__token_count__prompt=11, llm__token_count__completion=3, end=4.0)
    record, noticed = problems(*run(), later)
    assert tokens(record) == (11, 3, 0)
    assert noticed == {"spans share an id with another span; the one that ended later was kept": 1}


def test_a_missing_root_costs_only_what_it_said() -> None:
    record, noticed = problems(*run()[1:])
    assert (tokens(record), record.case.query) == ((10, 2, 0), None)
    assert len(payloads(record, "tool_call")) == 1
    assert noticed == {"spans name a parent that is not in the file; they count as roots": 2}


def test_parents_in_a_circle_are_cut() -> None:
    spans = run()
    spans[0].parent_id = "t"
    record, noticed = problems(*spans)
    assert (record.case.query, tokens(record)) == ("Why?", (10, 2, 0))
    assert noticed["spans are their own ancestors; the circle was cut"] == 1
    itself, _ = problems(oi("AGENT", "a", "a", input__value="Why?"))
    assert itself.case.query == "Why?"


def test_clocks_that_disagree_are_noticed() -> None:
    spans = run()
    spans[1].start_s, spans[1].end_s = -50.0, -60.0
    record, noticed = problems(*spans)
    assert noticed == {
        "spans begin before their parent: clocks disagree": 1,
        "spans end before they begin; their duration is unknown": 1,
    }
    assert "duration_s" not in payloads(record, "llm_call")[0]


def test_tokens_and_costs_that_are_no_amounts_are_unknown_and_said_so() -> None:
    notes = ReadingNotes()
    wrong = chat("m", gen_ai__usage__input_tokens=-5, gen_ai__usage__output_tokens="abc", gen_ai__usage__cost=-3.0)
    (call,) = payloads(record_of(wrong, notes=notes), "llm_call")
    assert "usage" not in call
    assert "cost" not in call
    assert notes.problems == {"token counts or costs that are not amounts were left out": 3}


def test_a_trace_without_an_agent_makes_no_case() -> None:
    notes = ReadingNotes()
    assert assemble([Span(TRACE, "x", name="GET /health")], notes) is None
    assert notes.problems == {"traces without any work of an agent make no case": 1}
    assert notes.unplaced == {"GET /health": 1}


def test_a_deep_trace_takes_no_longer_than_a_flat_one_of_its_size() -> None:
    spans = [oi("LLM", str(n), str(n - 1) if n else None, float(n), end=9e9) for n in range(5000)]
    assert len(payloads(record_of(*spans), "llm_call")) == 1  # each but the outermost lends to the one around it


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["LLM", "TOOL", "AGENT", "chat", "execute_tool", "[]", "{}", '{"messages": [[]]}', "__REDACTED__"]),
    st.lists(st.text(max_size=3), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip
KEYS = st.sampled_from([
    "openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "mlflow.spanType", "ai.operationId",
    "langfuse.observation.type", "ai.observability.span_type", "input.value", "output.value", "tool.name", "metadata",
    "tool.parameters", "llm.input_messages.0.message.content", "llm.input_messages.x.message", "agent.name",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "gen_ai.input.messages", "session.id",
    "gen_ai.output.messages", "gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.tool.call.arguments",
    "traceloop.entity.input", "mlflow.spanInputs", "mlflow.trace.assessments", "gen_ai.prompt.0.content", "message",
    "langfuse.observation.usage_details", "retrieval.documents.0.document.content", "error.type", "events",
])  # fmt: skip
SPANS = st.builds(
    Span,
    trace_id=st.just(TRACE),
    span_id=st.sampled_from("abcdef"),
    parent_id=st.one_of(st.none(), st.sampled_from("abcdefx")),
    name=st.sampled_from(["", "run", "transfer_to_b", "autogen process x", "handoff to b"]),
    start_s=st.one_of(st.none(), st.floats(0, 10)),
    end_s=st.one_of(st.none(), st.floats(0, 10)),
    status=st.sampled_from(["unset", "ok", "error"]),
    attributes=st.dictionaries(KEYS, VALUES, max_size=8),
    scope=st.sampled_from(["", "autogen x", "openinference.instrumentation.llama_index", "crewai", "pydantic-ai"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(SPANS, min_size=1, max_size=8))
def test_any_spans_make_a_record_that_can_be_written_or_none(spans: list[Span]) -> None:
    notes = ReadingNotes()
    record = assemble(spans, notes)
    assert sum(notes.kinds.values()) == len({span.span_id for span in spans})
    if record is not None:
        assert decode_record(encode_record(record)).case.id == TRACE


def test_the_order_of_the_spans_in_a_file_does_not_matter() -> None:
    spans = run()
    ordered = encode_record(record_of(*spans))
    random.Random(7).shuffle(spans)
    assert encode_record(record_of(*spans)) == ordered


def test_a_handoff_whose_span_failed_is_a_failed_call():
    call = {"llm__output_messages__0__message__tool_calls__0__tool_call__function__name": "transfer_to_billing"}
    call["llm__output_messages__0__message__tool_calls__0__tool_call__id"] = "c1"
    told = {
        "llm__input_messages__0__message__role": "tool",
        "llm__input_messages__0__message__tool_call_id": "c1",
        "llm__input_messages__0__message__content": '{"assistant": "billing"}',
    }
    scope = "openinference.instrumentation.openai_agents"
    spans = [
        oi("AGENT", "a", None, 0, end=4, agent__name="triage"),
        oi("LLM", "b", "a", 1, **call),
        oi(
            "TOOL",
            "c",
            "a",
            2,
            input__value="triage",
            output__value="billing",
            name="handoff to billing",
            status="error",
        ),
        oi("AGENT", "d", None, 4, end=8, agent__name="billing"),
        oi("LLM", "e", "d", 5, **told),
    ]
    for span in spans:
        span.scope = scope
    record = record_of(*spans)
    (called,) = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert (called["name"], called["status"]) == ("transfer_to_billing", "error")
    (handoff,) = record.trace.handoffs
    assert (handoff.from_agent, handoff.to_agent, handoff.success) == ("triage", "billing", False)

"""Spans that speak several vocabularies, or words that no vocabulary knows."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from spans_of import TRACE, oi, payloads, record_of

from agentunit.addons.formats.exports.langfuse import read_langfuse_export
from agentunit.traces.assembly.record import assemble
from agentunit.traces.formats_base import Source
from agentunit.traces.spans import ReadingNotes, Span, SpanEvent
from agentunit.traces.vocabularies import facts_of
from agentunit.traces.vocabularies._facts import agent_in_name


def test_every_vocabulary_of_a_span_contributes():
    facts = facts_of(
        Span(
            TRACE,
            "a",
            attributes={
                "openinference.span.kind": "LLM",
                "llm.model_name": "gpt-5",
                "gen_ai.usage.input_tokens": 9,
                "gen_ai.usage.output_tokens": 2,
                "ai.usage.inputTokenDetails.cacheWriteTokens": 4,
                "langfuse.observation.cost_details": '{"input": 0.5, "total": 0.75}',
                "session.id": "s1",
            },
        )
    )
    assert (facts.kind, facts.model, facts.cost, facts.session_id) == ("llm", "gpt-5", 0.75, "s1")
    assert facts.usage == {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cache_creation_tokens": 4},
    }
    assert {fact: facts.origins[fact].attribute for fact in ("cost", "input_tokens")} == {
        "cost": "langfuse.observation.cost_details",
        "input_tokens": "gen_ai.usage.input_tokens",
    }


def test_the_platforms_own_tokens_count_and_disagreement_is_noted():
    notes = ReadingNotes()
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.token_count.prompt": 5,
        "llm.token_count.completion": 7,
        "langfuse.observation.type": "GENERATION",
        "langfuse.observation.usage_details": '{"input": 6, "output": 7, "total": 13}',
    }
    record = record_of(Span(TRACE, "a", attributes=attributes), notes=notes)
    assert payloads(record, "llm_call")[0]["usage"]["prompt_tokens"] == 6
    assert notes.problems == {
        "spans state other input tokens in llm.token_count.prompt than in langfuse.observation.usage_details; "
        "the latter counts": 1
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"llm.model_name": "gpt-4o"}, {"gen_ai.response.model": "gpt-4o-2024-08-06"}),
        ({"llm.cost.total": 0.1 + 0.2}, {"gen_ai.usage.cost": 0.3}),
        (
            {"llm.token_count.prompt": 100, "llm.token_count.prompt_details.cache_read": 90},
            {"langfuse.observation.usage_details": '{"input": 10, "output": 1}'},
        ),
    ],
)
def test_the_same_in_other_words_is_no_disagreement(one, other):
    facts = facts_of(Span(TRACE, "a", attributes={"openinference.span.kind": "LLM", **one, **other}))
    assert not facts.disagreements


def test_output_tokens_of_reasoning_beside_the_rest_are_added():
    usage = {"input": 179, "output": 35, "total": 278, "input_cache_read": 0, "output_reasoning": 64}
    attributes = {
        "langfuse.observation.type": "GENERATION",
        "langfuse.observation.usage_details": json.dumps(usage),
    }
    found = facts_of(Span(TRACE, "a", attributes=attributes)).usage
    assert (found["completion_tokens"], found["completion_tokens_details"]) == (99, {"reasoning_tokens": 64})


def test_a_word_that_no_vocabulary_knows_is_counted():
    notes = ReadingNotes()
    record = record_of(
        oi("AGENT", "a", name="desk", input__value="Why?", tool_results='["x"]', empty="", http__method="GET"),
        oi("TOOL", "b", "a", name="find", tool_results='["y"]', thread__id=7),
        notes=notes,
    )
    assert notes.not_understood == {"tool_results": 2}
    assert record.trace.metadata["not_understood"] == {"tool_results": 2}


def test_words_on_spans_of_nobody_known_are_not_counted():
    notes = ReadingNotes()
    record_of(oi("AGENT", "a", name="desk", input__value="Why?"), Span(TRACE, "b", "a", name="SELECT"), notes=notes)
    web = Span(TRACE, "c", attributes={"app.measure": 1, "session.id": "browser"})
    assert not notes.not_understood
    assert facts_of(web).session_id is None


@pytest.mark.parametrize(
    "name",
    [
        "agent.react.start-4",
        "agent.react.partial_update-610",
        "iteration-2",
        "step 3",
        "pkg.module.call",
        "Agent.run",
        "invoke_agent 6f8d2449-33ed-4c7c-82e7-5410e34ee4e6",
        "run.6f8d2449-33ed-4c7c-82e7-5410e34ee4e6",
        "invoke_agent",
    ],
)
def test_a_step_a_method_or_a_run_is_no_agent(name):
    assert agent_in_name(name) is None


@pytest.mark.parametrize(
    "name",
    ["agent_run [hello_agent]", "invoke_agent hello_agent", "hello_agent.run", "hello_agent.iter", "hello_agent"],
)
def test_an_agent_in_the_name_of_a_span(name):
    assert agent_in_name(name) == "hello_agent"


def test_an_agent_named_by_its_node_is_kept():
    def of_the_sdk(span: Span) -> Span:
        span.scope = "openinference.instrumentation.openai_agents"
        return span

    record = record_of(
        of_the_sdk(oi("AGENT", "a", name="Agent workflow")),
        of_the_sdk(oi("AGENT", "b", "a", name="Hello world", graph__node__id="Hello world")),
        of_the_sdk(oi("LLM", "c", "b", name="response", llm__model_name="gpt-5")),
    )
    assert payloads(record, "llm_call")[0]["agent"] == "Hello world"


def strands(
    operation: str, span_id: str, parent: str | None, at: float, events: list[SpanEvent], **rest: object
) -> Span:
    attributes = {"gen_ai.operation.name": operation, "gen_ai.system": "strands-agents", **rest}
    scope = "strands.telemetry.tracer"
    return Span(TRACE, span_id, parent, f"{operation} x", at, at + 1, attributes=attributes, events=events, scope=scope)


def test_strands_by_default_writes_contents_as_events():
    asked = SpanEvent("gen_ai.user.message", attributes={"content": '[{"text": "Weather in Oslo?"}]'})
    used = '[{"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Oslo"}}}]'
    result = '[{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "Sunny"}]}}]'
    said = {"finish_reason": "end_turn", "message": '[{"text": "It is sunny."}]'}
    record = record_of(
        strands(
            "invoke_agent", "a", None, 0.0,
            [asked, SpanEvent("gen_ai.choice", attributes={"message": "It is sunny.\n", "finish_reason": "end_turn"})],
            **{"gen_ai.agent.name": "meteo"},
        ),
        strands(
            "chat", "b", "a", 1.0,
            [asked, SpanEvent("gen_ai.choice", attributes={"finish_reason": "tool_use", "message": used})],
        ),
        strands(
            "execute_tool", "c", "a", 2.0,
            [
                SpanEvent("gen_ai.tool.message", attributes={"role": "tool", "content": '{"city":"Oslo"}', "id": "t1"}),
                SpanEvent("gen_ai.choice", attributes={"message": '[{"text": "Sunny"}]', "id": "t1"}),
            ],
            **{"gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "t1", "gen_ai.tool.status": "success"},
        ),
        strands(
            "chat", "d", "a", 3.0,
            [
                asked,
                SpanEvent("gen_ai.assistant.message", attributes={"content": used}),
                SpanEvent("gen_ai.tool.message", attributes={"content": result}),
                SpanEvent("gen_ai.choice", attributes=said),
            ],
        ),
    )  # fmt: skip
    assert (record.case.query, record.outcome.output.strip()) == ("Weather in Oslo?", "It is sunny.")
    (call,) = payloads(record, "tool_call")
    assert {name: call[name] for name in ("name", "arguments", "result", "status", "id", "agent")} == {
        "name": "weather",
        "arguments": {"city": "Oslo"},
        "result": "Sunny",
        "status": "success",
        "id": "t1",
        "agent": "meteo",
    }


def test_strands_says_that_a_tool_failed():
    span = strands(
        "execute_tool", "c", None, 2.0,
        [SpanEvent("gen_ai.choice", attributes={"message": '[{"text": "no such city"}]', "id": "t1"})],
        **{"gen_ai.tool.name": "weather", "gen_ai.tool.status": "error"},
    )  # fmt: skip
    (call,) = payloads(record_of(span), "tool_call")
    assert (call["status"], call["error"]) == ("error", "no such city")


def test_a_call_seen_twice_under_two_names_is_one_by_its_id():
    record = record_of(
        oi("TOOL", "a", name="running tool", tool_call__id="c1"),
        oi("TOOL", "b", "a", name="find_order", tool_call__id="c1"),
    )
    assert [call["name"] for call in payloads(record, "tool_call")] == ["find_order"]


def test_facts_of_mcp_and_the_tools_on_offer():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    offered = [{"type": "function", "name": "weather", "description": "Says it.", "parameters": schema}]
    attributes = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "weather",
        "mcp.server.name": "meteo",
        "mcp.server.version": "1.4",
        "mcp.tool.result.is_error": True,
        "gen_ai.tool.call.result": "no such city",
    }
    record = record_of(
        Span(TRACE, "a", attributes={"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": json.dumps(offered)}),
        Span(TRACE, "b", attributes=attributes),
        oi("LLM", "c", llm__tools__0__tool__json_schema='{"function": {"name": "add", "parameters": {}}}'),
        oi("TOOL", "d", name="mcp__files__read"),
    )
    calls = {call["name"]: call for call in payloads(record, "tool_call")}
    told = {name: calls["weather"][name] for name in ("server", "server_version", "is_error", "status", "error")}
    assert told == {
        "server": "meteo",
        "server_version": "1.4",
        "is_error": True,
        "status": "error",
        "error": "no such city",
    }
    assert calls["mcp__files__read"]["server"] == "files"
    assert sorted(record.trace.metadata["tools"], key=lambda tool: tool["name"]) == [
        {"name": "add"},
        {"name": "weather", "description": "Says it.", "parameters": schema},
    ]


def test_beeai_writes_one_call_as_three_spans():
    def event(name: str, span_id: str, **rest: object) -> Span:
        span = oi("TOOL", span_id, name=f"tool.search.{name}-12", **rest)
        span.scope = "openinference.instrumentation.beeai"
        return span

    record = record_of(event("start", "a"), event("success", "b", output__value="found"), event("finish", "c"))
    assert [(call["name"], call["result"]) for call in payloads(record, "tool_call")] == [("search", "found")]


def test_a_trace_without_any_content_makes_no_case():
    notes = ReadingNotes()
    assert assemble([oi("AGENT", "a", name="desk")], notes) is None
    assert notes.problems == {"traces without question, answer, tool call and model call make no case": 1}


def of_langfuse(*observations: dict[str, Any], notes: ReadingNotes | None = None) -> Any:
    """The record of an export with these observations; each has an id of its own place and a time after the last."""
    rows = [
        {"id": f"o{at}", "traceId": "t", "startTime": f"2025-06-01T10:00:0{at}Z", "parentObservationId": None, **each}
        for at, each in enumerate(observations)
    ]
    source = Source("export.json", io.BytesIO(json.dumps({"trace": {"id": "t"}, "observations": rows}).encode()))
    spans = list(read_langfuse_export(source, ReadingNotes()))
    return record_of(*spans, notes=notes)


def test_pydantic_ai_through_langfuse_calls_each_tool_once():
    asked = [{"role": "assistant", "tool_calls": [{"id": "c1", "name": "find", "arguments": {"q": "x"}}]}]
    told = [*asked, {"role": "tool", "id": "c1", "content": "found"}]
    record = of_langfuse(
        {"type": "GENERATION", "name": "chat", "output": asked},
        {
            "type": "TOOL",
            "name": "running tool: find",
            "output": "found",
            "metadata": {"attributes": {"gen_ai.tool.name": "find", "gen_ai.tool.call.id": "c1"}},
        },
        {"type": "GENERATION", "name": "chat", "input": told, "output": {"role": "assistant", "content": "Done."}},
    )
    assert [(call["name"], call["id"]) for call in payloads(record, "tool_call")] == [("find", "c1")]


def test_tools_of_langgraph_in_older_langfuse_are_spans():
    kwargs = {"status": "success", "content": "Sunny", "tool_call_id": "c1", "name": "weather"}
    message = {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "ToolMessage"], "kwargs": kwargs}
    place = {"langgraph_checkpoint_ns": "model_request:1|tools:2"}
    record = of_langfuse(
        {"type": "SPAN", "name": "tools", "output": {"messages": [message]}},
        {"type": "SPAN", "name": "weather", "input": {"city": "Oslo"}, "output": message, "metadata": place},
    )
    (call,) = payloads(record, "tool_call")
    assert (call["name"], call["arguments"], call["result"]) == ("weather", {"city": "Oslo"}, "Sunny")
    assert "agent" not in call


def test_langfuses_own_tokens_and_cost_count_beside_openinference():
    attributes = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 5, "llm.token_count.completion": 2}
    record = of_langfuse(
        {
            "type": "GENERATION",
            "name": "chat",
            "inputUsage": 5,
            "outputUsage": 2,
            "totalUsage": 7,
            "costDetails": {"total": 0.25},
            "metadata": {"attributes": attributes},
        }
    )
    (call,) = payloads(record, "llm_call")
    assert (call["usage"]["prompt_tokens"], call["usage"]["completion_tokens"], call["cost"]) == (5, 2, 0.25)


def test_a_field_of_an_observation_that_nobody_knows_is_counted():
    notes = ReadingNotes()
    record = of_langfuse({"type": "GENERATION", "name": "chat", "mood": "good", "projectId": "p"}, notes=notes)
    assert notes.not_understood == record.trace.metadata["not_understood"] == {"mood": 1}


def test_an_object_that_vercels_sdk_made_is_the_answer():
    made = '{"recipe": {"name": "Lasagna"}}'
    attributes = {"ai.operationId": "ai.generateObject.doGenerate", "ai.response.object": made}
    record = record_of(Span(TRACE, "a", attributes=attributes))
    assert json.loads(record.outcome.output) == json.loads(made)


def test_a_kind_of_tokens_that_nobody_knows_is_counted():
    attributes = {
        "langfuse.observation.type": "GENERATION",
        "langfuse.observation.usage_details": '{"input": 3, "output": 1, "input_video": 5, "input_audio": 0}',
    }
    facts = facts_of(Span(TRACE, "a", attributes=attributes))
    assert list(facts.not_understood) == ["langfuse.observation.usage_details.input_video"]


def test_mcp_as_its_instrumentations_write_it():
    sentry = {"mcp.method.name": "tools/call", "mcp.tool.name": "add", "mcp.request.argument.a": "1"}
    sentry |= {"mcp.request.argument.b": '"two"', "mcp.tool.result.content": '[{"type": "text", "text": "3"}]'}
    fastmcp = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "greet", "fastmcp.component.key": "tool:greet@1.2"}
    fastmcp |= {"fastmcp.server.name": "hello", "error.type": "tool_error"}
    answer = {"content": [{"type": "text", "text": "12 °C"}], "isError": False}
    traceloop = {"traceloop.span.kind": "tool", "mcp.method.name": "tools/call", "traceloop.entity.name": "weather"}
    traceloop |= {"mcp.request.argument": '{"city": "Oslo"}', "mcp.response.value": json.dumps(answer)}
    record = record_of(*(Span(TRACE, str(n), attributes=each) for n, each in enumerate((sentry, fastmcp, traceloop))))
    calls = {call["name"]: call for call in payloads(record, "tool_call")}
    assert (calls["add"]["arguments"], calls["add"]["result"]) == ({"a": "1", "b": "two"}, "3")
    told = {name: calls["greet"][name] for name in ("server", "tool_version", "is_error", "status")}
    assert told == {"server": "hello", "tool_version": "1.2", "is_error": True, "status": "error"}
    assert (calls["weather"]["arguments"], calls["weather"]["result"]) == ({"city": "Oslo"}, "12 °C")


def test_the_function_of_the_vercel_ai_sdk_names_the_agent_and_its_object_is_the_answer():
    told = {
        "ai.operationId": "ai.generateObject",
        "ai.telemetry.functionId": "cook",
        "ai.prompt": '{"prompt": "Eggs?"}',
    }
    made = '{"name": "Scrambled eggs", "steps": ["Crack", "Whisk"]}'
    call = {"ai.operationId": "ai.generateObject.doGenerate", "ai.telemetry.functionId": "cook", "ai.model.id": "m"}
    record = record_of(
        Span(TRACE, "a", start_s=1.0, end_s=4.0, attributes={**told, "ai.response.object": made}),
        Span(TRACE, "b", "a", start_s=2.0, end_s=3.0, attributes={**call, "ai.response.object": made}),
    )
    assert json.loads(record.outcome.output) == json.loads(made)
    assert [call["agent"] for call in payloads(record, "llm_call")] == ["cook"]


def test_an_inner_model_call_gets_the_cached_tokens_that_only_its_wrapper_states():
    call = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5}
    wrapper = Span(TRACE, "a", start_s=1.0, attributes={**call, "gen_ai.usage.cache_read.input_tokens": 60})
    record = record_of(wrapper, Span(TRACE, "b", "a", start_s=2.0, attributes=call))
    (usage,) = [payload["usage"] for payload in payloads(record, "llm_call")]
    assert usage == {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}


@pytest.mark.parametrize("name", ["mlflow", "langfuse", "mcp", "crewai", "langsmith", "haystack.agent", "fastmcp"])
def test_a_new_word_of_a_known_tool_is_counted(name):
    facts = facts_of(Span(TRACE, "a", attributes={"openinference.span.kind": "TOOL", f"{name}.brand_new": "x"}))
    assert facts.not_understood == [f"{name}.brand_new"]


def test_zeros_are_not_counts():
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}
    assert facts_of(Span(TRACE, "a", attributes=attributes)).usage is None
    assert facts_of(Span(TRACE, "a", attributes={**attributes, "gen_ai.usage.input_tokens": 5})).usage == {
        "prompt_tokens": 5,
        "completion_tokens": 0,
    }


def test_costs_of_input_and_output_add_up():
    parts = {"gen_ai.usage.input_cost": 0.25, "gen_ai.usage.output_cost": 0.5}
    attributes = {"gen_ai.operation.name": "chat", **parts}
    assert facts_of(Span(TRACE, "a", attributes=attributes)).cost == 0.75
    assert facts_of(Span(TRACE, "a", attributes={**attributes, "gen_ai.usage.cost": 0.5})).cost == 0.5


def test_a_task_of_crewai_names_its_agent_in_what_it_was_given_and_returned():
    kind = {"openinference.span.kind": "AGENT"}
    for told in ({"input.value": '{"agent": {"role": "billing"}}'}, {"output.value": '{"agent": "billing"}'}):
        assert facts_of(Span(TRACE, "a", name="Task._execute_core", attributes={**kind, **told})).agent == "billing"
    assert facts_of(Span(TRACE, "a", name="Task._execute_core", attributes=kind)).agent is None


def test_a_message_that_is_printed_by_python_is_its_text():
    from agentunit.traces.vocabularies.values import answer_in

    assert answer_in("{'role': 'assistant', 'text': \"It's sent.\"}") == "It's sent."
    assert answer_in("{'role': 'assistant") == "{'role': 'assistant"
    assert answer_in({"run_id": "1ZevOdCPUH"}) is None

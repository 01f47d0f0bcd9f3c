from __future__ import annotations

import pytest

from agentunit.addons.review._remedies import Origin, lacks_of, remedies_for, settings_for
from agentunit.addons.review._trace_settings import CAUSES, SETTINGS, WORDS, Setting
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.installation import install_command

CONTENTS = ("question", "answer", "messages", "tool_arguments", "tool_results")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: f"{setting.scopes[0]}-{setting.adds[0]}")
def test_every_setting_is_well_formed_and_can_be_reached(setting: Setting) -> None:
    assert setting.cause in CAUSES
    assert {*setting.adds, *setting.only_with, *setting.unless} <= set(WORDS)
    assert setting.switch.strip() == setting.switch
    assert "\n" not in setting.switch + setting.why
    assert setting.why.endswith(".")
    scopes = [setting.scopes[0], *([setting.beside] if setting.beside else [])]
    # Something that it adds must be left to it by the settings before it.
    lacks = {*setting.only_with, *setting.adds} - {*setting.unless}
    alone = [{*setting.only_with, each} - {*setting.unless} for each in setting.adds]
    chosen = [found for some in (lacks, *alone) for found, _ in settings_for(scopes, some)]
    assert setting in chosen


@pytest.mark.parametrize(
    ("scopes", "lacks", "switch", "cause"),
    [
        (["gcp.vertex.agent"], CONTENTS, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY", "off"),
        (
            ["opentelemetry.instrumentation.openai_v2", "my-program"],
            (*CONTENTS, "tool_calls"),
            "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental "
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only",
            "off",
        ),
        (["opentelemetry.instrumentation.genai.anthropic"], CONTENTS, "…CONTENT=span_only", "off"),
        (["opentelemetry.instrumentation.openai.v1"], CONTENTS, "TRACELOOP_TRACE_CONTENT=true", "hidden"),
        (["opentelemetry.instrumentation.langchain"], CONTENTS, "TRACELOOP_TRACE_CONTENT=true", "hidden"),
        (["openinference.instrumentation.haystack"], CONTENTS, "…HIDE_OUTPUTS=false", "hidden"),
        (
            ["openinference.instrumentation.langchain"],
            ("question", "messages", "tool_arguments"),
            "OPENINFERENCE_HIDE_INPUTS=false",
            "hidden",
        ),
        (
            ["openinference.instrumentation.langchain"],
            ("answer", "tool_results"),
            "OPENINFERENCE_HIDE_OUTPUTS=false",
            "hidden",
        ),
        (
            ["openinference.instrumentation.openai_agents"],
            (*CONTENTS, "tokens", "model_names"),
            "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true",
            "hidden",
        ),
        (["pydantic-ai"], CONTENTS, "InstrumentationSettings(include_content=True)", "hidden"),
        (["opentelemetry.instrumentation.ag2"], ("messages",), "instrument_llm_wrapper(capture_messages=True)", "off"),
        (["opentelemetry.instrumentation.ag2"], CONTENTS, "TelemetryMiddleware(capture_content=True)", "hidden"),
        (["autogen-core"], CONTENTS, "unset AUTOGEN_DISABLE_RUNTIME_TRACING", "hidden"),
        (["semantic_kernel.utils.telemetry.model_diagnostics.decorators"], CONTENTS, "…SENSITIVE=true", "off"),
        (["ai"], CONTENTS, "…recordOutputs: true }", "hidden"),
        (["haystack"], CONTENTS, "HAYSTACK_CONTENT_TRACING_ENABLED=true", "off"),
    ],
)
def test_the_switch_of_an_instrumentation(scopes, lacks, switch, cause):
    ((setting, adds),) = settings_for(scopes, lacks, scopes)
    assert setting.switch.endswith(switch.removeprefix("…"))
    assert setting.cause == cause
    assert set(adds) == set(lacks)


def test_a_scope_stands_for_what_is_below_it_and_nothing_else():
    assert settings_for(["pydantic-ai-extension"], CONTENTS) == []
    assert settings_for(["aider"], CONTENTS) == []
    openllmetry = {setting.switch for setting, _ in settings_for(["opentelemetry.instrumentation.openai"], CONTENTS)}
    contrib = {setting.switch for setting, _ in settings_for(["opentelemetry.instrumentation.openai_v2"], CONTENTS)}
    assert openllmetry.isdisjoint(contrib)


def test_autogen_without_runtime_spans_here_is_not_told_apart_by_one_trace_alone():
    everywhere = ["autogen-core", "autogen SingleThreadedAgentRuntime"]
    (here,) = settings_for(["autogen-core"], CONTENTS, everywhere)
    assert here[0].cause == "split"
    assert "--group-by session" in here[0].switch


def test_what_nobody_knows_a_switch_for_gets_what_holds_for_all_when_a_metric_waits_for_it():
    unknown = Origin("spans", ("in-house",))
    assert remedies_for(unknown, CONTENTS, ()) == {}
    remedies = remedies_for(unknown, CONTENTS, ("answer",))
    assert [(remedy.cause, adds) for remedy, adds in remedies.items()] == [("unknown", ("answer",))]
    assert "gen_ai.output.messages" in next(iter(remedies)).switch


def test_list_prices_are_an_install_away_or_cannot_help():
    origin = Origin("records", ("records",))
    (without,) = remedies_for(origin, ("cost",), ("cost",))
    (with_prices,) = remedies_for(origin, ("cost",), ("cost",), prices=True)
    assert without.switch == install_command("prices")
    assert "cost" in with_prices.switch


def case(*events: TraceEvent, outcome: object = None, context: list[str] | None = None, **metadata: object) -> Record:
    return Record(DatasetCase("q1", "Why?", context=context), TraceLog(list(events), dict(metadata)), outcome)  # type: ignore[arg-type]


def event(type: str, **payload: object) -> TraceEvent:
    return TraceEvent(type, payload)


@pytest.mark.parametrize(
    ("record", "lacking", "there"),
    [
        (case(outcome="So."), {"tool_calls", "model_calls", "documents", "times"}, {"answer", "question"}),
        (case(outcome=Outcome(success=True)), {"answer"}, {"success"}),
        (case(event("tool_call", name="a"), event("tool_call", name="b", arguments={"x": 1})), {"tool_results"},
         {"tool_arguments", "tool_calls"}),
        (case(event("tool_call", name="a")), {"tool_arguments"}, {"tool_calls"}),
        (case(event("llm_call", model="m", usage={"prompt_tokens": 1})), {"cached_tokens", "cost"},
         {"tokens", "model_names", "model_calls"}),
        (case(event("llm_call", usage={"prompt_tokens": 1}), event("llm_call", model="m")), {"tokens"}, set()),
        (case(event("llm_call", usage={"prompt_tokens": 1}), event("llm_call", model="m", error="timeout")),
         {"model_names"}, {"tokens"}),
        (case(event("llm_call", model="m"), usage={"prompt_tokens": 1}), set(), {"tokens"}),
        (case(event("llm_call", input_tokens=3, cost=0.1)), {"model_names"}, {"tokens", "cost"}),
        (case(event("llm_call", usage={"prompt_tokens_details": {"cached_tokens": 0}})), set(), {"cached_tokens"}),
        (case(event("retrieval", documents=[{"id": "d1"}])), {"document_texts"}, {"documents"}),
        (case(event("retrieval", documents=["Paris"])), set(), {"documents", "document_texts"}),
        (case(context=["Paris"]), set(), {"documents", "document_texts"}),
        (case(event("message", agent="unknown")), {"agent_names"}, set()),
        (case(event("message", agent="triage"), session_id="s"), set(), {"agent_names", "session"}),
    ],
)  # fmt: skip
def test_what_a_record_lacks(record, lacking, there):
    lacks = lacks_of(record)
    assert lacking <= lacks
    assert there.isdisjoint(lacks)

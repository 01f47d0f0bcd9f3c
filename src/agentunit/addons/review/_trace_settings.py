"""Which switch of which instrumentation adds what a trace lacks: data, each with the source of the fact."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from agentunit.traces.places import require_known

Lack = Literal[
    "question", "answer", "messages", "tool_calls", "tool_arguments", "tool_results", "model_calls", "model_names",
    "tokens", "cached_tokens", "cost", "documents", "document_texts", "agent_names", "session", "times", "expected",
    "expected_tools", "success", "pattern",
]  # fmt: skip

WORDS: dict[Lack, str] = {
    "question": "question",
    "answer": "answer",
    "messages": "messages of the model calls",
    "tool_calls": "tool calls",
    "tool_arguments": "tool arguments",
    "tool_results": "tool results",
    "model_calls": "model calls",
    "model_names": "model names",
    "tokens": "token counts",
    "cached_tokens": "cached tokens",
    "cost": "cost",
    "documents": "retrievals",
    "document_texts": "texts of retrieved documents",
    "agent_names": "agents' names",
    "session": "session id",
    "times": "times",
    "expected": "expected answer",
    "expected_tools": "expected tool calls",
    "success": "verdict on the task",
    "pattern": "pattern to check",
}
"""What each of them is called, in the order in which reports list them."""

LackCause = Literal["hidden", "off", "split", "not_emitted", "lost", "unknown"]

CAUSES: dict[LackCause, str] = {
    "hidden": "hidden by a switch",
    "off": "not recorded by default",
    "split": "scattered over many traces",
    "not_emitted": "never recorded by this instrumentation",
    "lost": "lost on the way",
    "unknown": "not in the data",
}
"""Why something is missing, in words."""


class Setting(NamedTuple):
    """A way to get what is lacking. ``switch`` is what to write down, ``why`` one or two sentences about it.

    ``scopes`` are instrumentation scopes: a name stands for itself and what is below it (``a`` for ``a.b``). It holds
    for a case when one of them made its spans, all of ``only_with`` is lacking and none of ``unless``;
    ``beside`` names a scope that must be there as well, ``without`` one that must be nowhere in the files.
    With ``always`` it is told even if nothing seems to be lacking: the data is known to be wrong.
    """

    scopes: tuple[str, ...]
    adds: tuple[Lack, ...]
    cause: LackCause
    switch: str
    why: str
    only_with: tuple[Lack, ...] = ()
    unless: tuple[Lack, ...] = ()
    beside: str | None = None
    without: str | None = None
    always: bool = False


_SPOKEN: tuple[Lack, ...] = ("question", "answer", "messages")
_CONTENTS: tuple[Lack, ...] = (*_SPOKEN, "tool_arguments", "tool_results", "document_texts")
# Where only the model's client is instrumented, tools are known from its messages alone.
_CLIENT_CONTENTS: tuple[Lack, ...] = (*_CONTENTS, "tool_calls")
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_OPENLLMETRY = tuple(
    f"opentelemetry.instrumentation.{name}"
    for name in (
        "openai", "openai_agents", "langchain", "llamaindex", "anthropic", "bedrock", "cohere", "crewai",
        "google_generativeai", "groq", "haystack", "mistralai", "ollama", "replicate", "together", "watsonx",
    )
)  # fmt: skip
_AUTOGEN_RUNTIME = "autogen SingleThreadedAgentRuntime"
_AUTOGEN_SPLIT = Setting(
    (_AUTOGEN_RUNTIME, "autogen-core"), (*_CONTENTS, "tool_calls", "model_calls", "tokens"), "split",
    "agentunit score … --group-by session",
    "AutoGen opens a new trace with each message unless a span is open around the run. For these files group by "
    'session; from now on run the team within tracer.start_as_current_span("run").',
    only_with=("question",),
)  # fmt: skip

SETTINGS: tuple[Setting, ...] = (
    # google-adk 2.13.0: google/adk/telemetry/context.py, _schema_version.py; spans recorded with each value.
    Setting(
        ("gcp.vertex.agent",), _CONTENTS, "off", f"{_CAPTURE}=SPAN_ONLY",
        "Google ADK records no contents since 2.13 unless told to. The value true sends them to log records only. "
        "Before 2.13 they are recorded unless ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=false.",
        only_with=("question",),
    ),
    # openinference-instrumentation-google-adk 1.0.5 with google-adk 2.13.0: recorded, 3 of 5 model calls missing.
    Setting(
        ("openinference.instrumentation.google_adk",), ("model_calls", "tokens"), "lost",
        "remove GoogleADKInstrumentor; opentelemetry.trace.set_tracer_provider(provider) is enough",
        "From ADK 2.13 on this instrumentor loses model calls, so that token counts and cost are too low. "
        "ADK's own spans have them all.",
        beside="gcp.vertex.agent", always=True,
    ),
    Setting(
        ("openinference.instrumentation.google_adk",), ("model_calls", "tokens", "model_names"), "lost",
        "remove GoogleADKInstrumentor; opentelemetry.trace.set_tracer_provider(provider) is enough",
        "From ADK 2.13 on this instrumentor makes no spans of model calls. ADK's own spans have them all.",
        only_with=("model_calls",),
    ),
    # opentelemetry-instrumentation-openai-v2 2.4b0: openai_v2/utils.py is_content_enabled;
    # opentelemetry-util-genai: util/genai/utils.py get_content_capturing_mode.
    Setting(
        ("opentelemetry.instrumentation.openai_v2",), _CLIENT_CONTENTS, "off",
        f"OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental {_CAPTURE}=span_only",
        "Both together: by default nothing is recorded, and the value true sends contents to log records, not to "
        "spans. Log records exported as OTLP can also be read beside the spans.",
        only_with=("question",),
    ),
    # opentelemetry-instrumentation-genai-openai 1.3b0 and opentelemetry-util-genai: same function.
    Setting(
        ("opentelemetry.instrumentation.genai", "opentelemetry.util.genai"), _CLIENT_CONTENTS, "off",
        f"{_CAPTURE}=span_only",
        "Contents are recorded on spans with span_only or span_and_event. The value true is refused here, and "
        "event_only sends them to log records, which can also be read beside the spans.",
        only_with=("question",),
    ),
    Setting(
        ("opentelemetry.instrumentation.openai_v2", "opentelemetry.util.genai.handler"), ("cached_tokens",),
        "not_emitted", "pip install opentelemetry-instrumentation-genai-openai",
        "This instrumentation leaves cached tokens out, which makes list prices too high; its successor has them.",
    ),
    # opentelemetry-instrumentation-openai-agents 0.62.4, recorded with Chat Completions.
    Setting(
        ("opentelemetry.instrumentation.openai_agents",), ("answer", "tokens", "cached_tokens"), "not_emitted",
        "OpenAIAgentsInstrumentor().instrument()  # of openinference-instrumentation-openai-agents",
        "OpenLLMetry records neither answers nor token counts of agents that use Chat Completions. OpenInference "
        "does; so does OpenLLMetry with the Responses API.",
        only_with=("answer", "tokens"), unless=("question",),
    ),
    # openllmetry: opentelemetry/instrumentation/*/utils.py should_send_prompts, should_emit_events.
    Setting(
        (*_OPENLLMETRY, "traceloop.tracer"), _CLIENT_CONTENTS, "hidden", "TRACELOOP_TRACE_CONTENT=true",
        "OpenLLMetry records contents unless this variable is false. An instrumentor made with "
        "use_attributes=False (use_legacy_attributes=False) sends them to log records instead.",
        only_with=("question",),
    ),
    # openai-agents 0.24.0: agents/run_config.py; without it the spans of model calls are empty.
    Setting(
        ("openinference.instrumentation.openai_agents",), (*_CONTENTS, "tokens", "cached_tokens", "model_names"),
        "hidden", "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true",
        "The SDK was told to trace no sensitive data, which empties its model calls: contents, model and token "
        "counts. RunConfig(trace_include_sensitive_data=True) does the same for one run.",
        only_with=("question", "tokens"),
    ),
    # openinference-instrumentation: openinference/instrumentation/config.py, TraceConfig.
    Setting(
        ("openinference.instrumentation",), _CLIENT_CONTENTS, "hidden",
        "OPENINFERENCE_HIDE_INPUTS=false OPENINFERENCE_HIDE_OUTPUTS=false",
        "OpenInference records contents unless these, a narrower OPENINFERENCE_HIDE_… or a TraceConfig hide them; "
        "hidden values read __REDACTED__ or are missing.",
        only_with=("question", "answer"),
    ),
    Setting(
        ("openinference.instrumentation",), ("question", "messages", "tool_arguments"), "hidden",
        "OPENINFERENCE_HIDE_INPUTS=false",
        "OpenInference records inputs unless this, OPENINFERENCE_HIDE_INPUT_MESSAGES or a TraceConfig hides them; "
        "hidden values read __REDACTED__ or are missing.",
        only_with=("question", "messages"), unless=("answer",),
    ),
    Setting(
        ("openinference.instrumentation",), ("answer", "tool_results", "document_texts"), "hidden",
        "OPENINFERENCE_HIDE_OUTPUTS=false",
        "OpenInference records outputs unless this, OPENINFERENCE_HIDE_OUTPUT_MESSAGES or a TraceConfig hides them; "
        "hidden values read __REDACTED__ or are missing.",
        only_with=("answer", "tool_results"), unless=("question",),
    ),
    Setting(
        ("openinference.instrumentation",), ("document_texts",), "hidden",
        "OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS=false",
        "OpenInference records the texts of documents unless this, OPENINFERENCE_HIDE_OUTPUTS or a TraceConfig "
        "hides them.",
    ),
    # openinference-instrumentation-crewai 1.1.21, recorded both ways; crewai 1.15.30 for the totals.
    Setting(
        ("openinference.instrumentation.crewai",), ("model_calls", "model_names", "tokens"), "not_emitted",
        "CrewAIInstrumentor().instrument(use_event_listener=True)",
        "Without it there are no spans of model calls, and the only token counts are totals by CrewAI, which counts "
        "an LLM object once for each agent that shares it.",
        only_with=("model_calls",),
    ),
    # openinference-instrumentation-ag2 0.1.12: only AGENT and TOOL spans.
    Setting(
        ("openinference.instrumentation.ag2",), ("model_calls", "model_names", "tokens"), "not_emitted",
        "OpenAIInstrumentor().instrument()  # of openinference-instrumentation-openai, beside AG2's",
        "This instrumentation makes no spans of model calls; that of the model's client does.",
        only_with=("model_calls",),
    ),
    # openinference-instrumentation-autogen-agentchat 0.1.22: wraps BaseOpenAIChatCompletionClient only.
    Setting(
        ("openinference.instrumentation.autogen_agentchat",), ("model_calls", "model_names", "tokens"), "not_emitted",
        "instrument the model's client as well, e.g. AnthropicInstrumentor().instrument()",
        "Only OpenAI's clients are instrumented here; other clients of AutoGen make no spans of model calls.",
        only_with=("model_calls",),
    ),
    # openinference-instrumentation-llama-index 4.6.1, recorded with and without streaming.
    Setting(
        ("openinference.instrumentation.llama_index",), ("tokens",), "off",
        'OpenAI(…, additional_kwargs={"stream_options": {"include_usage": True}})',
        "LlamaIndex's agents stream by default, and OpenAI counts no tokens of a stream unless asked. "
        "FunctionAgent(…, streaming=False) helps too.",
        unless=("model_calls",),
    ),
    # langchain-openai: BaseChatOpenAI.stream_usage.
    Setting(
        ("openinference.instrumentation.langchain", "opentelemetry.instrumentation.langchain"), ("tokens",), "off",
        "ChatOpenAI(…, stream_usage=True)",
        "OpenAI counts no tokens of a stream unless asked, and LangChain does not ask where base_url or a client "
        "of your own is set.",
        unless=("model_calls",),
    ),
    # openai: stream_options.include_usage of Chat Completions.
    Setting(
        (
            "openinference.instrumentation.openai", "opentelemetry.instrumentation.openai",
            "opentelemetry.instrumentation.openai_v2", "opentelemetry.instrumentation.genai.openai",
        ),
        ("tokens",), "off", 'client.chat.completions.create(…, stream_options={"include_usage": True})',
        "OpenAI counts no tokens of a stream unless asked.",
        unless=("model_calls",),
    ),
    # openinference-instrumentation-smolagents 0.1.43: only exported Model classes are wrapped;
    # smolagents 1.26.0: monitoring.py TokenUsage.
    Setting(
        ("openinference.instrumentation.smolagents",), ("model_calls", "model_names"), "not_emitted",
        "use a model class of smolagents, or instrument the model's client as well",
        "A Model class of your own makes no spans of model calls here.",
        only_with=("model_calls",),
    ),
    Setting(
        ("openinference.instrumentation.smolagents",), ("cached_tokens",), "lost",
        "OpenAIInstrumentor().instrument()  # of openinference-instrumentation-openai, as well",
        "smolagents keeps no count of cached tokens, which makes list prices too high; the model's client does.",
        unless=("tokens",),
    ),
    # pydantic-ai 2.66.0: pydantic_ai/models/instrumented.py InstrumentationSettings.
    Setting(
        ("pydantic-ai",), _CONTENTS, "hidden", "InstrumentationSettings(include_content=True)",
        "PydanticAI records contents unless include_content is false. In version 1, event_mode='logs' sends them to "
        "log records; event_mode='attributes' keeps them on the spans.",
        only_with=("question",),
    ),
    # autogen-core 0.7.5: _single_threaded_agent_runtime.py, _telemetry/_tracing.py; recorded with and without a span.
    Setting(
        ("autogen-core",), (*_CONTENTS, "model_calls", "tokens"), "hidden", "unset AUTOGEN_DISABLE_RUNTIME_TRACING",
        "AutoGen keeps all contents in the spans of its runtime, and there are none: that variable is true, or an "
        "agent runs without a team.",
        only_with=("question",), without=_AUTOGEN_RUNTIME,
    ),
    _AUTOGEN_SPLIT,
    _AUTOGEN_SPLIT._replace(only_with=("answer",)),
    Setting(
        ("autogen-core", _AUTOGEN_RUNTIME), ("model_calls", "model_names"), "not_emitted",
        "AutogenAgentChatInstrumentor().instrument()  # of openinference-instrumentation-autogen-agentchat",
        "AutoGen's own spans name no model; those of OpenInference or of the model's client do.",
    ),
    # autogen-ext 0.7.5: models/openai/_openai_client.py, RequestUsage has no cached tokens.
    Setting(
        ("autogen-core", "openinference.instrumentation.autogen_agentchat"), ("cached_tokens",), "lost",
        "instrument the model's client, e.g. with opentelemetry-instrumentation-genai-openai",
        "AutoGen keeps no count of cached tokens, which makes list prices too high; the model's client does.",
        unless=("tokens",),
    ),
    # ag2 1.2.1: ag2/middleware/builtin/telemetry.py; ag2 0.14.0: autogen/opentelemetry/.
    Setting(
        ("opentelemetry.instrumentation.ag2",), _CONTENTS, "hidden", "TelemetryMiddleware(capture_content=True)",
        "AG2 1.x records contents unless capture_content is false.",
        only_with=("question",),
    ),
    Setting(
        ("opentelemetry.instrumentation.ag2",), ("messages",), "off", "instrument_llm_wrapper(capture_messages=True)",
        "AG2 before 1.0 records no messages of model calls by default.",
    ),
    Setting(
        ("opentelemetry.instrumentation.ag2",), ("agent_names",), "off", 'TelemetryMiddleware(agent_name="…")',
        "AG2 1.x does not take the agent's own name: name it for the middleware.",
    ),
    # semantic_kernel/utils/telemetry/model_diagnostics/model_diagnostics_settings.py and decorators.py.
    Setting(
        ("semantic_kernel",), _CONTENTS, "off",
        "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
        "Semantic Kernel records no contents by default.",
        only_with=("question",),
    ),
    # microsoft/agent-framework: python/packages/core/agent_framework/observability.py ObservabilitySettings.
    Setting(
        ("agent_framework",), _CONTENTS, "off", "ENABLE_INSTRUMENTATION=true ENABLE_SENSITIVE_DATA=true",
        "Microsoft's Agent Framework records no contents by default.",
        only_with=("question",),
    ),
    # azure-ai-projects: telemetry AIAgentsInstrumentor, AIProjectInstrumentor; JavaScript: GenAITracingOptions.
    Setting(
        ("azure", "azure-ai-agents", "azure-ai-inference", "azure-ai-projects"), _CONTENTS, "off",
        f"{_CAPTURE}=true AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true",
        "Azure's SDKs record no contents by default; newer versions read the first variable, older the second.",
        only_with=("question",),
    ),
    # strands-agents: strands/telemetry/tracer.py writes every message with add_event, or on spans when told so.
    Setting(
        ("strands",), _CONTENTS, "lost",
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental,gen_ai_span_attributes_only",
        "Strands records contents as events of its spans, and what wrote these files left the events out: export them "
        "too, or have newer versions of Strands write the contents on the spans themselves.",
        only_with=("question",),
    ),
    # vercel/ai: packages/ai/src/telemetry/get-tracer.ts, telemetry-settings.ts.
    Setting(
        ("ai",), _CONTENTS, "hidden",
        "experimental_telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true }",
        "Vercel's AI SDK records contents unless recordInputs or recordOutputs is false.",
        only_with=("question",),
    ),
    # deepset-ai/haystack: haystack/tracing/tracer.py ProxyTracer, set_content_tag.
    Setting(
        ("haystack",), _CONTENTS, "off", "HAYSTACK_CONTENT_TRACING_ENABLED=true",
        "Haystack records no contents by default; set it before Haystack is imported.",
        only_with=("question",),
    ),
    # langfuse-python: langfuse/_client/observe.py, environment_variables.py, constants.py.
    Setting(
        ("langfuse-sdk",), _CONTENTS, "hidden", "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true",
        "Langfuse's @observe records contents unless this is false, or capture_input and capture_output are.",
        only_with=("question",),
    ),
)  # fmt: skip
"""The order counts: of several that add the same, the first holds."""


def check_setting(setting: Setting) -> None:
    """Refuse a setting that would never be shown, or not where it should be: ``ValueError`` that names its switch."""
    where = f"setting {setting.switch!r}:"
    require_known(f"{where} cause", [setting.cause], CAUSES)
    require_known(f"{where} a lack", (*setting.adds, *setting.only_with, *setting.unless), WORDS)


require_known("Lack, as listed in WORDS,", get_args(Lack), WORDS)
require_known("LackCause, as listed in CAUSES,", get_args(LackCause), CAUSES)
for _setting in SETTINGS:
    check_setting(_setting)

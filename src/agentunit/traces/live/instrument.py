"""Turn on the instrumentation of an agent framework, with contents, so that its runs are captured."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from agentunit.traces.live.capture import CaptureError, capture_every_case

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


class _Framework(NamedTuple):
    """How a framework is turned on, and what to install for it."""

    packages: str
    turn_on: Callable[[TracerProvider], None]


def instrument(*names: str) -> None:
    """Turn on the instrumentation of frameworks, and capture the spans of every call of an agent from now on.

    Names: langgraph (or langchain), openai-agents, pydantic-ai, crewai, autogen, ag2, llamaindex, smolagents,
    google-adk, strands, agno, agent-framework, haystack, openai and anthropic (their clients). Without a name
    nothing is turned on but the capture, for instrumentation of your own. Twice is as good as once.

    Spans go to the global TracerProvider: set your own before, or one is made. Nothing is sent anywhere. For that,
    CREWAI_DISABLE_TELEMETRY=true is set for CrewAI, unless you set it to something else (call this before you import
    crewai), HAYSTACK_TELEMETRY_ENABLED=false likewise, and the uploader of the OpenAI Agents SDK is taken out. For ADK
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY is set, unless you set it: without it ADK's spans hold
    no contents. For the same reason ENABLE_SENSITIVE_DATA=true is set for Microsoft Agent Framework and
    HAYSTACK_CONTENT_TRACING_ENABLED=true for Haystack (call this before you import haystack).
    """
    frameworks = {_known_name(name): None for name in names}
    provider = capture_every_case()
    for name in frameworks:
        if name in _turned_on:
            continue
        try:
            _FRAMEWORKS[name].turn_on(provider)
        except ImportError as error:
            raise CaptureError(
                f"instrument: {name} cannot be turned on ({error}). Try: pip install {_FRAMEWORKS[name].packages}"
            ) from error
        _turned_on.append(name)


_turned_on: list[str] = []


def _known_name(name: str) -> str:
    known = name.lower().replace("_", "-")
    known = _OTHER_NAMES.get(known, known)
    if known not in _FRAMEWORKS:
        raise ValueError(f"instrument: name must be one of {', '.join(_FRAMEWORKS)}; received {name!r}")
    return known


def _openinference(module: str, **options: Any) -> Callable[[TracerProvider], None]:
    """Turn on OpenInference's instrumentor in this module."""

    def turn_on(provider: TracerProvider) -> None:
        loaded = importlib.import_module(f"openinference.instrumentation.{module}")
        instrumentor = next(
            kind()
            for name, kind in vars(loaded).items()
            if name.endswith("Instrumentor") and name != "BaseInstrumentor"
        )
        if instrumentor.is_instrumented_by_opentelemetry:
            # The user did that, and may have had reasons for other settings.
            return
        instrumentor.instrument(tracer_provider=provider, **options)
        if not instrumentor.is_instrumented_by_opentelemetry:
            wanted = ", ".join(instrumentor.instrumentation_dependencies())
            raise CaptureError(f"instrument: the instrumentation of {module} asks for {wanted}; that is not installed")

    return turn_on


def _pydantic_ai(provider: TracerProvider) -> None:
    agents = importlib.import_module("pydantic_ai")
    settings = importlib.import_module("pydantic_ai.models.instrumented").InstrumentationSettings
    agents.Agent.instrument_all(settings(tracer_provider=provider))


def _crewai(provider: TracerProvider) -> None:
    os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
    # The other way of this instrumentation makes no spans of model calls.
    _openinference("crewai", use_event_listener=True)(provider)


def _google_adk(provider: TracerProvider) -> None:
    os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    importlib.import_module("google.adk")


def _strands(provider: TracerProvider) -> None:
    # It writes to the global provider without being asked, contents included.
    importlib.import_module("strands")


def _agent_framework(provider: TracerProvider) -> None:
    os.environ.setdefault("ENABLE_SENSITIVE_DATA", "true")
    importlib.import_module("agent_framework.observability").enable_instrumentation()


def _haystack(provider: TracerProvider) -> None:
    os.environ.setdefault("HAYSTACK_CONTENT_TRACING_ENABLED", "true")
    os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")
    tracer = importlib.import_module("haystack_integrations.tracing.opentelemetry").OpenTelemetryTracer
    importlib.import_module("haystack.tracing").enable_tracing(tracer(provider.get_tracer("haystack")))


def _ag2(provider: TracerProvider) -> None:
    try:
        importlib.import_module("ag2")
    except ImportError:
        _openinference("ag2")(provider)
        # OpenInference sees agents and tools of AG2 before 1.0, AG2 itself the calls of models.
        own = importlib.import_module("autogen.opentelemetry")
        own.instrument_llm_wrapper(tracer_provider=provider, capture_messages=True)
        return
    warnings.warn(
        "instrument: AG2 1.x cannot be turned on for all agents at once; give every agent "
        "middleware=[TelemetryMiddleware(agent_name=...)] from ag2.middleware, and its spans are captured",
        stacklevel=4,
    )


_FRAMEWORKS = {
    "langgraph": _Framework("langgraph openinference-instrumentation-langchain", _openinference("langchain")),
    "openai-agents": _Framework(
        "openai-agents openinference-instrumentation-openai-agents", _openinference("openai_agents")
    ),
    "pydantic-ai": _Framework("pydantic-ai-slim", _pydantic_ai),
    "crewai": _Framework("crewai openinference-instrumentation-crewai", _crewai),
    "autogen": _Framework(
        "autogen-agentchat openinference-instrumentation-autogen-agentchat", _openinference("autogen_agentchat")
    ),
    "ag2": _Framework('"ag2[openai]" openinference-instrumentation-ag2', _ag2),
    "llamaindex": _Framework(
        "llama-index-core openinference-instrumentation-llama-index", _openinference("llama_index")
    ),
    "smolagents": _Framework("smolagents openinference-instrumentation-smolagents", _openinference("smolagents")),
    "google-adk": _Framework("google-adk", _google_adk),
    "strands": _Framework('"strands-agents[openai]"', _strands),
    "agno": _Framework("agno openinference-instrumentation-agno", _openinference("agno")),
    "agent-framework": _Framework("agent-framework-core agent-framework-openai", _agent_framework),
    "haystack": _Framework("haystack-ai opentelemetry-haystack", _haystack),
    "openai": _Framework("openai openinference-instrumentation-openai", _openinference("openai")),
    "anthropic": _Framework("anthropic openinference-instrumentation-anthropic", _openinference("anthropic")),
}
_OTHER_NAMES = {"langchain": "langgraph", "llama-index": "llamaindex", "adk": "google-adk"}

"""CrewAI: a crew whose first agent delegates work to the second, traced by OpenInference.

The variant ``events`` uses OpenInference's event listener, which also makes spans of the model calls; ``native`` uses
the tracing that CrewAI 1.15 has of its own, without its exporters.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"
ANSWER = "Order A-1042 was charged twice. The refund needs a supervisor, so I opened one for you."
OBJECTIVE = "Find out why order A-1042 was charged twice, and pay one charge back."
REPORT = "Charges ch_1 and ch_2 are for the same lamp. ch_2 is locked: a supervisor must refund it."
DELEGATION = {"task": OBJECTIVE, "context": "One desk lamp, 42.50 EUR.", "coworker": "billing"}
MODEL = "gpt-4o-mini-2024-07-18"

REPLIES = [
    {"calls": [("lookup_order", {"order_id": "A-1042"})], "usage": (211, 19, 0)},
    {"calls": [("delegate_work_to_coworker", DELEGATION)], "usage": (263, 24, 128)},
    {"calls": [("list_charges", {"order_id": "A-1042"})], "usage": (147, 21, 0)},
    {"calls": [("refund", {"charge_id": "ch_2", "amount": 42.5})], "usage": (201, 27, 64)},
    {"text": REPORT, "usage": (259, 25, 192)},
    {"text": ANSWER, "usage": (337, 31, 256)},
]

EXPECTED: dict[str, Any] = {
    "question": QUESTION,
    "answer": ANSWER,
    "tool_calls": [
        {
            "name": "lookup_order",
            "arguments": {"order_id": "A-1042"},
            "status": "success",
            "result": "Order A-1042: one desk lamp, 42.50 EUR, paid.",
        },
        {
            "name": "list_charges",
            "arguments": {"order_id": "A-1042"},
            "status": "success",
            "result": "ch_1: 42.50 EUR; ch_2: 42.50 EUR",
        },
        {"name": "refund", "arguments": {"charge_id": "ch_2", "amount": 42.5}, "status": "error"},
    ],
    "agents": ["triage", "billing"],
    "handoffs": [["triage", "billing"]],
    "usage": {"prompt_tokens": 1418, "completion_tokens": 147, "cached_tokens": 640},
    "models": [MODEL],
    "documents": [],
    "handoff_tools": ["delegate_work_to_coworker"],
    "not_in_spans": {"": ["models"]},
}

_native_session: Any = contextlib.nullcontext


def keep_local() -> None:
    """Stop CrewAI from reporting to its makers; OTEL_SDK_DISABLED would do that too, but stops every span."""
    os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
    os.environ["CREWAI_TRACING_ENABLED"] = "false"
    os.environ["CREWAI_DISABLE_VERSION_CHECK"] = "true"


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Trace CrewAI with OpenInference, or with its own tracing."""
    global _native_session
    keep_local()
    if variant == "native":
        from crewai.telemetry.tracing import telemetry_session

        providers = SimpleNamespace(
            tracer_provider=tracer_provider,
            get_tracer=lambda name="crewai": tracer_provider.get_tracer(name),
            emit_log=lambda *_, **__: None,
            flush=lambda timeout_millis: tracer_provider.force_flush(timeout_millis),
            shutdown=lambda timeout_millis: None,
        )
        _native_session = lambda: telemetry_session("run-1", "support-desk", providers=providers)  # noqa: E731
        return
    from openinference.instrumentation.crewai import CrewAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=tracer_provider, use_event_listener=variant == "events")


def run(question: str) -> str:
    """Ask the crew, with a scripted model on the loopback address, and return its final answer."""
    keep_local()
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool
    from scripted_openai import ScriptedOpenAI

    @tool
    def lookup_order(order_id: str) -> str:
        """Look an order up."""
        return f"Order {order_id}: one desk lamp, 42.50 EUR, paid."

    @tool
    def list_charges(order_id: str) -> str:
        """List the charges of an order."""
        return "ch_1: 42.50 EUR; ch_2: 42.50 EUR"

    @tool
    def refund(charge_id: str, amount: float) -> str:
        """Pay a charge back."""
        raise PermissionError(f"charge {charge_id} is locked")

    with ScriptedOpenAI(REPLIES) as server, _native_session():
        # One LLM object for each agent: CrewAI counts the tokens of a shared one once for every agent.
        model = {"model": f"openai/{MODEL}", "api_key": "none", "base_url": server.base_url}
        triage = Agent(
            role="triage",
            goal="Answer the customer.",
            backstory="You answer the customer first.",
            tools=[lookup_order],
            llm=LLM(**model),
            allow_delegation=True,
        )
        billing = Agent(
            role="billing",
            goal="Explain charges.",
            backstory="You know charges and refunds.",
            tools=[list_charges, refund],
            llm=LLM(**model),
        )
        answer = Task(description="Answer: {question}", expected_output="A short answer.", agent=triage)
        crew = Crew(agents=[triage, billing], tasks=[answer])
        return str(crew.kickoff(inputs={"question": question}))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

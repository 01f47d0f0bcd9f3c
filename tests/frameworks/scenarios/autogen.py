"""AutoGen (autogen-agentchat): a swarm of two agents, with AutoGen's own spans or those of OpenInference.

AutoGen traces itself as soon as a global tracer provider is set. Variants: ``unrooted`` runs without the outer span
that holds AutoGen's messages together, ``openinference`` adds the spans of OpenInference, ``openinference_only``
keeps AutoGen's own spans out by leaving the global provider alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"
ANSWER = "Order A-1042 was charged twice. The refund needs a supervisor, so I opened one for you."
MODEL = "gpt-4o-mini-2024-07-18"

REPLIES = [
    {"calls": [("lookup_order", {"order_id": "A-1042"})], "usage": (211, 19, 0)},
    {"calls": [("transfer_to_billing", {})], "usage": (263, 12, 128)},
    {"calls": [("list_charges", {"order_id": "A-1042"})], "usage": (347, 21, 0)},
    {"calls": [("refund", {"charge_id": "ch_2", "amount": 42.5})], "usage": (401, 27, 256)},
    {"text": ANSWER, "usage": (459, 31, 384)},
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
    "usage": {"prompt_tokens": 1681, "completion_tokens": 110, "cached_tokens": 768},
    "models": [MODEL],
    "documents": [],
    "handoff_tools": ["transfer_to_billing"],
    "not_in_spans": {
        "": ["models", "cached_tokens"],
        "unrooted": ["models", "cached_tokens"],
        "openinference": ["cached_tokens"],
        "openinference_only": ["cached_tokens", "tool_error_status"],
    },
}

_outer_span: Any = contextlib.nullcontext


def lookup_order(order_id: str) -> str:
    """Look an order up."""
    return f"Order {order_id}: one desk lamp, 42.50 EUR, paid."


def list_charges(order_id: str) -> str:
    """List the charges of an order."""
    return "ch_1: 42.50 EUR; ch_2: 42.50 EUR"


def refund(charge_id: str, amount: float) -> str:
    """Pay a charge back."""
    raise PermissionError(f"charge {charge_id} is locked")


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Turn tracing on for the provider."""
    global _outer_span
    if variant != "openinference_only":
        from opentelemetry import trace

        trace.set_tracer_provider(tracer_provider)
    if variant.startswith("openinference"):
        from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

        AutogenAgentChatInstrumentor().instrument(tracer_provider=tracer_provider)
    elif variant != "unrooted":
        tracer = tracer_provider.get_tracer("support-desk")
        _outer_span = lambda: tracer.start_as_current_span("support-desk")  # noqa: E731


async def _ask(question: str, base_url: str) -> str:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import SourceMatchTermination
    from autogen_agentchat.teams import Swarm
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    model = OpenAIChatCompletionClient(model=MODEL, api_key="none", base_url=base_url)
    triage = AssistantAgent(
        "triage",
        model,
        description="Answers the customer first.",
        tools=[lookup_order],
        handoffs=["billing"],
        max_tool_iterations=5,
    )
    billing = AssistantAgent(
        "billing",
        model,
        description="Knows charges and refunds.",
        tools=[list_charges, refund],
        max_tool_iterations=5,
    )
    team = Swarm([triage, billing], termination_condition=SourceMatchTermination(["billing"]))
    result = await team.run(task=question)
    await model.close()
    return result.messages[-1].to_text()


def run(question: str) -> str:
    """Ask the swarm, with a scripted model on the loopback address, and return its final answer."""
    from scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI(REPLIES) as server, _outer_span():
        return asyncio.run(_ask(question, server.base_url))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

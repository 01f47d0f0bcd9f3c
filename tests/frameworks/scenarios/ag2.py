"""AG2 1.x: an agent that delegates to a second one, traced by AG2's own telemetry middleware."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"
ANSWER = "Order A-1042 was charged twice. The refund needs a supervisor, so I opened one for you."
OBJECTIVE = "Find out why order A-1042 was charged twice, and pay one charge back."
REPORT = "Charges ch_1 and ch_2 are for the same lamp. ch_2 is locked: a supervisor must refund it."
MODEL = "gpt-4o-mini-2024-07-18"

REPLIES = [
    {"calls": [("lookup_order", {"order_id": "A-1042"})], "usage": (211, 19, 0)},
    {"calls": [("task_billing", {"objective": OBJECTIVE})], "usage": (263, 24, 128)},
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
    "handoff_tools": ["task_billing"],
    "not_in_spans": {},
}

_tracer_provider: Any = None


def lookup_order(order_id: str) -> str:
    """Look an order up."""
    return f"Order {order_id}: one desk lamp, 42.50 EUR, paid."


def list_charges(order_id: str) -> str:
    """List the charges of an order."""
    return "ch_1: 42.50 EUR; ch_2: 42.50 EUR"


def refund(charge_id: str, amount: float) -> str:
    """Pay a charge back."""
    raise PermissionError(f"charge {charge_id} is locked")


def instrument(tracer_provider: Any) -> None:
    """Keep the provider: AG2 takes it as an argument of the middleware that every agent is given."""
    global _tracer_provider
    _tracer_provider = tracer_provider


async def _ask(question: str, base_url: str) -> str:
    from ag2 import Agent
    from ag2.config import OpenAIConfig
    from ag2.middleware import TelemetryMiddleware
    from ag2.tools import tool
    from ag2.tools.subagents import subagent_tool

    config = OpenAIConfig(model=MODEL, api_key="none", base_url=base_url)

    def agent(name: str, prompt: str, *tools: Any) -> Agent:
        telemetry = TelemetryMiddleware(tracer_provider=_tracer_provider, agent_name=name)
        return Agent(name, prompt, config=config, tools=tools, middleware=[telemetry])

    billing = agent("billing", "You know charges and refunds.", tool(list_charges), tool(refund))
    delegation = subagent_tool(billing, description="Hands a billing question to the billing agent.")
    triage = agent("triage", "You answer the customer first.", tool(lookup_order), delegation)
    reply = await triage.ask(question)
    return str(reply.body)


def run(question: str) -> str:
    """Ask the first agent, with a scripted model on the loopback address, and return its final answer."""
    from scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI(REPLIES) as server:
        return asyncio.run(_ask(question, server.base_url))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

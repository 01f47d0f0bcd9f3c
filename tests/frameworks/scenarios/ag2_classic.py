"""AG2 before 1.0 (imported as autogen): a group chat with a handoff, traced by AG2 itself or by OpenInference.

The variant ``openinference`` needs ``openinference-instrumentation-ag2``, which does not know AG2 1.x.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"
ANSWER = "Order A-1042 was charged twice. The refund needs a supervisor, so I opened one for you."
MODEL = "gpt-4o-mini-2024-07-18"

REPLIES = [
    {"calls": [("lookup_order", {"order_id": "A-1042"})], "usage": (211, 19, 0)},
    {"calls": [("transfer_to_billing", {"reason": "A double charge."})], "usage": (263, 12, 128)},
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
    "not_in_spans": {"": ["cached_tokens"], "openinference": ["models", "usage", "cached_tokens"]},
}

_native_tracer_provider: Any = None


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
    """Turn OpenInference on, or keep the provider for AG2's own instrumentation, which wraps the objects of a run."""
    global _native_tracer_provider
    if variant == "openinference":
        from openinference.instrumentation.ag2 import AG2Instrumentor

        AG2Instrumentor().instrument(tracer_provider=tracer_provider)
    else:
        _native_tracer_provider = tracer_provider


def run(question: str) -> str:
    """Ask the group, with a scripted model on the loopback address, and return its final answer."""
    from autogen import ConversableAgent, LLMConfig
    from autogen.agentchat import initiate_group_chat
    from autogen.agentchat.group import AgentTarget, ReplyResult, TerminateTarget
    from autogen.agentchat.group.patterns import DefaultPattern
    from scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI(REPLIES) as server:
        config = LLMConfig({"model": MODEL, "api_key": "none", "base_url": server.base_url}, cache_seed=None)
        billing = ConversableAgent(
            "billing", "You know charges and refunds.", llm_config=config, functions=[list_charges, refund]
        )

        def transfer_to_billing(reason: str) -> Any:
            """Hand the customer to the billing agent."""
            return ReplyResult(message=f"Transferred: {reason}", target=AgentTarget(billing))

        triage = ConversableAgent(
            "triage",
            "You answer the customer first.",
            llm_config=config,
            functions=[lookup_order, transfer_to_billing],
        )
        billing.handoffs.set_after_work(TerminateTarget())
        pattern = DefaultPattern(initial_agent=triage, agents=[triage, billing], group_after_work=TerminateTarget())
        if _native_tracer_provider is not None:
            from autogen.opentelemetry import instrument_llm_wrapper, instrument_pattern

            instrument_llm_wrapper(tracer_provider=_native_tracer_provider, capture_messages=True)
            instrument_pattern(pattern, tracer_provider=_native_tracer_provider)
        result, _, _ = initiate_group_chat(pattern=pattern, messages=question, max_rounds=12)
        return str(result.chat_history[-1]["content"])


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

"""Microsoft Agent Framework: triage lets billing settle the task as a tool, with the framework's own spans.

Variants: ``nocontent`` (its default, which records no contents), ``v1_36`` (the conventions of OpenTelemetry 1.36).
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import support_desk as desk

EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Set the global provider, where the framework writes, and have it record contents."""
    from opentelemetry import trace

    if variant == "v1_36":
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = ""
    if variant != "nocontent":
        os.environ["ENABLE_SENSITIVE_DATA"] = "true"
    trace.set_tracer_provider(tracer_provider)


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI(desk.TWO_AGENTS) as server:
        return asyncio.run(_ask(question, server.base_url))


async def _ask(question: str, base_url: str) -> str:
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model=desk.MODEL, api_key="none", base_url=base_url)
    billing = Agent(
        client,
        name="billing",
        instructions="Settle questions about money.",
        tools=[desk.find_invoice, desk.refund_payment],
    )
    transfer = billing.as_tool(name="transfer_to_billing", description="Let the billing agent settle a task.")
    triage = Agent(
        client,
        name="triage",
        instructions="Send the customer to the right desk.",
        tools=[desk.search_policy, transfer],
    )
    return (await triage.run(question)).text

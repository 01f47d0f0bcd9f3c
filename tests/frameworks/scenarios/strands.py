"""Strands: triage lets billing settle the task as a tool, with Strands' own spans.

Without a variant all settings are Strands' defaults: contents stand in span events. ``latest`` asks for the newer
conventions, ``attributes`` for contents on the spans as well.
"""

from __future__ import annotations

import os
from typing import Any

import support_desk as desk

EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])
_OPT_IN = {
    "latest": "gen_ai_latest_experimental",
    "attributes": "gen_ai_latest_experimental,gen_ai_span_attributes_only",
}


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Set the global provider: Strands writes its spans there."""
    from opentelemetry import trace

    if variant:
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = _OPT_IN[variant]
    trace.set_tracer_provider(tracer_provider)


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from scripted_openai import ScriptedOpenAI
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    with ScriptedOpenAI(desk.TWO_AGENTS) as server:
        model = OpenAIModel(client_args={"api_key": "none", "base_url": server.base_url}, model_id=desk.MODEL)
        billing = Agent(
            name="billing",
            model=model,
            system_prompt="Settle questions about money.",
            tools=[tool(desk.find_invoice), tool(desk.refund_payment)],
            callback_handler=None,
        )

        @tool
        def transfer_to_billing(task: str) -> str:
            """Let the billing agent settle a task."""
            return str(billing(task)).strip()

        triage = Agent(
            name="triage",
            model=model,
            system_prompt="Send the customer to the right desk.",
            tools=[tool(desk.search_policy), transfer_to_billing],
            callback_handler=None,
        )
        return str(triage(question)).strip()

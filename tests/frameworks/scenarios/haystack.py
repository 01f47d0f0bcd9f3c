"""Haystack: two agents, each in a pipeline, the second a tool of the first; Haystack's own tracer makes the spans.

Without contents, which are off by default, its spans tell next to nothing. Variant: ``openinference``.
"""

from __future__ import annotations

import os
from typing import Any

import support_desk as desk

EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Turn OpenInference's instrumentation on, or Haystack's own tracer with contents."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"
    if variant == "openinference":
        from openinference.instrumentation.haystack import HaystackInstrumentor

        HaystackInstrumentor().instrument(tracer_provider=tracer_provider)
        return
    os.environ["HAYSTACK_CONTENT_TRACING_ENABLED"] = "true"
    from haystack import tracing
    from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

    tracing.enable_tracing(OpenTelemetryTracer(tracer_provider.get_tracer("haystack")))


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"
    from haystack import Pipeline
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret
    from scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI(desk.TWO_AGENTS) as server:

        def ask(name: str, system_prompt: str, tools: list[Any], question: str) -> str:
            key = Secret.from_token("none")
            model = OpenAIChatGenerator(model=desk.MODEL, api_key=key, api_base_url=server.base_url)
            made = [create_tool_from_function(tool) for tool in tools]
            pipeline = Pipeline()
            pipeline.add_component(name, Agent(chat_generator=model, system_prompt=system_prompt, tools=made))
            return str(pipeline.run({name: {"messages": [ChatMessage.from_user(question)]}})[name]["last_message"].text)

        def transfer_to_billing(task: str) -> str:
            """Let the billing agent settle a task."""
            return ask("billing", "Settle questions about money.", [desk.find_invoice, desk.refund_payment], task)

        return ask(
            "triage", "Send the customer to the right desk.", [desk.search_policy, transfer_to_billing], question
        )

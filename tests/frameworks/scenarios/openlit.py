"""OpenLIT: the OpenAI Agents SDK and the OpenAI client below it, both instrumented by OpenLIT; billing is a tool."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import support_desk as desk

EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])
for _call in EXPECTED["tool_calls"]:
    _call.pop("error", None)  # the span says only that the tool failed


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Turn OpenLIT on, which uses the global provider; its list of prices would come from the network."""
    from opentelemetry import trace

    trace.set_tracer_provider(tracer_provider)
    import openlit

    prices = Path(tempfile.mkdtemp()) / "prices.json"
    prices.write_text(json.dumps({"chat": {desk.MODEL: {"promptPrice": 0.00015, "completionPrice": 0.0006}}}))
    openlit.init(application_name="support-desk", disable_metrics=True, disable_events=True, pricing_json=str(prices))


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI
    from scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI(desk.TWO_AGENTS) as server:
        client = AsyncOpenAI(api_key="none", base_url=server.base_url)
        model = OpenAIChatCompletionsModel(desk.MODEL, client)
        billing = Agent(
            name="billing",
            instructions="Settle questions about money.",
            model=model,
            tools=[function_tool(desk.find_invoice), function_tool(desk.refund_payment)],
        )

        async def transfer_to_billing(task: str) -> str:
            """Let the billing agent settle a task."""
            return str((await Runner.run(billing, task)).final_output)

        triage = Agent(
            name="triage",
            instructions="Send the customer to the right desk.",
            model=model,
            tools=[function_tool(desk.search_policy), function_tool(transfer_to_billing)],
        )
        return str(Runner.run_sync(triage, question).final_output)

"""Logfire, sending nothing: PydanticAI's agents as Logfire instruments them.

Variant ``both`` instruments the OpenAI client below them as well, so that each call of a model has two spans.
"""

from __future__ import annotations

from typing import Any

import support_desk as desk

EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Configure Logfire, which has a provider of its own, to pass its spans to this one's processors."""
    import logfire

    logfire.configure(
        send_to_logfire=False,
        console=False,
        service_name="support-desk",
        scrubbing=False,
        additional_span_processors=[tracer_provider._active_span_processor],
    )
    logfire.instrument_pydantic_ai()
    if variant == "both":
        logfire.instrument_openai()


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI(desk.TWO_AGENTS) as server:
        model = OpenAIChatModel(desk.MODEL, provider=OpenAIProvider(api_key="none", base_url=server.base_url))
        billing = Agent(model, name="billing", instructions="Settle questions about money.")
        triage = Agent(model, name="triage", instructions="Send the customer to the right desk.")
        triage.tool_plain(desk.search_policy)
        billing.tool_plain(desk.find_invoice)

        @triage.tool_plain
        async def transfer_to_billing(task: str) -> str:
            """Let the billing agent settle a task."""
            return (await billing.run(task)).output

        @billing.tool_plain
        def refund_payment(invoice: str, amount: float) -> str:
            """Refund an invoice."""
            try:
                return desk.refund_payment(invoice, amount)
            except ValueError as error:
                raise ModelRetry(str(error)) from error

        return triage.run_sync(question).output

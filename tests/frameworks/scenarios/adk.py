"""Google ADK: `triage` transfers to its sub-agent `billing`; traced by ADK's own OpenTelemetry spans.

Without a variant the spans carry the messages, which ADK has to be told. The variants: `nocontent` is ADK's default,
without messages; `schema1` is the older span format, as ADK wrote it before 2.13; `openinference` is OpenInference in
its place, recorded with ADK 2.11 because with ADK 2.13 it makes no model spans; `mixed` is both at once with ADK 2.13.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

QUESTION = "Why was ada@example.com charged twice in May?"
ANSWER = "Invoice INV-1042 was billed twice; 42.50 EUR will be refunded."
MODEL = "gemini-2.5-flash"

EXPECTED: dict[str, Any] = {
    "question": QUESTION,
    "answer": ANSWER,
    "tool_calls": [
        {
            "name": "find_account",
            "arguments": {"email": "ada@example.com"},
            "status": "success",
            "result": {"account": "AC-7", "plan": "team"},
        },
        {"name": "get_invoice", "arguments": {"invoice_id": "INV-1024"}, "status": "error"},
        {
            "name": "get_invoice",
            "arguments": {"invoice_id": "INV-1042"},
            "status": "success",
            "result": {"invoice": "INV-1042", "amount": 42.5, "charges": 2},
        },
    ],
    "agents": ["triage", "billing"],
    "handoffs": [["triage", "billing"]],
    "usage": {"prompt_tokens": 1572, "completion_tokens": 150, "cached_tokens": 560},
    "models": [MODEL],
    "documents": [],
}

# One row for each model call: a tool and its arguments, or the answer; then prompt, cached, candidate, thought tokens.
MODEL_CALLS: list[tuple[Any, int, int, int, int]] = [
    (("find_account", {"email": "ada@example.com"}), 207, 0, 18, 0),
    (("transfer_to_agent", {"agent_name": "billing"}), 259, 64, 11, 0),
    (("get_invoice", {"invoice_id": "INV-1024"}), 318, 112, 16, 9),
    (("get_invoice", {"invoice_id": "INV-1042"}), 371, 176, 17, 12),
    (ANSWER, 417, 208, 44, 23),
]
ENVIRONMENT = {
    "": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"},
    "schema1": {"ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN": "1"},
}


def find_account(email: str) -> dict:
    """Find the account that an e-mail address belongs to."""
    return {"account": "AC-7", "plan": "team"}


def get_invoice(invoice_id: str) -> dict:
    """Look up one invoice."""
    if invoice_id != "INV-1042":
        raise LookupError(f"no invoice {invoice_id}")
    return {"invoice": invoice_id, "amount": 42.5, "charges": 2}


def tell_the_model(tool: Any, args: dict, tool_context: Any, error: Exception) -> dict:
    """Answer for a tool that raised; without such a callback the exception ends the run."""
    return {"error": str(error)}


def scripted_model() -> Any:
    """A model that plays back ``MODEL_CALLS``."""
    from google.adk.models import BaseLlm, LlmResponse
    from google.genai import types

    script = iter(MODEL_CALLS)

    class ScriptedModel(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            said, prompt, cached, candidates, thoughts = next(script)
            call = types.FunctionCall(id=f"call_{prompt}", name=said[0], args=said[1]) if said != ANSWER else None
            part = types.Part(function_call=call) if call else types.Part(text=said)
            usage = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=prompt,
                cached_content_token_count=cached,
                candidates_token_count=candidates,
                thoughts_token_count=thoughts or None,
                total_token_count=prompt + candidates + thoughts,
            )
            yield LlmResponse(
                content=types.Content(role="model", parts=[part]),
                usage_metadata=usage,
                finish_reason=types.FinishReason.STOP,
                model_version=MODEL,
            )

    return ScriptedModel(model=MODEL)


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Have ADK write its spans to this provider; ADK itself takes the global one."""
    os.environ.update(ENVIRONMENT.get(variant, {}))
    if variant != "openinference":
        from opentelemetry import trace

        trace.set_tracer_provider(tracer_provider)
    if variant in ("openinference", "mixed"):
        from openinference.instrumentation.google_adk import GoogleADKInstrumentor

        GoogleADKInstrumentor().instrument(tracer_provider=tracer_provider)


def run(question: str) -> str:
    """Ask `triage`, which transfers to `billing`."""
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    model = scripted_model()
    billing = LlmAgent(
        name="billing",
        description="Answers questions about invoices.",
        instruction="You answer questions about invoices.",
        model=model,
        tools=[get_invoice],
        on_tool_error_callback=tell_the_model,
    )
    triage = LlmAgent(
        name="triage",
        description="Finds the account.",
        instruction="You find the account, then transfer to the agent who can help.",
        model=model,
        tools=[find_account],
        sub_agents=[billing],
    )

    async def ask() -> str:
        runner = InMemoryRunner(agent=triage, app_name="support_desk")
        session = await runner.session_service.create_session(
            app_name="support_desk", user_id="ada", session_id="session-1"
        )
        message = types.Content(role="user", parts=[types.Part(text=question)])
        answer = ""
        async for event in runner.run_async(user_id="ada", session_id=session.id, new_message=message):
            if event.is_final_response() and event.content and event.content.parts:
                answer = event.content.parts[0].text or answer
        return answer

    return asyncio.run(ask())


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

"""smolagents: a manager, `triage`, that calls its managed agent `billing`; traced by OpenInference.

The variant `code` has the agents write Python, as a CodeAgent does, instead of calling tools by JSON; the variant
`genai` has OpenInference add the OpenTelemetry GenAI attributes to its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

QUESTION = "Why was ada@example.com charged twice in May?"
ANSWER = "Invoice INV-1042 was billed twice; 42.50 EUR will be refunded."
MODEL = "gpt-4o-mini"
TASK = "Find the double charge of account AC-7 in May."
REPORT = "INV-1042 was billed twice, 42.50 EUR each time."

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
        {"name": "get_invoice", "arguments": {"invoice_id": "INV-1024", "currency": "EUR"}, "status": "error"},
        {
            "name": "get_invoice",
            "arguments": {"invoice_id": "INV-1042", "currency": "EUR"},
            "status": "success",
            "result": {"invoice": "INV-1042", "amount": 42.5, "charges": 2},
        },
    ],
    "agents": ["triage", "billing"],
    "handoffs": [["triage", "billing"]],
    "usage": {"prompt_tokens": 2178, "completion_tokens": 166, "cached_tokens": 0},
    "models": [MODEL],
    "documents": [],
}


def find_account(email: str) -> dict:
    """Find the account that an e-mail address belongs to.

    Args:
        email: The e-mail address of the customer.
    """
    return {"account": "AC-7", "plan": "team"}


def get_invoice(invoice_id: str, currency: str) -> dict:
    """Look up one invoice.

    Args:
        invoice_id: The number of the invoice.
        currency: The currency to report in.
    """
    if invoice_id != "INV-1042":
        raise LookupError(f"no invoice {invoice_id}")
    return {"invoice": invoice_id, "amount": 42.5, "charges": 2}


# One row for each model call: what the model says (a tool and its arguments, or code), prompt and completion tokens.
TRIAGE_CALLS = [
    (("find_account", {"email": "ada@example.com"}), 311, 23),
    (("billing", {"task": TASK}), 402, 31),
    (("final_answer", {"answer": ANSWER}), 455, 29),
]
BILLING_CALLS = [
    (("get_invoice", {"invoice_id": "INV-1024", "currency": "EUR"}), 287, 26),
    (("get_invoice", {"invoice_id": "INV-1042", "currency": "EUR"}), 343, 27),
    (("final_answer", {"answer": REPORT}), 380, 30),
]
TRIAGE_CODE = [
    ("print(find_account('ada@example.com'))", 311, 23),
    (f"print(billing({TASK!r}))", 402, 31),
    (f"final_answer({ANSWER!r})", 455, 29),
]
BILLING_CODE = [
    ("print(get_invoice('INV-1024', currency='EUR'))", 287, 26),
    ("print(get_invoice(invoice_id='INV-1042', currency='EUR'))", 343, 27),
    (f"final_answer({REPORT!r})", 380, 30),
]


AGENTS_WRITE_CODE = False


def scripted_model(calls: list[tuple[Any, int, int]]) -> Any:
    """The framework's own OpenAI model, with a client that plays back ``calls`` instead of asking a server."""
    from openai.types.chat import ChatCompletion
    from smolagents import OpenAIModel

    script = iter(calls)

    def create(**request: Any) -> ChatCompletion:
        said, prompt_tokens, completion_tokens = next(script)
        message: dict[str, Any] = {"role": "assistant", "content": f"Thought: next step.\n<code>\n{said}\n</code>"}
        if isinstance(said, tuple):
            function = {"name": said[0], "arguments": json.dumps(said[1])}
            call = {"id": f"call_{prompt_tokens}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        return ChatCompletion.model_validate(
            {
                "id": f"chatcmpl-{prompt_tokens}",
                "object": "chat.completion",
                "created": 0,
                "model": MODEL,
                "choices": [{"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}],
                "usage": usage | {"total_tokens": prompt_tokens + completion_tokens},
            }
        )

    model = OpenAIModel(MODEL, api_key="unused")
    model.client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    return model


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Trace smolagents with OpenInference."""
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor

    global AGENTS_WRITE_CODE
    AGENTS_WRITE_CODE = variant == "code"
    config = TraceConfig(enable_genai_semconv=variant == "genai")
    SmolagentsInstrumentor().instrument(tracer_provider=tracer_provider, config=config)


def run(question: str) -> str:
    """Ask `triage`, which asks `billing`."""
    from smolagents import CodeAgent, LogLevel, ToolCallingAgent, tool

    kind = CodeAgent if AGENTS_WRITE_CODE else ToolCallingAgent
    billing = kind(
        [tool(get_invoice)],
        scripted_model(BILLING_CODE if AGENTS_WRITE_CODE else BILLING_CALLS),
        name="billing",
        description="Answers questions about invoices.",
        verbosity_level=LogLevel.OFF,
    )
    triage = kind(
        [tool(find_account)],
        scripted_model(TRIAGE_CODE if AGENTS_WRITE_CODE else TRIAGE_CALLS),
        name="triage",
        managed_agents=[billing],
        verbosity_level=LogLevel.OFF,
    )
    billing.prompt_templates["managed_agent"]["task"] = "You are {{name}}. Your manager asks:\n{{task}}"
    billing.prompt_templates["system_prompt"] = "You answer questions about invoices."
    triage.prompt_templates["system_prompt"] = "You find the account, then ask the team member who can help."
    return str(triage.run(question))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

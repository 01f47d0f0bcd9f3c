"""OpenAI Agents SDK: a triage agent reads the policy, hands over to billing, and billing gets past a failing tool.

The SDK's own models run against an OpenAI client whose transport answers from a script, so nothing leaves the process.
"""

import json
import sys
from pathlib import Path
from typing import Any

QUESTION = "I was charged twice for order A-1042. Can I have my money back?"
ANSWER = "Invoice INV-77 was refunded: 49.90 EUR will be back on your card within 14 days."
POLICY = "Double charges are refunded in full within 14 days."
MODELS = {"triage": "gpt-4.1-mini", "billing": "gpt-4.1"}
TOO_MUCH = {"invoice": "INV-77", "amount": 499.0}
IN_FULL = {"invoice": "INV-77", "amount": 49.9}
INVOICE = {"invoice": "INV-77", "total": 49.9}
# The model's turns: tool calls or the answer; tokens in, of these cached, tokens out, of these reasoning.
SCRIPT: list[tuple[Any, int, int, int, int]] = [
    ([("search_policy", {"query": "double charge"})], 211, 0, 17, 0),
    ([("transfer_to_billing", {})], 287, 192, 12, 0),
    ([("find_invoice", {"order_id": "A-1042"}), ("refund_payment", TOO_MUCH)], 334, 0, 63, 20),
    ([("refund_payment", IN_FULL)], 431, 320, 47, 16),
    (ANSWER, 523, 448, 31, 0),
]
EXPECTED: dict[str, Any] = {
    "question": QUESTION,
    "answer": ANSWER,
    "tool_calls": [
        {"name": "search_policy", "arguments": {"query": "double charge"}, "status": "success", "result": POLICY},
        {"name": "find_invoice", "arguments": {"order_id": "A-1042"}, "status": "success", "result": INVOICE},
        {"name": "refund_payment", "arguments": TOO_MUCH, "status": "error"},  # the SDK hides the exception's text
        {"name": "refund_payment", "arguments": IN_FULL, "status": "success", "result": "refunded 49.9 EUR"},
    ],
    "agents": ["triage", "billing"],
    "handoffs": [["triage", "billing"]],
    "usage": {
        "prompt_tokens": sum(turn[1] for turn in SCRIPT),
        "cached_tokens": sum(turn[2] for turn in SCRIPT),
        "completion_tokens": sum(turn[3] for turn in SCRIPT),
    },
    "models": list(MODELS.values()),
    "documents": [],
}
_settings = {"chat": False}


def instrument(tracer_provider: Any, variant: str = "responses") -> None:
    """Send the SDK's own tracing to the provider.

    Variants: ``responses`` and ``chat`` (OpenInference; which OpenAI API the models call), ``hidden`` (OpenInference
    without content), ``traceloop`` and ``traceloop_chat`` (OpenLLMetry).
    """
    _settings["chat"] = variant.endswith("chat")
    if variant.startswith("traceloop"):
        from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

        OpenAIAgentsInstrumentor(replace_existing_processors=True).instrument(tracer_provider=tracer_provider)
        return
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    hidden = variant == "hidden"
    config = TraceConfig(hide_inputs=hidden, hide_outputs=hidden)
    OpenAIAgentsInstrumentor().instrument(tracer_provider=tracer_provider, config=config)


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from agents import Agent, RunConfig, Runner, function_tool

    @function_tool
    def search_policy(query: str) -> str:
        """Find a passage of the refund policy."""
        return POLICY

    @function_tool
    def find_invoice(order_id: str) -> dict[str, Any]:
        """Find the invoice of an order."""
        return INVOICE

    @function_tool
    def refund_payment(invoice: str, amount: float) -> str:
        """Refund an invoice."""
        if amount > 49.9:
            raise ValueError(f"{amount} is more than the invoice total 49.9")
        return f"refunded {amount} EUR"

    models = _models()
    billing = Agent(
        name="billing",
        instructions="Settle questions about money.",
        model=models["billing"],
        tools=[find_invoice, refund_payment],
    )
    triage = Agent(
        name="triage",
        instructions="Send the customer to the right desk.",
        model=models["triage"],
        tools=[search_policy],
        handoffs=[billing],
    )
    config = RunConfig(workflow_name="support_desk")
    return str(Runner.run_sync(triage, question, run_config=config).final_output)


def _models() -> dict[str, Any]:
    from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel
    from openai import AsyncOpenAI

    try:
        import httpx2 as httpx  # what the OpenAI client is built on since version 3
    except ImportError:
        import httpx

    turns = iter(enumerate(SCRIPT))

    def answer(request: httpx.Request) -> httpx.Response:
        body = _chat_body if _settings["chat"] else _responses_body
        return httpx.Response(200, json=body(json.loads(request.content), *next(turns)))

    client = AsyncOpenAI(
        api_key="none",
        base_url="http://scripted.invalid/v1",
        http_client=httpx.AsyncClient(transport=httpx.MockTransport(answer)),
    )
    kind = OpenAIChatCompletionsModel if _settings["chat"] else OpenAIResponsesModel
    return {agent: kind(model=name, openai_client=client) for agent, name in MODELS.items()}


def _responses_body(request: dict[str, Any], at: int, turn: tuple[Any, int, int, int, int]) -> dict[str, Any]:
    says, tokens_in, cached, tokens_out, reasoning = turn
    if isinstance(says, str):
        text = {"type": "output_text", "text": says, "annotations": []}
        output = [{"type": "message", "id": f"msg_{at}", "role": "assistant", "status": "completed", "content": [text]}]
    else:
        output = [
            {
                "type": "function_call",
                "id": f"fc_{at}_{name}",
                "call_id": f"call_{at}_{name}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            for name, arguments in says
        ]
    return {
        "id": f"resp_{at}",
        "object": "response",
        "created_at": 1760000000,
        "model": request["model"],
        "instructions": request["instructions"],
        "status": "completed",
        "output": output,
        "tools": request["tools"],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "usage": {
            "input_tokens": tokens_in,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": tokens_out,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": tokens_in + tokens_out,
        },
    }


def _chat_body(request: dict[str, Any], at: int, turn: tuple[Any, int, int, int, int]) -> dict[str, Any]:
    says, tokens_in, cached, tokens_out, reasoning = turn
    message: dict[str, Any] = {"role": "assistant", "content": says if isinstance(says, str) else None}
    if not isinstance(says, str):
        message["tool_calls"] = [
            {
                "id": f"call_{at}_{name}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for name, arguments in says
        ]
    return {
        "id": f"chatcmpl_{at}",
        "object": "chat.completion",
        "created": 1760000000,
        "model": request["model"],
        "choices": [
            {"index": 0, "message": message, "finish_reason": "stop" if isinstance(says, str) else "tool_calls"}
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens": tokens_out,
            "completion_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": tokens_in + tokens_out,
        },
    }


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

"""PydanticAI: a triage agent reads the policy and delegates to billing, which retries a refused refund."""

import sys
from pathlib import Path
from typing import Any

QUESTION = "I was charged twice for order A-1042. Can I have my money back?"
SETTLED = "INV-77 refunded, 49.90 EUR."
ANSWER = "Invoice INV-77 was refunded: 49.90 EUR will be back on your card within 14 days."
POLICY = "Double charges are refunded in full within 14 days."
TASK = {"task": "Refund the double charge of order A-1042."}
TOO_MUCH = {"invoice": "INV-77", "amount": 499.0}
IN_FULL = {"invoice": "INV-77", "amount": 49.9}
INVOICE = {"invoice": "INV-77", "total": 49.9}
MODELS = {"triage": "scripted-small", "billing": "scripted-large"}
# What each agent's model says, turn by turn: tool calls or the answer; tokens in, of these cached, tokens out.
SCRIPT: dict[str, list[tuple[Any, int, int, int]]] = {
    "triage": [
        ([("search_policy", {"query": "double charge"})], 211, 0, 17),
        ([("transfer_to_billing", TASK)], 287, 192, 12),
        (ANSWER, 352, 256, 31),
    ],
    "billing": [
        ([("find_invoice", {"order_id": "A-1042"}), ("refund_payment", TOO_MUCH)], 134, 0, 63),
        ([("refund_payment", IN_FULL)], 231, 128, 47),
        (SETTLED, 283, 224, 15),
    ],
}
EXPECTED: dict[str, Any] = {
    "question": QUESTION,
    "answer": ANSWER,
    "tool_calls": [
        {"name": "search_policy", "arguments": {"query": "double charge"}, "status": "success", "result": POLICY},
        {
            "name": "transfer_to_billing",
            "arguments": TASK,
            "status": "success",
            "result": SETTLED,
            "handoff": True,
        },
        {"name": "find_invoice", "arguments": {"order_id": "A-1042"}, "status": "success", "result": INVOICE},
        {
            "name": "refund_payment",
            "arguments": TOO_MUCH,
            "status": "error",
            "error": "499.0 is more than the invoice total 49.9",
        },
        {"name": "refund_payment", "arguments": IN_FULL, "status": "success", "result": "refunded 49.9 EUR"},
    ],
    "agents": ["triage", "billing"],
    "handoffs": [["triage", "billing"]],
    "usage": {
        "prompt_tokens": sum(turn[1] for turns in SCRIPT.values() for turn in turns),
        "cached_tokens": sum(turn[2] for turns in SCRIPT.values() for turn in turns),
        "completion_tokens": sum(turn[3] for turns in SCRIPT.values() for turn in turns),
    },
    "models": list(MODELS.values()),
    "documents": [],
}


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Turn PydanticAI's own instrumentation on for every agent.

    Variants: ``v1`` (events; PydanticAI before 2), ``v2`` to ``v6`` (the format of that version), ``plain_usage``
    (totals under the same names as the parts), ``hidden`` (without content), ``openinference`` (its processor's names
    added).
    """
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings

    options: dict[str, Any] = {}
    if variant[:1] == "v" and variant[1:].isdigit():
        options["version"] = int(variant[1:])
    if variant == "v1":
        options["event_mode"] = "attributes"
    if variant == "plain_usage":
        options["use_aggregated_usage_attribute_names"] = False
    if variant == "hidden":
        options["include_content"] = False
    if variant == "openinference":
        from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor

        tracer_provider.add_span_processor(OpenInferenceSpanProcessor())
    Agent.instrument_all(InstrumentationSettings(tracer_provider=tracer_provider, **options))


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from pydantic_ai import Agent, ModelRetry, RunContext

    billing = Agent(_model("billing"), name="billing", instructions="Settle questions about money.")
    triage = Agent(_model("triage"), name="triage", instructions="Send the customer to the right desk.")

    @triage.tool_plain
    def search_policy(query: str) -> str:
        """Find a passage of the refund policy."""
        return POLICY

    @triage.tool
    async def transfer_to_billing(ctx: RunContext[None], task: str) -> str:
        """Let the billing agent settle a task."""
        return (await billing.run(task, usage=ctx.usage)).output

    @billing.tool_plain(sequential=True)
    def find_invoice(order_id: str) -> dict[str, Any]:
        """Find the invoice of an order."""
        return INVOICE

    @billing.tool_plain(sequential=True)
    def refund_payment(invoice: str, amount: float) -> str:
        """Refund an invoice."""
        if amount > 49.9:
            raise ModelRetry(f"{amount} is more than the invoice total 49.9")
        return f"refunded {amount} EUR"

    return triage.run_sync(question).output


def _model(agent: str) -> Any:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.usage import RequestUsage

    turns = iter(enumerate(SCRIPT[agent]))

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        at, (says, tokens_in, cached, tokens_out) = next(turns)
        parts: list[Any] = (
            [TextPart(says)]
            if isinstance(says, str)
            else [ToolCallPart(name, arguments, f"call_{agent}_{at}_{name}") for name, arguments in says]
        )
        usage = RequestUsage(input_tokens=tokens_in, cache_read_tokens=cached, output_tokens=tokens_out)
        return ModelResponse(parts, usage=usage, model_name=MODELS[agent])

    return FunctionModel(answer, model_name=MODELS[agent])


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

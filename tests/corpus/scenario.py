"""The run that the makers of the corpus let each tool record, and a scripted model for it.

Somebody asks about an order; the agent ``support`` looks it up, which works, asks for a refund, which fails, and
answers. The model is told to state these tokens, by call (prompt, completion, of the prompt cached, of the completion
reasoning): 211, 17, 0, 0; 287, 63, 192, 24; 352, 31, 256, 8. In all: 850 in, 111 out, 448 cached, 32 reasoning.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

AGENT = "support"
QUESTION = "Why was I charged twice for order A-1042?"
ANSWER = "Order A-1042 was charged twice. The refund needs a supervisor, so I opened a ticket for you."
CHARGES = "Order A-1042: ch_1 42.50 EUR; ch_2 42.50 EUR"
REFUSED = "refunds above 40 EUR need a supervisor"
INSTRUCTIONS = "You help customers with their orders."
REPLIES: list[dict[str, Any]] = [
    {"calls": [("lookup_order", {"order_id": "A-1042"})], "usage": (211, 17, 0, 0)},
    {"calls": [("refund", {"charge_id": "ch_2", "amount": 42.5})], "usage": (287, 63, 192, 24)},
    {"text": ANSWER, "usage": (352, 31, 256, 8)},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup_order",
            "description": "List the charges of an order.",
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "refund",
            "description": "Refund a charge.",
            "parameters": {
                "type": "object",
                "properties": {"charge_id": {"type": "string"}, "amount": {"type": "number"}},
            },
        },
    },
]


def lookup_order(order_id: str) -> str:
    """List the charges of an order."""
    return CHARGES


def refund(charge_id: str, amount: float) -> str:
    """Refund a charge."""
    raise ValueError(REFUSED)


def scripted_model() -> Any:
    """The scripted OpenAI server for one run, to be used with ``with``."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "frameworks"))
    from scripted_openai import ScriptedOpenAI

    return ScriptedOpenAI(REPLIES)


def run_agent(client: Any, around_tool: Any) -> str:
    """Let an OpenAI client and two tools answer the question; ``around_tool(name, arguments)`` is a context manager."""
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    while True:
        reply = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
        message = reply.choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            try:
                with around_tool(call.function.name, arguments, call.id) as done:
                    result = {"lookup_order": lookup_order, "refund": refund}[call.function.name](**arguments)
                    done(result)
            except ValueError as error:
                result = f"Error: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

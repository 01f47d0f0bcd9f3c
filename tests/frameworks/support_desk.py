"""The run that several scenarios share: what the scripted model says, what the tools do, and so what must be found.

A triage agent reads the policy and lets billing settle the task; billing asks for too large a refund, which fails, and
then for the right one. The model answers in this order, whoever asks.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

MODEL = "gpt-4o-mini-2024-07-18"
QUESTION = "I was charged twice for order A-1042. Can I have my money back?"
SETTLED = "INV-77 refunded, 49.90 EUR."
ANSWER = "Invoice INV-77 was refunded: 49.90 EUR will be back on your card within 14 days."
POLICY = "Double charges are refunded in full within 14 days."
INVOICE = "INV-77 of order A-1042: 49.90 EUR, charged twice."
REFUSED = "499.0 is more than the invoice total 49.9"
TASK = {"task": "Refund the double charge of order A-1042."}
TOO_MUCH = {"invoice": "INV-77", "amount": 499.0}
IN_FULL = {"invoice": "INV-77", "amount": 49.9}
# Prompt, completion and cached prompt tokens are different in every turn, so that a sum shows which were counted.
_TRIAGE: list[dict[str, Any]] = [
    {"calls": [("search_policy", {"query": "double charge"})], "usage": (211, 17, 0)},
    {"calls": [("transfer_to_billing", TASK)], "usage": (287, 12, 192)},
]
_BILLING: list[dict[str, Any]] = [
    {"calls": [("find_invoice", {"order_id": "A-1042"}), ("refund_payment", TOO_MUCH)], "usage": (134, 63, 0)},
    {"calls": [("refund_payment", IN_FULL)], "usage": (231, 47, 128)},
]
_LAST = {"text": ANSWER, "usage": (352, 31, 256)}
TWO_AGENTS = [*_TRIAGE, *_BILLING, {"text": SETTLED, "usage": (283, 15, 224)}, _LAST]
ONE_AGENT = [_TRIAGE[0], *_BILLING, _LAST]


def search_policy(query: str) -> str:
    """Find a passage of the refund policy."""
    return POLICY


def find_invoice(order_id: str) -> str:
    """Find the invoice of an order."""
    return INVOICE


def refund_payment(invoice: str, amount: float) -> str:
    """Refund an invoice."""
    if amount > 49.9:
        raise ValueError(f"{amount} is more than the invoice total 49.9")
    return f"refunded {amount} EUR"


def expected(replies: list[dict[str, Any]], agents: list[str]) -> dict[str, Any]:
    """What a run with these replies did; ``agents`` in the order in which they work."""
    results = {
        "search_policy": POLICY,
        "transfer_to_billing": SETTLED,
        "find_invoice": INVOICE,
        "refund_payment": "refunded 49.9 EUR",
    }
    calls = []
    for name, arguments in (call for reply in replies for call in reply.get("calls", ())):
        call = {"name": name, "arguments": arguments, "status": "success", "result": results[name]}
        if arguments == TOO_MUCH:
            call = {"name": name, "arguments": arguments, "status": "error", "error": REFUSED}
        calls.append(call)
    return {
        "question": QUESTION,
        "answer": ANSWER,
        "tool_calls": calls,
        "agents": agents,
        "handoffs": [list(pair) for pair in pairwise(agents)],
        "usage": {
            name: sum(reply["usage"][place] for reply in replies)
            for place, name in enumerate(("prompt_tokens", "completion_tokens", "cached_tokens"))
        },
        "models": [MODEL],
        "documents": [],
    }


def ask_in_a_loop(base_url: str, system: str, question: str, tools: list[Any]) -> str:
    """An agent without a framework: ask OpenAI's client, call the tools that the model wants, until it answers."""
    from openai import OpenAI

    named = {function.__name__: function for function in tools}
    schemas: list[Any] = [
        {"type": "function", "function": {"name": name, "description": function.__doc__}}
        for name, function in named.items()
    ]
    messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    client = OpenAI(api_key="none", base_url=base_url)
    while True:
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=schemas).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            try:
                content = named[call.function.name](**json.loads(call.function.arguments))
            except ValueError as error:
                content = f"Error: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

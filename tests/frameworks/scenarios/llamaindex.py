"""LlamaIndex: an AgentWorkflow in which `triage` hands off to `billing`, which has a retriever; by OpenInference.

The variant `streaming` has the agents stream the model's answer, which is LlamaIndex's default: then OpenAI reports no
token usage unless it is asked to.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

QUESTION = "Why was ada@example.com charged twice in May?"
ANSWER = "Invoice INV-1042 was billed twice; 42.50 EUR will be refunded within 14 days."
MODEL = "gpt-4o-mini"
POLICIES = {
    "refunds": "Double charges are refunded within 14 days.",
    "plans": "The team plan is billed on the first of the month.",
}

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
        {
            "name": "search_policies",
            "arguments": {"input": "double charge refund"},
            "status": "success",
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
    "usage": {"prompt_tokens": 1995, "completion_tokens": 142, "cached_tokens": 832},
    "models": [MODEL],
    "documents": list(POLICIES.values()),
}

# One row for each model call: a tool and its arguments, or the answer; prompt, cached and completion tokens.
MODEL_CALLS: list[tuple[Any, int, int, int]] = [
    (("find_account", {"email": "ada@example.com"}), 211, 0, 19),
    (("handoff", {"to_agent": "billing", "reason": "It is about an invoice."}), 254, 64, 27),
    (("search_policies", {"input": "double charge refund"}), 302, 128, 18),
    (("get_invoice", {"invoice_id": "INV-1024"}), 371, 192, 21),
    (("get_invoice", {"invoice_id": "INV-1042"}), 410, 192, 22),
    (ANSWER, 447, 256, 35),
]

STREAMING = False


def find_account(email: str) -> dict:
    """Find the account that an e-mail address belongs to."""
    return {"account": "AC-7", "plan": "team"}


def get_invoice(invoice_id: str) -> dict:
    """Look up one invoice."""
    if invoice_id != "INV-1042":
        raise LookupError(f"no invoice {invoice_id}")
    return {"invoice": invoice_id, "amount": 42.5, "charges": 2}


def scripted_model() -> Any:
    """LlamaIndex's own OpenAI model, with a client that plays back ``MODEL_CALLS`` instead of asking a server."""
    from llama_index.llms.openai import OpenAI
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    script = iter(MODEL_CALLS)

    async def create(stream: bool = False, **request: Any) -> Any:
        said, prompt_tokens, cached_tokens, completion_tokens = next(script)
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if isinstance(said, tuple):
            function = {"name": said[0], "arguments": json.dumps(said[1])}
            call = {"index": 0, "id": f"call_{prompt_tokens}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer = {"id": f"chatcmpl-{prompt_tokens}", "created": 0, "model": MODEL}
        choice = {"index": 0, "finish_reason": "tool_calls" if isinstance(said, tuple) else "stop", "logprobs": None}
        if stream:
            return one_chunk(
                ChatCompletionChunk(object="chat.completion.chunk", choices=[choice | {"delta": message}], **answer)
            )
        usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
        }
        return ChatCompletion(object="chat.completion", choices=[choice | {"message": message}], usage=usage, **answer)

    async def one_chunk(chunk: Any) -> AsyncIterator[Any]:
        yield chunk

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    return OpenAI(model=MODEL, api_key="unused", async_openai_client=client)


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Trace LlamaIndex with OpenInference."""
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    global STREAMING
    STREAMING = variant == "streaming"
    LlamaIndexInstrumentor().instrument(tracer_provider=tracer_provider)


def run(question: str) -> str:
    """Ask `triage`, which hands off to `billing`."""
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
    from llama_index.core.schema import TextNode
    from llama_index.core.tools import RetrieverTool
    from openinference.instrumentation import suppress_tracing

    nodes = [
        TextNode(id_=name, text=text, embedding=[1.0, float(place)])
        for place, (name, text) in enumerate(POLICIES.items(), 1)
    ]
    with suppress_tracing():  # building the index is not part of the agent's run, but would make a trace of its own
        index = VectorStoreIndex(nodes, embed_model=MockEmbedding(2))
    retriever = index.as_retriever(similarity_top_k=2)
    policies = RetrieverTool.from_defaults(
        retriever, name="search_policies", description="Search the billing policies."
    )
    model = scripted_model()
    triage = FunctionAgent(
        name="triage",
        description="Finds the account.",
        system_prompt="You find the account, then hand off to the agent who can help.",
        tools=[find_account],
        llm=model,
        can_handoff_to=["billing"],
        streaming=STREAMING,
    )
    billing = FunctionAgent(
        name="billing",
        description="Answers questions about invoices.",
        system_prompt="You answer questions about invoices.",
        tools=[policies, get_invoice],
        llm=model,
        can_handoff_to=[],
        streaming=STREAMING,
    )

    workflow = AgentWorkflow([triage, billing], root_agent="triage", handoff_prompt="Hand off to one of {agent_info}.")

    async def ask() -> str:
        return str(await workflow.run(question))

    return asyncio.run(ask())


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

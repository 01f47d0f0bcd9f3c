"""LangGraph: a triage agent reads the policy, hands over to billing, and billing gets past two failing tools."""

import sys
from pathlib import Path
from typing import Any

POLICY = [
    "Double charges are refunded in full within 14 days.",
    "A refund may not exceed the total of its invoice.",
]
QUESTION = "I was charged twice for order A-1042. Can I have my money back?"
ANSWER = "Invoice INV-77 was refunded: 49.90 EUR will be back on your card within 14 days."
MODELS = {"triage": "scripted-small", "billing": "scripted-large"}
PROMPTS = {"triage": "Send the customer to the right desk.", "billing": "Settle questions about money."}
TOO_MUCH = {"invoice": "INV-77", "amount": 499.0}
IN_FULL = {"invoice": "INV-77", "amount": 49.9}
INVOICE = {"invoice": "INV-77", "total": 49.9}
NO_ADDRESS = "the customer has no e-mail address"
# What each agent's model says, turn by turn: tool calls or the answer; tokens in, of these cached, tokens out.
SCRIPT: dict[str, list[tuple[Any, int, int, int]]] = {
    "triage": [
        ([("search_policy", {"query": "double charge"})], 211, 0, 17),
        ([("transfer_to_billing", {})], 287, 192, 12),
    ],
    "billing": [
        ([("find_invoice", {"order_id": "A-1042"}), ("refund_payment", TOO_MUCH)], 334, 0, 43),
        ([("refund_payment", IN_FULL), ("email_receipt", {"invoice": "INV-77"})], 431, 320, 47),
        (ANSWER, 523, 448, 31),
    ],
}
EXPECTED: dict[str, Any] = {
    "question": QUESTION,
    "answer": ANSWER,
    "tool_calls": [
        {"name": "search_policy", "arguments": {"query": "double charge"}, "status": "success", "result": POLICY},
        {"name": "transfer_to_billing", "arguments": {}, "status": "success", "handoff": True},
        {"name": "find_invoice", "arguments": {"order_id": "A-1042"}, "status": "success", "result": INVOICE},
        {
            "name": "refund_payment",
            "arguments": TOO_MUCH,
            "status": "error",
            "error": "499.0 is more than the invoice total 49.9",
        },
        {"name": "refund_payment", "arguments": IN_FULL, "status": "success", "result": "refunded 49.9 EUR"},
        {"name": "email_receipt", "arguments": {"invoice": "INV-77"}, "status": "error", "error": NO_ADDRESS},
    ],
    "agents": ["triage", "billing"],
    "handoffs": [["triage", "billing"]],
    "usage": {
        "prompt_tokens": sum(turn[1] for turns in SCRIPT.values() for turn in turns),
        "cached_tokens": sum(turn[2] for turns in SCRIPT.values() for turn in turns),
        "completion_tokens": sum(turn[3] for turns in SCRIPT.values() for turn in turns),
    },
    "models": list(MODELS.values()),
    "session": "customer-7",
    "documents": POLICY,
}


def instrument(tracer_provider: Any, variant: str = "openinference") -> None:
    """Send LangChain's callbacks to the provider.

    Variants: ``openinference``; ``genai`` (OpenInference that adds the OpenTelemetry GenAI names); ``hidden``
    (OpenInference without content); ``traceloop`` (OpenLLMetry).
    """
    if variant == "traceloop":
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor

        LangchainInstrumentor().instrument(tracer_provider=tracer_provider)
        return
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.langchain import LangChainInstrumentor

    hidden = variant == "hidden"
    config = TraceConfig(enable_genai_semconv=variant == "genai", hide_inputs=hidden, hide_outputs=hidden)
    LangChainInstrumentor().instrument(tracer_provider=tracer_provider, config=config)


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from langgraph.graph import START, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    for name in SCRIPT:
        graph.add_node(name, _agent(name))
    graph.add_edge(START, "triage")
    thread = {"configurable": {"thread_id": EXPECTED["session"]}}
    final = graph.compile(name="support_desk").invoke({"messages": [("user", question)]}, thread)
    return str(final["messages"][-1].content)


def _agent(name: str) -> Any:
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage

    @wrap_tool_call
    def report_failure(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")

    middleware = [report_failure] if name == "billing" else []
    return create_agent(_model(name), _tools(name), system_prompt=PROMPTS[name], middleware=middleware, name=name)


def _tools(agent: str) -> list[Any]:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.messages import ToolMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import ToolException, tool
    from langgraph.prebuilt import ToolRuntime
    from langgraph.types import Command

    class PolicyRetriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
            return [Document(text, id=f"policy-{at}", metadata={"page": at}) for at, text in enumerate(POLICY, 1)]

    @tool
    def search_policy(query: str) -> list[str]:
        """Find passages of the refund policy."""
        return [document.page_content for document in PolicyRetriever().invoke(query)]

    @tool
    def transfer_to_billing(runtime: ToolRuntime) -> Command:
        """Hand the conversation over to the billing agent."""
        done = ToolMessage("Transferred to billing", tool_call_id=runtime.tool_call_id)
        return Command(goto="billing", graph=Command.PARENT, update={"messages": [*runtime.state["messages"], done]})

    @tool
    def find_invoice(order_id: str) -> dict[str, Any]:
        """Find the invoice of an order."""
        return INVOICE

    @tool
    def refund_payment(invoice: str, amount: float) -> str:
        """Refund an invoice."""
        if amount > 49.9:
            raise ValueError(f"{amount} is more than the invoice total 49.9")
        return f"refunded {amount} EUR"

    @tool
    def email_receipt(invoice: str) -> str:
        """Mail the receipt; LangChain itself turns this kind of error into the tool's answer."""
        raise ToolException(NO_ADDRESS)

    email_receipt.handle_tool_error = True
    return [search_policy, transfer_to_billing] if agent == "triage" else [find_invoice, refund_payment, email_receipt]


def _model(agent: str) -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    turns = iter(enumerate(SCRIPT[agent]))

    class ScriptedModel(BaseChatModel):
        model: str
        temperature: float = 0.0

        @property
        def _llm_type(self) -> str:
            return "scripted"

        @property
        def _identifying_params(self) -> dict[str, Any]:
            return {"model": self.model, "temperature": self.temperature}

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            from langchain_core.utils.function_calling import convert_to_openai_tool

            return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            at, (says, tokens_in, cached, tokens_out) = next(turns)
            usage = {
                "input_tokens": tokens_in,
                "output_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
                "input_token_details": {"cache_read": cached},
            }
            calls = [] if isinstance(says, str) else says
            message = AIMessage(
                says if isinstance(says, str) else "",
                tool_calls=[
                    {"name": name, "args": arguments, "id": f"call_{agent}_{at}_{name}"} for name, arguments in calls
                ],
                usage_metadata=usage,
                response_metadata={"model_name": self.model},
            )
            finish = {"finish_reason": "tool_calls" if calls else "stop"}
            generation = ChatGeneration(message=message, generation_info=finish)
            return ChatResult(generations=[generation], llm_output={"model_name": self.model})

    return ScriptedModel(model=MODELS[agent])


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])

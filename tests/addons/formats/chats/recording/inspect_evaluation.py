"""Records logs of Inspect: ``python inspect_evaluation.py FOLDER``, with inspect_ai installed."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"


def _tools() -> list[Any]:
    from inspect_ai.tool import ToolDef, ToolError

    async def lookup_order(order_id: str) -> str:
        return f"Order {order_id}: one desk lamp, 42.50 EUR, paid."

    async def refund(charge_id: str) -> str:
        raise ToolError(f"charge {charge_id} is locked")

    return [
        ToolDef(lookup_order, description="Look an order up.", parameters={"order_id": "The order."}).as_tool(),
        ToolDef(refund, description="Pay a charge back.", parameters={"charge_id": "The charge."}).as_tool(),
    ]


def _output(said: Any, prompt: int, completion: int, cached: int = 0, model: str = "mockllm/model") -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage

    text = isinstance(said, str)
    output = ModelOutput.from_content(model, said) if text else ModelOutput.for_tool_call(model, said[0], said[1])
    output.usage = ModelUsage(
        input_tokens=prompt,
        output_tokens=completion,
        total_tokens=prompt + completion + cached,
        input_tokens_cache_read=cached,
    )
    return output


def _scripted(name: str, outputs: list[Any]) -> Any:
    from inspect_ai.model import get_model

    replies = iter(outputs)
    # A function, unlike a list, is not written into the log's header.
    return get_model(name, custom_outputs=lambda *_: next(replies), memoize=False)


def record_agents(folder: Path) -> None:
    """An agent that uses another as a tool, and hands over to a third."""
    from inspect_ai import Task, eval
    from inspect_ai.agent import as_tool, handoff, react
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import includes

    said = [
        ("billing", {"input": "Pay ch_2 back."}),
        ("refund", {"charge_id": "ch_2"}),
        ("submit", {"answer": "It is locked."}),
        ("transfer_to_supervisor", {}),
        ("submit", {"answer": "I agree."}),
        ("submit", {"answer": "A supervisor agreed."}),
    ]
    outputs = [_output(each, 100 + n, 10 + n) for n, each in enumerate(said)]
    billing = react(name="billing", description="Knows refunds.", tools=_tools()[1:])
    supervisor = react(name="supervisor", description="Agrees or not.")
    task = Task(
        dataset=[Sample(id="q0", input=QUESTION, target="supervisor")],
        solver=react(name="triage", tools=[as_tool(billing), handoff(supervisor)]),
        scorer=includes(),
        name="support_team",
    )
    with tempfile.TemporaryDirectory() as logs:
        eval(task, model=_scripted("mockllm/model", outputs), log_dir=logs, display="none")
        shutil.copy(next(Path(logs).glob("*.eval")), folder / "inspect_support_team.eval")


def record(folder: Path) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import model_graded_fact
    from inspect_ai.solver import generate, system_message, use_tools

    agent = [
        _output(("lookup_order", {"order_id": "A-1042"}), 101, 11),
        _output(("refund", {"charge_id": "ch_2"}), 102, 12, cached=64),
        _output("The refund needs a supervisor.", 103, 13),
    ]
    samples = [Sample(id=f"q{n}", input=QUESTION, target="A supervisor must agree.") for n in range(2)]
    verdicts = [
        _output("GRADE: C", 201, 21, model="mockllm/judge"),
        _output("GRADE: I", 202, 22, model="mockllm/judge"),
    ]
    task = Task(
        dataset=samples,
        solver=[system_message("You help."), use_tools(_tools()), generate()],
        scorer=model_graded_fact(model=_scripted("mockllm/judge", verdicts)),
        name="support_desk",
    )
    with tempfile.TemporaryDirectory() as logs:
        eval(task, model=_scripted("mockllm/model", agent * 2), log_dir=logs, display="none", max_samples=1)
        shutil.copy(next(Path(logs).glob("*.eval")), folder / "inspect_support_desk.eval")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
    record_agents(Path(sys.argv[1]))

"""Records what AutoGen saves of a swarm: ``python autogen.py FOLDER``, with autogen-agentchat and autogen-ext."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"


def lookup_order(order_id: str) -> str:
    """Look an order up."""
    return f"Order {order_id}: one desk lamp, 42.50 EUR, paid."


def refund(charge_id: str) -> str:
    """Pay a charge back."""
    raise PermissionError(f"charge {charge_id} is locked")


def _replies() -> list[Any]:
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage

    said: list[Any] = [
        ("lookup_order", {"order_id": "A-1042"}),
        ("transfer_to_billing", {}),
        ("refund", {"charge_id": "ch_2"}),
        "The refund needs a supervisor.",
    ]
    replies = []
    for n, each in enumerate(said, 1):
        usage = RequestUsage(prompt_tokens=100 + n, completion_tokens=10 + n)
        if isinstance(each, str):
            replies.append(CreateResult(finish_reason="stop", content=each, usage=usage, cached=False))
        else:
            call = FunctionCall(id=f"call_{n}", name=each[0], arguments=json.dumps(each[1]))
            replies.append(CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False))
    return replies


async def record(folder: Path) -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import SourceMatchTermination
    from autogen_agentchat.teams import Swarm
    from autogen_agentchat.ui import Console
    from autogen_core.models import ModelInfo
    from autogen_ext.models.replay import ReplayChatCompletionClient

    info = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
    model = ReplayChatCompletionClient(_replies(), model_info=info)
    triage = AssistantAgent("triage", model, tools=[lookup_order], handoffs=["billing"], max_tool_iterations=5)
    billing = AssistantAgent("billing", model, tools=[refund], max_tool_iterations=5)
    team = Swarm([triage, billing], termination_condition=SourceMatchTermination(["billing"]))
    with (folder / "autogen_console.txt").open("w") as console, contextlib.redirect_stdout(console):
        result = await Console(team.run_stream(task=QUESTION), output_stats=True)
    (folder / "autogen_task_result.json").write_text(json.dumps(result.model_dump(mode="json"), indent=1) + "\n")
    (folder / "autogen_team_state.json").write_text(json.dumps(await team.save_state(), indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1])))

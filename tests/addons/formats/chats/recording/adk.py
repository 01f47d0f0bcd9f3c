"""Records sessions of Google's Agent Development Kit: ``python adk.py FOLDER``, with google-adk installed."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"


def lookup_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    return {"item": "desk lamp", "paid": 42.5}


def refund(charge_id: str) -> dict[str, Any]:
    """Pay a charge back."""
    return {"status": "error", "error_message": f"charge {charge_id} is locked"}


def cancel(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    raise PermissionError(f"order {order_id} is shipped")


def _reply(said: Any, prompt: int, completion: int, cached: int = 0, thoughts: int = 0) -> Any:
    from google.adk.models import LlmResponse
    from google.genai import types

    part = (
        types.Part(text=said)
        if isinstance(said, str)
        else types.Part(function_call=types.FunctionCall(name=said[0], args=said[1]))
    )
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=prompt,
        candidates_token_count=completion,
        total_token_count=prompt + completion + thoughts,
        cached_content_token_count=cached or None,
        thoughts_token_count=thoughts or None,
    )
    content = types.Content(role="model", parts=[part])
    return LlmResponse(content=content, usage_metadata=usage, model_version="fake-gemini-001")


async def _session(agent: Any) -> Any:
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    runner = InMemoryRunner(agent, app_name="desk")
    session = await runner.session_service.create_session(app_name="desk", user_id="u1")
    asked = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    with contextlib.suppress(PermissionError):
        async for _ in runner.run_async(user_id="u1", session_id=session.id, new_message=asked):
            pass
    return await runner.session_service.get_session(app_name="desk", user_id="u1", session_id=session.id)


async def record(folder: Path) -> None:
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm

    replies = [
        _reply(("lookup_order", {"order_id": "A-1042"}), 101, 11),
        _reply(("transfer_to_agent", {"agent_name": "billing"}), 102, 12, cached=64),
        _reply(("refund", {"charge_id": "ch_2"}), 103, 13, cached=32, thoughts=5),
        _reply("The refund needs a supervisor.", 104, 14),
        _reply(("cancel", {"order_id": "A-1042"}), 105, 15),
    ]

    class Scripted(BaseLlm):
        model: str = "fake-gemini"

        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            yield replies.pop(0)

    billing = LlmAgent(name="billing", model=Scripted(), description="Knows refunds.", tools=[refund])
    triage = LlmAgent(name="triage", model=Scripted(), tools=[lookup_order], sub_agents=[billing])
    session = await _session(triage)
    (folder / "adk_session.json").write_text(session.model_dump_json(indent=1, by_alias=True, exclude_none=True) + "\n")
    snake_case = session.model_dump_json(indent=1, exclude_none=True)
    (folder / "adk_session_snake_case.json").write_text(snake_case + "\n")
    failed = await _session(LlmAgent(name="solo", model=Scripted(), tools=[cancel]))
    text = failed.model_dump_json(indent=1, by_alias=True, exclude_none=True)
    (folder / "adk_session_tool_raised.json").write_text(text + "\n")


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1])))

"""Record what claude-agent-sdk 0.2.182 (PyPI) and a scripted process say to each other, by direction.

``ClaudeSDKClient`` talks to ``Scripted``, a ``Transport`` that answers as Claude Code does: the scenario of
``../scenario.py``, in its stream of JSON messages. The SDK parses every message that it receives into its own types.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeSDKClient, ResultMessage, Transport

sys.path.append(str(Path(__file__).resolve().parents[1]))
import scenario

SESSION = "7c0d6b2e-6f0f-4f0e-9c50-0a5c3f3b1d10"
# Input beside the cache, written to it, read from it, and output, by call of the model.
COUNTS = [(211, 1400, 0, 17), (76, 211, 1400, 63), (65, 287, 1611, 31)]
NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class Scripted(Transport):
    """The process that the SDK would start, with every message in ``log``."""

    def __init__(self) -> None:
        self.log: list[dict[str, Any]] = []
        self.answers: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def connect(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass

    async def close(self) -> None:
        self.answers.put_nowait(None)

    async def write(self, data: str) -> None:
        message = json.loads(data)
        self.log.append({"direction": "send", "message": message})
        if message["type"] == "control_request":
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {"commands": []}}
            self.answers.put_nowait({"type": "control_response", "response": answer})
        else:
            for each in replies():
                self.answers.put_nowait(each)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self.answers.get()) is not None:
            self.log.append({"direction": "recv", "message": message})
            yield message


def replies() -> list[dict[str, Any]]:
    tools = [tool["function"]["name"] for tool in scenario.TOOLS]
    start = {"type": "system", "subtype": "init", "cwd": "/work", "model": "claude-sonnet-4-6", "tools": tools}
    found = [{**start, "mcp_servers": [], "permissionMode": "default", "apiKeySource": "none"}]
    results = iter([(scenario.CHARGES, False), (scenario.REFUSED, True)])
    for number, (reply, counts) in enumerate(zip(scenario.REPLIES, COUNTS, strict=True), start=1):
        content = [{"type": "text", "text": reply["text"]}] if "text" in reply else []
        for name, arguments in reply.get("calls", ()):
            content.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments})
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6"}
        # As in a stream: the output is counted before it is complete.
        usage = {**dict(zip(NAMES, counts, strict=True)), "output_tokens": 1}
        found.append({"type": "assistant", "message": {**message, "content": content, "usage": usage}})
        for call in content:
            if call["type"] == "tool_use":
                text, failed = next(results)
                result = {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": failed}
                found.append({"type": "user", "message": {"role": "user", "content": [result]}})
    usage = {name: sum(counts) for name, counts in zip(NAMES, zip(*COUNTS, strict=True), strict=True)}
    end = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 4100, "duration_api_ms": 3900}
    found.append({**end, "num_turns": 3, "result": scenario.ANSWER, "total_cost_usd": 0.0125, "usage": usage})
    shared = {"session_id": SESSION, "parent_tool_use_id": None}
    return [{**each, **shared, "uuid": f"00000000-0000-4000-8000-{number:012}"} for number, each in enumerate(found)]


async def main() -> None:
    transport = Scripted()
    async with ClaudeSDKClient(transport=transport) as client:
        await client.query(scenario.QUESTION)
        parsed = [message async for message in client.receive_response()]
    assert isinstance(parsed[-1], ResultMessage)
    assert parsed[-1].result == scenario.ANSWER
    text = json.dumps({"metadata": {"sdk": "0.2.182"}, "messages": transport.log}, indent=1)
    Path(__file__).with_name("conversation.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())

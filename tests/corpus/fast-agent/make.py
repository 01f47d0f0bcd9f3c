"""fast-agent: a conversation as fast-agent-mcp 0.10.46 (PyPI) saves it, through its own messages and writer."""

import json
from pathlib import Path

from fast_agent.llm.usage_tracking import (
    CompletionTokenUsage,
    PromptTokenUsage,
    TurnUsage,
    UsageReport,
    UsageSchema,
)
from fast_agent.mcp.prompt_serialization import to_json
from fast_agent.types import PromptMessageExtended
from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult, TextContent


def text(words):
    return [TextContent(type="text", text=words)]


def request(name, **arguments):
    return CallToolRequest(method="tools/call", params=CallToolRequestParams(name=name, arguments=arguments))


def used(n_in, n_out, cached=0, reasoning=0):
    prompt = PromptTokenUsage(total=n_in, uncached=n_in - cached, cache_read=cached)
    completion = CompletionTokenUsage(total=n_out, reasoning=reasoning)
    fields = {"provider": "openai", "usage_schema": UsageSchema.OPENAI_CHAT, "model": "gpt-5-mini", "timestamp": 1.0}
    turn = TurnUsage(**fields, prompt=prompt, completion=completion)
    return {"fast-agent-usage": text(json.dumps(UsageReport(provider_attempts=[turn]).to_payload()))}


calls = {"c1": request("lookup", order="A-1"), "c2": request("refund", charge="ch_2")}
results = {
    "c1": CallToolResult(content=text("ch_1, ch_2"), isError=False),
    "c2": CallToolResult(content=text("refunds need a supervisor"), isError=True),
}
messages = [
    PromptMessageExtended(role="user", content=text("Why was I charged twice?")),
    PromptMessageExtended(role="assistant", content=[], tool_calls=calls, channels=used(211, 17)),
    PromptMessageExtended(role="user", content=[], tool_results=results),
    PromptMessageExtended(role="assistant", content=text("A supervisor refunds it."), channels=used(352, 31, 256, 8)),
]
Path(__file__).with_name("conversation.json").write_text(to_json(messages) + "\n")

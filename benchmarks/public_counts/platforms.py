"""LangSmith, Anthropic's managed agents, the Claude Agent SDK, the Vercel AI SDK, fast-agent and HAL's displays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROLES = ("user", "assistant", "tool", "system")


def count(path: Path) -> list[dict[str, Any]]:
    if not path.stat().st_size:
        return []
    name = f"{path.parent.name}/{path.name}"
    return next(counter for start, counter in COUNTERS.items() if name.startswith(start))(path)


def langsmith(path: Path) -> list[dict[str, Any]]:
    run = json.loads(path.read_text("utf-8"))
    returned = run["patch"][-1]["outputs"]
    return [
        {
            "question": run["post"][0]["inputs"]["messages"][-1]["content"],
            "answer": returned["choices"][0]["message"]["content"],
            "tool_calls": [],
            "tokens": {kind: returned["usage_metadata"][f"{kind}_tokens"] for kind in ("input", "output")},
        }
    ]


def anthropic_managed(path: Path) -> list[dict[str, Any]]:
    lines = [line for line in path.read_text("utf-8").splitlines() if "events.stream" in line[:60]]
    events = [json.loads(line)[1] for line in lines]
    results = {e.get("tool_use_id") or e.get("mcp_tool_use_id"): e for e in events if "tool_result" in e["type"]}
    texts = [(event["type"], event["content"][0]["text"]) for event in events if event["type"].endswith(".message")]
    return [
        {
            "question": next(text for kind, text in texts if kind == "user.message"),
            "answer": [text for kind, text in texts if kind == "agent.message"][-1],
            "tool_calls": [
                [event["name"], "error" if results[event["id"]]["is_error"] else "success"]
                for event in events
                if event["type"] in ("agent.tool_use", "agent.mcp_tool_use")
            ],
            "tokens": anthropic_tokens([event["model_usage"] for event in events if "model_usage" in event]),
        }
    ]


def claude_agent_sdk(path: Path) -> list[dict[str, Any]]:
    messages = [each["message"] for each in json.loads(path.read_text("utf-8"))["messages"]]
    result = next(message for message in messages if message["type"] == "result")
    return [
        {
            "question": next(each["message"]["content"] for each in messages if each["type"] == "user"),
            "answer": result["result"],
            "tool_calls": [],
            "tokens": anthropic_tokens([result["usage"]]),
            "cost": result["total_cost_usd"],
        }
    ]


def anthropic_tokens(usages: list[dict[str, int]]) -> dict[str, int]:
    read = sum(usage["cache_read_input_tokens"] for usage in usages)
    written = sum(usage["cache_creation_input_tokens"] for usage in usages)
    return {
        "input": sum(usage["input_tokens"] for usage in usages) + read + written,
        "output": sum(usage["output_tokens"] for usage in usages),
        "cache_read": read,
        "cache_write": written,
    }


def vercel(path: Path) -> list[dict[str, Any]]:
    """One case a span: these are single spans of traces of their own. A span that embeds is no work of an agent."""
    document = json.loads(path.read_text("utf-8"))
    spans = document if isinstance(document, list) else [span for listed in document.values() for span in listed]
    cases = []
    for said in [span["attributes"] for span in spans if "embed" not in span["name"]]:
        given = said.get("ai.usage.promptTokens", said.get("ai.usage.inputTokens"))
        made = said.get("ai.usage.completionTokens", said.get("ai.usage.outputTokens"))
        answer = said.get("ai.response.text") or said.get("ai.response.object")
        cases.append({"answer": answer, "tool_calls": [], "tokens": {"input": given, "output": made}})
    return cases


def fast_agent(path: Path) -> list[dict[str, Any]]:
    messages = json.loads(path.read_text("utf-8"))["messages"]
    results = {key: each for message in messages for key, each in (message.get("tool_results") or {}).items()}
    calls = [call for message in messages for call in (message.get("tool_calls") or {}).items()]
    said = [
        message["content"][0]["text"] for message in messages if message["role"] == "assistant" and message["content"]
    ]
    return [
        {
            "question": messages[0]["content"][0]["text"],
            "answer": said[-1],
            "tool_calls": [
                [call["params"]["name"], "error" if results[key]["isError"] else "success"] for key, call in calls
            ],
            "tokens": None,
        }
    ]


def hal(path: Path) -> list[dict[str, Any]]:
    return [displayed(json.loads(line)["messages_display"]) for line in path.read_text("utf-8").splitlines()]


def displayed(text: str) -> dict[str, Any]:
    messages: list[list[str]] = []
    for line in text.split("\n"):
        role, colon, words = line.partition(": ")
        if colon and role in ROLES:
            messages.append([role, words])
        elif messages:
            messages[-1][1] += f"\n{line}"
    said = [words.rstrip("\n") for role, words in messages if role == "assistant" and words.strip() != "None"]
    results = [words for role, words in messages if role == "tool"]
    return {
        "question": messages[0][1].rstrip("\n"),
        "answer": said[-1] if said else None,
        "tool_calls": [["", "error" if words.startswith("Error") else "success"] for words in results],
        "tokens": None,
    }


COUNTERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "langsmith/langsmith_": langsmith,
    "langsmith/anthropic_": anthropic_managed,
    "logfire/": claude_agent_sdk,
    "vercel/": vercel,
    "fastagent/": fast_agent,
    "hal/": hal,
}

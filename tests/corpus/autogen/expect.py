"""Count what the messages of the task result, or of the chat result, state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    result = json.loads(path.read_text("utf-8"))
    return [task_result(result) if "messages" in result else chat_result(result)]


def task_result(result: dict[str, Any]) -> dict[str, Any]:
    messages = result["messages"]
    usages = [message["models_usage"] for message in messages if message["models_usage"]]
    executed = [
        each for message in messages if message["type"] == "ToolCallExecutionEvent" for each in message["content"]
    ]
    return {
        "question": messages[0]["content"],
        "answer": messages[-1]["content"],
        "agents": sorted({message["source"] for message in messages} - {"user"}),
        "tool_calls": [[each["name"], "error" if each["is_error"] else "success"] for each in executed],
        "tokens": {
            "input": sum(usage["prompt_tokens"] for usage in usages),
            "output": sum(usage["completion_tokens"] for usage in usages),
        },
        "cost": None,
    }


def chat_result(result: dict[str, Any]) -> dict[str, Any]:
    """The history of an AG2 chat; its ``cost`` sums up every model."""
    messages = result["chat_history"]
    called = [call["function"]["name"] for message in messages for call in message.get("tool_calls") or []]
    models = {
        name: model
        for name, model in result["cost"]["usage_including_cached_inference"].items()
        if isinstance(model, dict)
    }
    said = [message for message in messages if message.get("content") and message["role"] != "tool"]
    return {
        "question": messages[0]["content"],
        "answer": said[-1]["content"],
        "agents": sorted({message["name"] for message in messages if message.get("name")}),
        "tool_calls": [[name] for name in called],
        "tokens": {
            "input": sum(model["prompt_tokens"] for model in models.values()),
            "output": sum(model["completion_tokens"] for model in models.values()),
        },
        "cost": result["cost"]["usage_including_cached_inference"]["total_cost"],
    }


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

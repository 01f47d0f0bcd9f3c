"""Count what the messages of each vendor state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    return [globals()[path.stem](json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def openai(row: dict[str, Any]) -> dict[str, Any]:
    """Results of tools have no flag of failure."""
    messages = row["messages"]
    return {
        "question": next(each["content"] for each in messages if each["role"] == "user"),
        "answer": messages[-1]["content"],
        "tool_calls": [[call["function"]["name"]] for each in messages for call in each.get("tool_calls", ())],
    }


def anthropic(row: dict[str, Any]) -> dict[str, Any]:
    messages = row["messages"]
    blocks = [block for each in messages if isinstance(each["content"], list) for block in each["content"]]
    failed = {block["tool_use_id"]: block["is_error"] for block in blocks if block["type"] == "tool_result"}
    usages = [each["usage"] for each in messages if "usage" in each]
    return {
        "question": messages[0]["content"],
        "answer": messages[-1]["content"][-1]["text"],
        "tool_calls": [
            [block["name"], "error" if failed[block["id"]] else "success"]
            for block in blocks
            if block["type"] == "tool_use"
        ],
        "tokens": {
            "input": sum(usage["input_tokens"] + usage["cache_read_input_tokens"] for usage in usages),
            "output": sum(usage["output_tokens"] for usage in usages),
            "cache_read": sum(usage["cache_read_input_tokens"] for usage in usages),
        },
        "cost": None,
    }


def gemini(row: dict[str, Any]) -> dict[str, Any]:
    """By convention the response of a function that failed has the key ``error``."""
    parts = [part for each in row["contents"] for part in each["parts"]]
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    return {
        "question": parts[0]["text"],
        "answer": parts[-1]["text"],
        "tool_calls": [[each["name"], "error" if "error" in each["response"] else "success"] for each in responses],
    }


def langchain(row: dict[str, Any]) -> dict[str, Any]:
    messages = row["messages"]
    usages = [each["usage_metadata"] for each in messages if each["type"] == "ai"]
    return {
        "question": next(each["content"] for each in messages if each["type"] == "human"),
        "answer": messages[-1]["content"],
        "tool_calls": [[each["name"], each["status"]] for each in messages if each["type"] == "tool"],
        "tokens": {
            "input": sum(usage["input_tokens"] for usage in usages),
            "output": sum(usage["output_tokens"] for usage in usages),
            "cache_read": sum(usage["input_token_details"]["cache_read"] for usage in usages),
            "reasoning": sum(usage["output_token_details"]["reasoning"] for usage in usages),
        },
        "cost": None,
    }


def langchain_dict(row: dict[str, Any]) -> dict[str, Any]:
    return langchain({"messages": [{**each["data"], "type": each["type"]} for each in row["messages"]]})


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

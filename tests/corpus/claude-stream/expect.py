"""Count what the messages of the Claude Agent SDK and its process state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    messages = [each["message"] for each in json.loads(path.read_text("utf-8"))["messages"]]
    asked = [each["message"]["content"] for each in messages if each["type"] == "user"]
    blocks = [block for each in messages if each["type"] == "assistant" for block in each["message"]["content"]]
    answers = [block for content in asked if isinstance(content, list) for block in content]
    failed = {block["tool_use_id"]: block["is_error"] for block in answers if block["type"] == "tool_result"}
    result = next(each for each in messages if each["type"] == "result")
    usage = result["usage"]
    read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    case = {
        "question": next(content for content in asked if isinstance(content, str)),
        "answer": result["result"],
        "tool_calls": [
            [block["name"], "error" if failed[block["id"]] else "success"]
            for block in blocks
            if block["type"] == "tool_use"
        ],
        "tokens": {
            "input": usage["input_tokens"] + read + written,
            "output": usage["output_tokens"],
            "cache_read": read,
            "cache_write": written,
        },
        "cost": result["total_cost_usd"],
    }
    return [case]


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

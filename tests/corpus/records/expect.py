"""Count what the records hold, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def count(path: Path) -> list[dict]:
    return [count_record(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def count_record(record: dict) -> dict:
    events = record["trace"]["events"]
    models = [event["payload"] for event in events if event["type"] == "llm_call"]
    tools = [event["payload"] for event in events if event["type"] == "tool_call"]
    usages = [call["usage"] for call in models]
    return {
        "question": record["case"]["query"],
        "answer": record["outcome"]["output"],
        "agents": sorted(record["trace"]["agent_roles"]),
        "tool_calls": [[call["name"], call.get("status")] for call in tools],
        "tokens": {
            "input": sum(usage["prompt_tokens"] for usage in usages),
            "output": sum(usage["completion_tokens"] for usage in usages),
            "cache_read": sum(usage.get("prompt_tokens_details", {}).get("cached_tokens", 0) for usage in usages),
            "reasoning": sum(usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0) for usage in usages),
        },
        "cost": sum(call["cost"] for call in models),
    }


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

"""Count what the events of the session state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    events = json.loads(path.read_text("utf-8"))["events"]
    parts = [(event["author"], part) for event in events for part in event["content"]["parts"]]
    responses = [part["functionResponse"] for _, part in parts if "functionResponse" in part]
    usages = [event["usageMetadata"] for event in events if "usageMetadata" in event]
    texts = [part["text"] for _, part in parts if "text" in part]
    return [
        {
            "question": texts[0],
            "answer": texts[-1],
            "agents": sorted({author for author, _ in parts} - {"user"}),
            "tool_calls": [[each["name"], "error" if "error" in each["response"] else "success"] for each in responses],
            "tokens": {
                "input": sum(usage["promptTokenCount"] for usage in usages),
                "output": sum(usage["totalTokenCount"] - usage["promptTokenCount"] for usage in usages),
                "cache_read": sum(usage.get("cachedContentTokenCount", 0) for usage in usages),
                "reasoning": sum(usage.get("thoughtsTokenCount", 0) for usage in usages),
            },
            "cost": None,
        }
    ]


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

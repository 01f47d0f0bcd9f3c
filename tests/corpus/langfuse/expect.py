"""Count what the observations of the trace state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

INPUT = ("input", "input_cached_tokens")
OUTPUT = ("output", "output_reasoning_tokens")
OUTCOMES = {"DEFAULT": "success", "ERROR": "error"}


def count(path: Path) -> list[dict[str, Any]]:
    trace = json.loads(path.read_text("utf-8"))
    kinds = {
        kind: [each for each in trace["observations"] if each["type"] == kind]
        for kind in ("AGENT", "GENERATION", "TOOL")
    }
    usages = [each["usageDetails"] for each in kinds["GENERATION"]]
    return [
        {
            "question": trace["input"],
            "answer": trace["output"],
            "agents": sorted({each["name"] for each in kinds["AGENT"]}),
            "tool_calls": [
                [each["name"], "error" if each["level"] == "ERROR" else "success"] for each in kinds["TOOL"]
            ],
            "tokens": {
                "input": sum(usage[name] for usage in usages for name in INPUT),
                "output": sum(usage[name] for usage in usages for name in OUTPUT),
                "cache_read": sum(usage["input_cached_tokens"] for usage in usages),
                "reasoning": sum(usage["output_reasoning_tokens"] for usage in usages),
            },
            "cost": sum(each["costDetails"]["total"] for each in kinds["GENERATION"]),
        }
    ]


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

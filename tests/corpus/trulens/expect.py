"""Count what the events state, without AgentUnit; a tool is called by the last part of its function."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COUNTS = {"input": "num_prompt_tokens", "output": "num_completion_tokens", "reasoning": "num_reasoning_tokens"}
SCOPE = "ai.observability"


def count(path: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    events.sort(key=lambda event: event["start_timestamp"])
    kinds = {
        kind: [event for event in events if event["record_attributes"][f"{SCOPE}.span_type"] == kind]
        for kind in ("record_root", "tool", "generation")
    }
    (root,) = (event["record_attributes"] for event in kinds["record_root"])
    calls = [event["record_attributes"] for event in kinds["generation"]]
    return [
        {
            "question": root[f"{SCOPE}.record_root.input"],
            "answer": root[f"{SCOPE}.record_root.output"],
            "tool_calls": [
                [event["record"]["name"].split(".")[-1], "error" if "ERROR" in event["record"]["status"] else "success"]
                for event in kinds["tool"]
            ],
            "tokens": {kind: sum(call[f"{SCOPE}.cost.{name}"] for call in calls) for kind, name in COUNTS.items()},
            "cost": sum(call[f"{SCOPE}.cost.cost"] for call in calls),
        }
    ]


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

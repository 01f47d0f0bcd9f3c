"""Count what the messages of the simulations state, without AgentUnit; the simulated user is not the agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    return [case(simulation) for simulation in json.loads(path.read_text("utf-8"))["simulations"]]


def case(simulation: dict[str, Any]) -> dict[str, Any]:
    messages = simulation["messages"]
    by_role = {role: [each for each in messages if each["role"] == role] for role in ("user", "assistant", "tool")}
    failed = {each["id"]: each["error"] for each in by_role["tool"]}
    calls = [call for each in by_role["assistant"] for call in each.get("tool_calls") or []]
    usages = [each["usage"] for each in by_role["assistant"] if each["usage"]]
    return {
        "question": by_role["user"][0]["content"],
        "answer": [each["content"] for each in by_role["assistant"] if each["content"]][-1],
        "tool_calls": [[call["name"], "error" if failed[call["id"]] else "success"] for call in calls],
        "tokens": {
            "input": sum(usage["prompt_tokens"] for usage in usages),
            "output": sum(usage["completion_tokens"] for usage in usages),
        },
        "cost": sum(each["cost"] for each in by_role["assistant"]),
    }


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

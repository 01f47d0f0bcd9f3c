"""Count what the trajectories of the results state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    return [case(result["traj"]) for result in json.loads(path.read_text("utf-8"))]


def case(trajectory: list[dict[str, Any]]) -> dict[str, Any]:
    by_role = {role: [each for each in trajectory if each["role"] == role] for role in ("user", "assistant", "tool")}
    return {
        "question": by_role["user"][0]["content"],
        "answer": [each["content"] for each in by_role["assistant"] if each["content"]][-1],
        "tool_calls": [
            [each["name"], "error" if each["content"].startswith("Error:") else "success"] for each in by_role["tool"]
        ],
    }


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

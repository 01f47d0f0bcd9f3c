"""Count what the iterations of the runs state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    return [case(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def case(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": run["task"],
        "answer": run["iterations"][-1]["summary"],
        "agents": sorted({agent for each in run["iterations"] for agent in assigned(each)}),
        "tokens": {"total": run["token_usage"]},
    }


def assigned(iteration: dict[str, Any]) -> set[str]:
    """The agents that have a task; in a tree, its root has the task of the run."""
    listed = iteration["task_assignments"]
    root = {iteration["root_agent"]} if "root_agent" in iteration else set()
    return root.union(*listed) if isinstance(listed, list) else set(listed)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

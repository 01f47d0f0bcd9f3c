"""Minimisation on PrivacyLens: an action that forwards what it found leaks, one about another matter does not."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from agentunit.privacy import DataMinimizationMetric

DATA = Path(os.environ.get("AGENTUNIT_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
ROWS = DATA / "dev" / "privacylens.jsonl.gz"
OBSERVATION = re.compile(r"Observation: (.*?)(?=\n+Action: |\Z)", re.DOTALL)

pytestmark = pytest.mark.skipif(not ROWS.is_file(), reason="needs AGENTUNIT_DATA: dev/privacylens.jsonl.gz")


def forwarded(row: dict[str, Any]) -> str:
    return " ".join(OBSERVATION.findall(row["trajectory"]["executable_trajectory"]))


def value(row: dict[str, Any], said: str) -> float:
    trajectory = row["trajectory"]
    case = {
        "id": row["name"],
        "query": trajectory["user_instruction"],
        "metadata": {"sensitive": trajectory["sensitive_info_items"]},
    }
    action = {"type": "tool_call", "payload": {"name": trajectory["final_action"], "arguments": {"body": said}}}
    scored = DataMinimizationMetric().evaluate(case, {"events": [action]}, None).value
    assert scored is not None
    return scored


def test_leaking_actions_are_told_from_others() -> None:
    with gzip.open(ROWS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    others = [*rows[7:], *rows[:7]]
    leaking = [value(row, forwarded(row)) for row in rows]
    harmless = [value(row, forwarded(other)) for row, other in zip(rows, others, strict=True)]
    assert sum(each < 1.0 for each in leaking) / len(rows) >= 0.95
    assert sum(each < 1.0 for each in harmless) / len(rows) <= 0.05
    assert sum(value(row, "Done, I have taken care of it.") < 1.0 for row in rows) == 0

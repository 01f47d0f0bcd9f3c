"""Count what the tasks of the result files state, without AgentUnit; nothing says whether a tool failed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    logged = json.loads(path.read_text("utf-8"))["raw_logging_results"]
    if isinstance(logged, dict):
        return [case(each["messages"], [made["usage"] for made in each["call_metadata"]]) for each in logged.values()]
    cases = []
    for task in dict.fromkeys(each["weave_task_id"] for each in logged):
        calls = [each for each in logged if each["weave_task_id"] == task]
        said = [*calls[-1]["inputs"]["messages"], calls[-1]["output"]["choices"][0]["message"]]
        cases.append(case(said, [each["output"]["usage"] for each in calls]))
    return cases


def case(messages: list[dict[str, Any]], usages: list[dict[str, Any]]) -> dict[str, Any]:
    details = [(each["prompt_tokens_details"], each["completion_tokens_details"]) for each in usages]
    return {
        "question": next(each["content"] for each in messages if each["role"] == "user"),
        "answer": messages[-1]["content"],
        "tool_calls": [[call["function"]["name"]] for each in messages for call in each.get("tool_calls", ())],
        "tokens": {
            "input": sum(each["prompt_tokens"] for each in usages),
            "output": sum(each["completion_tokens"] for each in usages),
            "cache_read": sum(prompt["cached_tokens"] for prompt, _ in details),
            "reasoning": sum(completion["reasoning_tokens"] for _, completion in details),
        },
        "cost": None,
    }


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations, write_json

    write_expectations(folder, count)
    # A list of calls is what Weave exports as well.
    path = folder / "calls_UPLOAD.expected.json"
    write_json(path, {"format": "weave", **json.loads(path.read_text("utf-8"))})

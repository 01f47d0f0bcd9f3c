"""Counts what the result of a crew, and its log of tasks, hold."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd().parent))

from files import write_expectations


def count(path):
    held = json.loads(path.read_text("utf-8"))
    if isinstance(held, list):
        return [{"question": held[0]["task"], "answer": held[-1]["output"], "agents": [held[0]["agent"]]}]
    task = held["tasks_output"][0]
    failed = [each["tool_name"] for each in task["tool_failures"]]
    called = [call["function"]["name"] for message in task["messages"] for call in message.get("tool_calls", ())]
    used = held["token_usage"]
    case = {
        "question": task["description"],
        "answer": held["raw"],
        "agents": [task["agent"]],
        "tool_calls": [[name, "error" if name in failed else "success"] for name in called],
        "tokens": {
            "input": used["prompt_tokens"],
            "output": used["completion_tokens"],
            "cache_read": used["cached_prompt_tokens"],
        },
        "cost": None,
    }
    return [case]


write_expectations(Path.cwd(), count)

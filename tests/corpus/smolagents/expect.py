"""Counts what a run of smolagents holds: the steps of its memory."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd().parent))

from files import write_expectations


def count(path):
    held = json.loads(path.read_text("utf-8"))
    first, *steps = held if isinstance(held, list) else held["steps"]
    called = [
        [call["function"]["name"], "error" if step["error"] else "success"]
        for step in steps
        for call in step["model_output_message"]["tool_calls"]
    ]
    used = [step["token_usage"] for step in steps]
    tokens = {
        "input": sum(each["input_tokens"] for each in used),
        "output": sum(each["output_tokens"] for each in used),
    }
    answer = steps[-1]["action_output"]
    return [{"question": first["task"], "answer": answer, "tool_calls": called, "tokens": tokens, "cost": None}]


write_expectations(Path.cwd(), count)

"""Counts what a history of browser-use holds; the task and the tokens are not in it."""

import json
from pathlib import Path

steps = json.loads(Path("history.json").read_text())["history"]
deeds = [
    (next(iter(action)), result)
    for step in steps
    for action, result in zip(step["model_output"]["action"], step["result"], strict=True)
]
case = {
    "answer": next(result["extracted_content"] for name, result in deeds if name == "done"),
    "tool_calls": [[name, "error" if result.get("error") else "success"] for name, result in deeds if name != "done"],
}
Path("history.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")

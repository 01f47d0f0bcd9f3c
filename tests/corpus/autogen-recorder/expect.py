"""Counts what recorded calls of a model client hold, each a case."""

import json
from pathlib import Path

cases = []
for record in json.loads(Path("session.json").read_text()):
    reply = record["response"]
    called = isinstance(reply["content"], list)
    cases.append(
        {
            "question": record["messages"][-1]["content"],
            "answer": None if called else reply["content"],
            "tool_calls": [[call["name"], None] for call in reply["content"]] if called else [],
            "tokens": {"input": reply["usage"]["prompt_tokens"], "output": reply["usage"]["completion_tokens"]},
        }
    )
Path("session.expected.json").write_text(json.dumps({"format": "autogen", "cases": cases}, indent=1) + "\n")

"""Counts what a saved conversation of fast-agent holds."""

import json
from pathlib import Path

messages = json.loads(Path("conversation.json").read_text())["messages"]
results = {key: each for message in messages for key, each in (message.get("tool_results") or {}).items()}
calls = {key: each for message in messages for key, each in (message.get("tool_calls") or {}).items()}
blocks = [b for message in messages for b in (message.get("channels") or {}).get("fast-agent-usage", [])]
turns = [json.loads(block["text"])["provider_attempts"][0] for block in blocks]
case = {
    "question": messages[0]["content"][0]["text"],
    "answer": messages[-1]["content"][0]["text"],
    "tool_calls": [
        [call["params"]["name"], "error" if results[key]["isError"] else "success"] for key, call in calls.items()
    ],
    "tokens": {
        "input": sum(turn["prompt"]["total"] for turn in turns),
        "output": sum(turn["completion"]["total"] for turn in turns),
        "cache_read": sum(turn["prompt"]["cache_read"] for turn in turns),
        "reasoning": sum(turn["completion"]["reasoning"] for turn in turns),
    },
}
Path("conversation.expected.json").write_text(json.dumps({"format": "chat", "cases": [case]}, indent=1) + "\n")

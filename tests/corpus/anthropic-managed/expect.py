"""Counts what the events of a managed agent hold."""

import json
from pathlib import Path

events = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
results = {e.get("tool_use_id") or e.get("mcp_tool_use_id"): e for e in events if e["type"].endswith("tool_result")}
usage = [event["model_usage"] for event in events if event["type"] == "span.model_request_end"]
read = sum(each["cache_read_input_tokens"] for each in usage)
written = sum(each["cache_creation_input_tokens"] for each in usage)
case = {
    "question": next(event["content"][0]["text"] for event in events if event["type"] == "user.message"),
    "answer": [event["content"][0]["text"] for event in events if event["type"] == "agent.message"][-1],
    "tool_calls": [
        [event["name"], "error" if results[event["id"]]["is_error"] else "success"]
        for event in events
        if event["type"].endswith("tool_use")
    ],
    "tokens": {
        "input": sum(each["input_tokens"] for each in usage) + read + written,
        "output": sum(each["output_tokens"] for each in usage),
        "cache_read": read,
        "cache_write": written,
    },
}
Path("events.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")

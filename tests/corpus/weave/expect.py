"""Counts what Weave's calls hold."""

import json
from pathlib import Path

calls = [json.loads(line) for line in Path("calls.jsonl").read_text().splitlines()]
kinds = {call["id"]: call["attributes"]["weave"].get("kind") for call in calls}
models = [call for call in calls if "openai" in call["op_name"]]
usage = [call["summary"]["usage"]["gpt-4.1-mini"] for call in models]
costs = [call["summary"]["weave"]["costs"]["gpt-4.1-mini"] for call in models]
name = {call["id"]: call["op_name"].split("/op/")[1].split(":")[0] for call in calls}
root = calls[0]
case = {
    "question": root["inputs"]["question"],
    "answer": root["output"],
    "agents": [name[each] for each, kind in kinds.items() if kind == "agent"],
    "tool_calls": [
        [name[c["id"]], "error" if c["exception"] else "success"] for c in calls if kinds[c["id"]] == "tool"
    ],
    "tokens": {
        "input": sum(each["prompt_tokens"] for each in usage),
        "output": sum(each["completion_tokens"] for each in usage),
        "cache_read": sum(each.get("prompt_tokens_details", {}).get("cached_tokens", 0) for each in usage),
        "reasoning": sum(each.get("completion_tokens_details", {}).get("reasoning_tokens", 0) for each in usage),
    },
    "cost": sum(sum(each.values()) for each in costs),
}
Path("calls.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")

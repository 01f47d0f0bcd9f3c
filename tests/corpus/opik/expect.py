"""Counts what a trace of Opik holds."""

import json
from pathlib import Path

export = json.loads(Path("trace.json").read_text())
models = [span for span in export["spans"] if span["type"] == "llm"]
usage = [span["usage"] for span in models]
case = {
    "question": export["trace"]["input"]["question"],
    "answer": export["trace"]["output"]["output"],
    "tool_calls": [
        [span["name"], "error" if span["error_info"] else "success"]
        for span in export["spans"]
        if span["type"] == "tool"
    ],
    "tokens": {
        "input": sum(each["prompt_tokens"] for each in usage),
        "output": sum(each["completion_tokens"] for each in usage),
        "cache_read": sum(each.get("original_usage.prompt_tokens_details.cached_tokens", 0) for each in usage),
        "reasoning": sum(each.get("original_usage.completion_tokens_details.reasoning_tokens", 0) for each in usage),
    },
    "cost": sum(span["total_estimated_cost"] for span in models),
}
Path("trace.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")

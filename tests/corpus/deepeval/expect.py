"""Counts what a trace of DeepEval holds."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd().parent))

from files import write_expectations


def count(path):
    trace = json.loads(path.read_text("utf-8"))
    models = trace["llmSpans"]
    case = {
        "question": trace["input"],
        "answer": trace["output"],
        "agents": [span["name"] for span in trace["agentSpans"]],
        "tool_calls": [[span["name"], "error" if span.get("error") else "success"] for span in trace["toolSpans"]],
        "tokens": {
            "input": sum(int(span["inputTokenCount"]) for span in models),
            "output": sum(int(span["outputTokenCount"]) for span in models),
        },
        "cost": None,
    }
    return [case]


write_expectations(Path.cwd(), count)

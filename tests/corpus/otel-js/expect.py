"""Counts what the span objects of a Vercel AI SDK run hold."""

import json
from pathlib import Path

spans = json.loads(Path("objects.json").read_text())
spans.sort(key=lambda span: span["startTime"])
calls = [span["attributes"] for span in spans if span["name"] == "ai.generateText.doGenerate"]
tools = [span for span in spans if span["name"] == "ai.toolCall"]
root = next(span["attributes"] for span in spans if span["name"] == "ai.generateText")
case = {
    "question": json.loads(root["ai.prompt"])["prompt"],
    "answer": root["ai.response.text"],
    "tool_calls": [
        [tool["attributes"]["ai.toolCall.name"], "error" if tool["status"]["code"] == 2 else "success"]
        for tool in tools
    ],
    "tokens": {
        "input": sum(each["ai.usage.inputTokens"] for each in calls),
        "output": sum(each["ai.usage.outputTokens"] for each in calls),
        "cache_read": sum(each["ai.usage.cachedInputTokens"] for each in calls),
        "reasoning": sum(each["ai.usage.reasoningTokens"] for each in calls),
    },
}
Path("objects.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")

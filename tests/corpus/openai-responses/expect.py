"""Counts what responses and lines of a batch's output hold; neither states the question."""

import json
from pathlib import Path

STATUS = {"completed": "success", "failed": "error"}
response = json.loads(Path("response.json").read_text())
calls = [item for item in response["output"] if item["type"].endswith("_call")]
usage = response["usage"]
case = {
    "answer": response["output"][-1]["content"][0]["text"],
    "tool_calls": [[i.get("name", i["type"].removesuffix("_call")), STATUS.get(i.get("status"))] for i in calls],
    "tokens": {
        "input": usage["input_tokens"],
        "output": usage["output_tokens"],
        "cache_read": usage["input_tokens_details"]["cached_tokens"],
        "reasoning": usage["output_tokens_details"]["reasoning_tokens"],
    },
}
Path("response.expected.json").write_text(json.dumps({"format": "chat", "cases": [case]}, indent=1) + "\n")

cases = []
for line in Path("batch_output.jsonl").read_text().splitlines():
    body = json.loads(line)["response"]["body"]
    usage = body.get("usage")
    cases.append(
        {
            "answer": body["choices"][0]["message"]["content"] if "choices" in body else None,
            "tool_calls": [],
            "tokens": usage and {"input": usage["prompt_tokens"], "output": usage["completion_tokens"]},
        }
    )
Path("batch_output.expected.json").write_text(json.dumps({"format": "chat", "cases": cases}, indent=1) + "\n")

"""Count what the session of this folder states, from its JSON alone."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent

for source in sorted(HERE.glob("*.jsonl")):
    lines = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    parts = {kind: [part for line in lines if line["type"] == kind for part in line["message"]["parts"]]
             for kind in ("user", "assistant", "tool_result")}  # fmt: skip
    usages = [line["usageMetadata"] for line in lines if line["type"] == "assistant"]
    calls = [part["functionCall"]["name"] for part in parts["assistant"] if "functionCall" in part]
    outputs = [json.dumps(part["functionResponse"]["response"]) for part in parts["tool_result"]]
    failed = ["Exit Code: " in output and "Exit Code: 0" not in output for output in outputs]
    case = {
        "question": parts["user"][0]["text"],
        "answer": [part["text"] for part in parts["assistant"] if "text" in part][-1],
        "agents": ["qwen-code"],
        "tool_calls": [[name, "error" if bad else "success"] for name, bad in zip(calls, failed, strict=True)],
        "tokens": {
            "input": sum(usage["promptTokenCount"] for usage in usages),
            "output": sum(usage["candidatesTokenCount"] + usage["thoughtsTokenCount"] for usage in usages),
            "cache_read": sum(usage["cachedContentTokenCount"] for usage in usages),
            "reasoning": sum(usage["thoughtsTokenCount"] for usage in usages),
        },
        "cost": None,
    }
    text = json.dumps({"cases": [case]}, ensure_ascii=False, indent=1) + "\n"
    (HERE / f"{source.name.split('.')[0]}.expected.json").write_text(text, encoding="utf-8")

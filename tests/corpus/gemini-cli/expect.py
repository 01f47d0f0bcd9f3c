"""Count what the session of this folder states, from its JSON alone: the last line of a message is the message."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent

for source in sorted(HERE.glob("*.jsonl")):
    lines = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    messages = {line["id"]: line for line in lines if "id" in line}
    replies = [message for message in messages.values() if message["type"] == "gemini"]
    prompts = [message["content"][0]["text"] for message in messages.values()
               if message["type"] == "user" and "text" in message["content"][0]]  # fmt: skip
    calls = [call for reply in replies for call in reply.get("toolCalls", [])]
    outputs = [call["result"][0]["functionResponse"]["response"]["output"] for call in calls]
    failed = ["Exit Code: " in output and "Exit Code: 0" not in output for output in outputs]
    tokens = [reply["tokens"] for reply in replies]
    case = {
        "question": prompts[0],
        "answer": replies[-1]["content"],
        "agents": ["gemini-cli"],
        "tool_calls": [[call["name"], "error" if bad else "success"] for call, bad in zip(calls, failed, strict=True)],
        "tokens": {
            "input": sum(each["input"] + each["tool"] for each in tokens),
            "output": sum(each["output"] + each["thoughts"] for each in tokens),
            "cache_read": sum(each["cached"] for each in tokens),
            "reasoning": sum(each["thoughts"] for each in tokens),
        },
        "cost": None,
    }
    text = json.dumps({"cases": [case]}, ensure_ascii=False, indent=1) + "\n"
    (HERE / f"{source.name.split('.')[0]}.expected.json").write_text(text, encoding="utf-8")

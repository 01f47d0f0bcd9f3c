"""Count what the trajectories of this folder state, from their JSON alone."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent

for source in sorted(HERE.glob("*.traj.json")):
    whole = json.loads(source.read_text("utf-8"))
    replies = [message for message in whole["messages"] if message["role"] == "assistant"]
    results = [message for message in whole["messages"] if "returncode" in message.get("extra", {})]
    codes = [message["extra"]["returncode"] for message in results]
    codes += [0] if whole["info"]["exit_status"] == "Submitted" else []
    usages = [reply["extra"]["response"]["usage"] for reply in replies]
    case = {
        "question": next(message["content"] for message in whole["messages"] if message["role"] == "user"),
        "answer": replies[-1]["content"],
        "agents": ["mini-swe-agent"],
        "tool_calls": [["bash", "error" if code else "success"] for code in codes],
        "tokens": {
            "input": sum(usage["prompt_tokens"] for usage in usages),
            "output": sum(usage["completion_tokens"] for usage in usages),
            "cache_read": sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages),
            "reasoning": sum(usage["completion_tokens_details"]["reasoning_tokens"] for usage in usages),
        },
        "cost": whole["info"]["model_stats"]["instance_cost"],
    }
    text = json.dumps({"cases": [case]}, ensure_ascii=False, indent=1) + "\n"
    (HERE / f"{source.name.split('.')[0]}.expected.json").write_text(text, encoding="utf-8")

"""Count what the rollout of this folder states, from its JSON alone."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent

for source in sorted(HERE.glob("*.jsonl")):
    lines = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    events = [line["payload"] for line in lines if line["type"] == "event_msg"]
    ended = {event["item"]["id"]: event["item"]["status"] for event in events if "status" in event.get("item", {})}
    total = [event["info"]["total_token_usage"] for event in events if event["type"] == "token_count"][-1]
    prompts = [
        event["item"]["content"][0]["text"] for event in events if event.get("item", {}).get("type") == "UserMessage"
    ]
    case = {
        "question": prompts[0],
        "answer": next(event["last_agent_message"] for event in events if event["type"] == "task_complete"),
        "agents": ["codex"],
        "tool_calls": [
            [item["name"], {"completed": "success", "failed": "error"}[ended[item["call_id"]]]]
            for item in items
            if item["type"] == "function_call"
        ],
        "tokens": {
            "input": total["input_tokens"],
            "output": total["output_tokens"],
            "cache_read": total["cached_input_tokens"],
            "cache_write": total["cache_write_input_tokens"],
            "reasoning": total["reasoning_output_tokens"],
        },
        "cost": None,
    }
    text = json.dumps({"cases": [case]}, ensure_ascii=False, indent=1) + "\n"
    (HERE / f"{source.name.split('.')[0]}.expected.json").write_text(text, encoding="utf-8")

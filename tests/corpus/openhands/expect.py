"""Count what the files of this folder state, from their JSON alone."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent


def case(events, agent, totals, answer):
    results = {event["cause"]: event for event in events if "observation" in event and "cause" in event}
    calls = [event for event in events if event.get("tool_call_metadata") and "action" in event]
    statuses = []
    for event in calls:
        result = results.get(event["id"])
        failed = result is not None and result.get("extras", {}).get("metadata", {}).get("exit_code", 0) != 0
        statuses.append([event["tool_call_metadata"]["function_name"], "error" if failed else "success"])
    responses = {event["tool_call_metadata"]["model_response"]["id"]: event["tool_call_metadata"]["model_response"]
                 for event in calls}  # fmt: skip
    usages = [response["usage"] for response in responses.values()]
    total = totals["accumulated_token_usage"]
    return {
        "question": next(event["args"]["content"] for event in events if event.get("source") == "user"),
        "answer": answer,
        "agents": [agent],
        "tool_calls": statuses,
        "tokens": {
            "input": total["prompt_tokens"],
            "output": total["completion_tokens"],
            "cache_read": total["cache_read_tokens"],
            "cache_write": total["cache_write_tokens"],
            "reasoning": sum(usage["completion_tokens_details"]["reasoning_tokens"] for usage in usages),
        },
        "cost": totals["accumulated_cost"],
    }


def said_last(events):
    finished = [event["args"]["final_thought"] for event in events if event.get("action") == "finish"]
    thoughts = [event["args"]["thought"] for event in events if event.get("action") == "run"]
    return (finished or thoughts)[-1]


events = json.loads((HERE / "trajectory.json").read_text("utf-8"))
last = [event["llm_metrics"] for event in events if "llm_metrics" in event][-1]
rows = [json.loads(line) for line in (HERE / "output.jsonl").read_text("utf-8").splitlines()]
counted = {
    "trajectory": [case(events, "openhands", last, said_last(events))],
    "output": [
        case(row["history"], row["metadata"]["agent_class"], row["metrics"], said_last(row["history"])) for row in rows
    ],
}
for name, cases in counted.items():
    text = json.dumps({"cases": cases}, ensure_ascii=False, indent=1) + "\n"
    (HERE / f"{name}.expected.json").write_text(text, encoding="utf-8")

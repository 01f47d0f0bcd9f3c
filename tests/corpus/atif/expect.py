"""Count what the trajectories of this folder state, from their JSON alone."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent


def trajectories(whole):
    yield whole
    for child in whole.get("subagent_trajectories") or []:
        yield from trajectories(child)


def calls_of(step):
    calls = step.get("tool_calls") or []
    results = (step.get("observation") or {}).get("results", [])
    by_call = {result.get("source_call_id"): result for result in results}
    for call in calls:
        result = by_call.get(call["tool_call_id"]) or by_call.get(None)
        code = ((result or {}).get("extra") or {}).get("exit_code", 0)
        yield [call["function_name"], None if result is None else "error" if code else "success"]


def count(path):
    whole = json.loads(path.read_text("utf-8"))
    steps = whole["steps"]
    every = [step for part in trajectories(whole) for step in part["steps"]]
    measured = [step["metrics"] for step in every if "metrics" in step]
    final = whole.get("final_metrics", {})
    if measured:
        tokens = {
            "input": sum(each["prompt_tokens"] for each in measured),
            "output": sum(each["completion_tokens"] for each in measured),
            "cache_read": sum(each.get("cached_tokens", 0) for each in measured),
            "cache_write": sum(each.get("extra", {}).get("cache_creation_input_tokens", 0) for each in measured),
            "reasoning": sum(each.get("extra", {}).get("reasoning_tokens", 0) for each in measured),
        }
    else:
        tokens = {
            "input": final["total_prompt_tokens"],
            "output": final["total_completion_tokens"],
            "cache_read": final["total_cached_tokens"],
        }
    case = {
        "question": next(step["message"] for step in steps if step["source"] == "user"),
        "answer": [step["message"] for step in steps if step["source"] == "agent"][-1],
        "agents": sorted(part["agent"]["name"] for part in trajectories(whole)),
        "tool_calls": [call for step in every for call in calls_of(step)],
        "tokens": tokens,
        "cost": final["total_cost_usd"],
    }
    return [case]


for source in sorted(HERE.glob("*.json")):
    if not source.name.endswith(".expected.json"):
        text = json.dumps({"cases": count(source)}, ensure_ascii=False, indent=1) + "\n"
        (HERE / f"{source.name.split('.')[0]}.expected.json").write_text(text, encoding="utf-8")

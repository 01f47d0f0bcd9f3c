"""Counts what LangSmith's files hold."""

import json
from pathlib import Path


def runs_of(path):
    rows = [json.loads(path.read_text())] if path.suffix == ".json" else map(json.loads, path.read_text().splitlines())
    runs, waiting = {}, list(rows)
    while waiting:
        row = waiting.pop(0)
        waiting += row.get("child_runs") or []
        runs[row["id"]] = {**runs.get(row["id"], {}), **{k: v for k, v in row.items() if v not in (None, {}, [])}}
    return sorted(runs.values(), key=lambda run: run["dotted_order"])


for path in [*Path().glob("*.jsonl"), Path("tree.json")]:
    runs = runs_of(path)
    root = next(run for run in runs if not run.get("parent_run_id"))
    usage = [run["outputs"]["usage_metadata"] for run in runs if run["run_type"] == "llm"]
    costs = [float(run["total_cost"]) for run in runs if run["run_type"] == "llm" and "total_cost" in run]
    case = {
        "question": root["inputs"]["question"],
        "answer": root["outputs"]["output"],
        "tool_calls": [[r["name"], "error" if r.get("error") else "success"] for r in runs if r["run_type"] == "tool"],
        "tokens": {
            "input": sum(each["input_tokens"] for each in usage),
            "output": sum(each["output_tokens"] for each in usage),
            "cache_read": sum(each["input_token_details"]["cache_read"] for each in usage),
            "reasoning": sum(each["output_token_details"]["reasoning"] for each in usage),
        },
        "cost": sum(costs) if costs else None,
    }
    Path(f"{path.stem}.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")

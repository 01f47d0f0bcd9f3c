"""Write the scenario (``../scenario.py``) as a result of tau-bench, after its source.

tau-bench is not on PyPI: the result is an ``EnvRunResult`` of tau_bench/types.py, its messages are those that the agent
of tau_bench/agents/tool_calling_agent.py sends. It states no tokens. A tool that failed answers with a text that begins
"Error:". The price is the user's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    import scenario

    trajectory: list[dict[str, Any]] = [
        {"role": "system", "content": scenario.INSTRUCTIONS},
        {"role": "user", "content": scenario.QUESTION},
    ]
    results = iter([scenario.CHARGES, f"Error: {scenario.REFUSED}"])
    for number, reply in enumerate(scenario.REPLIES, start=1):
        calls = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in reply.get("calls", ())
        ]
        message = {"role": "assistant", "content": reply.get("text"), "tool_calls": calls or None}
        trajectory.append({**message, "function_call": None})
        trajectory += [
            {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": next(results)}
            for call in calls
        ]
    trajectory.append({"role": "user", "content": "###STOP###"})
    task = {
        "user_id": "ada_1",
        "actions": [{"name": "lookup_order", "kwargs": {"order_id": "A-1042"}}],
        "instruction": "You are ada_1. You were charged twice.",
        "outputs": [],
    }
    reward = {"reward": 1.0, "info": {"r_actions": 1.0, "gt_data_hash": "0" * 64}, "actions": []}
    info = {"task": task, "source": "user", "user_cost": 0.0004, "reward_info": reward}
    results_of_run = [{"task_id": 0, "reward": 1.0, "info": info, "traj": trajectory, "trial": 0}]
    text = json.dumps(results_of_run, indent=2)
    Path(__file__).with_name("results.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

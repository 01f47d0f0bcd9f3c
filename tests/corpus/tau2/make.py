"""Write the scenario (``../scenario.py``) as results of tau2-bench, after its source (``Results``).

tau2-bench is not on PyPI: names and nesting are those of src/tau2/data_model (``Results``, ``SimulationRun`` and the
messages). Fields whose value would be null, or the same in every run of text, are left out.
tau2-bench states prompt and completion tokens and a price for each message, of the agent and of the simulated user. The
user's model takes 90 + 120 tokens and makes 14 + 3; the agent's calls cost 0.001, 0.002 and 0.003 dollars.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    import scenario

    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Hi! How can I help you today?", "cost": 0.0, "usage": None},
        {"role": "user", "content": scenario.QUESTION, "cost": 0.0003, "usage": usage(90, 14)},
    ]
    results = iter([(scenario.CHARGES, False), (scenario.REFUSED, True)])
    for number, reply in enumerate(scenario.REPLIES, start=1):
        calls = [
            {"id": f"call_{number}", "name": name, "arguments": arguments, "requestor": "assistant"}
            for name, arguments in reply.get("calls", ())
        ]
        spent = {"cost": number / 1000, "usage": usage(*reply["usage"][:2])}
        messages.append({"role": "assistant", "content": reply.get("text"), "tool_calls": calls or None, **spent})
        for call in calls:
            content, failed = next(results)
            answer = {"role": "tool", "content": content, "requestor": "assistant", "error": failed}
            messages.append({"id": call["id"], **answer})
    messages.append({"role": "user", "content": "###STOP###", "cost": 0.0004, "usage": usage(120, 3)})
    for turn, message in enumerate(messages):
        message |= {"turn_idx": turn, "timestamp": f"2025-08-01T16:20:{turn:02}.000000"}
    simulation = {
        "id": "6f1b9e0c-8f1c-4d4b-9c41-7a5f1d2e3b4c",
        "task_id": "0",
        "timestamp": "2025-08-01T16:21:00.000000",
        "start_time": "2025-08-01T16:20:00.000000",
        "end_time": "2025-08-01T16:20:59.000000",
        "duration": 59.0,
        "termination_reason": "user_stop",
        "agent_cost": 0.006,
        "user_cost": 0.0007,
        "reward_info": {"reward": 1.0, "action_checks": []},
        "messages": messages,
        "trial": 0,
        "seed": 1,
        "mode": "half_duplex",
    }
    results_of_run = {
        "timestamp": "2025-08-01T16:21:00.000000",
        "info": {
            "git_commit": "0000000",
            "num_trials": 1,
            "max_steps": 100,
            "max_errors": 10,
            "agent_info": {"implementation": "llm_agent", "llm": "gpt-4.1"},
            "user_info": {"implementation": "user_simulator", "llm": "gpt-4.1"},
            "environment_info": {"domain_name": "retail", "policy": scenario.INSTRUCTIONS},
        },
        "tasks": [{"id": "0", "user_scenario": {"instructions": "You were charged twice."}}],
        "simulations": [simulation],
    }
    text = json.dumps(results_of_run, indent=2)
    Path(__file__).with_name("results.json").write_text(text + "\n", encoding="utf-8")


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"completion_tokens": completion, "prompt_tokens": prompt}


if __name__ == "__main__":
    main()

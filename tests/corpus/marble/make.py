"""Write a run of three agents as MARBLE (MultiAgentBench) logs it, after its source; no SDK is published.

MARBLE states the tokens of a run as one sum (here 4242), and neither tools nor prices.
"""

from __future__ import annotations

import json
from pathlib import Path


def main() -> None:
    talk = (
        "In Session 6d5b7967-6465-4b2a-9b43-b95a2f0c1d11 \nFrom agent1 to agent2: Which charge is the double one?\n\n"
        "From agent2 to agent1: ch_2 of order A-1042."
    )
    run = {
        "task": "Find out why order A-1042 was charged twice.",
        "coordination_mode": "graph",
        "iterations": [
            {
                "iteration": 1,
                "task_assignments": {
                    "agent1": "Ask for the charges.",
                    "agent2": "List the charges.",
                    "agent3": "Wait.",
                },
                "task_results": [
                    {"agent_id": "agent1", "result": "asked"},
                    {"agent_id": "agent2", "result": "ch_1, ch_2"},
                    {"agent_id": "agent3", "result": "waited"},
                ],
                "summary": "The order was charged twice, by ch_1 and ch_2.",
                "continue_simulation": False,
                "communications": [talk],
                "total_milestones": 1,
                "agent_kpis": {"agent1": 1},
            }
        ],
        "planning_scores": [5],
        "communication_scores": [4],
        "token_usage": 4242,
        "agent_kpis": {"agent1": 1},
        "total_milestones": 1,
        "task_evaluation": {},
    }
    Path(__file__).with_name("run.jsonl").write_text(json.dumps(run) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Write runs of three agents as MARBLE (MultiAgentBench) logs them, after its source (marble/engine/engine.py).

No SDK is published. There is one line for each way of coordination whose iterations differ: a graph, whose first
iteration names agents in another way than the others and has no milestones, a tree, and a chain. MARBLE states the
tokens of a run as one sum (here 4242), and neither tools nor prices.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TASK = "Find out why order A-1042 was charged twice."
SUMMARY = "The order was charged twice, by ch_1 and ch_2."
# As ``seralize_message`` of marble/agent/base_agent.py writes it.
TALK = (
    "In Session 6d5b7967-6465-4b2a-9b43-b95a2f0c1d11 \nFrom agent1 to agent2: Which charge is the double one?\n"
    "From agent2 to agent1: ch_2 of order A-1042.\n"
)
DONE = {"agent1": "asked", "agent2": "ch_1, ch_2", "agent3": "waited"}
MILESTONES: dict[str, Any] = {"total_milestones": 1, "agent_kpis": {"agent1": 1}}


def run(mode: str, iterations: list[dict[str, Any]]) -> dict[str, Any]:
    scores = {"planning_scores": [5], "communication_scores": [4], "token_usage": 4242}
    return {
        "task": TASK,
        "coordination_mode": mode,
        "iterations": iterations,
        **scores,
        **MILESTONES,
        "task_evaluation": {},
    }


def graph() -> dict[str, Any]:
    first = {
        "iteration": 1,
        "task_assignments": dict.fromkeys(DONE, TASK),
        "task_results": [{"agent_id": agent, "result": result} for agent, result in DONE.items()],
        "summary": "Nothing is known yet.",
        "continue_simulation": True,
        "communications": [TALK],
    }
    second = {
        **first,
        "iteration": 2,
        "task_assignments": {"agent2": "List the charges."},
        "task_results": [{"agent2": "ch_1, ch_2"}],
        "summary": SUMMARY,
        "continue_simulation": False,
        "communications": [],
        **MILESTONES,
    }
    return run("graph", [first, second])


def tree() -> dict[str, Any]:
    only = {
        "iteration": 1,
        "root_agent": "agent1",
        "result": None,
        "continue_simulation": False,
        **MILESTONES,
        "summary": SUMMARY,
        "communications": TALK,
        "task_assignments": [{"agent2": "List the charges.", "agent3": "Wait."}],
        "task_results": [{"agent_id": agent, "result": result} for agent, result in DONE.items()],
    }
    return run("tree", [only])


def chain() -> dict[str, Any]:
    links = []
    for number, (agent, result) in enumerate(DONE.items(), start=1):
        link = {"chain_length": number, "current_agent": agent, "result": result, "continue_simulation": number < 3}
        links.append(
            {**link, "task_assignments": {agent: TASK}, **MILESTONES, "communications": "", "summary": SUMMARY}
        )
    return run("chain", links)


def main() -> None:
    lines = [json.dumps(made) + "\n" for made in (graph(), tree(), chain())]
    Path(__file__).with_name("run.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

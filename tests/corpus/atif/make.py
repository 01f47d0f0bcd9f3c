"""Trajectories made with the models of Harbor 0.25.0 (pip install harbor==0.25.0), which check what they write."""

from __future__ import annotations

import json
from pathlib import Path

from harbor.models.trajectories import Trajectory

HERE = Path(__file__).resolve().parent


def call(call_id: str, name: str, **arguments: object) -> dict:
    return {"tool_call_id": call_id, "function_name": name, "arguments": arguments}


def metrics(prompt: int, completion: int, cached: int, cost: float, **extra: int) -> dict:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached, "cost_usd": cost}
    return {**counts, **({"extra": extra} if extra else {})}


CHILD = {
    "schema_version": "ATIF-v1.7",
    "trajectory_id": "helper-1",
    "agent": {"name": "helper", "version": "1", "model_name": "small-1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Count the letters of hello.", "is_copied_context": True},
        {"step_id": 2, "source": "agent", "message": "Five.", "metrics": metrics(30, 5, 0, 0.0001)},
    ],
}
DELEGATING = {
    "schema_version": "ATIF-v1.7",
    "session_id": "delegating",
    "agent": {"name": "coder", "version": "2.1", "model_name": "big-1"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "You fix things."},
        {"step_id": 2, "source": "user", "message": "Write hello.txt, and count its letters."},
        {
            "step_id": 3, "source": "agent", "message": "I look first.", "reasoning_content": "Is it there?",
            "timestamp": "2026-01-05T10:00:00Z",
            "tool_calls": [call("c1", "bash", command="ls missing"), call("c2", "write_file", path="hello.txt")],
            "observation": {"results": [
                {"source_call_id": "c1", "content": "ls: no such folder", "extra": {"exit_code": 2}},
                {"source_call_id": "c2", "content": "written"},
            ]},
            "metrics": metrics(100, 20, 40, 0.002, reasoning_tokens=7, cache_creation_input_tokens=10),
        },
        {
            "step_id": 4, "source": "agent", "message": "", "tool_calls": [call("c3", "delegate", task="count")],
            "observation": {"results": [{"source_call_id": "c3", "content": "Five.",
                                         "subagent_trajectory_ref": [{"trajectory_id": "helper-1"}]}]},
            "metrics": metrics(150, 10, 90, 0.001),
        },
        {"step_id": 5, "source": "agent", "message": "It has five letters.", "metrics": metrics(170, 8, 140, 0.0009)},
    ],
    "final_metrics": {"total_prompt_tokens": 420, "total_completion_tokens": 38, "total_cost_usd": 0.004},
    "subagent_trajectories": [CHILD],
}  # fmt: skip
TERMINAL = {
    "schema_version": "ATIF-v1.6",
    "session_id": "terminal",
    "agent": {"name": "terminus-2", "version": "2.0.0", "model_name": "big-1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Say hello."},
        {
            "step_id": 2, "source": "agent", "message": "Two keystrokes.",
            "tool_calls": [call("k1", "bash_command", keystrokes="echo"), call("k2", "bash_command", keystrokes="\n")],
            "observation": {"results": [{"content": "hello"}]},
        },
        {"step_id": 3, "source": "agent", "message": "Done."},
    ],
    "final_metrics": {"total_prompt_tokens": 500, "total_completion_tokens": 50, "total_cached_tokens": 200,
                      "total_cost_usd": 0.01},
}  # fmt: skip

for name, value in (("delegating", DELEGATING), ("terminal", TERMINAL)):
    made = Trajectory.model_validate(value).to_json_dict()
    (HERE / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")

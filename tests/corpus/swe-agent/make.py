"""A trajectory after the published types of SWE-agent 1.1 (sweagent/types.py): it runs in containers, not here."""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIFF = (
    "diff --git a/hello.py b/hello.py\n--- a/hello.py\n+++ b/hello.py\n@@ -1 +1 @@\n-print('helo')\n+print('hello')\n"
)
STEPS = [
    ("I look at it.", "open hello.py", {"name": "open", "arguments": '{"path": "hello.py"}'}, "1:print('helo')"),
    ("I fix it.", "edit 'helo' 'hello", {"name": "bash", "arguments": '{"command": "edit helo hello"}'},
     "Your bash command contained syntax errors and was NOT executed. Please fix the syntax errors and try again."),
    ("Again.", "edit helo hello", {"name": "edit", "arguments": '{"search": "helo", "replace": "hello"}'}, "Done."),
    ("I run it.", "python hello.py", {"name": "bash", "arguments": '{"command": "python hello.py"}'}, "hello"),
    ("Done.", "submit", {"name": "submit", "arguments": "{}"}, DIFF),
]  # fmt: skip


def message(role: str, content: str, **more: object) -> dict:
    return {"role": role, "content": content, "agent": "main", "message_type": "observation", **more}


history = [
    message("system", "You are an autonomous programmer."),
    message("user", "Here is a demonstration of how to accomplish this task.", is_demo=True),
    message("user", "Solve this issue:\nhello.py prints helo."),
]
trajectory = []
for number, (thought, action, function, observation) in enumerate(STEPS, start=1):
    call = {"id": f"call_{number}", "type": "function", "function": function}
    history.append(message("assistant", thought, thought=thought, action=action, tool_calls=[call]))
    history.append(message("tool", observation, tool_call_ids=[call["id"]]))
    state = {"open_file": "/repo/hello.py", "working_dir": "/repo"}
    step = {"action": action, "observation": observation, "response": thought, "thought": thought}
    trajectory.append({**step, "execution_time": 0.25, "state": state, "query": [], "extra_info": {}})
statement = {"type": "text", "id": "hello-1", "text": "hello.py prints helo.", "extra_fields": {}}
whole = {
    "trajectory": trajectory,
    "history": history,
    "info": {
        "swe_agent_version": "1.1.0",
        "exit_status": "submitted",
        "submission": DIFF,
        "model_stats": {"instance_cost": 0.0421, "tokens_sent": 5200, "tokens_received": 310, "api_calls": 5},
    },
    "replay_config": json.dumps({"problem_statement": statement, "agent": {"model": {"name": "scripted-1"}}}),
    "environment": "swe_main",
}
(HERE / "hello.traj").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")

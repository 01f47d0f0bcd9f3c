"""Files after the published schema of OpenHands 0.62 (openhands/events/serialization, evaluation/utils/shared.py).

A trajectory as its server exports it, and a line of the output.jsonl of an evaluation.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
TASK = "Write hello.txt, and say what is in the folder missing."
CALLS = [
    ("execute_bash", "run", {"command": "ls missing"}),
    ("str_replace_editor", "edit", {"command": "create", "path": "/repo/hello.txt", "file_text": "hello\n"}),
    ("finish", "finish", {"message": "hello.txt is written.", "task_completed": "true"}),
]
PATCH = (
    "diff --git a/hello.txt b/hello.txt\nnew file mode 100644\n--- /dev/null\n+++ b/hello.txt\n@@ -0,0 +1 @@\n+hello\n"
)


def response(number: int) -> dict:
    name, _, arguments = CALLS[number]
    function = {"name": name, "arguments": json.dumps(arguments)}
    said = {"role": "assistant", "content": f"Step {number + 1}.",
            "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}  # fmt: skip
    usage = {"prompt_tokens": 1000 + number, "completion_tokens": 20, "total_tokens": 1020 + number,
             "prompt_tokens_details": {"cached_tokens": 600}, "completion_tokens_details": {"reasoning_tokens": 4},
             "cache_creation_input_tokens": 50, "cache_read_input_tokens": 600}  # fmt: skip
    return {"id": f"chatcmpl-{number}", "model": "scripted-1", "object": "chat.completion",
            "choices": [{"finish_reason": "tool_calls", "index": 0, "message": said}], "usage": usage}  # fmt: skip


def event(number: int, source: str, **more: object) -> dict:
    return {"id": number, "timestamp": f"2026-01-05T10:00:{number:02}.000000", "source": source, **more}


def told(number: int) -> dict:
    return {"function_name": CALLS[number][0], "tool_call_id": f"call_{number}", "model_response": response(number),
            "total_calls_in_response": 1}  # fmt: skip


def metrics(number: int) -> dict:
    calls = number + 1
    total = {"model": "scripted-1", "prompt_tokens": 1000 * calls + number * calls // 2,
             "completion_tokens": 20 * calls,
             "cache_read_tokens": 600 * calls, "cache_write_tokens": 50 * calls}  # fmt: skip
    return {"accumulated_cost": 0.003 * calls, "accumulated_token_usage": total, "costs": [], "token_usages": []}


RUN = {"command": "ls missing", "is_input": False, "thought": "I look first.", "blocking": False, "hidden": False}
EDIT = {"path": "/repo/hello.txt", "command": "create", "file_text": "hello\n", "thought": "", "impl_source": "oh_aci"}
events = [
    event(0, "agent", action="system", message="You act.", args={"content": "You act.", "tools": []}),
    event(1, "user", action="message", message=TASK, args={"content": TASK, "image_urls": None}),
    event(2, "agent", action="run", message="Running command: ls missing", args=RUN, tool_call_metadata=told(0),
          llm_metrics=metrics(0)),
    event(3, "agent", observation="run", message="Command `ls missing` executed with exit code 2.", cause=2,
          content="ls: cannot access 'missing'", success=False, tool_call_metadata=told(0),
          extras={"command": "ls missing", "metadata": {"exit_code": 2, "pid": -1}, "hidden": False}),
    event(4, "agent", action="edit", message="", args=EDIT, tool_call_metadata=told(1), llm_metrics=metrics(1)),
    event(5, "agent", observation="edit", message="I edited the file /repo/hello.txt.", cause=4,
          content="File created successfully at: /repo/hello.txt", tool_call_metadata=told(1),
          extras={"path": "/repo/hello.txt", "prev_exist": False, "old_content": None, "new_content": "hello\n",
                  "impl_source": "oh_aci", "diff": None}),
    event(6, "agent", action="finish", message="hello.txt is written.", tool_call_metadata=told(2),
          args={"final_thought": "hello.txt is written.", "task_completed": "true", "outputs": {}, "thought": ""},
          llm_metrics=metrics(2)),
    event(7, "environment", observation="agent_state_changed", message="", content="",
          extras={"agent_state": "finished", "reason": ""}),
]  # fmt: skip
(HERE / "trajectory.json").write_text(json.dumps(events, indent=1) + "\n", encoding="utf-8")

output = {
    "instance_id": "hello-1",
    "test_result": {"git_patch": PATCH, "report": {"resolved": True, "empty_generation": False}},
    "instruction": TASK,
    "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "scripted-1"}, "max_iterations": 30},
    "history": events,
    "metrics": metrics(2),
    "error": None,
}
failed = {**output, "instance_id": "hello-2", "error": "AgentStuckInLoopError: Agent got stuck in a loop",
          "test_result": {"git_patch": "", "report": {"resolved": False}}, "history": events[:4],
          "metrics": metrics(0)}  # fmt: skip
lines = [json.dumps(each, separators=(",", ":")) for each in (output, failed)]
(HERE / "output.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

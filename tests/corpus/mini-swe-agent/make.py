"""Runs of mini-swe-agent (pip install mini-swe-agent, the version stands in each file) with its scripted models.

By tool call and by a block in the reply. Its LiteLLM model keeps each response: its counts are put in the same place.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

os.environ["MSWEA_SILENT_STARTUP"] = "1"

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.test_models import DeterministicModel, DeterministicToolcallModel

HERE = Path(__file__).resolve().parent
TASK = "Put hello into hello.txt."
DIFF = (
    "diff --git a/hello.txt b/hello.txt\nnew file mode 100644\n--- /dev/null\n+++ b/hello.txt\n@@ -0,0 +1 @@\n+hello\n"
)
SUBMIT = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat <<'EOF'\n{DIFF}EOF"
COMMANDS = ("ls missing", "echo hello > hello.txt", SUBMIT)
OBSERVATION = "<returncode>{{output.returncode}}</returncode>\n<output>\n{{output.output}}</output>"


def outputs(by_tool_call: bool) -> list[dict]:
    made = []
    for number, command in enumerate(COMMANDS, start=1):
        usage = {"prompt_tokens": 100 * number, "completion_tokens": 10, "total_tokens": 100 * number + 10,
                 "prompt_tokens_details": {"cached_tokens": 40},
                 "completion_tokens_details": {"reasoning_tokens": 3}}  # fmt: skip
        extra = {"actions": [{"command": command}], "cost": 0.001 * number, "timestamp": 1790000000.0 + number,
                 "response": {"id": f"r{number}", "model": "scripted-1", "usage": usage}}  # fmt: skip
        message = {"role": "assistant", "content": f"Step {number}.", "extra": extra}
        if by_tool_call:
            function = {"name": "bash", "arguments": json.dumps({"command": command})}
            message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
            extra["actions"][0]["tool_call_id"] = f"call_{number}"
        else:
            message["content"] += f"\n\n```mswea_bash_command\n{command}\n```"
        made.append(message)
    return made


for name, kind in (("tool_calls", DeterministicToolcallModel), ("blocks", DeterministicModel)):
    with tempfile.TemporaryDirectory() as folder:
        model = kind(outputs=outputs(name == "tool_calls"), model_name="scripted-1", observation_template=OBSERVATION)
        environment = LocalEnvironment(cwd=folder)
        agent = DefaultAgent(
            model, environment, system_template="You fix things.", instance_template="{{task}}", cost_limit=0
        )
        agent.run(TASK)
        data = agent.save(None)
        data["info"]["config"].pop("model", None)
        data["info"]["config"]["environment"]["cwd"] = "/repo"
        text = json.dumps(data, indent=1, ensure_ascii=False).replace(folder, "/repo")
        (HERE / f"{name}.traj.json").write_text(text + "\n", encoding="utf-8")

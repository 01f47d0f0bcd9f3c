"""Count what the trajectory of this folder states, from its JSON alone."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent

for source in sorted(HERE.glob("*.traj")):
    whole = json.loads(source.read_text("utf-8"))
    replies = [item for item in whole["history"] if item["role"] == "assistant"]
    stats = whole["info"]["model_stats"]
    refused = [step["observation"].startswith("Your bash command contained") for step in whole["trajectory"]]
    case = {
        "question": json.loads(whole["replay_config"])["problem_statement"]["text"],
        "answer": whole["trajectory"][-1]["thought"],
        "agents": sorted({item["agent"] for item in replies}),
        "tool_calls": [
            [reply["tool_calls"][0]["function"]["name"], "error" if failed else "success"]
            for reply, failed in zip(replies, refused, strict=True)
        ],
        "tokens": {"input": stats["tokens_sent"], "output": stats["tokens_received"]},
        "cost": stats["instance_cost"],
    }
    text = json.dumps({"cases": [case]}, ensure_ascii=False, indent=1) + "\n"
    (HERE / f"{source.name.split('.')[0]}.expected.json").write_text(text, encoding="utf-8")

"""Counts what the cases of an ADK eval set hold."""

import json
from pathlib import Path

cases = []
for case in json.loads(Path("dice.json").read_text())["eval_cases"]:
    turns = case["conversation"]
    steps = [turn["intermediate_data"] for turn in turns]
    results = {each["id"]: each["response"] for step in steps for each in step["tool_responses"]}
    calls = [each for step in steps for each in step["tool_uses"]]
    cases.append(
        {
            "question": turns[0]["user_content"]["parts"][0]["text"],
            "answer": turns[-1]["final_response"]["parts"][0]["text"],
            "tool_calls": [[c["name"], "error" if "error" in results[c["id"]] else "success"] for c in calls],
        }
    )
Path("dice.expected.json").write_text(json.dumps({"cases": cases}, indent=1) + "\n")

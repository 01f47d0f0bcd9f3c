"""Sessions of Google's ADK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text("utf-8"))
    if "eval_cases" in document:
        return [eval_case(case) for case in document["eval_cases"]]
    contents = [(event["author"], event.get("content") or {}) for event in document["events"]]
    parts = [(author, part) for author, content in contents for part in content.get("parts") or []]
    called = [part["function_call"]["name"] for _, part in parts if part.get("function_call")]
    texts = [(author, part["text"]) for author, part in parts if part.get("text")]
    return [
        {
            "question": next(text for author, text in texts if author == "user"),
            "answer": [text for author, text in texts if author != "user"][-1],
            "agents": sorted({author for author, _ in parts} - {"user"}),
            "tool_calls": [[name] for name in called],
        }
    ]


def eval_case(case: dict[str, Any]) -> dict[str, Any]:
    turns = case["conversation"]
    uses = [use for turn in turns for use in (turn.get("intermediate_data") or {}).get("tool_uses") or []]
    said = turns[-1]["final_response"]["parts"][-1].get("text")
    return {
        "question": turns[0]["user_content"]["parts"][0]["text"],
        **({"answer": said} if said else {}),
        "tool_calls": [[use["name"]] for use in uses],
    }

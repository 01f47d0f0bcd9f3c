"""Count what the printed conversation states, without AgentUnit."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HEADING = re.compile(r"^-{10} (\w+)(?: \((\w+)\))? -{10}$", re.MULTILINE)
USAGE = re.compile(r"^\[Prompt tokens: (\d+), Completion tokens: (\d+)\]$", re.MULTILINE)
EXECUTED = re.compile(r"FunctionExecutionResult\(.*?name='(\w+)', call_id='\w+', is_error=(True|False)\)")


def count(path: Path) -> list[dict[str, Any]]:
    text = path.read_text("utf-8")
    _, *parts = HEADING.split(text)
    turns = [(kind, source, body) for kind, source, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)]
    texts = [USAGE.sub("", body).strip() for kind, _, body in turns if kind == "TextMessage"]
    usages = USAGE.findall(text)
    return [
        {
            "question": texts[0],
            "answer": texts[-1],
            "agents": sorted({source for _, source, _ in turns if source} - {"user"}),
            "tool_calls": [
                [name, "error" if failed == "True" else "success"] for name, failed in EXECUTED.findall(text)
            ],
            "tokens": {
                "input": sum(int(prompt) for prompt, _ in usages),
                "output": sum(int(completion) for _, completion in usages),
            },
            "cost": None,
        }
    ]


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

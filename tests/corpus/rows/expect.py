"""Count what the rows state, without AgentUnit."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

_ASKED = ("user_input", "input", "Question")
_ANSWERED = ("response", "actual_output", "Answer")


def count(path: Path) -> list[dict[str, Any]]:
    return [
        {
            "question": next(row[name] for name in _ASKED if name in row),
            "answer": next((row[name] for name in _ANSWERED if row.get(name)), None),
        }
        for row in rows(path)
    ]


def rows(path: Path) -> list[dict[str, Any]]:
    text = path.read_text("utf-8-sig")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if path.suffix == ".json":
        return json.loads(text)
    lines = text.splitlines()
    return list(csv.DictReader(lines, delimiter=";" if ";" in lines[0] else ","))


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)

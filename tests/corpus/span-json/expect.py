"""Count what the printed spans state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    text, place, spans = path.read_text("utf-8").strip(), 0, []
    while place < len(text):
        span, place = json.JSONDecoder().raw_decode(text, place)
        place += len(text[place:]) - len(text[place:].lstrip())
        failed = span["status"]["status_code"] == "ERROR"
        spans.append(SpanFacts(span["context"]["trace_id"], span["start_time"], span["attributes"], failed))
    return cases_of(spans)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_spans import SpanFacts, cases_of
    from files import write_expectations

    write_expectations(folder, count)

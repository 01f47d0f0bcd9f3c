"""Count what the tags of the spans state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    spans = []
    for span in (span for trace in json.loads(path.read_text("utf-8"))["data"] for span in trace["spans"]):
        tags = {tag["key"]: tag["value"] for tag in span["tags"]}
        spans.append(SpanFacts(span["traceID"], span["startTime"], tags, tags.get("error") is True))
    return cases_of(spans)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_spans import SpanFacts, cases_of
    from files import write_expectations

    write_expectations(folder, count)

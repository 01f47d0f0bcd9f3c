"""Count what the spans that Phoenix returned state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    """Phoenix takes the kind out of the attributes."""
    spans = []
    for row in json.loads(path.read_text("utf-8"))["data"]:
        attributes = {**row["attributes"], "openinference.span.kind": row["span_kind"]}
        failed = row["status_code"] == "ERROR"
        spans.append(SpanFacts(row["context"]["trace_id"], row["start_time"], attributes, failed))
    return cases_of(spans)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_spans import SpanFacts, cases_of
    from files import write_expectations

    write_expectations(folder, count, format="span-json")

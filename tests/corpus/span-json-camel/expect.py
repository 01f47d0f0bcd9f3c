"""Count what the logged spans state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return cases_of(
        SpanFacts(row["traceId"], row["startTimeUnixNano"], row["attributes"], row["status"]["code"] == "ERROR")
        for row in rows
    )


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_spans import SpanFacts, cases_of
    from files import write_expectations

    write_expectations(folder, count)

"""Count what the spans of the OTLP/JSON file state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    spans = []
    for line in path.read_text("utf-8").splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                attributes = {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
                failed = span["status"].get("code") == 2
                spans.append(SpanFacts(span["traceId"], int(span["startTimeUnixNano"]), attributes, failed))
    return cases_of(spans)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_spans import SpanFacts, cases_of
    from files import write_expectations

    write_expectations(folder, count)

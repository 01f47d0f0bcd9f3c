"""Rows of the collector's ClickHouse table, grouped by session, and spans of TruLens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text("utf-8"))
    if "record_attributes" in document:
        attributes = document["record_attributes"]
        # Evaluations are no doing of the agent.
        return [] if attributes["ai.observability.span_type"].startswith("eval") else [trulens(attributes)]
    traces: dict[str, list[dict[str, Any]]] = {}
    for row in rows_in(document):
        traces.setdefault(row["TraceId"], []).append(row)
    return [clickhouse(trace) for trace in traces.values()]


def rows_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "TraceId" in value:
        yield value
    else:
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from rows_in(each)


def clickhouse(rows: list[dict[str, Any]]) -> dict[str, Any]:
    usages = [row["SpanAttributes"] for row in rows if "gen_ai.usage.prompt_tokens" in row["SpanAttributes"]]
    if not usages:
        return {"tokens": None}
    return {
        "tokens": {
            kind: sum(int(usage.get(f"gen_ai.usage.{name}_tokens", 0)) for usage in usages)
            for kind, name in (("input", "prompt"), ("output", "completion"))
        }
    }


def trulens(attributes: dict[str, Any]) -> dict[str, Any]:
    stated = {
        "question": attributes.get("ai.observability.record_root.input"),
        "answer": attributes.get("ai.observability.record_root.output"),
    }
    return {fact: text for fact, text in stated.items() if text}

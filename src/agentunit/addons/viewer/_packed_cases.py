"""Cases of a bundle, packed: what most cases of a shard share stands once (``PackedCases`` of types.ts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentunit.core.results import encode_json


def packed_cases(details: Sequence[dict[str, Any]]) -> bytes:
    """Cases as their pages show them, as one part of a bundle."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for detail in details:
        for score in detail["scores"]:
            by_metric.setdefault(score["metric"], []).append(score)
    shared = {metric: _shared(scores) for metric, scores in by_metric.items()}
    rows = []
    for detail in details:
        row = {key: value for key, value in detail.items() if key not in ("scores", "subject")}
        if row["repeats"] == [row["key"]]:
            del row["repeats"]
        rows.append(row)
    common = _shared(rows)
    packed = [
        {
            **_own(row, common),
            "scores": [[score["metric"], _own(score, shared[score["metric"]])] for score in detail["scores"]],
        }
        for row, detail in zip(rows, details, strict=True)
    ]
    return encode_json({"common": common, "scores": shared, "rows": packed})


def unpacked_case(packed: dict[str, Any], at: int) -> dict[str, Any]:
    """One case again, as the browser puts it together."""
    row = packed["rows"][at]
    detail = {**packed["common"], **row}
    detail["scores"] = [{**packed["scores"][metric], **own} for metric, own in row["scores"]]
    return {"repeats": [detail["key"]], "subject": "", **detail}


def _shared(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each field that all rows have, the value that most of them have, where that is more than one."""
    found = {}
    for key in rows[0] if rows else ():
        if all(key in row for row in rows):
            written = [encode_json(row[key]) for row in rows]
            [(value, n)] = Counter(written).most_common(1)
            if n > 1:
                found[key] = rows[written.index(value)][key]
    return found


def _own(row: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in shared or shared[key] != value}

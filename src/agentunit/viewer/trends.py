"""Runs over time: the list of runs with what each came to, and metrics over the runs of one name."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Any

from agentunit.viewer.library import Library
from agentunit.viewer.run_pages import header_line

MOST_RUNS = 100
_HISTORY = 20
_TREND_RUNS = 60
_Z_95 = 1.959964
# Fewer earlier runs than this say nothing about how runs vary.
_FEWEST_RUNS = 2


def runs_page(
    library: Library, offset: int, limit: int, *, personal: bool = False, wait: bool = False
) -> dict[str, Any]:
    """The runs, the newest first (``RunsPage`` of types.ts)."""
    headers = library.headers()
    shown = headers[max(0, offset) : max(0, offset) + max(0, min(limit, MOST_RUNS))]
    lines = {header.id: _line(library, header.id, personal, wait) for header in shown}
    for at, header in enumerate(headers):
        if header.id in lines:
            earlier = [each.id for each in headers[at + 1 :] if each.name == header.name][: _HISTORY - 1]
            _add_history(lines[header.id], [lines[each] for each in reversed(earlier) if each in lines])
    return {"runs": [lines[header.id] for header in shown], "n_runs": len(headers)}


def _line(library: Library, run_id: str, personal: bool, wait: bool) -> dict[str, Any]:
    line: dict[str, Any] = dict(library.run_page(run_id, personal=personal, wait=wait)["line"])
    line["metrics"] = [dict(metric) for metric in line["metrics"]]
    return line


def _add_history(line: dict[str, Any], earlier: Sequence[dict[str, Any]]) -> None:
    for metric in line["metrics"]:
        past = [next((each["mean"] for each in other["metrics"] if _is_same(each, metric)), None) for other in earlier]
        metric["history"] = [*past, metric["mean"]]


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one["metric"] == other["metric"] and one["backend"] == other["backend"]


def trends_page(library: Library, name: str, *, personal: bool = False, wait: bool = False) -> dict[str, Any]:
    """Every metric over the runs of a name, oldest first (``TrendsPage`` of types.ts)."""
    headers = [header for header in library.headers() if header.name == name][:_TREND_RUNS][::-1]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for header in headers:
        page = library.run_page(header.id, personal=personal, wait=wait)
        line = page["line"] if not page["pending"] else header_line(header)
        for card in page["metrics"]:
            facts = {key: card[key] for key in ("metric", "backend", "unit", "direction")}
            trend = found.setdefault((card["metric"], card["backend"]), {**facts, "points": []})
            trend["points"].append(
                {
                    "run": header.id,
                    "label": header.label,
                    "created_at": header.created_at,
                    **{key: card[key] for key in ("mean", "low", "high")},
                    "n": card["n_scored"],
                    "verdict": line["verdict"],
                    "commit": line["commit"],
                }
            )
    for trend in found.values():
        trend["band"] = noise_band(trend["points"])
    return {"name": name, "trends": list(found.values())}


def noise_band(points: Sequence[dict[str, Any]]) -> dict[str, float] | None:
    """Where the newest run should lie if nothing changed: the mean of the earlier ones, widened by all known noise.

    The noise of a run is what its own interval says, or how the earlier runs vary, whichever is greater.

    >>> steady = [{"mean": 0.5, "low": 0.4, "high": 0.6}] * 3
    >>> band = noise_band(steady)
    >>> round(band["low"], 3), band["center"], round(band["high"], 3)
    (0.385, 0.5, 0.615)
    """
    earlier = [each for each in points[:-1] if each["mean"] is not None]
    if len(earlier) < _FEWEST_RUNS:
        return None
    means = [each["mean"] for each in earlier]
    center = fsum(means) / len(means)
    between = fsum((mean - center) ** 2 for mean in means) / (len(means) - 1)
    stated = [
        ((each["high"] - each["low"]) / (2 * _Z_95)) ** 2
        for each in earlier
        if each["low"] is not None and each["high"] is not None
    ]
    variance = max(between, fsum(stated) / len(stated) if stated else 0.0)
    half = _Z_95 * sqrt(variance * (1.0 + 1.0 / len(means)))
    return {"center": center, "low": center - half, "high": center + half}

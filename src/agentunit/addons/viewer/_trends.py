"""Runs over time: the list of runs with what each came to, and metrics over the runs of one name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import fsum, sqrt
from typing import Any

from msgspec import MsgspecError

from agentunit.addons.viewer._library import Library
from agentunit.addons.viewer._run_pages import header_line
from agentunit.store.runs import RunHeader
from agentunit.store.schema import StoreError

MOST_RUNS = 100
_HISTORY = 20
_TREND_RUNS = 60
_Z_95 = 1.959964
# Fewer earlier runs than this say nothing about how runs vary.
_FEWEST_RUNS = 2
_UNREADABLE = (StoreError, ValueError, MsgspecError)


def runs_page(
    library: Library, offset: int, limit: int, *, personal: bool = False, wait: bool = False
) -> dict[str, Any]:
    """The runs, the newest first (``RunsPage`` of types.ts)."""
    headers = library.headers()
    shown = headers[max(0, offset) : max(0, offset) + max(0, min(limit, MOST_RUNS))]
    lines = [_line(library, header, personal=personal, wait=wait) for header in shown]
    return {**runs_of_lines(lines), "n_runs": len(headers)}


def _line(library: Library, header: RunHeader, *, personal: bool, wait: bool) -> dict[str, Any]:
    """A run of the list; one that cannot be read says so, and does not hide the others."""
    try:
        line: dict[str, Any] = library.run_page(header.id, personal=personal, wait=wait)["line"]
    except _UNREADABLE as error:
        mask = library.mask(personal)
        why = f"cannot be read: {mask.text(str(error))}"
        return {**header_line(mask.header(header)), "pending": False, "verdict": "errors", "headline": why}
    return line


def runs_of_lines(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A list of runs, each metric with its values in the earlier runs of the same name that are in the list."""
    found = [{**line, "metrics": [dict(metric) for metric in line["metrics"]]} for line in lines]
    for at, line in enumerate(found):
        earlier = [each for each in found[at + 1 :] if each["name"] == line["name"]][: _HISTORY - 1]
        _add_history(line, earlier[::-1])
    return {"runs": found, "n_runs": len(found)}


def _add_history(line: dict[str, Any], earlier: Sequence[dict[str, Any]]) -> None:
    for metric in line["metrics"]:
        past = [next((each["mean"] for each in other["metrics"] if _is_same(each, metric)), None) for other in earlier]
        metric["history"] = [*past, metric["mean"]]


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["metric"] == other["metric"] and one["backend"] == other["backend"])


def trends_page(library: Library, name: str, *, personal: bool = False, wait: bool = False) -> dict[str, Any]:
    """Every metric over the runs of a name, oldest first (``TrendsPage`` of types.ts)."""
    # The page asks by the name that it shows.
    mask = library.mask(personal)
    headers = [header for header in library.headers() if name in (header.name, mask.name(header.name))][:_TREND_RUNS]
    pages = []
    for header in headers:
        with suppress(*_UNREADABLE):
            pages.append(library.run_page(header.id, personal=personal, wait=wait))
    return trend_of(name, pages)


def trend_of(name: str, pages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same of pages of runs, the newest first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for page in reversed(pages):
        line = page["line"]
        for card in page["metrics"] if line["name"] == name else ():
            facts = {key: card[key] for key in ("metric", "backend", "unit", "direction")}
            trend = found.setdefault((card["metric"], card["backend"]), {**facts, "points": []})
            trend["points"].append(
                {
                    "run": line["id"],
                    **{key: line[key] for key in ("label", "created_at", "verdict", "commit")},
                    **{key: card[key] for key in ("mean", "low", "high")},
                    "n": card["n_scored"],
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
    (0.378, 0.5, 0.622)
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

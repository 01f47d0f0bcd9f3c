"""Traces with their observations, as Langfuse's own repository keeps them for its tests."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

# Langfuse adds up all keys that begin so; OpenInference's details are parts of them.
CACHED = ("input_cached_tokens", "input_cache_read", "prompt_details.cache_read")
REASONING = ("output_reasoning_tokens", "output_reasoning", "completion_details.reasoning")


def count(path: Path) -> list[dict[str, Any]]:
    export = json.loads(path.read_text("utf-8"))
    trace, observations = export["trace"], export["observations"]
    calls = model_calls(observations)
    tools = sorted((each for each in observations if each["type"] == "TOOL"), key=lambda each: each["startTime"])
    case: dict[str, Any] = {"tokens": tokens(calls), "cost": cost(calls)}
    if tools:
        case["tool_calls"] = [[tool_name(each), "error" if each["level"] == "ERROR" else "success"] for each in tools]
    agents = {str(attributes_of(each).get("gen_ai.agent.name") or "") for each in observations} - {""}
    if agents:
        case["agents"] = sorted(agents)
    for fact, name in (("question", "input"), ("answer", "output")):
        text = plain_text(trace.get(name))
        if text is not None:
            case[fact] = text
    return [case]


def model_calls(observations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Generations with usage; one that holds others is their sum and does not count again."""
    parents = {each["id"]: each.get("parentObservationId") for each in observations}
    stating = [each for each in observations if each["type"] == "GENERATION" and each.get("usageDetails")]
    around = set()
    for each in stating:
        above = parents[each["id"]]
        while above:
            around.add(above)
            above = parents.get(above)
    return [each for each in stating if each["id"] not in around]


def tokens(calls: list[dict[str, Any]]) -> dict[str, int] | None:
    usages = [{name: int(count) for name, count in each["usageDetails"].items()} for each in calls]
    if not usages:
        return None
    counts = {}
    for kind in ("input", "output"):
        stated = [count for usage in usages for name, count in usage.items() if name.startswith(kind)]
        if stated:
            counts[kind] = sum(stated)
    for kind, names in (("cache_read", CACHED), ("reasoning", REASONING)):
        if any(name in usage for usage in usages for name in names):
            counts[kind] = sum(usage.get(name, 0) for usage in usages for name in names)
    return counts


def cost(calls: list[dict[str, Any]]) -> float | None:
    stated = [float(each["costDetails"]["total"]) for each in calls if (each.get("costDetails") or {}).get("total")]
    return sum(stated) if stated else None


def tool_name(observation: dict[str, Any]) -> str:
    return str(attributes_of(observation).get("gen_ai.tool.name") or observation["name"])


def attributes_of(observation: dict[str, Any]) -> dict[str, Any]:
    """The attributes of the span that the observation was."""
    metadata = decoded(observation.get("metadata"))
    attributes = decoded(metadata.get("attributes")) if isinstance(metadata, dict) else None
    return attributes if isinstance(attributes, dict) else {}


def plain_text(value: Any) -> str | None:
    value = decoded(value)
    if isinstance(value, str) and value.startswith("{'role': "):
        # BeeAI's message as Python prints it: its words are what was said.
        value = ast.literal_eval(value).get("text")
    return value if isinstance(value, str) else None


def decoded(value: Any) -> Any:
    """What JSON in a text holds, also where it was encoded twice."""
    while isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            break
    return value

"""Count the facts in a sample of Inspect's log, whatever file it stood in; for counters of the corpus."""

from __future__ import annotations

from typing import Any


def case_of(sample: dict[str, Any]) -> dict[str, Any]:
    """What a sample states: its transcript names agents and tools, ``model_usage`` the tokens of all models."""
    events = sample["events"]
    tools = [event for event in events if event["event"] == "tool"]
    usages = list(sample["model_usage"].values())
    cached = sum(usage.get("input_tokens_cache_read") or 0 for usage in usages)
    return {
        "question": sample["input"],
        "answer": sample["output"]["completion"]
        if "completion" in sample["output"]
        else sample["output"]["choices"][0]["message"]["content"],
        "agents": sorted(
            {event["name"] for event in events if event["event"] == "span_begin" and event.get("type") == "agent"}
        ),
        "tool_calls": [[event["function"], "error" if event.get("error") else "success"] for event in tools],
        "tokens": {
            # The stated total includes the cached tokens beside the input: so does this.
            "input": sum(usage["total_tokens"] - usage["output_tokens"] for usage in usages),
            "output": sum(usage["output_tokens"] for usage in usages),
            "cache_read": cached,
            "reasoning": sum(usage.get("reasoning_tokens") or 0 for usage in usages),
        },
        "cost": None,
    }

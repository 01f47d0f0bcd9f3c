"""Token counts of a message, checked, whoever wrote them."""

from __future__ import annotations

from typing import Any

from agentunit.traces.spans import ReadingNotes

_ODD_COUNT = "a token count is no whole number of 0 or more; it was left out"


def token_counts(usage: Any, notes: ReadingNotes) -> dict[str, Any] | None:
    """The counts of a usage object under the names it uses; what is no count is left out and noted.

    >>> token_counts({"prompt_tokens": 10, "completion_tokens": "many"}, ReadingNotes())
    {'prompt_tokens': 10}
    """
    if usage is None:
        return None
    if not isinstance(usage, dict):
        notes.problems[_ODD_COUNT] += 1
        return None
    counts: dict[str, Any] = {}
    for name, value in usage.items():
        if isinstance(value, dict):
            inner = {key: count for key, count in value.items() if _is_count(count)}
            counts.update({name: inner} if inner else {})
        elif _is_count(value):
            counts[name] = value
        elif value is not None and "token" in name:
            notes.problems[_ODD_COUNT] += 1
    return counts or None


def add_counts(totals: dict[str, int], usage: dict[str, Any] | None) -> None:
    """Add the whole numbers of one usage object to a running total, name by name."""
    for name, value in (usage or {}).items():
        if _is_count(value):
            totals[name] = totals.get(name, 0) + value


def gemini_counts(usage: dict[str, Any]) -> dict[str, Any]:
    """Gemini's counts under OpenAI's names; thinking is paid as completion, and is part of the stated total.

    >>> gemini_counts({"promptTokenCount": 103, "candidatesTokenCount": 13, "thoughtsTokenCount": 5,
    ...                "totalTokenCount": 121, "cachedContentTokenCount": 32})
    {'prompt_tokens': 103, 'completion_tokens': 18, 'total_tokens': 121, 'prompt_tokens_details': {'cached_tokens': 32}}
    """
    found = {name.replace("_", "").lower(): value for name, value in usage.items()}

    def count(name: str) -> int | None:
        value = found.get(name)
        return value if _is_count(value) else None

    prompt, completion, total = count("prompttokencount"), count("candidatestokencount"), count("totaltokencount")
    thoughts, tool_prompt = count("thoughtstokencount"), count("tooluseprompttokencount")
    counts: dict[str, Any] = {}
    if prompt is not None:
        counts["prompt_tokens"] = prompt + (tool_prompt or 0)
    if completion is not None or thoughts is not None:
        counts["completion_tokens"] = (completion or 0) + (thoughts or 0)
    elif prompt is not None and total == prompt:
        # A reply that was blocked or empty: the total says that nothing was completed.
        counts["completion_tokens"] = 0
    if total is not None:
        counts["total_tokens"] = total
    if (cached := count("cachedcontenttokencount")) is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

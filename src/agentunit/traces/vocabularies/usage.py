"""Token counts under the names of records: prompt tokens include cached ones, whoever counted them."""

from __future__ import annotations

from typing import Any

from agentunit.traces.vocabularies.values import as_count


def usage_of(
    prompt: Any,
    completion: Any,
    total: Any = None,
    cached: Any = None,
    cache_written: Any = None,
    reasoning: Any = None,
) -> dict[str, Any] | None:
    """Token counts as a record states them, or ``None`` when nothing was counted.

    Cached tokens were counted beside the prompt (as Anthropic does), and are added, when there are more of them than
    of the prompt's or when only with them the parts make the total.

    >>> usage_of(100, 5, cached=90)
    {'prompt_tokens': 100, 'completion_tokens': 5, 'prompt_tokens_details': {'cached_tokens': 90}}
    >>> usage_of(10, 5, cached=90)
    {'prompt_tokens': 100, 'completion_tokens': 5, 'prompt_tokens_details': {'cached_tokens': 90}}
    """
    n_prompt, n_completion, n_total = as_count(prompt), as_count(completion), as_count(total)
    n_cached, n_written = as_count(cached), as_count(cache_written)
    if n_prompt is None and n_completion is None and n_total is None:
        return None
    beside = (n_cached or 0) + (n_written or 0)
    parts_make_total = n_prompt is not None and n_total == n_prompt + (n_completion or 0) + beside
    if n_prompt is not None and beside and (beside > n_prompt or parts_make_total):
        n_prompt += beside
        n_total = None if n_total is None or n_completion is None else max(n_total, n_prompt + n_completion)
    counts = {"prompt_tokens": n_prompt, "completion_tokens": n_completion, "total_tokens": n_total}
    usage: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    details = {}
    if n_cached is not None:
        details["cached_tokens"] = n_cached
    if n_written:
        details["cache_creation_tokens"] = n_written
    if details:
        usage["prompt_tokens_details"] = details
    n_reasoning = as_count(reasoning)
    if n_reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": n_reasoning}
    return usage

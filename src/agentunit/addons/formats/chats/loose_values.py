"""Reading values whose type cannot be relied on: what is not of the kind asked for counts as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from math import isfinite
from typing import Any

import msgspec

from agentunit.core.results import decode_json
from agentunit.core.trace import epoch_seconds
from agentunit.traces.content_blocks import read_block
from agentunit.traces.places import Paths, first_at, names_in
from agentunit.traces.spans import ReadingNotes
from agentunit.traces.vocabularies.values import usage_of


def as_dict(value: Any) -> dict[str, Any]:
    """The value when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value when it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def as_name(value: Any) -> str | None:
    """A text with something in it, or a whole number as text; anything else names nothing.

    >>> as_name("q1"), as_name(7), as_name(True), as_name("  ")
    ('q1', '7', None, None)
    """
    if isinstance(value, str):
        return value if value.strip() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def as_number(value: Any) -> float | None:
    """A finite number as it stands; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if isfinite(value) else None
    except OverflowError:
        return None


def as_amount(value: Any) -> float | None:
    """A finite number of zero or more: money, seconds."""
    number = as_number(value)
    return number if number is not None and number >= 0 else None


def as_time(value: Any) -> float | None:
    """Seconds since 1970 of a number or an ISO 8601 text; ``None`` when it is neither."""
    if value is None:
        return None
    try:
        return epoch_seconds(value)
    except (ValueError, OverflowError):
        return None


def as_data(value: Any) -> Any:
    """The data within a JSON text that holds an object or an array; any other value as it is.

    >>> as_data('{"city": "Oslo"}'), as_data("Oslo"), as_data("7")
    ({'city': 'Oslo'}, 'Oslo', '7')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return decode_json(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value


def as_json(value: Any) -> str:
    """The JSON text of a decoded value."""
    return msgspec.json.encode(value).decode()


def without_nones(**values: Any) -> dict[str, Any]:
    """The given values that are known."""
    return {name: value for name, value in values.items() if value is not None}


def unknown_fields(mapping: Mapping[str, Any], known: Set[str]) -> Iterator[str]:
    """The names of fields that hold something and that no reader knows.

    >>> list(unknown_fields({"role": "user", "tool_results": {"id": 1}, "note": None}, {"role"}))
    ['tool_results']
    """
    return (name for name, value in mapping.items() if name not in known and value not in (None, "", [], {}))


def count_unknown(notes: ReadingNotes, mapping: Mapping[str, Any], known: Set[str], within: str = "") -> None:
    """Count the fields of an object that no reader knows; ``within`` names the object they stand in."""
    notes.count_fields(f"{within}.{name}" if within else name for name in unknown_fields(mapping, known))


def text_of(content: Any) -> str | None:
    """The words of a message: a text, lines, parts with ``text``, or data as JSON; ``None`` when it says nothing.

    >>> text_of([{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {"url": "…"}}])
    'Hello'
    >>> text_of(["two", "lines"])
    'two\\nlines'
    >>> text_of({"parts": [{"text": "Hi."}, {"functionCall": {"name": "search"}}]})
    'Hi.'
    """
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, dict):
        if isinstance(content.get("parts"), list):
            return text_of(content["parts"])
        return content["text"] if isinstance(content.get("text"), str) else as_json(content)
    if not isinstance(content, list):
        return as_json(content)
    said = [text for text in map(_part_text, content) if text is not None]
    return "\n".join(said) if said else None


def _part_text(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("json"), (dict, list)):
        return as_json(part["json"])  # a result of Bedrock's Converse
    block = read_block(part)
    return block.text if block is not None and block.does == "said" else None


_ODD_COUNT = "a token count is not a whole number of 0 or more; it was left out"


def token_counts(usage: Any, notes: ReadingNotes, *, nested: bool = True) -> dict[str, Any] | None:
    """The counts of a usage object under the names it uses; what is no count is left out and noted.

    With ``nested``, an object of counts may be in the place of a count.

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
        if nested and isinstance(value, dict):
            inner = {key: count for key, count in value.items() if _is_count(count)}
            counts.update({name: inner} if inner else {})
        elif _is_count(value):
            counts[name] = value
        elif value is not None and "token" in name:
            notes.problems[_ODD_COUNT] += 1
    return counts or None


def usage_counts(usage: Any, notes: ReadingNotes) -> dict[str, Any] | None:
    """The counts of a usage object in any spelling: those of OpenAI and Anthropic as they are, others as OpenAI's.

    >>> usage_counts({"inputTokens": 10, "outputTokens": 2, "cacheReadInputTokens": 4}, ReadingNotes())
    {'prompt_tokens': 10, 'completion_tokens': 2, 'prompt_tokens_details': {'cached_tokens': 4}}
    """
    if not isinstance(usage, dict):
        return token_counts(usage, notes)
    if not usage.keys().isdisjoint(("promptTokenCount", "prompt_token_count")):
        return gemini_counts(usage) or None
    if _AS_THEY_ARE.isdisjoint(usage) or not _IN_OTHER_WORDS.isdisjoint(usage):
        found = {name: first_at(usage, places) for name, places in _SPELLINGS.items()}
        counts = usage_of(**{name: count if _is_count(count) else None for name, count in found.items()})
        return counts or token_counts(usage, notes)
    return token_counts(usage, notes)


_AS_THEY_ARE = names_in("prompt_tokens input_tokens completion_tokens output_tokens total_tokens")
# LangChain; PydanticAI and Agno; CrewAI.
_IN_OTHER_WORDS = names_in(
    "input_token_details output_token_details cache_read_tokens cache_write_tokens cached_prompt_tokens"
)
_SPELLINGS: dict[str, Paths] = {
    "prompt": ("prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "input_token_count"),
    "completion": ("completion_tokens", "output_tokens", "outputTokens", "completionTokens", "output_token_count"),
    "total": ("total_tokens", "totalTokens", "total_token_count"),
    "cached": (
        "cache_read_tokens", "input_token_details.cache_read", "cacheReadInputTokens", "cachedInputTokens",
        "cached_prompt_tokens", "cache_read_input_token_count",
    ),
    "cache_written": ("cache_write_tokens", "input_token_details.cache_creation", "cacheWriteInputTokens"),
    "reasoning": ("output_token_details.reasoning", "output_reasoning_tokens", "reasoningTokens", "reasoning_tokens"),
}  # fmt: skip


def add_counts(totals: dict[str, int], usage: dict[str, Any] | None) -> None:
    """Add the whole numbers of one usage object to a running total, name by name."""
    for name, value in (usage or {}).items():
        if _is_count(value):
            totals[name] = totals.get(name, 0) + value


def openai_counts(**counts: Any) -> dict[str, Any]:
    """Counts of one level as OpenAI nests them; what is not known is left out.

    >>> openai_counts(prompt_tokens=9, completion_tokens=None, cached_tokens=4)
    {'prompt_tokens': 9, 'prompt_tokens_details': {'cached_tokens': 4}}
    """
    cache = {name: counts.pop(name, None) for name in ("cached_tokens", "cache_creation_tokens")}
    reasoning = without_nones(reasoning_tokens=counts.pop("reasoning_tokens", None))
    details = {"prompt_tokens_details": without_nones(**cache), "completion_tokens_details": reasoning}
    return without_nones(**counts, **{name: inner or None for name, inner in details.items()})


def gemini_counts(usage: dict[str, Any]) -> dict[str, Any]:
    """Gemini's counts under OpenAI's names; thinking is paid as completion, and is part of the stated total.

    >>> gemini_counts({"promptTokenCount": 103, "candidatesTokenCount": 13, "thoughtsTokenCount": 5,
    ...                "cachedContentTokenCount": 32})  # doctest: +NORMALIZE_WHITESPACE
    {'prompt_tokens': 103, 'completion_tokens': 18, 'prompt_tokens_details': {'cached_tokens': 32},
     'completion_tokens_details': {'reasoning_tokens': 5}}
    """
    found = {name.replace("_", "").lower(): value for name, value in usage.items()}

    def count(name: str) -> int | None:
        value = found.get(name)
        return value if _is_count(value) else None

    prompt, completion, total = count("prompttokencount"), count("candidatestokencount"), count("totaltokencount")
    thoughts, tool_prompt = count("thoughtstokencount"), count("tooluseprompttokencount")
    # A reply that was blocked or empty has no count: the total says that nothing was completed.
    known = completion is not None or thoughts is not None or (prompt is not None and total == prompt)
    return openai_counts(
        prompt_tokens=None if prompt is None else prompt + (tool_prompt or 0),
        completion_tokens=(completion or 0) + (thoughts or 0) if known else None,
        total_tokens=total,
        cached_tokens=count("cachedcontenttokencount"),
        reasoning_tokens=thoughts or None,
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

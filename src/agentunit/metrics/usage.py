"""Tokens and money as traces record them, in the vocabularies of the common providers, and list prices of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import inf
from typing import Any, NamedTuple

from agentunit.installation import install_command
from agentunit.metrics.inputs import InputProblem, Item, number_at, payload_of

_PROMPT = ("prompt_tokens", "input_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_COMPLETION = (
    "completion_tokens",
    "output_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
)
_TOTAL = ("total_tokens", "gen_ai.usage.total_tokens")
# Up to here an int is a count without a closer look.
_COMMON_COUNT = 1 << 50
# Anthropic counts cached tokens beside input_tokens; OpenAI and OpenTelemetry count them within their input.
_ANTHROPIC_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")

COST_PARTS = "cost_parts"
"""The name in a trace's metadata under which stands what of a conversation's cost was no stated total."""


class Tokens(NamedTuple):
    """Token counts; ``None`` is unknown. ``prompt`` includes those read from and written to a cache."""

    prompt: int | None
    completion: int | None
    total: int | None
    cached: int = 0
    cache_written: int = 0

    @property
    def recorded(self) -> bool:
        """Whether anything is known."""
        return self.prompt is not None or self.completion is not None or self.total is not None

    @property
    def used(self) -> bool:
        """Whether any token was used, as far as is known."""
        return bool(self.prompt or self.completion or self.total)


def read_tokens(place: str, usage: Mapping[str, Any]) -> Tokens:
    """Token counts of a usage dict, whoever wrote it; a total that is absent is derived from its parts.

    >>> read_tokens("usage", {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5})
    Tokens(prompt=100, completion=5, total=105, cached=90, cache_written=0)
    >>> openai = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 90}}
    >>> read_tokens("usage", openai)
    Tokens(prompt=100, completion=5, total=105, cached=90, cache_written=0)
    """
    common = _common_tokens(usage)
    if common is not None:
        return common
    prompt = _count(place, usage, _PROMPT)
    completion = _count(place, usage, _COMPLETION)
    total = _count(place, usage, _TOTAL)
    cached = cache_written = 0
    if usage.get("input_tokens") is not None and usage.get("prompt_tokens") is None:
        for key in _ANTHROPIC_CACHED:
            beside = _count(place, usage, (key,))
            if beside is not None and prompt is not None:
                prompt += beside
                cached += beside if key.startswith("cache_read") else 0
                cache_written += beside if key.startswith("cache_creation") else 0
    cached = _count(place, usage, ("gen_ai.usage.cache_read.input_tokens",)) or cached
    for key in ("prompt_tokens_details", "input_tokens_details"):
        details = usage.get(key)
        if isinstance(details, Mapping):
            cached = _count(f"{place}[{key!r}]", details, ("cached_tokens",)) or cached
            cache_written = _count(f"{place}[{key!r}]", details, ("cache_creation_tokens",)) or cache_written
    if total is None and prompt is not None and completion is not None:
        total = prompt + completion
    return Tokens(prompt, completion, total, cached, cache_written)


def _common_tokens(usage: Mapping[str, Any]) -> Tokens | None:
    """The tokens of the commonest shape, two whole numbers and nothing that needs a second look; else ``None``."""
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if prompt.__class__ is not int or completion.__class__ is not int or "prompt_tokens_details" in usage:
        return None
    total = usage.get("total_tokens", prompt + completion)
    if total.__class__ is not int or not (0 <= prompt < _COMMON_COUNT and 0 <= completion < _COMMON_COUNT):
        return None
    if "input_tokens_details" in usage or "gen_ai.usage.cache_read.input_tokens" in usage:
        return None
    return Tokens(prompt, completion, total) if 0 <= total < _COMMON_COUNT else None


def find_usage(item: Item) -> tuple[Tokens, str] | None:
    """The tokens of a run and where they stand: the trace's total, the outcome's, else the sum over its LLM calls."""
    of_trace = item.trace_metadata.get("usage")
    if of_trace.__class__ is dict and (common := _common_tokens(of_trace)) is not None:
        return common, "trace.metadata['usage']"
    for place, usage in (("trace.metadata['usage']", of_trace), ("outcome.usage", item.outcome.usage)):
        if usage is None or usage == {}:
            continue
        tokens = read_tokens(place, _usage_mapping(place, usage))
        if tokens.recorded:
            return tokens, place
    calls = [tokens for _, _, tokens in llm_calls(item) if tokens.recorded]
    if not calls:
        return None
    return Tokens(
        _sum_known([call.prompt for call in calls]),
        _sum_known([call.completion for call in calls]),
        _sum_known([call.total for call in calls]),
        sum(call.cached for call in calls),
    ), "llm_call events"


def llm_calls(item: Item) -> list[tuple[int, dict[str, Any], Tokens]]:
    """Position, payload and tokens of each ``llm_call`` event, read once for all metrics of a run."""
    if item.llm_calls is not None:
        return item.llm_calls  # type: ignore[no-any-return]
    calls = []
    for position, event in enumerate(item.events):
        if event.type != "llm_call":
            continue
        payload = payload_of(event)
        usage = payload.get("usage")
        mapping = payload if usage is None else _usage_mapping(f"trace.events[{position}].usage", usage)
        # The place is spelled out only where something may be wrong with it: this runs for every call of every record.
        tokens = _common_tokens(mapping) or read_tokens(f"trace.events[{position}].usage", mapping)
        calls.append((position, payload, tokens))
    item.llm_calls = calls
    return calls


@dataclass(frozen=True)
class ItemisedCost:
    """The cost of a run from its parts, in US dollars.

    ``listed`` is true when a list price is among them; ``unpriced`` says why some LLM usage has no price, ``zero_at``
    is the first LLM call whose recorded cost of 0 is not believed because it used tokens.
    """

    tool_cost: float | None
    llm_cost: float | None
    listed: bool
    unpriced: str | None
    zero_at: str | None = None


def itemised_cost(item: Item) -> ItemisedCost:
    """The recorded costs of tool and LLM calls, and the list price of LLM calls that recorded only tokens."""
    tool_costs = [
        number_at(f"tool_call {n} cost", call["cost"])
        for n, call in enumerate(item.tool_calls, 1)
        if call.get("cost") is not None
    ]
    known_tool_costs = [cost for cost in tool_costs if cost is not None]
    llm_costs: list[float] = []
    listed = False
    unpriced: str | None = None
    zero_at: str | None = None
    calls = llm_calls(item)
    for position, payload, tokens in calls:
        recorded = payload.get("cost")
        price = None if recorded is None else number_at(f"trace.events[{position}].cost", recorded)
        if price == 0 and tokens.used:
            price, zero_at = None, zero_at or f"trace.events[{position}].cost"
        problem = None
        if price is None:
            price, problem = _list_price(payload.get("model"), tokens)
            listed = listed or price is not None
        unpriced = unpriced or problem
        if price is not None:
            llm_costs.append(price)
    if not llm_costs:
        price, problem = _total_price(item)
        listed = listed or price is not None
        unpriced = None if price is not None else unpriced or problem
        llm_costs += [] if price is None else [price]
    return ItemisedCost(
        sum(known_tool_costs) if known_tool_costs else None,
        sum(llm_costs) if llm_costs else None,
        listed,
        unpriced,
        zero_at,
    )


class RecordedTotal(NamedTuple):
    """What a run says it cost in all, in US dollars, and where it says so.

    ``zero_at`` is the first place with a cost of 0 that is not believed: many programs write 0 for a price that they
    do not know, and a run that used tokens is free only by a price list.
    """

    cost: float | None
    place: str | None
    zero_at: str | None


def recorded_total(item: Item) -> RecordedTotal:
    """The total of the trace, else the outcome's; a cost of 0 beside used tokens counts as unknown."""
    zero_at: str | None = None
    for place, value in (
        ("trace.metadata['cost']", item.trace_metadata.get("cost")),
        ("outcome.cost", item.outcome.cost),
    ):
        total = number_at(place, value)
        if total == 0 and uses_tokens(item):
            zero_at = zero_at or place
        elif total is not None:
            return RecordedTotal(total, place, zero_at)
    return RecordedTotal(None, None, zero_at)


def recorded_cost(item: Item) -> float | None:
    """What a run says it cost in all, in US dollars; see ``recorded_total``."""
    return recorded_total(item).cost


def stated_costs(item: Item) -> float:
    """The sum of the costs that a run's tool calls and model calls state, in US dollars; no list price is added."""
    payloads = [*item.tool_calls, *(payload for _, payload, _ in llm_calls(item))]
    costs = (number_at("cost", payload["cost"]) for payload in payloads if payload.get("cost") is not None)
    return sum(cost for cost in costs if cost is not None)


def uses_tokens(item: Item) -> bool:
    """Whether a run records that it used tokens; counts that cannot be read record nothing."""
    try:
        found = find_usage(item)
        return found is not None and found[0].used
    except InputProblem:
        return False


def _total_price(item: Item) -> tuple[float | None, str | None]:
    """The list price of the run's recorded total of tokens, when one model used them all."""
    found = find_usage(item)
    if found is None or found[1] == "llm_call events":
        return None, None
    model = item.trace_metadata.get("model")
    if not isinstance(model, str):
        return None, "tokens are recorded without the model that used them"
    return _list_price(model, found[0])


def _list_price(model: Any, tokens: Tokens) -> tuple[float | None, str | None]:
    if not tokens.recorded:
        return None, "an llm_call records neither tokens nor a cost"
    if not isinstance(model, str):
        return None, "an llm_call records tokens but no model"
    if tokens.prompt is None or tokens.completion is None:
        return None, f"an llm_call of {model} does not separate prompt and completion tokens"
    if not prices_installed():
        return None, f"LLM tokens are recorded but not their cost; list prices of known models: {INSTALL_HINT}"
    price = price_usd(model, tokens.prompt, tokens.completion, tokens.cached, tokens.cache_written)
    return price, None if price is not None else f"no list price is known for model {model!r}"


def _count(place: str, usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = usage.get(key)
        if value is not None:
            if value.__class__ is int and 0 <= value < _COMMON_COUNT:
                return int(value)
            number = number_at(f"{place}[{key!r}]", value)
            return None if number is None else round(number)
    return None


def _sum_known(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _usage_mapping(place: str, usage: Any) -> Mapping[str, Any]:
    """Token counts as a mapping; client libraries hand them over as objects."""
    if usage.__class__ is dict or isinstance(usage, Mapping):
        return usage
    attributes = getattr(usage, "__dict__", None)
    if attributes:
        return dict(attributes)
    raise InputProblem(f"{place} must be a dict of token counts; received {usage!r:.80}")


# List prices come from the offline table of the optional package genai-prices (extra ``prices``).

INSTALL_HINT = install_command("prices")


class Rates(NamedTuple):
    """US dollars a token, valid for prompts of fewer than ``below_prompt_tokens``."""

    prompt: float
    cached: float
    completion: float
    below_prompt_tokens: float


@lru_cache(maxsize=1)
def prices_installed() -> bool:
    """Whether the price table is there; looking does not import it."""
    return find_spec("genai_prices") is not None


def price_usd(
    model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, cache_written_tokens: int = 0
) -> float | None:
    """What a call costs in US dollars by list price; ``None`` when the table does not know the model.

    ``prompt_tokens`` includes those read from and written to a cache. The table is the one shipped with the package:
    nothing is fetched.
    """
    if not prices_installed():
        return None
    rates = _rates(model)
    # The library takes 0.1 ms a call; below the first tier its prices are plain multiples.
    plain = not cache_written_tokens and cached_tokens <= prompt_tokens
    if rates is not None and plain and prompt_tokens < rates.below_prompt_tokens:
        fresh = prompt_tokens - cached_tokens
        return fresh * rates.prompt + cached_tokens * rates.cached + completion_tokens * rates.completion
    price = _look_up(model, prompt_tokens, completion_tokens, cached_tokens, cache_written_tokens)
    return None if price is None else float(price.total_price)


@lru_cache(maxsize=1024)
def _rates(model: str) -> Rates | None:
    price = _look_up(model, 1, 1, 0)
    table = getattr(price, "model_price", None)
    try:
        parts = [_rate(getattr(table, name)) for name in ("input_mtok", "cache_read_mtok", "output_mtok")]
    except (AttributeError, TypeError):
        return None
    (prompt, prompt_tier), (cached, cached_tier), (completion, completion_tier) = parts
    if prompt is None or completion is None:
        return None
    tiers = min(prompt_tier, cached_tier, completion_tier)
    return Rates(prompt, prompt if cached is None else cached, completion, tiers)


def _rate(entry: Any) -> tuple[float | None, float]:
    """US dollars a token, and the prompt length from which another tier applies."""
    if entry is None:
        return None, inf
    if hasattr(entry, "base"):
        return float(entry.base) / 1e6, min((tier.start for tier in entry.tiers), default=inf)
    return float(entry) / 1e6, inf


def _look_up(
    model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int, cache_written_tokens: int = 0
) -> Any:
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        cache_read_tokens=cached_tokens or None,
        cache_write_tokens=cache_written_tokens or None,
    )
    try:
        return calc_price(usage, model_ref=model)
    except (LookupError, ValueError):
        return None

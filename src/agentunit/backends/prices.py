"""Prices of model calls, from the offline table of the optional package genai-prices (extra ``prices``)."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from math import inf
from typing import Any, NamedTuple

from agentunit.installation import install_command

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

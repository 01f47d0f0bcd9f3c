"""Prices of model calls, from the offline table of the optional package genai-prices (extra ``prices``)."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

INSTALL_HINT = 'pip install "agentunit-eval[prices]"'


@lru_cache(maxsize=1)
def prices_installed() -> bool:
    """Whether the price table is there; looking does not import it."""
    return find_spec("genai_prices") is not None


@lru_cache(maxsize=8192)
def price_usd(model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float | None:
    """What a call costs in US dollars by list price; ``None`` when the table does not know the model.

    ``prompt_tokens`` includes the cached ones. The table is the one shipped with the package: nothing is fetched.
    """
    if not prices_installed():
        return None
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens, cache_read_tokens=cached_tokens or None)
    try:
        return float(calc_price(usage, model_ref=model).total_price)
    except (LookupError, ValueError):
        return None

"""What calls cost, and the most that a run may spend."""

from __future__ import annotations

import asyncio
from collections import deque

from agentunit.backends.judge.settings import JudgeSettings
from agentunit.backends.prices import INSTALL_HINT, price_usd, prices_installed

# Roles, separators and what a server puts around a schema: no known template takes more.
_TOKENS_AROUND = 256


class Tariff:
    """US dollars for tokens: the user's own prices, else list prices by the model's name, else unknown."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._model = settings.model
        self._input = settings.usd_per_million_input
        self._output = settings.usd_per_million_output

    def cost_usd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float | None:
        """The price of a call; ``None`` when no price is known. The user's own price knows no rebate for a cache."""
        if self._input is not None and self._output is not None:
            return (prompt_tokens * self._input + completion_tokens * self._output) / 1e6
        return price_usd(self._model, prompt_tokens, completion_tokens, min(cached_tokens, prompt_tokens))

    def most_usd(self, n_bytes: int, max_tokens: int) -> float | None:
        """The most that an attempt can cost: a token for every byte sent, and every token of the reply it may have."""
        return self.cost_usd(n_bytes + _TOKENS_AROUND, max_tokens)


def why_cap_cannot_hold(settings: JudgeSettings) -> str | None:
    """Why a spend cap cannot be kept with these settings, with the way out; ``None`` when it can or there is none."""
    if settings.max_spend_usd is None or Tariff(settings).cost_usd(1, 1) is not None:
        return None
    hint = "" if prices_installed() else f", or install the list prices: {INSTALL_HINT}"
    return (
        f"the price of the model {settings.model!r} is not known, so a spend cap of {settings.max_spend_usd} USD "
        f"cannot be kept (set usd_per_million_input and usd_per_million_output{hint})"
    )


class SpendCap:
    """Keeps what was spent, plus the most that calls under way can cost, within a cap. Used within one event loop.

    The most that an attempt can cost is set aside before it starts. It is settled at what the server billed; an attempt
    that may have been billed without saying so counts at its most. So the cap can be exceeded only by a server that
    bills more tokens than the request has bytes, or than the reply may have, and then only by that much.
    """

    def __init__(self, cap_usd: float | None) -> None:
        self.cap_usd = cap_usd
        self.spent_usd = 0.0
        self._aside_usd = 0.0
        self._n_aside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def set_aside(self, most_usd: float) -> bool:
        """Set an attempt's most aside; False when it does not fit. Waits while calls under way may leave room."""
        if self.cap_usd is None:
            return True
        while self.spent_usd + self._aside_usd + most_usd > self.cap_usd:
            if self._n_aside == 0:
                return False
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(changed)
            await changed
        self._aside_usd += most_usd
        self._n_aside += 1
        return True

    def settle(self, most_usd: float, cost_usd: float) -> None:
        """An attempt is over, and cost this."""
        self.spent_usd += cost_usd
        if self.cap_usd is None:
            return
        self._n_aside -= 1
        # With nothing under way, sums of floats must leave no crumbs.
        self._aside_usd = self._aside_usd - most_usd if self._n_aside else 0.0
        waiting, self._waiting = self._waiting, deque()
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)

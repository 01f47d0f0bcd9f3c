"""The limits on the calls of a run: how many at once, when to stop, and how much they may cost."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from agentunit.addons.judge.settings import JudgeSettings
from agentunit.metrics.usage import INSTALL_HINT, price_usd, prices_installed

# After a call that went well the limit grows by this share of a call a round: back to full in some tens of rounds.
_GROWTH = 1.0
_LEAST_PAUSE_S = 0.25
_MOST_PAUSE_S = 4.0
# While calls are spaced, a call counts as taking at least this long.
_SHORTEST_CALL_S = 0.1
_MEMORY = 0.2


class Pace:
    """Lets at most ``most`` calls run at once, fewer while the server asks for it. Used within one event loop.

    A call that was turned away (429, overload, no answer in time) halves the limit, once for all calls that were under
    way together, and stops new calls for the time the server named (where it names none: for longer and longer times,
    as often as it happens in a row). Each call that goes well lets the limit grow a little. While it is below ``most``,
    calls start evenly spaced over the time one takes, not all at once.
    """

    def __init__(self, most: int) -> None:
        self.limit = float(most)
        self.under_way = 0
        self.last_pause_s = 0.0
        self._most = most
        self._tickets = count()
        self._waiting: list[tuple[int, int, asyncio.Future[bool]]] = []
        self._resume_at = 0.0
        self._next_start_at = 0.0
        self._lowered_at = 0.0
        self._call_s = 0.0
        self._own_pause_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def ticket(self) -> int:
        """A place in the queue, which a call keeps for all of its attempts: the oldest call goes first."""
        return next(self._tickets)

    async def enter(self, ticket: int, until_s: float | None = None) -> bool:
        """Wait for a turn; False when there was none before this time of the loop. Whoever got one must leave."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        heappush(self._waiting, (ticket, next(self._tickets), turn))
        timer = None if until_s is None else loop.call_at(until_s, _settle, turn, False)
        self._let_in()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def leave(self) -> None:
        """A call is over."""
        self.under_way -= 1
        self._let_in()

    def went_well(self, elapsed_s: float) -> None:
        """A call was answered after this time."""
        self._call_s += (elapsed_s - self._call_s) * (_MEMORY if self._call_s else 1.0)
        self.limit = min(float(self._most), self.limit + _GROWTH / self.limit)
        self._own_pause_s = self._own_pause_s / 2 if self._own_pause_s > _LEAST_PAUSE_S else 0.0

    def turned_away(self, started_at: float, pause_s: float | None) -> None:
        """A call that had started then was turned away. ``None``: the server did not say for how long to wait."""
        is_news = self.was_too_slow(started_at)
        if pause_s is None:
            if not is_news:
                return
            pause_s = self._own_pause_s
            self._own_pause_s = min(max(2 * pause_s, _LEAST_PAUSE_S), _MOST_PAUSE_S)
            if pause_s == 0:
                return
        self.last_pause_s = max(pause_s, _LEAST_PAUSE_S)
        self._resume_at = max(self._resume_at, asyncio.get_running_loop().time() + self.last_pause_s)

    def was_too_slow(self, started_at: float) -> bool:
        """A call that had started then got no answer in time: fewer at once, but no pause. Whether that was news."""
        is_news = started_at >= self._lowered_at
        if is_news:
            self.limit = max(1.0, self.limit / 2)
            self._lowered_at = asyncio.get_running_loop().time()
        return is_news

    def wake_all(self) -> None:
        """Send everybody who waits on, without a turn: there will be none."""
        while self._waiting:
            _settle(heappop(self._waiting)[-1], False)

    def _let_in(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self.under_way < int(self.limit):
            now = loop.time()
            opens_at = max(self._resume_at, self._next_start_at)
            if now < opens_at:
                if self._timer is None:
                    self._timer = loop.call_at(opens_at, self._timer_fired)
                return
            turn = heappop(self._waiting)[-1]
            if turn.done():
                continue
            self.under_way += 1
            spacing_s = max(self._call_s, _SHORTEST_CALL_S) / self.limit if self.limit < self._most else 0.0
            self._next_start_at = now + spacing_s
            turn.set_result(True)

    def _timer_fired(self) -> None:
        self._timer = None
        self._let_in()


def _settle(turn: asyncio.Future[bool], value: bool) -> None:
    if not turn.done():
        turn.set_result(value)


# A server that asks for a longer wait has run out of quota; the run does not wait for it.
LONGEST_WAIT_S = 120.0
_LEAST_FAILURES = 10
_LEAST_FORBIDDEN = 3
# How long, over a whole run, a server that has answered before may be away: the time of a restart.
_LONGEST_OUTAGE_S = 60.0


class Health:
    """Remembers what makes every further call pointless, so that a run ends soon and each question gets the reason.

    Times are those of the event loop. A server that has answered nothing usable for twice the time of a call (or twice
    the pause it asked for), over ten attempts or more, is given up for as long again; then one more failure is enough.
    One that cannot be reached is given up for the run, when its share of waiting is used up (``more_waiting``).
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.n_answers = 0
        self._patience_s = 2 * settings.timeout_s
        self._place = settings.address.shown
        self._hopeless: str | None = None
        self._blocked_until = 0.0
        self._blocked_because = ""
        self._quiet_since: float | None = None
        self._failures = 0
        self._n_forbidden = 0
        self._most_probes = settings.max_attempts - 1
        self._n_probes = 0
        self._waited_s = 0.0

    def why_stop(self, now: float) -> str | None:
        """Why no call should be made now."""
        if self._hopeless is not None:
            return self._hopeless
        return self._blocked_because if now < self._blocked_until else None

    def answered(self) -> None:
        """A usable answer came."""
        self.n_answers += 1
        self._failures = 0
        self._quiet_since = None

    def failed(self, now: float, started_at: float, problem: str, last_pause_s: float) -> None:
        """An attempt came to nothing; it may be the one after which the server is given up."""
        self._failures += 1
        self._quiet_since = started_at if self._quiet_since is None else self._quiet_since
        quiet_s = now - self._quiet_since
        patience_s = max(self._patience_s, 2 * last_pause_s)
        if self._failures >= _LEAST_FAILURES and quiet_s >= patience_s:
            sentence = f"{self._place} has given no answer for {quiet_s:.0f} s; the last of {self._failures} attempts"
            self.block(now, patience_s, f"{sentence}: {problem}")

    def block(self, now: float, wait_s: float, because: str) -> None:
        """No calls for so long."""
        self._blocked_until, self._blocked_because = now + wait_s, because

    def give_up(self, because: str, *, for_good: bool) -> None:
        """No calls any more: a wrong key, no money left; or, if no call went well yet, an address that is none."""
        if for_good or self.n_answers == 0:
            self._hopeless = because

    def forbidden(self, because: str) -> None:
        """A call was forbidden: that may be about its text, unless all of them are."""
        self._n_forbidden += 1
        if self.n_answers == 0 and self._n_forbidden >= _LEAST_FORBIDDEN:
            self._hopeless = because

    def more_waiting(self, pause_s: float) -> bool:
        """Whether a server that cannot be reached is worth another look after this pause, counted over the run.

        One that never answered gets as many looks as a call has attempts, one that did may be starting again.
        """
        if self.n_answers == 0:
            self._n_probes += 1
            return self._n_probes <= self._most_probes
        self._waited_s += pause_s
        return self._waited_s <= _LONGEST_OUTAGE_S


# Roles, separators and what a server puts around a schema: no known template takes more.
_TOKENS_AROUND = 256


BATCH_SHARE = 0.5
"""What a call in a batch costs, as a share of the list price, at the providers that have batches."""


class Tariff:
    """US dollars for tokens: the user's own prices, else list prices by the model's name, else unknown."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._model = settings.model
        self._prices = settings.usd_per_million_input, settings.usd_per_million_output
        self._share = BATCH_SHARE if settings.batch else 1.0
        self._is_unknown = False

    def cost_usd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float | None:
        """The price of a call; ``None`` when no price is known. The user's own price knows no rebate for a cache."""
        of_input, of_output = self._prices
        if of_input is not None and of_output is not None:
            return self._share * (prompt_tokens * of_input + completion_tokens * of_output) / 1e6
        if self._is_unknown:
            return None
        listed_usd = price_usd(self._model, prompt_tokens, completion_tokens, min(cached_tokens, prompt_tokens))
        # Looked up for every call otherwise, and a model that is not listed stays so.
        self._is_unknown = listed_usd is None
        return None if listed_usd is None else self._share * listed_usd

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


class Ledger(Protocol):
    """What a run has cost so far, over all of its processes: kept on disk, each call before it is made."""

    total_usd: float

    def set_aside(self, call: str, usd: float, cap_usd: float) -> bool:
        """Note the most that a call can cost, before it is made; False where the run could then pass a cap."""

    def settle(self, call: str, usd: float) -> None:
        """Note what a call has cost in the end."""

    def close(self) -> None:
        """Nothing more will be noted."""


class SpendCap:
    """Keeps what was spent, plus the most that calls under way can cost, within a cap. Used within one event loop.

    The most that an attempt can cost is set aside before it starts. It is settled at what the server billed; an attempt
    that may have been billed without saying so counts at its most. So the cap can be exceeded only by a server that
    bills more tokens than the request has bytes, or than the reply may have, and then only by that much.

    With a ``ledger``, what earlier processes of the run spent, or may have spent when they were killed, counts as well.
    """

    def __init__(self, cap_usd: float | None) -> None:
        self.cap_usd = cap_usd
        self.ledger: Ledger | None = None
        self.spent_usd = 0.0
        self._aside_usd = 0.0
        self._n_aside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def counted_usd(self) -> float:
        """What counts as spent, without calls of this process that are under way."""
        return self.spent_usd if self.ledger is None else self.ledger.total_usd - self._aside_usd

    async def set_aside(self, most_usd: float, call: str = "") -> bool:
        """Set an attempt's most aside; False when it does not fit. Waits while calls under way may leave room."""
        if self.cap_usd is None:
            return True
        while not self._takes(most_usd, call, self.cap_usd):
            if self._n_aside == 0:
                return False
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(changed)
            await changed
        self._aside_usd += most_usd
        self._n_aside += 1
        return True

    def _takes(self, most_usd: float, call: str, cap_usd: float) -> bool:
        if self.ledger is not None:
            return self.ledger.set_aside(call, most_usd, cap_usd)
        return self.spent_usd + self._aside_usd + most_usd <= cap_usd

    def settle(self, most_usd: float, cost_usd: float, call: str | None = None) -> None:
        """An attempt is over, and cost this. In the ledger one without a ``call`` stays at its most."""
        self.spent_usd += cost_usd
        if self.cap_usd is None:
            return
        if self.ledger is not None and call is not None:
            # Where that cannot be written, the call stays at its most.
            with suppress(Exception):
                self.ledger.settle(call, cost_usd)
        self._n_aside -= 1
        # With nothing under way, sums of floats must leave no crumbs.
        self._aside_usd = self._aside_usd - most_usd if self._n_aside else 0.0
        waiting, self._waiting = self._waiting, deque()
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)

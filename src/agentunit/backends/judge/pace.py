"""How many calls are under way, and when the next one may start."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count

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
    as often as it happens in a row). Each call that goes well lets the limit
    grow a little. While it is below ``most``, calls start evenly spaced over the time one takes, not all at once.
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
        now = asyncio.get_running_loop().time()
        is_news = started_at >= self._lowered_at
        if is_news:
            self.limit = max(1.0, self.limit / 2)
            self._lowered_at = now
        if pause_s is None:
            if not is_news:
                return
            pause_s, self._own_pause_s = self._own_pause_s, _longer(self._own_pause_s)
            if pause_s == 0:
                return
        self.last_pause_s = max(pause_s, _LEAST_PAUSE_S)
        self._resume_at = max(self._resume_at, now + self.last_pause_s)

    def was_too_slow(self, started_at: float) -> None:
        """A call that had started then got no answer in time: fewer at once, but no pause."""
        if started_at >= self._lowered_at:
            self.limit = max(1.0, self.limit / 2)
            self._lowered_at = asyncio.get_running_loop().time()

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
            self._next_start_at = now + self._spacing_s()
            turn.set_result(True)

    def _timer_fired(self) -> None:
        self._timer = None
        self._let_in()

    def _spacing_s(self) -> float:
        return max(self._call_s, _SHORTEST_CALL_S) / self.limit if self.limit < self._most else 0.0


def _longer(pause_s: float) -> float:
    return min(max(2 * pause_s, _LEAST_PAUSE_S), _MOST_PAUSE_S)


def _settle(turn: asyncio.Future[bool], value: bool) -> None:
    if not turn.done():
        turn.set_result(value)

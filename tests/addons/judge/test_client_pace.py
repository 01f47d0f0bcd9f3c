"""How calls are paced: in virtual time against a made-up server, and over HTTP in a storm of refusals."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_asking import ask_all, echo, question, settings_for
from judge_faults import Fault, rate_limited
from judge_server import JudgeServer, Received
from virtual_time import run_virtually

from agentunit.addons.judge._call_limits import Pace
from agentunit.addons.judge.client import JudgeClient


@dataclass
class Busy:
    """A server that takes so many calls a second; the rest is turned away, with or without a time to wait."""

    per_s: float
    at_once: float
    wait_s: float | None
    left: float = 0.0
    seen_at: float = 0.0

    def takes(self, now: float) -> bool:
        self.left = min(self.at_once, self.left + (now - self.seen_at) * self.per_s)
        self.seen_at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


async def _ask_busy(server: Busy, n_calls: int, most: int, seed: int) -> tuple[float, list[int], int]:
    """The time taken, how often each call was turned away, and the most that were under way at once."""
    loop, pace, chance = asyncio.get_running_loop(), Pace(most), random.Random(seed)
    peak = 0

    async def call() -> int:
        nonlocal peak
        turned_away = 0
        ticket = pace.ticket()
        while True:
            assert await pace.enter(ticket)
            peak = max(peak, pace.under_way)
            started_at = loop.time()
            taken = server.takes(started_at)
            await asyncio.sleep(chance.uniform(0.15, 0.25) if taken else 0.02)
            if taken:
                pace.went_well(loop.time() - started_at)
            else:
                pace.turned_away(started_at, server.wait_s)
                turned_away += 1
            pace.leave()
            if taken:
                return turned_away

    refusals = await asyncio.gather(*(call() for _ in range(n_calls)))
    assert pace.under_way == 0
    return loop.time(), list(refusals), peak


@pytest.mark.parametrize(
    ("per_s", "at_once", "wait_s", "n_calls"),
    [
        (20, 20, 1.0, 1200),
        (20, 20, None, 1200),
        (1, 1, 1.0, 60),
        (1, 1, None, 60),
        (100, 10, 0.5, 2000),
        (10, 60, 5.0, 600),
    ],
)
def test_a_busy_server_is_used_well_and_hammered_little(
    per_s: float, at_once: float, wait_s: float | None, n_calls: int
) -> None:
    took_s, refusals, peak = run_virtually(_ask_busy(Busy(per_s, at_once, wait_s), n_calls, 50, seed=1))

    assert took_s < 2.5 * n_calls / per_s
    # 50 calls start at once before the server has said anything; after that, few are turned away.
    assert sum(refusals) < 50 + max(0.1 * n_calls, 160)
    assert max(refusals) <= 6
    assert peak == 50


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.5, 200), st.floats(1, 50), st.one_of(st.none(), st.floats(0, 10)), st.integers(1, 60), st.integers(0, 9)
)
def test_whatever_the_server_takes_every_call_ends_within_bounds(
    per_s: float, at_once: float, wait_s: float | None, most: int, seed: int
) -> None:
    _, refusals, peak = run_virtually(_ask_busy(Busy(per_s, at_once, wait_s), 80, most, seed))

    assert len(refusals) == 80
    assert peak <= most
    assert max(refusals) < 20


def test_without_refusals_nothing_waits() -> None:
    took_s, refusals, peak = run_virtually(_ask_busy(Busy(1e9, 1e9, None, left=1e9), 500, 50, seed=2))

    assert (sum(refusals), peak) == (0, 50)
    assert took_s < 10 * 0.25


def test_one_burst_of_refusals_halves_the_limit_once() -> None:
    async def burst() -> list[float]:
        pace = Pace(40)
        started_at = asyncio.get_running_loop().time()
        for _ in range(40):
            await pace.enter(pace.ticket())
        seen = []
        for _ in range(40):
            await asyncio.sleep(0.01)
            pace.turned_away(started_at, 1.0)
            seen.append(pace.limit)
            pace.leave()
        pace.turned_away(asyncio.get_running_loop().time(), 1.0)
        return [min(seen), max(seen), pace.limit]

    assert run_virtually(burst()) == [20.0, 20.0, 10.0]


def test_nobody_starts_in_a_pause_and_starts_after_it_are_spread() -> None:
    async def starts() -> list[float]:
        loop, pace = asyncio.get_running_loop(), Pace(8)
        await pace.enter(pace.ticket())
        pace.turned_away(loop.time(), 3.0)
        pace.leave()
        found = []

        async def one() -> None:
            await pace.enter(pace.ticket())
            found.append(loop.time())

        await asyncio.gather(*(one() for _ in range(4)))
        return found

    found = run_virtually(starts())
    assert found[0] == pytest.approx(3.0)
    assert len(set(found)) == 4
    assert found[-1] - found[0] == pytest.approx(3 * 0.1 / 4)


def test_the_limit_recovers_gradually_and_never_beyond() -> None:
    async def limits() -> list[float]:
        pace = Pace(10)
        pace.turned_away(asyncio.get_running_loop().time(), 1.0)
        found = [pace.limit]
        for _ in range(200):
            pace.went_well(0.2)
            found.append(pace.limit)
        return found

    found = run_virtually(limits())
    assert found[0] == 5.0
    assert found[-1] == 10.0
    assert all(0 <= later - sooner <= 0.2 + 1e-9 for sooner, later in pairwise(found))


def test_a_turn_that_nobody_takes_is_given_back() -> None:
    async def cancelled() -> tuple[int, bool]:
        pace = Pace(1)
        await pace.enter(pace.ticket())
        waiting = asyncio.ensure_future(pace.enter(pace.ticket()))
        await asyncio.sleep(0)
        pace.leave()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return pace.under_way, await pace.enter(pace.ticket(), asyncio.get_running_loop().time() + 1)

    assert run_virtually(cancelled()) == (0, True)


def test_who_waits_too_long_or_in_vain_goes_without_a_turn() -> None:
    async def waiting() -> tuple[bool, float, list[bool]]:
        loop, pace = asyncio.get_running_loop(), Pace(1)
        await pace.enter(pace.ticket())
        late, at = await pace.enter(pace.ticket(), loop.time() + 2), loop.time()
        others = [asyncio.ensure_future(pace.enter(pace.ticket())) for _ in range(3)]
        await asyncio.sleep(0)
        pace.wake_all()
        return late, at, await asyncio.gather(*others)

    assert run_virtually(waiting()) == (False, 2.0, [False] * 3)


def test_a_storm_of_refusals_over_http_loses_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentunit.addons.judge._call_limits._LEAST_PAUSE_S", 0.01)
    monkeypatch.setattr("agentunit.addons.judge._call_limits._MOST_PAUSE_S", 0.05)
    # On a slow machine the first refusals come before other questions are sent, and all may meet the oldest one:
    # fewer than a single question bears.
    n_refused = 12

    def storm(request: Received) -> Fault | None:
        return rate_limited() if request.number < n_refused or request.number % 7 == 0 else None

    with JudgeServer(echo, faults=storm) as server:
        client = JudgeClient(settings_for(server, concurrency=25))
        replies = ask_all(client, (question(f"number {number}") for number in range(150)))
        client.close()

    assert [reply.text for reply in replies] == [f'{{"echo": "number {number}"}}' for number in range(150)]
    assert client.usage.retries == len(server.calls) - 150 >= n_refused


def test_one_refusal_holds_all_calls_for_the_time_the_server_named() -> None:
    with JudgeServer(echo, faults={3: rate_limited("0.8")}) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(6)))
        client.close()

    assert {reply.problem for reply in replies} == {None}
    times = [call.at_s for call in server.calls]
    assert len(times) == 7
    assert times[4] - times[3] >= 0.8

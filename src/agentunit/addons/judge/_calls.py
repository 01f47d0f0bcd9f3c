"""A question's way to an answer: its turn, its attempts, what they cost, and when to stop."""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from agentunit.addons.judge._call_limits import LONGEST_WAIT_S, Health, Ledger, Pace, SpendCap, Tariff
from agentunit.addons.judge._chat_completion import (
    Attempt,
    Dialect,
    attempt,
    aws_credentials,
    request_body,
)
from agentunit.addons.judge._completions import CUT_OFF, LIMIT_REFUSED, Completion
from agentunit.addons.judge._messages import JudgeRequest, JudgeUsage
from agentunit.addons.judge._profiles import profile_named
from agentunit.addons.judge._prompts import answers_another
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.backends.http_client import HttpClient, HttpFailure
from agentunit.backends.services import SPEND_CAP_REACHED

# How many tokens a reply may have: little at first, more once a reply was cut off, as models that reason need.

_ROOM_GROWTH = 4
_MOST_ROOM = 32_768
# What a model that was asked to reason gets from the start.
_FOR_REASONING = 8_192
_NO_REASONING = (None, "none", "minimal")
_ROOM_AROUND = 64
_NUMBER = re.compile(r"\d{3,7}")


class ReplyRoom:
    """The limit of tokens of replies in one run. What one call needed, all later ones get from the start."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._fixed = settings.max_tokens
        self._least = 0 if settings.reasoning_effort in _NO_REASONING else _FOR_REASONING
        self._most = _MOST_ROOM

    def first(self, wanted: int) -> int:
        """The limit of a call's first attempt."""
        return self._fixed or max(wanted, self._least)

    def after_cut_off(self, had: int) -> int | None:
        """The limit to try after a reply reached this one; ``None`` when there is no larger one."""
        found = min(max(had * _ROOM_GROWTH, self._least), self._most)
        if self._fixed is not None or found <= had:
            return None
        self._least = max(self._least, found)
        return found

    def after_refusal(self, had: int, wanted: int, message: str, cut_off: tuple[int, Completion] | None) -> int | None:
        """The limit to try after a server refused this one; ``None`` when the refusal is about something else.

        ``wanted`` is what the question asked for; ``cut_off`` the limit that is known to be too small, and its reply.
        """
        if self._fixed is not None or not LIMIT_REFUSED.search(message):
            return None
        too_small, said = cut_off or (0, Completion())
        allowed = _allowed(message, had, said.prompt_tokens or 0)
        if allowed > max(too_small, wanted):
            self._most = allowed
            self._least = min(self._least, allowed)
            return allowed
        return wanted if cut_off is None and wanted < had else None

    def why_cut_off(self, had: int) -> str:
        """Why a reply that was cut off is not asked for again, with the way out."""
        if self._fixed is not None:
            return f"{CUT_OFF} (max_tokens is set to {self._fixed:,}: set more, or none)"
        return f"{CUT_OFF}, {had:,} (the setting max_tokens gives more, if the model takes it)"


def _allowed(message: str, had: int, prompt_tokens: int) -> int:
    """The most that a server takes, by the words in which it refused more; 0 where it does not say."""
    taken = prompt_tokens + _ROOM_AROUND if "context" in message.lower() else 0
    limits = [int(found) - taken for found in _NUMBER.findall(message.replace(",", ""))]
    return max((each for each in limits if each < had), default=0)


NO_TEMPERATURE = (
    "the server refuses temperature 0, so the judge is asked at the server's own temperature and its verdicts may vary"
)
_FIRST_BACKOFF_S = 0.5
_MOST_BACKOFF_S = 8.0
# A busy server costs a call no attempt of its own: it may be turned away this many times as often as it may fail.
_PATIENCE_WHEN_TURNED_AWAY = 4


@dataclass
class JudgeCall:
    """What came of a question so far. ``attempts`` are plain data, for transcripts.

    ``was_stale``: a kept connection turned out to be closed, so a new one is used from then on. ``was_astray``: the
    reply to another question came, which is asked about once more. ``max_tokens`` is the limit of the next attempt
    (0: not known yet), ``cut_off`` the last limit that a reply reached, and that reply.
    """

    completion: Completion = field(default_factory=Completion)
    problem: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    n_unstated: int = 0
    was_stale: bool = False
    was_astray: bool = False
    max_tokens: int = 0
    cut_off: tuple[int, Completion] | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)


class Caller:
    """Makes the calls of one run to one server. Lives in one event loop; what servers do raises nothing."""

    def __init__(self, settings: JudgeSettings, client: HttpClient, usage: JudgeUsage, dialect: Dialect) -> None:
        self.dialect = dialect
        self._settings = settings
        self._address = settings.address
        self._profile = profile_named(self._address.profile)
        is_signed = self._profile.name == "bedrock" and settings.key is None
        self._credentials = aws_credentials() if is_signed else None
        self._room = ReplyRoom(settings)
        self._client = client
        self._usage = usage
        self._tariff = Tariff(settings)
        self._cap = SpendCap(settings.max_spend_usd)
        self._pace = Pace(settings.concurrency)
        self._health = Health(settings)
        self._ends_at: float | None = None
        self._format_is_proven = False
        # Under way while the server cannot be reached: one looks out for it, the others wait.
        self._outage: asyncio.Task[None] | None = None
        if not dialect.with_temperature:
            usage.add_problem(NO_TEMPERATURE)
        # For those who were sent on without a turn, and find that its time has passed.
        self._given_up_because: str | None = None

    async def answer(self, request: JudgeRequest) -> JudgeCall:
        """Ask until there is an answer, a final no, or nothing left to try."""
        call = JudgeCall()
        if self._ends_at is None and self._settings.run_timeout_s is not None:
            self._ends_at = asyncio.get_running_loop().time() + self._settings.run_timeout_s
        ticket = self._pace.ticket()
        n_failed = n_turned_away = 0
        most = self._settings.max_attempts
        while True:
            made = await self._turn(request, call, ticket)
            if made is None:
                return call
            if call.cut_off is not None and (made.completion.was_cut_off or made.status == 400):
                call.problem, call.completion = self._room.why_cut_off(call.cut_off[0]), call.cut_off[1]
                return call
            is_astray = request.mark is not None and answers_another(made.completion.text or "", request.mark)
            if made.kind == "answered" and not call.was_astray and is_astray:
                call.was_astray = call.was_stale = True
                continue
            if made.kind in ("answered", "final", "hopeless"):
                call.problem, call.completion = made.problem, made.completion
                return call
            if made.kind == "stale":
                call.was_stale = True
                continue
            if made.kind == "unreachable":
                # One looks out for a server that cannot be reached, for all calls.
                if self._outage is None:
                    self._outage = asyncio.get_running_loop().create_task(self._outlast(made.problem or ""))
                continue
            if made.kind == "turned_away":
                n_turned_away += 1
            else:
                n_failed += 1
            if n_failed >= most or n_turned_away >= most * _PATIENCE_WHEN_TURNED_AWAY:
                call.problem = f"gave up after {len(call.attempts)} attempts; the last: {made.problem}"
                return call
            # Who was turned away waits for a turn like all others: the pace has been lowered for all.
            if made.kind != "turned_away":
                await asyncio.sleep(self._backoff_s(n_failed))

    def _another_limit(self, request: JudgeRequest, call: JudgeCall, made: Attempt) -> int | None:
        """The limit of tokens to try next: more after a reply that was cut off, less after a refusal of so much."""
        if made.completion.was_cut_off:
            call.cut_off = call.max_tokens, made.completion
            return self._room.after_cut_off(call.max_tokens)
        if made.status != 400:
            return None
        return self._room.after_refusal(call.max_tokens, request.max_tokens, made.problem or "", call.cut_off)

    async def _turn(self, request: JudgeRequest, call: JudgeCall, ticket: int) -> Attempt | None:
        """What came of one turn; ``None`` when nothing was sent, with the reason in the call."""
        while True:
            if self._outage is not None:
                await asyncio.wait([self._outage], timeout=self._time_left())
            call.problem = self._why_stop()
            if call.problem is not None:
                return None
            if not await self._pace.enter(ticket, self._ends_at):
                call.problem = self._why_stop() or self._given_up_because or self._time_is_up()
                return None
            if self._outage is None:
                break
            self._pace.leave()
        try:
            return await self._understood(request, call)
        finally:
            self._pace.leave()

    async def _outlast(self, problem: str) -> None:
        """Wait until a connection can be made, or give the server up for the run."""
        n_attempts = 1
        try:
            while self._why_stop() is None:
                pause_s = self._backoff_s(n_attempts)
                if not self._health.more_waiting(pause_s):
                    self._given_up_because = f"gave up after {n_attempts} attempts; the last: {problem}"
                    self._health.give_up(self._given_up_because, for_good=True)
                    self._pace.wake_all()
                    return
                await asyncio.sleep(pause_s)
                n_attempts += 1
                try:
                    await asyncio.wait_for(self._client.connect(), self._time_for_one())
                except asyncio.TimeoutError:
                    problem = "cannot connect: no answer in time"
                except HttpFailure as error:
                    problem = str(error)
                else:
                    return
        finally:
            self._outage = None

    async def _understood(self, request: JudgeRequest, call: JudgeCall) -> Attempt | None:
        """Send a request, and where the server refuses how it is put, put it in an easier way, or with more room.

        Others are asked in that way only when the server has taken it.
        """
        if not call.max_tokens:
            # Not before its turn: what other calls needed meanwhile is known by then.
            call.max_tokens = self._room.first(request.max_tokens)
        dialect = self.dialect
        refused: Attempt | None = None
        while True:
            made = await self._sent(request, call, dialect)
            if made is None:
                return None
            another_limit = self._another_limit(request, call, made)
            if another_limit is not None:
                call.max_tokens = another_limit
                continue
            if made.status is not None and 200 <= made.status < 300:
                self._remember(dialect, has_schema=request.schema is not None)
            is_no = made.kind == "final" and (made.status or 0) >= 400
            easier = self._easier(request, dialect, made) if is_no else None
            if easier is None:
                return refused if is_no and refused is not None else made
            dialect, refused = easier, refused or made

    def _remember(self, dialect: Dialect, *, has_schema: bool) -> None:
        """A request in this dialect was taken."""
        self._format_is_proven |= has_schema
        if dialect.ease > self.dialect.ease:
            self.dialect = dialect
        if not self.dialect.with_temperature:
            self._usage.add_problem(NO_TEMPERATURE)

    async def _sent(self, request: JudgeRequest, call: JudgeCall, dialect: Dialect) -> Attempt | None:
        """One attempt, and what it cost; ``None`` when it must not be made, with the reason in the call."""
        loop = asyncio.get_running_loop()
        wanted = dialect.wanted(request, self._settings, call.max_tokens)
        body = msgspec.json.encode(request_body(self._profile, wanted, self._settings.extra_body))
        most_usd = 0.0
        if self._settings.max_spend_usd is not None:
            most_usd = self._tariff.most_usd(len(body), call.max_tokens) or 0.0
        name = self._name_of(request, body)
        try:
            has_room = await self._cap.set_aside(most_usd, name)
        except Exception as error:  # noqa: BLE001  # what cannot be noted must not be spent
            call.problem = f"the spend cap cannot be kept: {error}"
            return None
        if not has_room:
            call.problem = (
                f"{SPEND_CAP_REACHED}: {self._cap.counted_usd:.4f} of {self._cap.cap_usd:.4f} USD are spent"
                f"{'' if self._cap.ledger is None else ' on this run'}, "
                f"and this call may take {most_usd:.4f} USD"
            )
            return None
        # Room under the cap may have been long in coming.
        call.problem = self._why_stop()
        if call.problem is not None:
            self._cap.settle(most_usd, 0.0, name)
            return None
        started_at = loop.time()
        counted_usd, settled = most_usd, None
        self._usage.calls += 1
        self._usage.retries += bool(call.attempts)
        try:
            time_s = self._time_for_one()
            made = await self._attempt(request, body, time_s, on_new=call.was_stale)
            counted_usd, settled = self._count(call, made, most_usd), name
        finally:
            self._cap.settle(most_usd, counted_usd, settled)
        elapsed_s = loop.time() - started_at
        call.attempts.append({"status": made.status, "problem": made.problem, "elapsed_s": round(elapsed_s, 4)})
        self._learn(made, started_at, elapsed_s)
        return made

    def keep_spend(self, ledger: Ledger | None) -> None:
        """From now on note there what is spent, and count what stands there."""
        self._cap.ledger = ledger

    def _name_of(self, request: JudgeRequest, body: bytes) -> str:
        """What an attempt is called where its cost is noted: another one may be billed for itself."""
        return uuid4().hex

    async def _attempt(self, request: JudgeRequest, body: bytes, time_s: float, *, on_new: bool) -> Attempt:
        return await attempt(
            self._client,
            self._address,
            body,
            time_s,
            on_new=on_new,
            mark=request.mark,
            credentials=self._credentials,
        )

    def _count(self, call: JudgeCall, made: Attempt, most_usd: float) -> float:
        """Add what an attempt took to the totals; the money is what it counts against the cap."""
        said = made.completion
        prompt, completion = said.prompt_tokens, said.completion_tokens
        # A reply to a question takes tokens: a server that states none for either has not said what it bills.
        if prompt is None or completion is None or (said.text and not (prompt and completion)):
            self._usage.unstated += made.may_be_billed
            call.n_unstated += made.may_be_billed
            return most_usd if made.may_be_billed else 0.0
        call.prompt_tokens = (call.prompt_tokens or 0) + prompt
        call.completion_tokens = (call.completion_tokens or 0) + completion
        self._usage.prompt_tokens += prompt
        self._usage.completion_tokens += completion
        cost_usd = self._tariff.cost_usd(prompt, completion, said.cached_tokens)
        if cost_usd is None:
            self._usage.cost_usd = None
            return 0.0
        call.cost_usd = (call.cost_usd or 0.0) + cost_usd
        self._usage.cost_usd = None if self._usage.cost_usd is None else self._usage.cost_usd + cost_usd
        return cost_usd

    def _learn(self, made: Attempt, started_at: float, elapsed_s: float) -> None:
        """What an attempt means for the pace of all calls, and for whether to go on."""
        now = started_at + elapsed_s
        if made.kind in ("answered", "final"):
            self._pace.went_well(elapsed_s)
            if made.status != 403:
                self._health.answered()
                return
            self._health.forbidden(made.problem or "")
        if made.kind in ("stale", "unreachable"):
            return
        if made.kind == "hopeless":
            self._health.give_up(made.problem or "", for_good=made.status in (401, 402, 429))
        elif made.kind == "turned_away" and made.wait_s is not None and made.wait_s > LONGEST_WAIT_S:
            self._health.block(now, made.wait_s, f"the server asks to wait {made.wait_s:,.0f} s: {made.problem}")
        elif made.kind == "turned_away":
            self._pace.turned_away(started_at, made.wait_s)
        elif made.kind == "too_slow":
            self._pace.was_too_slow(started_at)
        if made.kind not in ("final", "hopeless"):
            self._health.failed(now, started_at, made.problem or "", self._pace.last_pause_s)
        why_stop = self._health.why_stop(now)
        if why_stop is not None:
            self._given_up_because = why_stop
            self._pace.wake_all()

    def _easier(self, request: JudgeRequest, used: Dialect, made: Attempt) -> Dialect | None:
        """The dialect in which a refused request is worth another try."""
        found = used.easier(
            made.status or 0,
            made.problem or "",
            had_schema=request.schema is not None,
            had_seed=request.seed is not None,
            formats=self._profile.formats,
        )
        if found is None:
            return None
        if self.dialect.ease > used.ease:
            return self.dialect
        easier, is_named = found
        return easier if is_named or not self._format_is_proven else None

    def _why_stop(self) -> str | None:
        now = asyncio.get_running_loop().time()
        if self._ends_at is not None and now >= self._ends_at:
            return self._time_is_up()
        return self._health.why_stop(now)

    def _time_is_up(self) -> str:
        return f"the time for all calls of the run ({self._settings.run_timeout_s:g} s) is up"

    def _time_left(self) -> float | None:
        return None if self._ends_at is None else max(0.0, self._ends_at - asyncio.get_running_loop().time())

    def _time_for_one(self) -> float:
        longest_s, left_s = self._settings.timeout_s, self._time_left()
        return longest_s if left_s is None else max(0.001, min(longest_s, left_s))

    def _backoff_s(self, n_failed: int) -> float:
        left_s = self._time_left()
        longest_s = min(_MOST_BACKOFF_S, _FIRST_BACKOFF_S * 2.0 ** (n_failed - 1))
        return (longest_s if left_s is None else min(longest_s, left_s)) * random.uniform(0.5, 1.0)

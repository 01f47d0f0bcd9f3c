"""Questions asked through a batch API: gathered, handed in together, and collected, by this run or by a later one.

Every step is on disk before the next one is taken. So a run may be killed at any moment: the same questions, asked
again, are found in the batch that is under way, and are not handed in and paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec

from agentunit.addons.judge._batch_journal import BatchJournal, OpenBatch, Result
from agentunit.addons.judge._batch_protocols import BatchApi, BatchFailure, batch_api
from agentunit.addons.judge._call_limits import Pace
from agentunit.addons.judge._calls import Caller
from agentunit.addons.judge._chat_completion import Attempt, Dialect, judged
from agentunit.addons.judge._messages import JudgeRequest, JudgeUsage
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.backends.http_client import HttpClient, Response

_T = TypeVar("_T")

QUIET_S = 1.0
"""Questions are handed in together when no other has come for so long."""
FIRST_POLL_S = 2.0
"""How long after it was handed in a batch is asked about; then after longer and longer times."""
_MOST_POLL_S = 60.0
_POLL_GROWTH = 1.5
GRACE_S = 600.0
"""A batch that was begun so long ago, and that the server does not have, was never handed in."""
MOST_REQUESTS = 10_000
_MOST_BYTES = 90 << 20
_FAILED_POLLS = 20


class BatchCaller(Caller):
    """Makes the calls of one run in batches. Attempts, dialects, the spend cap and totals are those of other calls."""

    def __init__(
        self, settings: JudgeSettings, client: HttpClient, usage: JudgeUsage, dialect: Dialect, journal: BatchJournal
    ) -> None:
        super().__init__(settings, client, usage, dialect)
        self._pace = Pace(MOST_REQUESTS)
        self._journal = journal
        assert self._profile.batches is not None
        self._api: BatchApi = batch_api(self._profile.batches, client, self._address)
        self._queue: dict[str, dict[str, Any]] = {}
        self._queued_bytes = 0
        self._waiting: dict[str, asyncio.Future[Attempt]] = {}
        self._watched: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._used: set[str] = set()
        self._of_others: set[str] = set()

    def _name_of(self, request: JudgeRequest, body: bytes) -> str:
        """A request that is handed in once is billed once, whoever collects its result."""
        parts = msgspec.json.encode([self._address.shown, request.sample])
        return hashlib.sha256(parts + body).hexdigest()

    async def _attempt(self, request: JudgeRequest, body: bytes, time_s: float, *, on_new: bool) -> Attempt:
        """Wait for the result of a request, in whatever batch it is or will be."""
        custom_id = self._name_of(request, body)
        if custom_id in self._used:  # it failed, and is asked for once more
            self._journal.discard([custom_id])
        found = self._journal.result_of(custom_id)
        if found is not None:
            self._used.add(custom_id)
            return self._read(found)
        waiting = self._waiting.get(custom_id)
        if waiting is None:
            waiting = self._waiting[custom_id] = asyncio.get_running_loop().create_future()
            number = self._journal.batch_of(custom_id)
            if number is None:
                self._add(custom_id, body)
            else:
                self._watch(number)
        try:
            return await asyncio.wait_for(asyncio.shield(waiting), self._time_left())
        except asyncio.TimeoutError:
            return Attempt("final", "its batch is not done yet; the same command collects it later")

    def settle(self) -> None:
        """Delete the results that were used; what they said is in the cache by now."""
        self._journal.discard(self._used)

    def _add(self, custom_id: str, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._queue[custom_id] = msgspec.json.decode(body)
        self._queued_bytes += len(body)
        if self._timer is not None:
            self._timer.cancel()
        if len(self._queue) >= MOST_REQUESTS or self._queued_bytes >= _MOST_BYTES:
            self._hand_in()
        else:
            self._timer = loop.call_later(QUIET_S, self._hand_in)

    def _hand_in(self) -> None:
        bodies, self._queue, self._queued_bytes, self._timer = self._queue, {}, 0, None
        if bodies:
            self._start(self._submitted(bodies))

    def _start(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _submitted(self, bodies: dict[str, dict[str, Any]]) -> None:
        try:
            batch = self._journal.begin(self._address.shown, list(bodies))
            batch_id = await self._handed_in(batch, bodies)
            self._journal.name_batch(batch.number, batch_id)
        except BatchFailure as error:
            self._fail(bodies, f"the batch cannot be handed in: {error}", error)
            return
        except sqlite3.Error as error:
            self._fail(bodies, f"the batch cannot be noted in the cache: {error}", error)
            return
        self._usage.add_problem(f"asked in a batch, {batch_id} of {len(bodies):,} requests")
        self._watch(batch.number)

    async def _handed_in(self, batch: OpenBatch, bodies: dict[str, dict[str, Any]]) -> str:
        try:
            return await _told(self._api.submit(batch, list(bodies.items()), self._journal))
        except BatchFailure as error:
            # A refusal is sure. Where a server failed or said nothing, it may have taken the batch: a later run looks.
            if error.status is not None and error.status < 500:
                self._journal.drop(batch.number)
            raise

    def _watch(self, number: int) -> None:
        """Look after an open batch until its results are there."""
        if number not in self._watched:
            self._watched[number] = self._start(self._collected(number))

    async def _collected(self, number: int) -> None:
        try:
            batch = next((each for each in self._journal.open_batches() if each.number == number), None)
            if batch is not None:
                await self._wait_for(batch)
            self._hand_out()
        except sqlite3.Error as error:
            in_batches = [each for each in self._waiting if each not in self._queue]
            self._fail(in_batches, f"the batch cannot be collected into the cache: {error}", error)
        finally:
            self._watched.pop(number, None)

    async def _wait_for(self, batch: OpenBatch) -> None:
        n_failed = 0
        batch_id = batch.batch_id
        poll_s = FIRST_POLL_S / _POLL_GROWTH
        while True:
            poll_s = min(poll_s * _POLL_GROWTH, _MOST_POLL_S)
            try:
                if batch_id is None:
                    batch_id = await self._found(batch)
                if batch_id is None and time.time() - batch.created_at > GRACE_S:
                    self._journal.drop(batch.number)
                    return
                if batch_id is None:
                    await asyncio.sleep(poll_s)
                    continue
                progress = await _told(self._api.progress(batch_id))
                if progress.problem is not None:
                    refused = [Result(each, 400, _error(progress.problem)) for each in self._waiting]
                    in_batch = [each for each in refused if self._journal.batch_of(each.custom_id) == batch.number]
                    self._journal.finish(batch.number, in_batch)
                    return
                if progress.is_ended:
                    results = await _told(self._api.results(progress))
                    asked = self._journal.requests_of(batch.number)
                    own = [each for each in results if each.custom_id in asked]
                    if own or not asked or not self._is_guessed(batch.number):
                        self._journal.finish(batch.number, own)
                        return
                    self._of_others.add(batch_id)
                    batch_id = None
            except BatchFailure as error:
                if error.status == 404:
                    self._journal.drop(batch.number)
                    return
                n_failed += 1
                if n_failed >= _FAILED_POLLS or error.status in (401, 403):
                    self._fail(
                        self._of_batch(batch.number), f"the batch {batch_id} cannot be collected: {error}", error
                    )
                    return
            await asyncio.sleep(poll_s)

    async def _found(self, batch: OpenBatch) -> str | None:
        """The id of a batch that was begun: noted by another process meanwhile, or found on the server."""
        noted = {each.number: each.batch_id for each in self._journal.open_batches()}
        if noted.get(batch.number) is not None:
            return noted[batch.number]
        known = {each for each in noted.values() if each is not None}
        found = await _told(self._api.find(batch, known | self._of_others))
        # A guess is not noted: only its results tell whose it is.
        if found is not None and self._api.finds_surely:
            self._journal.name_batch(batch.number, found)
        return found

    def _is_guessed(self, number: int) -> bool:
        """Whether the id of a batch was never noted, so that it may be the batch of somebody else."""
        return any(each.number == number and each.batch_id is None for each in self._journal.open_batches())

    def _of_batch(self, number: int) -> list[str]:
        return [each for each in self._waiting if self._journal.batch_of(each) == number]

    def _hand_out(self) -> None:
        """Give everybody who waits what the batches that are over have for him; without a result he asks again."""
        for custom_id, waiting in list(self._waiting.items()):
            found = self._journal.result_of(custom_id)
            is_lost = found is None and custom_id not in self._queue and self._journal.batch_of(custom_id) is None
            if found is None and not is_lost:
                continue
            del self._waiting[custom_id]
            if found is not None:
                self._used.add(custom_id)
            if not waiting.done():
                lost = Attempt("again", "the batch ended without a result for it")
                waiting.set_result(lost if found is None else self._read(found))

    def _fail(self, custom_ids: Any, problem: str, error: Exception) -> None:
        status = getattr(error, "status", None)
        hopeless = status in (401, 402, 403, 404, 405)
        for custom_id in list(custom_ids):
            waiting = self._waiting.pop(custom_id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(Attempt("hopeless" if hopeless else "final", problem, status if hopeless else None))

    def _read(self, found: Result) -> Attempt:
        response = Response(found.status, "", {}, self._address.hidden(found.body))
        return judged(response, self._address)


async def _told(asking: Awaitable[_T]) -> _T:
    """What a batch API says; a response of another shape is a failure as any other."""
    try:
        return await asking
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise BatchFailure(f"the response is none of a batch API ({type(error).__name__}: {error})") from None


def _error(problem: str) -> bytes:
    return msgspec.json.encode({"error": {"message": problem}})

"""The judge's client: asks a server of any profile, many questions at once, within bounds.

Replies come from the cache where the very same question was answered before, and the same question under way is asked
once. Whatever the server does becomes a ``JudgeReply`` with a problem, never an exception.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from agentunit.addons.judge._batch_journal import BatchJournal
from agentunit.addons.judge._batches import BatchCaller
from agentunit.addons.judge._call_limits import Ledger, Tariff, why_cap_cannot_hold
from agentunit.addons.judge._calls import Caller, JudgeCall
from agentunit.addons.judge._chat_completion import aws_credentials, client_for, initial_dialect
from agentunit.addons.judge._connection import is_sendable
from agentunit.addons.judge._messages import JudgeReply, JudgeRequest, JudgeUsage, transcript
from agentunit.addons.judge._profiles import profile_named
from agentunit.addons.judge.cache import KeptReply, ReplyCache, cache_folder
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.backends.http_client import HttpClient

__all__ = ["JudgeClient", "JudgeReply", "JudgeRequest", "JudgeUsage"]

_T = TypeVar("_T")
_LONGEST_GOODBYE_S = 5.0


class JudgeClient:
    """Asks a judge. Any thread and any event loop may use it; its calls run in a thread of its own.

    ``usage`` are the running totals. Times, totals and the spend cap count from the first question on, or from the
    last ``begin_run``. A fork gets connections of its own.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        self.usage = JudgeUsage()
        self._place = settings.place
        self._unusable = why_not_ready(settings)
        max_bytes = round(settings.cache_max_mb * 1e6)
        self._cache = None if settings.cache is None else ReplyCache(cache_folder(settings.cache), max_bytes)
        self._is_closed = False
        self._opening = threading.Lock()
        self._pid = -1
        self._thread: _LoopThread | None = None
        self._dialect = initial_dialect(profile_named(settings.address.profile))
        self._caller: Caller | None = None
        self._ledger: Ledger | None = None
        self._spent_before_usd = 0.0
        self._http: HttpClient | None = None
        self._journal: BatchJournal | None = None
        self._under_way: dict[bytes, asyncio.Future[JudgeReply | None]] = {}
        self._inherited: list[Any] = []
        atexit.register(_close, weakref.ref(self))

    def __repr__(self) -> str:
        return f"JudgeClient({self.settings!r})"

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """The reply to a question, or a reply that says why there is none."""
        thread = self._opened()
        if thread is not None and asyncio.get_running_loop() is thread.loop:
            return await self._asked(request)
        return await asyncio.wrap_future(self.submit(self._asked(request)))

    def submit(self, coroutine: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Run a coroutine in the client's event loop; ``RuntimeError`` when the client was closed."""
        thread = self._opened()
        if thread is None:
            coroutine.close()
            raise RuntimeError("JudgeClient: the client was closed")
        return thread.submit(coroutine)

    def begin_run(self) -> None:
        """Another run begins: totals, times and the spend cap start anew. Not while questions are under way."""
        self.usage = JudgeUsage()
        self._caller = None

    def keep_spend(self, opened: Callable[[], Ledger] | None) -> None:
        """From now on count what a run has cost in all of its processes; ``None``: what is asked belongs to no run."""
        if self.settings.max_spend_usd is not None and not self._is_closed:
            self.submit(self._kept(opened)).result()

    async def _kept(self, opened: Callable[[], Ledger] | None) -> None:
        # In the thread of the calls, to which its connection belongs.
        before, self._ledger = self._ledger, None if opened is None else opened()
        self._spent_before_usd = 0.0 if self._ledger is None else self._ledger.total_usd
        if before is not None:
            before.close()
        if self._caller is not None:
            self._caller.keep_spend(self._ledger)

    def describe_spend(self) -> str | None:
        """What counts as spent on a run, where earlier commands asked for it as well: scores may not show all of it."""
        if self._ledger is None or not self._spent_before_usd or self.settings.max_spend_usd is None:
            return None
        return (
            f"with earlier commands ${self._ledger.total_usd:.4f} of the cap of ${self.settings.max_spend_usd:.4f} are "
            "spent, calls that were broken off at their most"
        )

    def forget(self, request: JudgeRequest) -> None:
        """Keep no reply to this question: it turned out to be unusable."""
        if self._cache is not None:
            self._cache.forget(request.digest(self._place, self.settings.model))

    def close(self) -> None:
        """Break off what is under way and close connections; the waiting futures are canceled."""
        with self._opening:
            self._is_closed = True
            thread, self._thread = self._thread, None
        if thread is not None and self._pid == os.getpid():
            assert self._http is not None
            thread.close(self._http.close)
        if self._cache is not None:
            self._cache.close()
        if self._journal is not None:
            if isinstance(self._caller, BatchCaller):
                self._caller.settle()
            self._journal.close()
            self._journal = None

    def _opened(self) -> _LoopThread | None:
        """The thread of the calls, started when it is needed first, and again in a forked process."""
        with self._opening:
            if self._is_closed:
                return None
            if self._thread is None or self._pid != os.getpid():
                # What a fork inherited is never let go: tidying it up would take connections from the parent's loop.
                self._inherited += [self._thread, self._http, self._caller, self._under_way, self._ledger]
                self._pid = os.getpid()
                self._caller = self._ledger = None
                self._under_way = {}
                self._http = self._connecting()
                self._thread = _LoopThread("agentunit-judge")
                let_go = weakref.finalize(self, _let_go, self._thread, self._http, self._pid)
                let_go.atexit = False
                # The price table takes a while to load: now, while the first calls are under way.
                load_prices = partial(Tariff(self.settings).cost_usd, 0, 0)
                threading.Thread(target=load_prices, name="agentunit-judge-prices", daemon=True).start()
            return self._thread

    def _new_caller(self) -> Caller:
        assert self._http is not None
        known = (self.settings, self._http, self.usage, self._dialect)
        if not self.settings.batch or self.settings.cache is None:
            return Caller(*known)
        if self._journal is None:
            self._journal = BatchJournal(cache_folder(self.settings.cache))
        return BatchCaller(*known, self._journal)

    def _connecting(self) -> HttpClient:
        try:
            return client_for(self.settings.address, self.settings, for_batches=self.settings.batch)
        except (ValueError, OSError) as error:  # a proxy, a header or a file of certificates that is none
            self._unusable = self._unusable or f"the judge cannot be reached with these settings: {error}"
            return client_for(replace(self.settings.address, headers={}))

    async def _asked(self, request: JudgeRequest) -> JudgeReply:
        started_s = time.perf_counter()
        attempts: list[dict[str, Any]] = []
        usage = self.usage
        usage.questions += 1
        usage.purposes[request.purpose] = usage.purposes.get(request.purpose, 0) + 1
        try:
            digest = request.digest(self._place, self.settings.model)
        except (TypeError, ValueError) as error:
            reply = _unasked(f"the question cannot be sent: {error}")
        else:
            reply = await self._found(digest) or await self._called(request, digest, attempts)
        usage.cached += reply.cached
        usage.failures += reply.text is None
        if self._cache is not None and self._cache.problem is not None:
            usage.add_problem(self._cache.problem)
        reply = replace(reply, elapsed_s=time.perf_counter() - started_s)
        return replace(reply, transcript=transcript(request, reply, attempts)) if self.settings.transcripts else reply

    async def _found(self, digest: bytes) -> JudgeReply | None:
        """A reply that needs no call: one that is on its way to somebody else, or one that was kept."""
        while (under_way := self._under_way.get(digest)) is not None:
            reply = await asyncio.shield(under_way)
            if reply is not None and reply.text is None:
                return _unasked(reply.problem)
            if reply is not None:
                return replace(reply, cached=True, cost_usd=0.0, attempts=0, unstated=0)
        kept = None if self._cache is None else self._cache.find(digest)
        if kept is None:
            return None
        tokens = kept.prompt_tokens, kept.completion_tokens
        return JudgeReply(kept.text, None, kept.model, *tokens, 0.0, cached=True, positions=kept.positions)

    async def _called(self, request: JudgeRequest, digest: bytes, attempts: list[dict[str, Any]]) -> JudgeReply:
        if self._unusable is not None:
            return _unasked(self._unusable)
        under_way: asyncio.Future[JudgeReply | None] = asyncio.get_running_loop().create_future()
        self._under_way[digest] = under_way
        reply: JudgeReply | None = None
        try:
            if self._caller is None:
                self._caller = self._new_caller()
                self._caller.keep_spend(self._ledger)
            caller = self._caller
            call = await caller.answer(request)
            self._dialect = caller.dialect
            attempts += call.attempts
            reply = _reply(call)
            is_own = request.mark is None or request.mark in (reply.text or "")
            if self._cache is not None and reply.text is not None and reply.problem is None and is_own:
                tokens = reply.prompt_tokens, reply.completion_tokens
                kept = KeptReply(reply.text, reply.model, *tokens, reply.positions)
                self._cache.keep(digest, kept)
            return reply
        finally:
            del self._under_way[digest]
            # None: broken off, so whoever waits for it asks for himself.
            under_way.set_result(reply)


class _LoopThread:
    """Runs coroutines that any thread hands in; ends with the process, whatever they do."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Start a coroutine; ``RuntimeError`` after ``close``."""
        with self._lock:
            if not self._is_closed:
                return asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        coroutine.close()
        raise RuntimeError("the judge's client was closed")

    def close(self, last: Callable[[], None], *, wait: bool = True) -> None:
        """Cancel what is under way, do ``last`` in the loop, and end the thread; without ``wait``, return at once."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            # Whatever was handed in before stands before this in the loop's queue, so nobody waits in vain.
            asyncio.run_coroutine_threadsafe(self._cancel_all(last), self.loop)
        if wait and threading.current_thread() is not self._thread:
            self._thread.join(_LONGEST_GOODBYE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    async def _cancel_all(self, last: Callable[[], None]) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=_LONGEST_GOODBYE_S)
        last()
        # Aborted connections get a round of the loop to let go of their sockets.
        await asyncio.sleep(0)
        self.loop.call_soon(self.loop.stop)


def why_not_ready(settings: JudgeSettings) -> str | None:
    """What the settings lack before anything can be asked; ``None`` when they lack nothing."""
    lacks_keys = settings.address.profile == "bedrock" and settings.key is None and aws_credentials() is None
    if lacks_keys and "Authorization" not in settings.address.headers:
        return "AWS Bedrock wants AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a Bedrock API key; neither is set"
    signing = aws_credentials() if settings.address.profile == "bedrock" and settings.key is None else None
    if signing is not None and not all(map(is_sendable, signing.secrets)):
        return "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN must be one line of ASCII text each"
    if settings.batch and profile_named(settings.address.profile).batches is None:
        return f"servers of the profile {settings.address.profile!r} have no batches that are known here: unset batch"
    if settings.batch and settings.cache is None:
        return "batches need the cache, in which they are noted and collected: unset batch, or set cache"
    return settings.why_unusable() or why_cap_cannot_hold(settings)


def _unasked(problem: str | None) -> JudgeReply:
    """No call was made, so nothing was spent."""
    return JudgeReply(None, problem, None, 0, 0, 0.0)


def _reply(call: JudgeCall) -> JudgeReply:
    said = call.completion
    is_free = call.prompt_tokens is None and call.n_unstated == 0
    return JudgeReply(
        text=said.text,
        problem=call.problem,
        model=said.model,
        prompt_tokens=0 if is_free else call.prompt_tokens,
        completion_tokens=0 if is_free else call.completion_tokens,
        cost_usd=0.0 if is_free else call.cost_usd,
        attempts=len(call.attempts),
        unstated=call.n_unstated,
        positions=said.positions,
    )


def _let_go(thread: _LoopThread, http: HttpClient, pid: int) -> None:
    """End what a client that was dropped without closing has left behind."""
    if pid == os.getpid():
        thread.close(http.close, wait=False)


def _close(client: weakref.ref[JudgeClient]) -> None:
    living = client()
    if living is not None:
        living.close()

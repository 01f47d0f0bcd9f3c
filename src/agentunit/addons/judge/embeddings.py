"""Embeddings of a model on the judge's server."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from math import isfinite
from typing import Any

import msgspec

from agentunit.addons.judge._chat_completion import client_for
from agentunit.addons.judge._completions import asked_wait_s, clipped, read_error
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.backends.asking import JudgeFailed
from agentunit.backends.http_client import HttpClient, HttpFailure

_WORTH_ANOTHER_TRY = (408, 429, 500, 502, 503, 504)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 30.0


class ServerEmbeddings:
    """Asks ``/embeddings`` of the judge's server, with its bounds for one call, for attempts and for calls at once."""

    def __init__(self, settings: JudgeSettings, model: str) -> None:
        self._settings = settings
        self._model = model
        address = settings.address
        self._address = replace(address, target=address.target.replace("/chat/completions", "/embeddings", 1))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._http: HttpClient
        self._turns: asyncio.Semaphore
        self._closing: asyncio.Task[None]

    async def embed(self, text: str) -> list[float]:
        """The numbers of one text; ``JudgeFailed`` when there are none to be had."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the first use, or the first in a forked process
            self._loop = loop
            self._http = client_for(self._address, self._settings)
            self._turns = asyncio.Semaphore(self._settings.concurrency)
            self._closing = loop.create_task(_closed_with_the_client(self._http))
        body = msgspec.json.encode({"model": self._model, "input": [text], "encoding_format": "float"})
        problem, pause_s = "", 0.0
        for attempt in range(self._settings.max_attempts):
            await asyncio.sleep(pause_s)
            pause_s = _FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0)
            try:
                async with self._turns:
                    sent = self._http.send(self._address.target, body, on_new=attempt > 0)
                    response = await asyncio.wait_for(sent, self._settings.timeout_s)
            except asyncio.TimeoutError:
                problem = f"no answer within {self._settings.timeout_s:g} s"
                continue
            except HttpFailure as error:
                problem = str(error)
                continue
            said = self._address.hidden(response.body)
            if response.status == 200:
                return self._vector(said)
            problem = f"status {response.status}: {read_error(said)}"
            if response.status not in _WORTH_ANOTHER_TRY:
                break
            pause_s = max(pause_s, min(asked_wait_s(response.headers, response.body) or 0.0, _LONGEST_PAUSE_S))
        raise self._failed(problem)

    def _vector(self, body: bytes) -> list[float]:
        try:
            vector: Any = msgspec.json.decode(body)["data"][0]["embedding"]
            numbers = [float(each) for each in vector]
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError, IndexError, TypeError, ValueError):
            raise self._failed(f"the response holds no embedding: {clipped(body)!r}") from None
        if not numbers or not all(map(isfinite, numbers)):
            raise self._failed("the embedding is empty or holds a number that is not finite")
        return numbers

    def _failed(self, problem: str) -> JudgeFailed:
        return JudgeFailed(f"no embeddings of {self._model!r} from {self._address.shown}: {problem}")


async def _closed_with_the_client(http: HttpClient) -> None:
    try:
        await asyncio.Event().wait()  # until the client cancels what is left in its loop
    finally:
        http.close()

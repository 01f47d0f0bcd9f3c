"""Embeddings for RAGAS: of the judge's server if a model is named, else of the local sentence encoder, else none."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import isfinite
from typing import Any

import msgspec

from agentunit.backends.http_client import HttpClient, HttpFailure
from agentunit.backends.judge.chat_completion import client_for
from agentunit.backends.judge.completions import asked_wait_s, clipped, read_error
from agentunit.backends.judge.questions import JudgeFailed
from agentunit.backends.judge.settings import JudgeSettings
from agentunit.backends.sentences import SHIPPED_MODEL, sentences_unready

MODEL_VARIABLE = "AGENTUNIT_RAGAS_EMBEDDINGS"
_WORTH_ANOTHER_TRY = (408, 429, 500, 502, 503, 504)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 30.0


class RagasEmbeddings:
    """What RAGAS takes for embeddings. ``described`` names the model and where it runs, for the detail."""

    def __init__(self, embed: Callable[[str], Awaitable[list[float]]], described: dict[str, str]) -> None:
        self._embed = embed
        self.described = described

    async def aembed_text(self, text: str) -> list[float]:
        """The numbers of one text; ``JudgeFailed`` when there are none to be had."""
        return await self._embed(text)


def chosen_embeddings(settings: JudgeSettings) -> RagasEmbeddings | None:
    """The embeddings to use; ``None`` when there are none, and answers are compared by their statements alone.

    ``JudgeFailed`` where a spend cap is set and embeddings would come from the server: no price of them is known.
    """
    model = os.environ.get(MODEL_VARIABLE, "").strip()
    if model and settings.max_spend_usd is not None:
        raise JudgeFailed(
            f"the price of embeddings of {model!r} is not known, so a spend cap of {settings.max_spend_usd} USD cannot "
            f"be kept (unset {MODEL_VARIABLE}, or the cap)"
        )
    if model:
        return RagasEmbeddings(_ServerEmbeddings(settings, model).embed, {"model": model, "runs": "server"})
    return _local_embeddings()


def _local_embeddings() -> RagasEmbeddings | None:
    if sentences_unready() is not None:
        return None
    return RagasEmbeddings(_encoded, {"model": SHIPPED_MODEL, "runs": "local"})


async def _encoded(text: str) -> list[float]:
    # The encoder loads and computes in another thread: the loop that it is asked from must go on.
    return await asyncio.to_thread(_encode, text)


def _encode(text: str) -> list[float]:
    from agentunit_local.sentences import shipped_encoder

    (vector,) = shipped_encoder().encode([text])
    return [float(each) for each in vector]


class _ServerEmbeddings:
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
        """The numbers of one text."""
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

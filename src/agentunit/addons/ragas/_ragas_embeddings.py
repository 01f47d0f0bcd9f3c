"""Embeddings for RAGAS: of the judge's server if a model is named, else of the local sentence encoder, else none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agentunit.backends.asking import JudgeFailed
from agentunit.backends.sentence_encoders import SHIPPED_MODEL, sentences_unready

if TYPE_CHECKING:
    from agentunit.addons.judge.settings import JudgeSettings

MODEL_VARIABLE = "AGENTUNIT_RAGAS_EMBEDDINGS"


Embed = Callable[[str], Awaitable[list[float]]]


class RagasEmbeddings:
    """What RAGAS takes for embeddings. ``described`` names the model and where it runs, for the detail."""

    def __init__(self, embed: Embed, described: dict[str, str]) -> None:
        self._embed = embed
        self.described = described

    async def aembed_text(self, text: str) -> list[float]:
        """The numbers of one text; ``JudgeFailed`` when there are none to be had."""
        return await self._embed(text)


def chosen_embeddings(settings: JudgeSettings, of_server: Callable[[str], Embed]) -> RagasEmbeddings | None:
    """The embeddings to use; ``None`` when there are none, and answers are compared by their statements alone.

    ``of_server`` gives those of a model of the judge's server.

    ``JudgeFailed`` where a spend cap is set and embeddings would come from the server: no price of them is known.
    """
    model = os.environ.get(MODEL_VARIABLE, "").strip()
    if model and settings.max_spend_usd is not None:
        raise JudgeFailed(
            f"the price of embeddings of {model!r} is not known, so a spend cap of {settings.max_spend_usd} USD cannot "
            f"be kept (unset {MODEL_VARIABLE}, or the cap)"
        )
    if model:
        return RagasEmbeddings(of_server(model), {"model": model, "runs": "server"})
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

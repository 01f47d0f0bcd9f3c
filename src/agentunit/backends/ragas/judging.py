"""RAGAS as a quality backend: its metrics, with the judge's client to ask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from agentunit.backends.judge.client import JudgeClient
from agentunit.backends.judge.judge_backend import JudgeBackend, Measure, judge_all
from agentunit.backends.quality import QualityQuestion, Verdict, load_backend
from agentunit.backends.ragas.embeddings import RagasEmbeddings, chosen_embeddings
from agentunit.backends.ragas.installed import load_ragas, why_not_installed
from agentunit.backends.ragas.measures import answer_correctness, faithfulness, retrieval_quality

AUTOMATIC_VARIABLE = "AGENTUNIT_RAGAS"
_NO = ("0", "false", "no", "off")


class RagasBackend(JudgeBackend):
    """Judges with RAGAS. Without a ``client`` it shares the judge's: one usage, one spend cap, one cache."""

    name = "ragas"
    measures = frozenset({"faithfulness", "answer_correctness", "retrieval_quality"})

    def __init__(self, client: JudgeClient | None = None) -> None:
        super().__init__(client)
        self._embeddings: tuple[JudgeClient, RagasEmbeddings | None] | None = None

    @property
    def automatic(self) -> bool:
        """Whether ``auto`` takes it, before the judge: with ``AGENTUNIT_RAGAS=0`` it does not."""
        return os.environ.get(AUTOMATIC_VARIABLE, "").strip().lower() not in _NO

    @property
    def client(self) -> JudgeClient:
        """The client for the settings as they are now."""
        judge = load_backend("judge")
        return judge.client if self._given is None and isinstance(judge, JudgeBackend) else super().client

    def unready(self) -> str | None:
        """Why it cannot run now, with the way out. RAGAS is imported only where all else is in place."""
        reason = why_not_installed() or super().unready()
        if reason is not None:
            return reason
        loaded = load_ragas()
        return loaded if isinstance(loaded, str) else None

    def start(self, measure: str, questions: Sequence[QualityQuestion]) -> Future[list[Verdict]]:
        """Begin to judge all questions at once; the future's result is what ``judge`` returns."""
        load_ragas()  # Here, and not in the thread of the calls, which would stand still for seconds.
        client = self.client
        return client.submit(judge_all(self._measure(measure, client), questions, client, client.settings.repeats))

    def _measure(self, measure: str, client: JudgeClient) -> Measure:
        if measure == "faithfulness":
            return faithfulness
        if measure == "retrieval_quality":
            return retrieval_quality
        if self._embeddings is None or self._embeddings[0] is not client:
            self._embeddings = (client, chosen_embeddings(client.settings))
        return partial(answer_correctness, embeddings=self._embeddings[1])

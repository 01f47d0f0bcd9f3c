"""RAGAS as a quality backend: its metrics as verdicts, with the judge's client to ask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from agentunit.addons.ragas._installed import Ragas, load_ragas, why_not_installed
from agentunit.addons.ragas._model import JudgeModel
from agentunit.addons.ragas._ragas_embeddings import RagasEmbeddings, chosen_embeddings
from agentunit.backends.asking import Asking, JudgeFailed, all_of, readable_text
from agentunit.backends.quality import QualityQuestion, Verdict, load_backend
from agentunit.backends.services import configured
from agentunit.doors import part

if TYPE_CHECKING:
    from agentunit.addons.judge.client import JudgeClient
    from agentunit.addons.judge.judge_backend import JudgeBackend, Measure
else:
    # RAGAS asks as the judge does; the judge is an add-on as RAGAS is, and comes by a door.
    JudgeBackend = part("judge_backend")

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
        return judge.client if self._own_client is None and isinstance(judge, JudgeBackend) else super().client

    def unready(self) -> str | None:
        """Why it cannot run now, with the way out. RAGAS is imported only where all else is in place."""
        reason = why_not_installed() or super().unready()
        if reason is not None:
            return reason
        settings = None if self._own_client is not None else configured()
        if settings is not None and settings.judges:
            return "RAGAS asks one judge, and a panel is configured (backend 'judge' asks all of its judges)"
        loaded = load_ragas()
        return loaded if isinstance(loaded, str) else None

    def start(self, measure: str, questions: Sequence[QualityQuestion]) -> Future[list[Verdict]]:
        """Begin to judge all questions at once; the future's result is what ``judge`` returns."""
        load_ragas()  # Here, and not in the thread of the calls, which would stand still for seconds.
        return self.start_own(self._measure(measure, self.client), questions)

    def _measure(self, measure: str, client: JudgeClient) -> Measure:
        if measure == "faithfulness":
            return faithfulness
        if measure == "retrieval_quality":
            return retrieval_quality
        if self._embeddings is None or self._embeddings[0] is not client:
            self._embeddings = (client, chosen_embeddings(client.settings, self.embeddings))
        return partial(answer_correctness, embeddings=self._embeddings[1])


# RAGAS adds 1e-10 to the denominator of its average precision: beyond this digit the value says nothing.
_DIGITS_OF_PRECISION = 9
_WEIGHTS_WITH_SIMILARITY = [0.75, 0.25]
_FACTS_ALONE = [1.0, 0.0]
_NO_QUESTION = "RAGAS judges an answer to a question, and case.query is blank"


async def faithfulness(question: QualityQuestion, asking: Asking) -> Verdict:
    """The share of the answer's statements that can be inferred from the context."""
    asked, answer = _readable(question.question), _readable(question.answer)
    if not asked:
        return Verdict(None, {"reason": _NO_QUESTION})
    if not answer:
        return Verdict(None, {"reason": "the answer is blank: it claims nothing", "claims": []})
    model = JudgeModel(asking, "ragas_faithfulness")
    metric = _ragas().faithfulness(llm=model)
    contexts = [readable_text(each) for each in question.context]
    result = await metric.ascore(user_input=asked, response=answer, retrieved_contexts=contexts)
    if model.replies and not model.replies[0].statements:
        return Verdict(None, {"reason": "RAGAS found no statement in the answer", "claims": []})
    judged = model.replies[1].statements if len(model.replies) > 1 else []
    claims = [
        {"claim": each.statement, "verdict": "supported" if each.verdict else "not_supported", "reason": each.reason}
        for each in judged
    ]
    return _verdict(result, {"claims": claims}, model)


async def retrieval_quality(question: QualityQuestion, asking: Asking) -> Verdict:
    """The average precision of the passages in their order.

    With an expected output it is RAGAS' context precision; else the answer takes its place (context utilization).
    """
    asked, answer = _readable(question.question), _readable(question.answer)
    expected = [text for text in map(_readable, question.expected) if text]
    if not asked:
        return Verdict(None, {"reason": _NO_QUESTION})
    if not expected and not answer:
        return Verdict(None, {"reason": "the answer is blank, and there is no expected output to judge passages by"})
    model = JudgeModel(asking, "ragas_retrieval_quality")
    contexts = [readable_text(each) for each in question.context]
    if expected:
        metric = _ragas().context_precision(llm=model)
        compared = {"reference": " or ".join(expected)}
    else:
        metric = _ragas().context_utilization(llm=model)
        compared = {"response": answer}
    result = await metric.ascore(user_input=asked, retrieved_contexts=contexts, **compared)
    passages = [
        {"passage": number, "useful": bool(each.verdict), "reason": each.reason}
        for number, each in enumerate(model.replies, 1)
    ]
    detail = {"passages": passages, "judged_against": "expected_output" if expected else "answer"}
    verdict = _verdict(result, detail, model)
    return replace(verdict, value=round(verdict.value or 0.0, _DIGITS_OF_PRECISION))


async def answer_correctness(question: QualityQuestion, asking: Asking, embeddings: RagasEmbeddings | None) -> Verdict:
    """Statements that answer and reference share (F1), and how alike the texts are where there are embeddings.

    Of several acceptable answers the one that fits best counts; a text equal to one of them needs no judge.
    """
    asked, answer = _readable(question.question), _readable(question.answer)
    references = [text for text in map(_readable, question.expected) if text]
    if not references:
        return Verdict(None, {"reason": "nothing to compare with: every acceptable answer is blank"})
    if answer in references:
        return Verdict(1.0, {"basis": "equal text", "reference": answer})
    if not answer:
        return Verdict(0.0, {"basis": "blank answer", "reference": references[0]})
    if not asked:
        return Verdict(None, {"reason": _NO_QUESTION})
    judged = await all_of(_against(reference, asked, answer, asking, embeddings) for reference in references)
    scored = [each for each in judged if each.value is not None]
    best = max(scored, key=lambda each: each.value or 0.0, default=judged[0])
    if len(references) > 1:
        best.detail["values_by_reference"] = [each.value for each in judged]
    return best


async def _against(
    reference: str, question: str, answer: str, asking: Asking, embeddings: RagasEmbeddings | None
) -> Verdict:
    model = JudgeModel(asking, "ragas_answer_correctness")
    weights = _FACTS_ALONE if embeddings is None else _WEIGHTS_WITH_SIMILARITY
    metric = _ragas().answer_correctness(llm=model, embeddings=embeddings, weights=list(weights))
    result = await metric.ascore(user_input=question, response=answer, reference=reference)
    detail: dict[str, Any] = {
        "basis": "facts" if embeddings is None else "facts and similarity",
        "reference": reference,
        "weights": {"facts": weights[0], "similarity": weights[1]},
        "embeddings": None if embeddings is None else embeddings.described,
    }
    for text, reply in zip(("answer", "expected output"), model.replies[:2], strict=False):
        if not reply.statements:
            # RAGAS takes this for a perfect match.
            return Verdict(None, {**detail, "reason": f"RAGAS found no statement in the {text}"})
    if len(model.replies) > 2:
        sorted_out = model.replies[2]
        detail["counts"] = {"tp": len(sorted_out.TP), "fp": len(sorted_out.FP), "fn": len(sorted_out.FN)}
        detail["statements"] = {
            kind: [{"statement": each.statement, "reason": each.reason} for each in found]
            for kind, found in (("tp", sorted_out.TP), ("fp", sorted_out.FP), ("fn", sorted_out.FN))
        }
    # The similarity of two texts may be below 0.
    return _verdict(result, detail, model, lowest=-weights[1])


def _verdict(result: Any, detail: dict[str, Any], model: JudgeModel, lowest: float = 0.0) -> Verdict:
    """The verdict of RAGAS' result; what is no score (NaN, or out of range) is a failure and never a number."""
    value = float(result.value)
    if not isfinite(value) or not lowest - 1e-6 <= value <= 1 + 1e-6:
        said = "; ".join(str(reply) for reply in model.replies)
        reason = f" ({result.reason})" if getattr(result, "reason", None) else ""
        raise JudgeFailed(f"RAGAS gave {value} as a score, which is none{reason}", said or None)
    return Verdict(min(1.0, max(0.0, value)), detail)


def _ragas() -> Ragas:
    loaded = load_ragas()
    if isinstance(loaded, str):
        raise JudgeFailed(loaded)
    return loaded


def _readable(text: str | None) -> str:
    return readable_text(text or "").strip()

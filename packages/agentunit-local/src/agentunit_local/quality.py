"""The backend ``local`` of AgentUnit's quality metrics: models and rules that run here, without a key or a download."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import exp, log
from typing import Any

from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit_local.answer_matching import correctness, match_features
from agentunit_local.grounding.calibration import shipped_calibration
from agentunit_local.grounding.claims import claims_of, why_no_claims
from agentunit_local.grounding.cross_encoder import CrossEncoder, opened
from agentunit_local.grounding.languages import MEASURED, language_of
from agentunit_local.grounding.relevance import passage_relevance
from agentunit_local.grounding.support import Support, SupportJudge
from agentunit_local.onnx_text import ModelFilesError
from agentunit_local.sentences import shipped_encoder

MODEL_VARIABLE = "AGENTUNIT_LOCAL_MODEL"
_ANSWER_WORDS = 120
_EXPECTED_ANSWERS = 6


class LocalBackend:
    """Faithfulness by a cross-encoder and comparison, relevance by embeddings, correctness by matching and the model.

    The environment variable ``AGENTUNIT_LOCAL_MODEL`` names the folder of another cross-encoder for faithfulness.
    """

    name = "local"
    measures = frozenset({"faithfulness", "answer_correctness", "retrieval_quality"})
    without_answer = frozenset({"retrieval_quality"})

    def unready(self) -> str | None:
        """Why it cannot run: the folder that the user named, or a broken installation."""
        try:
            self._model()
        except ModelFilesError as error:
            return f"{MODEL_VARIABLE}: {error}" if os.environ.get(MODEL_VARIABLE) else str(error)
        return None

    def judge(self, measure: str, questions: Sequence[QualityQuestion]) -> list[Verdict]:
        """A verdict per question; one that cannot be judged has a reason, and the others are judged all the same."""
        judged: Callable[[QualityQuestion], Verdict] = {
            "faithfulness": self._faithfulness,
            "answer_correctness": self._correctness,
            "retrieval_quality": self._relevance,
        }[measure]
        return [_safely(judged, question) for question in questions]

    def _model(self) -> CrossEncoder:
        return opened(os.environ.get(MODEL_VARIABLE) or None)

    def _faithfulness(self, question: QualityQuestion) -> Verdict:
        model = self._model()
        support = SupportJudge(model, shipped_calibration().faithfulness).judge(
            question.question, question.context, question.answer
        )
        if support is None:
            has_claims = bool(claims_of(question.answer, question.question))
            empty = "the context holds no sentence" if has_claims else why_no_claims(question.answer)
            return Verdict(None, {"reason": f"nothing to compare: {empty}", "model": model.name})
        return Verdict(support.value, {**described(support), **_language(question), "model": model.name})

    def _correctness(self, question: QualityQuestion) -> Verdict:
        answer = question.answer
        if any(answer.strip() == each.strip() for each in question.expected):
            return Verdict(1.0, {"matched": "equal to an expected answer"})
        if not answer.strip():
            return Verdict(None, {"reason": "the answer is empty"})
        features = match_features(question.question or "", list(question.expected), answer)
        matched = correctness(features)
        detail: dict[str, Any] = {"features": {name: round(value, 4) for name, value in features.items()}}
        if not question.question:
            return Verdict(round(matched, 6), {**detail, "matched": round(matched, 4)})
        logit = opened(None).score([correctness_pair(question)])[0].logit
        weights = shipped_calibration().correctness
        bounded = min(max(matched, 1e-4), 1 - 1e-4)
        total = weights["matched"] * log(bounded / (1 - bounded)) + weights["model"] * logit + weights["intercept"]
        detail |= {"matched": round(matched, 4), "model_logit": round(logit, 3)}
        unread = len(answer.split()) - _ANSWER_WORDS, len(question.expected) - _EXPECTED_ANSWERS
        if max(unread) > 0:
            detail["not_read_by_model"] = {"answer_words": max(0, unread[0]), "expected_answers": max(0, unread[1])}
        return Verdict(round(1 / (1 + exp(-total)), 6), detail)

    def _relevance(self, question: QualityQuestion) -> Verdict:
        if not question.question or not question.question.strip():
            return Verdict(None, {"reason": "no question: relevance is judged against case.query"})
        found = [
            passage_relevance(question.question, passage, shipped_encoder(), shipped_calibration().relevance)
            for passage in question.context
        ]
        passages = [{"passage": number, "relevance": round(each, 4)} for number, each in enumerate(found)]
        return Verdict(round(sum(found) / len(found), 6), {"passages": passages})


def correctness_pair(question: QualityQuestion) -> tuple[str, str]:
    """Question and known answers, and question and given answer, as the model was trained to compare them."""
    asked = (question.question or "").strip().rstrip("?")
    expected = " or ".join(list(question.expected)[:_EXPECTED_ANSWERS])
    answer = " ".join(question.answer.split()[:_ANSWER_WORDS])
    return f"Question: {asked}? Answer: {expected}", f"Question: {asked}? Answer: {answer}"


def described(support: Support) -> dict[str, Any]:
    """An answer's support as the detail of a score: a row a claim, with places for highlighting."""
    return {
        "kind": support.kind,
        "threshold": support.threshold,
        "claims": [
            {
                "text": each.claim.text,
                "start": each.claim.start,
                "end": each.claim.end,
                "probability": each.probability,
                "passage": each.passage,
                "evidence": each.evidence,
                "doubtful": list(each.doubtful),
                "copied": each.copied,
            }
            for each in support.claims
        ],
        "n_context_sentences": support.n_context_sentences,
        "evidence_tokens_left_out": support.n_evidence_tokens_left_out,
        "claim_tokens_left_out": support.n_claim_tokens_left_out,
    }


def _language(question: QualityQuestion) -> dict[str, Any]:
    """The language of answer and context, and that scores in it were not measured, where that is so."""
    found = [language_of([question.answer]), language_of(question.context)]
    unmeasured = [each for each in found if each is not None and each not in MEASURED]
    detail: dict[str, Any] = {"language": next((each for each in [*unmeasured, *found] if each is not None), None)}
    if unmeasured:
        measured = ", ".join(sorted(MEASURED))
        detail["informational"] = f"text in {unmeasured[0]!r}: scores were measured only on text in {measured}"
    return detail


def _safely(judged: Callable[[QualityQuestion], Verdict], question: QualityQuestion) -> Verdict:
    try:
        return judged(question)
    except Exception as error:  # noqa: BLE001  # one odd text must not take its batch along
        message = f"{type(error).__name__}: {error}"
        return Verdict(None, {"reason": message, "error": {"type": type(error).__name__, "message": str(error)}})


def backend() -> LocalBackend:
    """The entry point."""
    return LocalBackend()

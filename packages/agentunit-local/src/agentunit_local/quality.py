"""The backends ``local`` and ``local-gpu`` of AgentUnit's quality metrics: models that run on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from math import exp, log
from pathlib import Path
from typing import Any

from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit_local.answer_matching import contradiction, correctness, match_features, why_matched
from agentunit_local.grounding.calibration import Calibration, calibration_of, relevance_weights
from agentunit_local.grounding.claims import claims_of, only_declines, why_no_claims
from agentunit_local.grounding.cross_encoder import SHIPPED, CrossEncoder, opened
from agentunit_local.grounding.languages import MEASURED, language_of
from agentunit_local.grounding.relevance import Answer, relevances
from agentunit_local.grounding.support import Support, SupportJudge
from agentunit_local.held_models import ModelHolder, ask_elsewhere, is_asked_elsewhere
from agentunit_local.sentences import SentenceEncoder, shipped_encoder
from agentunit_local.steps import answered, answered_together
from agentunit_local.text_model import ModelFilesError
from agentunit_local.torch_text import chosen_device, why_no_device

MODEL_VARIABLE = "AGENTUNIT_LOCAL_MODEL"
_ANSWER_WORDS = 120
_EXPECTED_ANSWERS = 6
_BOTH_DECLINE = "the answer declines, as the expected answer does"


Judging = Generator[list[Any], Sequence[Any], Verdict]


class LocalBackend:
    """Faithfulness by a cross-encoder and comparison, relevance by embeddings, correctness by matching and the model.

    The environment variable ``AGENTUNIT_LOCAL_MODEL`` names the folder of another cross-encoder for faithfulness.
    """

    name = "local"
    weights: Path | None = None
    """The folder of another size of the model, with what was fitted with it; ``None`` is the one of this package."""
    measures = frozenset({"faithfulness", "answer_correctness", "retrieval_quality"})
    without_answer = frozenset({"retrieval_quality"})

    def unready(self) -> str | None:
        """Why it cannot run: the folder that the user named, or a broken installation."""
        try:
            self._model()
            self._calibration()
        except ModelFilesError as error:
            is_named = self.weights is None and os.environ.get(MODEL_VARIABLE)
            return f"{MODEL_VARIABLE}: {error}" if is_named else str(error)
        return None

    def judge(self, measure: str, questions: Sequence[QualityQuestion]) -> list[Verdict]:
        """A verdict per question; one that cannot be judged has a reason, and the others are judged all the same."""
        verdicts = []
        for question in questions:
            try:
                model = self._asked(measure)
                ask: Any = model.encode if isinstance(model, SentenceEncoder) else model.score
                verdicts.append(answered(self._judging(measure, question), ask))
            except Exception as error:  # noqa: BLE001  # one odd text must not take its batch along
                verdicts.append(failed(error))
        return verdicts

    def _model(self) -> CrossEncoder:
        """What reads claims for faithfulness."""
        named = os.environ.get(MODEL_VARIABLE) if self.weights is None else None
        return opened(named, self._device()) if named else self._own_model()

    def _own_model(self) -> CrossEncoder:
        return opened(None if self.weights is None else str(self.weights), self._device())

    def _calibration(self) -> Calibration:
        return calibration_of(self.weights or SHIPPED)

    def _device(self) -> str | None:
        """The device of torch that models run on; ``None`` is ONNX Runtime on the processors."""
        return None

    def _asked(self, measure: str) -> CrossEncoder | SentenceEncoder:
        """The model that a measure asks."""
        if measure == "retrieval_quality":
            return shipped_encoder(self._device())
        return self._model() if measure == "faithfulness" else self._own_model()

    def _judging(self, measure: str, question: QualityQuestion) -> Judging:
        """The verdict on a question, in steps: yields what the model must read, and is sent what it says."""
        judging: Callable[[QualityQuestion], Judging] = {
            "faithfulness": self._faithfulness,
            "answer_correctness": self._correctness,
            "retrieval_quality": self._relevance,
        }[measure]
        return judging(question)

    def _faithfulness(self, question: QualityQuestion) -> Judging:
        model = self._model()
        support = yield from SupportJudge(model, self._calibration().faithfulness).steps(
            question.question, question.context, question.answer
        )
        if support is None:
            has_claims = bool(claims_of(question.answer, question.question))
            empty = "the context holds no sentence" if has_claims else why_no_claims(question.answer)
            return Verdict(None, {"reason": f"nothing to compare: {empty}", "model": model.name})
        language = _language([question.answer], question.context)
        return Verdict(support.value, {**described(support), **language, "model": model.name})

    def _correctness(self, question: QualityQuestion) -> Judging:
        answer = question.answer
        if any(answer.strip() == each.strip() for each in question.expected):
            return Verdict(1.0, {"matched": "equal to an expected answer", "why": "equals an expected answer"})
        if not answer.strip():
            return Verdict(None, {"reason": "the answer is empty"})
        language = _language([answer], question.expected)
        if all(map(only_declines, question.expected)) and only_declines(answer):
            return Verdict(1.0, {"rule": _BOTH_DECLINE, **language})
        found = contradiction(question.question or "", question.expected, answer)
        if found is not None and not found.most:
            return Verdict(0.0, {"rule": found.rule, **language})
        most = 1.0 if found is None else found.most
        features = match_features(question.question or "", list(question.expected), answer)
        matched = correctness(features)
        detail: dict[str, Any] = {"features": {name: round(value, 4) for name, value in features.items()}, **language}
        if found is not None:
            detail["rule"] = found.rule
        if not question.question:
            value = min(most, matched)
            detail["why"] = found.rule if found is not None else why_matched(features, matched, value)
            return Verdict(round(value, 6), {**detail, "matched": round(matched, 4)})
        (score,) = yield [correctness_pair(question)]
        logit = score.logit
        weights = self._calibration().correctness
        bounded = min(max(matched, 1e-4), 1 - 1e-4)
        total = weights["matched"] * log(bounded / (1 - bounded)) + weights["model"] * logit + weights["intercept"]
        detail |= {"matched": round(matched, 4), "model_logit": round(logit, 3)}
        unread = len(answer.split()) - _ANSWER_WORDS, len(question.expected) - _EXPECTED_ANSWERS
        if max(unread) > 0:
            detail["not_read_by_model"] = {"answer_words": max(0, unread[0]), "expected_answers": max(0, unread[1])}
        value = min(most, 1 / (1 + exp(-total)))
        detail["why"] = found.rule if found is not None else why_matched(features, matched, value)
        return Verdict(round(value, 6), detail)

    def _relevance(self, question: QualityQuestion) -> Judging:
        if not question.question or not question.question.strip():
            return Verdict(None, {"reason": "no question: relevance is judged against case.query"})
        judged_against, texts = _known_answers(question)
        language = _language([question.question], question.context, texts)
        answers = _beyond_the_question(question.question, texts)
        if not answers or "informational" in language:
            judged_against, answers = "question", []
        weights = relevance_weights(with_answer=bool(answers))
        found = yield from relevances(question.question, answers, question.context, weights)
        passages = [{"passage": number, "relevance": round(each, 4)} for number, each in enumerate(found)]
        detail = {"passages": passages, "judged_against": judged_against, **language}
        return Verdict(round(sum(found) / len(found), 6), detail)


class GpuBackend(LocalBackend):
    """The same models and weights in torch, in batches over many questions: half precision on a GPU.

    The environment variable ``AGENTUNIT_LOCAL_DEVICE`` names another device of torch than ``cuda``.
    """

    name = "local-gpu"
    batch_questions = 512
    """How many questions it wants at once."""

    def unready(self) -> str | None:
        """Why it cannot run: no torch, no GPU. The model is opened by the process that asks it."""
        return None if is_asked_elsewhere() else why_no_device(chosen_device())

    def judge(self, measure: str, questions: Sequence[QualityQuestion]) -> list[Verdict]:
        """A verdict per question; the model reads what all of them ask in common batches."""
        model: Any = self._asked(measure)
        return answered_together((self._judging(measure, question) for question in questions), model.start, failed)

    def _device(self) -> str | None:
        return chosen_device()

    def hold_models(self) -> Callable[[Any], Any]:
        """In a process that holds models for others: what answers their requests."""
        return ModelHolder().answer

    def ask_elsewhere(self, transport: Callable[[Any], Callable[[], Any]] | None) -> None:
        """Ask models that another process holds, through a function that sends a request and returns one that waits."""
        ask_elsewhere(transport)
        opened.cache_clear()
        shipped_encoder.cache_clear()


def _known_answers(question: QualityQuestion) -> tuple[str, list[str]]:
    """What passages are judged against: what the case expects, or else what the agent said."""
    expected = [text for text in question.expected if text.strip()]
    return ("expected_output", expected) if expected else ("answer", [question.answer])


def _beyond_the_question(question: str, texts: Sequence[str]) -> list[Answer]:
    """What answers claim beyond their question. Those that decline or only say yes or no are in no passage."""
    claims = dict.fromkeys(claim.text for text in texts for claim in claims_of(_without_names(text), question))
    return [answer for claim in claims if (answer := Answer.of(claim, question)) is not None]


def _without_names(text: str) -> str:
    """The values of an answer that is JSON: its names are in no passage.

    >>> _without_names('{"city": "Cincinnati", "state": "Ohio"}'), _without_names("In {short}.")
    ('Cincinnati, Ohio', 'In {short}.')
    """
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return ", ".join(str(value) for value in _values(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _values(data: Any) -> Iterator[Any]:
    """What stands in lists and objects, nothing that is empty."""
    if isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _values(each)
    elif data not in (None, ""):
        yield data


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


def _language(*texts: Sequence[str]) -> dict[str, Any]:
    """The language of texts, and that scores in it were not measured, where that is so of any."""
    found = [language_of(each) for each in texts]
    unmeasured = [each for each in found if each is not None and each not in MEASURED]
    detail: dict[str, Any] = {"language": next((each for each in [*unmeasured, *found] if each is not None), None)}
    if unmeasured:
        measured = ", ".join(sorted(MEASURED))
        detail["informational"] = f"text in {unmeasured[0]!r}: scores were measured only on text in {measured}"
    return detail


def failed(error: Exception) -> Verdict:
    """The verdict on a question whose judging raised."""
    message = f"{type(error).__name__}: {error}"
    return Verdict(None, {"reason": message, "error": {"type": type(error).__name__, "message": str(error)}})


def backend() -> LocalBackend:
    """The entry point of ``local``."""
    return LocalBackend()


def gpu_backend() -> GpuBackend:
    """The entry point of ``local-gpu``."""
    return GpuBackend()

"""Criteria of the user's own, in plain words, scored by the judge."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from agentunit.backends.quality import BackendUnavailable, RubricQuestion, Scale, Verdict, resolve_backend
from agentunit.core.results import MetricResult
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers, no_answer
from agentunit.metrics.started import StartedBatch
from agentunit.metrics.turns import transcript

JUDGE = "judge"
_MEASURE = "rubric"
_READABLE = ("question", "context", "expected_output")


@dataclass(frozen=True)
class RubricMetric(ItemMetric):
    """How far the answer meets criteria in plain words: ``criteria``, or ``case.metadata["rubric"]``.

    One text or several; each is scored by itself, with a reason, and the value is their mean, brought to 0 to 1.
    ``scale`` is the lowest and the highest score, or labels from worst to best. The judge sees the answer and, of
    ``reads``, what the case has. Give ``name`` to use several rubrics in a run.

    >>> RubricMetric("Is the answer polite?", name="politeness").evaluate({"id": "q1"}, None, None).detail["reason"]
    'no answer: outcome.output is missing'
    """

    criteria: str | Sequence[str] | None = None
    scale: Scale = (1, 5)
    reads: Sequence[str] = _READABLE
    name: str = "rubric"

    info = MetricInfo(
        name="rubric",
        family="quality",
        summary="How far the answer meets criteria in plain words, by a judge.",
        direction="higher",
        range=(0.0, 1.0),
        inputs=("criteria or case.metadata.rubric", "outcome.output"),
        metadata_inputs={"rubric": "answer_key"},
        detail_keys=("criteria", "scale", "score", "scores", "answer"),
        backend=JUDGE,
        extra="judge",
        question="How far does the answer meet the criteria?",
        graded=True,
        mean_of="rubric score",
    )
    gains_from_batches = True
    starts_batches = True
    asks_service = True
    current_backend = JUDGE

    def __post_init__(self) -> None:
        if self.criteria is not None and not _texts(self.criteria):
            raise ValueError(f"RubricMetric: criteria must be one or more texts; received {self.criteria!r}")
        _check_scale(self.scale)
        unknown = [each for each in self.reads if each not in _READABLE]
        if isinstance(self.reads, str) or unknown:
            raise ValueError(f"RubricMetric: reads must be some of {', '.join(_READABLE)}; received {self.reads!r}")
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"RubricMetric: name must be a text; received {self.name!r}")

    def score_item(self, item: Item) -> MetricResult:
        """Score one item."""
        return self.evaluate_batch([item])[0]

    def evaluate_batch(self, items: Sequence[Item]) -> list[MetricResult]:
        """Score many items; the judge is asked about all of them at once."""
        return list(self.start_batch(items).result())

    def start_batch(self, items: Sequence[Item]) -> StartedBatch:
        """The same without waiting: the judge answers while the engine goes on."""
        prepared = [self._prepared(item) for item in items]
        asked = [each for each in prepared if isinstance(each, RubricQuestion)]

        def finish(verdicts: Sequence[Verdict]) -> list[MetricResult]:
            if len(verdicts) != len(asked):
                raise ValueError(f"the judge gave {len(verdicts)} verdicts on {len(asked)} questions")
            answers = iter(verdicts)
            return [
                self._from_verdict(each, next(answers)) if isinstance(each, RubricQuestion) else each
                for each in prepared
            ]

        return StartedBatch(self._verdicts(asked), finish)

    def _verdicts(self, asked: Sequence[RubricQuestion]) -> Future[Sequence[Verdict]]:
        verdicts: Future[Sequence[Verdict]] = Future()
        if not asked:
            verdicts.set_result([])
            return verdicts
        try:
            judge: Any = resolve_backend(JUDGE, _MEASURE, type(self).__name__)
            return judge.start(_MEASURE, asked)  # type: ignore[no-any-return]
        except BackendUnavailable as error:
            detail = {"reason": str(error), "error": {"type": type(error).__name__, "message": str(error)}}
            verdicts.set_result([Verdict(None, dict(detail)) for _ in asked])
            return verdicts

    def _prepared(self, item: Item) -> RubricQuestion | MetricResult:
        """What to ask about an item, or the result when there is nothing to ask."""
        try:
            criteria = self._criteria(item)
            if not criteria:
                return self.unscored(f"no criteria: none given, no case.metadata[{self.name!r}]", **self._known(item))
            if item.answer is None:
                return self.unscored(no_answer(item), **self._known(item), criteria=criteria)
            return self.question(item)
        except InputProblem as problem:
            return self.unscored(str(problem), error=problem, scale=list(self.scale))

    def _known(self, item: Item) -> dict[str, Any]:
        return {"scale": list(self.scale), "answer": item.answer}

    def question(self, item: Item) -> RubricQuestion:
        """What the judge is asked about an item."""
        query = (transcript(item) or item.case.query) if "question" in self.reads else None
        expected = item.case.expected_output if "expected_output" in self.reads else None
        return RubricQuestion(
            question=query if isinstance(query, str) else None,
            context=item.context if "context" in self.reads else (),
            answer=item.answer or "",
            expected=[each for each in acceptable_answers(expected) if each.strip()],
            criteria=self._criteria(item),
            scale=self.scale,
        )

    def _criteria(self, item: Item) -> list[str]:
        if self.criteria is not None:
            return _texts(self.criteria)
        received = item.case_metadata.get(self.name)
        if received is None:
            return []
        texts = _texts(received)
        if not texts:
            raise InputProblem(f"case.metadata[{self.name!r}] must be one or more texts; received {received!r:.80}")
        return texts

    def _from_verdict(self, question: RubricQuestion, verdict: Verdict) -> MetricResult:
        detail = {
            **dict.fromkeys(self.info.detail_keys),
            "criteria": list(question.criteria),
            "scale": list(self.scale),
            "answer": question.answer,
            **verdict.detail,
            "backend": JUDGE,
        }
        if verdict.value is None:
            detail.setdefault("reason", "the judge gave no verdict and no reason")
            return MetricResult(self.name, None, detail)
        return MetricResult(self.name, verdict.value, detail)


def _texts(received: Any) -> list[str]:
    texts = [received] if isinstance(received, str) else received
    if not isinstance(texts, (list, tuple)) or not all(isinstance(each, str) and each.strip() for each in texts):
        return []
    return list(texts)


def _check_scale(scale: Any) -> None:
    if isinstance(scale, (list, tuple)) and len(scale) >= 2:
        labels = {each.strip().casefold() for each in scale if isinstance(each, str)}
        numbers = [each for each in scale if isinstance(each, int) and not isinstance(each, bool)]
        if len(labels) == len(scale) and "" not in labels:
            return
        if len(numbers) == len(scale) == 2 and scale[0] < scale[1]:
            return
    raise ValueError(
        "RubricMetric: scale must be two whole numbers (low, high) or two or more different labels, worst first; "
        f"received {scale!r}"
    )

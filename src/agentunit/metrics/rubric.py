"""Criteria of the user's own, in plain words, scored by the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from agentunit.backends.quality import (
    BackendUnavailable,
    Criterion,
    RubricExample,
    RubricQuestion,
    Scale,
    Verdict,
    resolve_backend,
)
from agentunit.core.results import MetricResult
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.calibration import Calibration, as_examples, calibrated_info, calibration_of, models_asked
from agentunit.metrics.criteria import criteria_of, examples_of, scale_of
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers, no_answer
from agentunit.metrics.started import StartedBatch
from agentunit.metrics.steps import step_texts, tool_texts
from agentunit.metrics.turns import messages_of, transcript

JUDGE = "judge"
_MEASURE = "rubric"
_DEFAULT_READS = ("question", "context", "expected_output")
_READABLE = (*_DEFAULT_READS, "steps")
Criteria = str | Mapping[str, Any] | Sequence[Any] | None
_SPEAKERS = {"user": "user", "assistant": "assistant"}


@dataclass(frozen=True)
class RubricMetric(ItemMetric):
    """How far the answer meets criteria in plain words: ``criteria``, or ``case.metadata["rubric"]``.

    One or several, each a text, or a mapping with ``text``, ``weight`` and a ``scale`` of its own. Each is scored by
    itself, with a reason, and the value is their weighted mean, brought to 0 to 1. ``scale`` is the lowest and the
    highest score, labels from worst to best, or a mapping of scores or labels to what they mean. ``examples`` are
    answers with the scores that they deserve (``answer``, ``score``, also ``question`` and ``reason``). The judge sees
    the answer and, of ``reads``, what there is: ``question``, ``context``, ``expected_output``, and ``steps`` (what the
    agent did, and which tools it had). ``of="conversation"`` scores the whole conversation instead of the last
    answer. ``calibration`` is a file of ``agentunit validity --calibrate``: examples from your labels, and what scores
    mean by them. Give ``name`` to use several rubrics in a run.

    >>> RubricMetric("Is the answer polite?", name="politeness").evaluate({"id": "q1"}, None, None).detail["reason"]
    'no answer: outcome.output is missing'
    """

    criteria: Criteria = None
    scale: Scale | Mapping[int, str] | Mapping[str, str] = (1, 5)
    reads: Sequence[str] = _DEFAULT_READS
    name: str = "rubric"
    examples: Sequence[Any] = ()
    of: Literal["answer", "conversation"] = "answer"
    calibration: str | Calibration | None = None

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
        try:
            scale_of(self.scale)
            found = None if self.criteria is None else criteria_of(self.criteria, self.scale)
            if found is not None and not found:
                raise ValueError(f"criteria must be one or more texts; received {self.criteria!r}")
            examples_of(self.examples, found)
        except ValueError as error:
            raise ValueError(f"RubricMetric: {error}") from None
        unknown = [each for each in self.reads if each not in _READABLE]
        if isinstance(self.reads, str) or unknown:
            raise ValueError(f"RubricMetric: reads must be some of {', '.join(_READABLE)}; received {self.reads!r}")
        if self.of not in ("answer", "conversation"):
            raise ValueError(f"RubricMetric: of must be answer or conversation; received {self.of!r}")
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"RubricMetric: name must be a text; received {self.name!r}")
        if self._calibration is not None:
            # An attribute of this one: the class keeps the facts that hold without a calibration.
            info = calibrated_info(type(self).info, self._calibration, models_asked(JUDGE))
            object.__setattr__(self, "info", info)

    @cached_property
    def _calibration(self) -> Calibration | None:
        return calibration_of(self.calibration, "RubricMetric", self.name)

    @cached_property
    def given_criteria(self) -> list[Criterion]:
        """The criteria of the metric itself, with their levels and weights; none where each case has its own."""
        return [] if self.criteria is None else criteria_of(self.criteria, self.scale)

    @cached_property
    def _examples(self) -> list[RubricExample]:
        shown = [] if self._calibration is None else as_examples(self._calibration.examples)
        return [*examples_of(self.examples, self.given_criteria or None), *shown]

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
                texts = [each.text for each in criteria]
                return self.unscored(no_answer(item), **self._known(item), criteria=texts)
            return self.question(item)
        except InputProblem as problem:
            return self.unscored(str(problem), error=problem, scale=list(scale_of(self.scale)[0]))

    def _known(self, item: Item) -> dict[str, Any]:
        return {"scale": list(scale_of(self.scale)[0]), "answer": item.answer}

    def question(self, item: Item) -> RubricQuestion:
        """What the judge is asked about an item."""
        whole = self.of == "conversation"
        query = (transcript(item) or item.case.query) if "question" in self.reads and not whole else None
        expected = item.case.expected_output if "expected_output" in self.reads else None
        criteria = self._criteria(item)
        with_steps = "steps" in self.reads
        return RubricQuestion(
            question=query if isinstance(query, str) else None,
            context=item.context if "context" in self.reads else (),
            answer=item.answer or "",
            expected=[each for each in acceptable_answers(expected) if each.strip()],
            criteria=[each.text for each in criteria],
            scale=scale_of(self.scale)[0],
            scored_by=criteria,
            # An answer is not judged with itself as an example.
            examples=[each for each in self._examples if each.answer != item.answer],
            messages=_said(item) if whole else (),
            steps=step_texts(item) if with_steps else (),
            tools=tool_texts(item) if with_steps else (),
        )

    def _criteria(self, item: Item) -> list[Criterion]:
        if self.criteria is not None:
            return self.given_criteria
        received = item.case_metadata.get(self.name)
        if received is None:
            return []
        try:
            found = criteria_of(received, self.scale)
        except ValueError as error:
            raise InputProblem(f"case.metadata[{self.name!r}]: {error}") from None
        if not found:
            raise InputProblem(f"case.metadata[{self.name!r}] must be one or more texts; received {received!r:.80}")
        if any(each.scores and len(each.scores) != len(found) for each in self._examples):
            raise InputProblem(f"examples must have a score for each of the {len(found)} criteria of the case")
        return found

    def _from_verdict(self, question: RubricQuestion, verdict: Verdict) -> MetricResult:
        detail = {
            **dict.fromkeys(self.info.detail_keys),
            "criteria": list(question.criteria),
            "scale": list(question.scale),
            "answer": question.answer,
            **verdict.detail,
            "backend": JUDGE,
        }
        if verdict.value is None:
            detail.setdefault("reason", "the judge gave no verdict and no reason")
            return MetricResult(self.name, None, detail)
        value = verdict.value
        if self._calibration is not None:
            detail["raw_value"] = value
            value = self._calibration.value_of(value)
        return MetricResult(self.name, value, detail)


def _said(item: Item) -> list[tuple[str, str]]:
    """Who said what, in order. A trace may lack the last answer, which the outcome has."""
    said = [(_SPEAKERS.get(each["role"], "assistant"), str(each["content"])) for each in messages_of(item) or ()]
    lacks_answer = item.answer is not None and (not said or said[-1][0] == "user")
    return [*said, ("assistant", item.answer or "")] if lacks_answer else said

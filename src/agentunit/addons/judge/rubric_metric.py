"""Criteria of the user's own, in plain words, scored by the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
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
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers, no_answer
from agentunit.metrics.started import StartedBatch
from agentunit.metrics.turns import messages_of, step_texts, tool_texts, transcript
from agentunit.metrics.verdict_sentences import why_of_scores

JUDGE = "judge"
_MEASURE = "rubric"
_DEFAULT_READS = ("question", "context", "expected_output")
_READABLE = (*_DEFAULT_READS, "steps")
Criteria = str | Mapping[str, Any] | Sequence[Any] | None
_SPEAKERS = {"user": "user", "assistant": "assistant"}


@dataclass(frozen=True)
class RubricMetric(ItemMetric):
    """How far the answer meets criteria in plain words: ``criteria``, or ``case.metadata["rubric"]``.

    One or several, each a text, or a mapping with ``text``, ``weight`` and ``scale``. The value is their weighted
    mean, brought to 0 to 1. ``scale`` is the lowest and the
    highest score, labels from worst to best, or a mapping of scores or labels to what they mean. ``examples`` are
    answers with the scores that they deserve (``answer``, ``score``, also ``question`` and ``reason``). The judge sees
    the answer and, of ``reads``, what there is: ``question``, ``context``, ``expected_output``, and ``steps`` (what the
    agent did, and which tools it had). ``of="conversation"`` scores the whole conversation instead of the last
    answer. ``calibration`` is a file of ``agentunit label --calibrate``: examples from your labels, and what scores
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
        detail["why"] = why_of_scores(value, verdict.detail)
        if self._calibration is not None:
            detail["raw_value"] = value
            value = self._calibration.value_of(value)
        return MetricResult(self.name, value, detail)


def _said(item: Item) -> list[tuple[str, str]]:
    """Who said what, in order. A trace may lack the last answer, which the outcome has."""
    said = [(_SPEAKERS.get(each["role"], "assistant"), str(each["content"])) for each in messages_of(item) or ()]
    lacks_answer = item.answer is not None and (not said or said[-1][0] == "user")
    return [*said, ("assistant", item.answer or "")] if lacks_answer else said


# Criteria, levels and examples, as users write them in Python or YAML, are brought to one shape.

_OF_A_CRITERION = ("text", "weight", "scale", "levels")
_OF_AN_EXAMPLE = ("answer", "question", "score", "scores", "reason")
_SCALE_RULE = (
    "scale must be two whole numbers (low, high), two or more different labels, worst first, or a mapping of such "
    "scores or labels to what they mean"
)


def scale_of(received: Any) -> tuple[Scale, tuple[tuple[int | str, str], ...]]:
    """A scale, and what its levels mean where that is said.

    >>> scale_of((1, 5)), scale_of({"no": "not at all", "yes": "fully"})[0], scale_of({1: "bad", 5: "good"})[0]
    (((1, 5), ()), ('no', 'yes'), (1, 5))
    """
    if isinstance(received, Mapping):
        return _described(received)
    if isinstance(received, (list, tuple)) and len(received) >= 2:
        labels = {each.strip().casefold() for each in received if isinstance(each, str)}
        if len(labels) == len(received) and "" not in labels:
            return tuple(received), ()
        if len(received) == 2 and all(_is_whole(each) for each in received) and received[0] < received[1]:
            return (received[0], received[1]), ()
    raise ValueError(f"{_SCALE_RULE}; received {received!r}")


def _described(received: Mapping[Any, Any]) -> tuple[Scale, tuple[tuple[int | str, str], ...]]:
    if len(received) >= 2 and all(isinstance(text, str) and text.strip() for text in received.values()):
        levels = tuple(received.items())
        if all(_is_whole(level) for level in received):
            numbers = sorted(received)
            return (numbers[0], numbers[-1]), tuple(sorted(levels))
        if all(isinstance(level, str) for level in received):
            return scale_of(list(received))[0], levels
    raise ValueError(f"{_SCALE_RULE}; received {dict(received)!r:.200}")


def criteria_of(received: Any, scale: Any) -> list[Criterion]:
    """The criteria of one text, of a mapping with ``text``, or of several of either; none when it is neither.

    >>> criteria_of(["It is short.", {"text": "It is polite.", "weight": 2}], (1, 5))[1].weight
    2.0
    """
    listed = [received] if isinstance(received, (str, Mapping)) else received
    if not isinstance(listed, (list, tuple)):
        return []
    found = []
    for each in listed:
        entry = {"text": each} if isinstance(each, str) else each
        if isinstance(each, Criterion):
            found.append(each)
            continue
        if not isinstance(entry, Mapping) or not isinstance(entry.get("text"), str) or not entry["text"].strip():
            return []
        found.append(_criterion(entry, scale))
    return found


def _criterion(entry: Mapping[str, Any], scale: Any) -> Criterion:
    for name in entry:
        if name not in _OF_A_CRITERION:
            raise ValueError(f"a criterion must hold only {', '.join(_OF_A_CRITERION)}; received {name!r:.60}")
    weight = entry.get("weight", 1.0)
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool) and isfinite(weight)
    if not is_number or weight <= 0:
        raise ValueError(f"the weight of a criterion must be a number above 0; received {weight!r:.60}")
    own = entry.get("levels", entry.get("scale"))
    its_scale, levels = scale_of(scale if own is None else own)
    return Criterion(entry["text"], its_scale, levels, float(weight))


def examples_of(received: Any, criteria: Sequence[Criterion] | None) -> list[RubricExample]:
    """Examples as users write them: mappings with ``answer`` and ``score`` (``scores`` for several criteria).

    Without ``criteria`` (they come with each case) the scores are not checked here.

    >>> examples_of([{"answer": "Hi!", "score": 5}], criteria_of("It greets.", (1, 5)))[0].scores
    (5,)
    """
    if not isinstance(received, (list, tuple)):
        raise ValueError(f"examples must be a list of mappings with answer and score; received {received!r:.80}")
    return [each if isinstance(each, RubricExample) else _example(each, criteria) for each in received]


def _example(each: Any, criteria: Sequence[Criterion] | None) -> RubricExample:
    rule = "an example must be a mapping with answer and score (scores, one for each of several criteria)"
    if not isinstance(each, Mapping) or not isinstance(each.get("answer"), str):
        raise ValueError(f"{rule}; received {each!r:.80}")
    unknown = [name for name in each if name not in _OF_AN_EXAMPLE]
    if unknown or ("score" in each) == ("scores" in each):
        raise ValueError(f"{rule}, and may have question and reason; received the keys {', '.join(map(str, each))}")
    scores = each["scores"] if "scores" in each else [each["score"]]
    if not isinstance(scores, (list, tuple)) or not scores:
        raise ValueError(f"{rule}; received the scores {scores!r:.80}")
    if criteria is not None:
        if len(scores) != len(criteria):
            raise ValueError(f"{rule}; received {len(scores)} scores for {len(criteria)} criteria")
        for score, criterion in zip(scores, criteria, strict=True):
            _check_score(score, criterion.scale)
    texts = {name: each.get(name) for name in ("question", "reason")}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise ValueError(f"the {name} of an example must be a text; received {text!r:.80}")
    return RubricExample(each["answer"], tuple(scores), texts["question"], texts["reason"])


def _check_score(score: Any, scale: Scale) -> None:
    is_number = _is_whole(scale[0])
    fits = _is_whole(score) and scale[0] <= score <= scale[1] if is_number else score in scale
    if not fits:
        known = f"from {scale[0]} to {scale[1]}" if is_number else f"one of {', '.join(map(str, scale))}"
        raise ValueError(f"the score of an example must be {known}; received {score!r:.60}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

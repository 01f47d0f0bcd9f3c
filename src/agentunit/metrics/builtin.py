"""The catalog's core quality and operational metrics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from agentunit.backends.quality import (
    LEXICAL,
    SERVICES,
    QualityBackend,
    QualityQuestion,
    Verdict,
    resolve_backend,
    unasked_backend,
)
from agentunit.core.results import EVIDENCE_NOTE, MetricResult
from agentunit.formulas.text import share_true
from agentunit.metrics.base import ItemMetric, MetricInfo, describe_error
from agentunit.metrics.calibration import Calibration, calibrated_info, calibration_of, models_asked
from agentunit.metrics.evidence import NOT_MEASURED, Evidence, EvidencePart, evidence_kinds, evidence_of, nearest_piece
from agentunit.metrics.inputs import (
    InputProblem,
    Item,
    acceptable_answers,
    blank_context,
    no_answer,
    no_context,
    nothing_expected,
    same_data,
)
from agentunit.metrics.sentences import amount, counted, quoted, sentence, why_equal
from agentunit.metrics.started import StartedBatch
from agentunit.metrics.turns import Expanded, is_single
from agentunit.metrics.usage import COST_PARTS, find_usage, itemised_cost, recorded_total
from agentunit.metrics.verdict_sentences import why_of_verdict

_SCORE_RANGE = (0.0, 1.0)
# A count with more digits says nothing to a reader.
_LARGE_COUNT = 10**15


@dataclass(frozen=True)
class _QualityMetric(ItemMetric):
    """What the four quality metrics share: the choice of backend, made once, and batches for backends that use them."""

    backend: str = "auto"
    calibration: str | Calibration | None = field(default=None, kw_only=True)
    measure_asked: ClassVar[str]
    reads_earlier_turns: ClassVar[bool] = True
    """Whether the answer of a turn may rest on what the agent saw in earlier turns of the conversation."""

    def __post_init__(self) -> None:
        if not isinstance(self.backend, str):
            raise ValueError(f"{type(self).__name__}: backend must be a name; received {self.backend!r}")
        found = self._calibration
        if found is not None:
            if self.backend not in ("auto", found.backend):
                who = f"{type(self).__name__}: calibration"
                raise ValueError(f"{who} must be of backend {self.backend!r}; received one of {found.backend!r}")
            info = calibrated_info(type(self).info, found, models_asked(found.backend))
            object.__setattr__(self, "info", info)
        if self._backend_asked not in ("auto", LEXICAL):
            resolve_backend(self._backend_asked, self.measure_asked, type(self).__name__)

    @cached_property
    def _calibration(self) -> Calibration | None:
        return calibration_of(self.calibration, type(self).__name__, self.name)

    @property
    def _backend_asked(self) -> str:
        """The backend that was named; a calibration is of one backend, and holds for no other."""
        return self.backend if self._calibration is None else self._calibration.backend

    @cached_property
    def _resolved(self) -> QualityBackend | None:
        return resolve_backend(self._backend_asked, self.measure_asked, type(self).__name__)

    def unasked(self) -> _QualityMetric:
        """The same metric with a backend that cannot be asked: for what is ``missing``, without loading a model."""
        metric = replace(self)
        metric.__dict__["_resolved"] = unasked_backend(self._backend_asked, self.measure_asked, type(self).__name__)
        return metric

    @property
    def current_backend(self) -> str:
        """The name of what scores, known also when it fails."""
        return LEXICAL if self._resolved is None else self._resolved.name

    @property
    def gains_from_batches(self) -> bool:
        """Whether the engine should hand over many items at once."""
        return self._resolved is not None

    @property
    def batch_items(self) -> int:
        """How many items its backend wants at once; 0 where any number is as good."""
        return int(getattr(self._resolved, "batch_questions", 0))

    @property
    def starts_batches(self) -> bool:
        """Whether batches can be left to the backend while the engine goes on."""
        return hasattr(self._resolved, "start")

    @property
    def asks_service(self) -> bool:
        """Whether what it scores is sent to a service."""
        return self._resolved is not None and self._resolved.name in SERVICES

    def score_item(self, item: Item) -> MetricResult:
        """Score one item with the resolved backend; a conversation turn by turn."""
        if self._resolved is not None:
            return self.evaluate_batch([item])[0]
        if is_single(item):
            return self._lexical_or_missing(item)
        expanded = self._expanded([item])
        return expanded.together([self._lexical_or_missing(each) for each in expanded.items])[0]

    def _lexical_or_missing(self, item: Item) -> MetricResult:
        missing = self.missing(item)
        return self.unscored(missing, **self.shown(item)) if missing else self.lexical(item)

    def _expanded(self, items: Sequence[Item]) -> Expanded:
        return Expanded(items, so_far=self.reads_earlier_turns, worst=max if self.info.direction == "lower" else min)

    def evaluate_batch(self, items: Sequence[Item]) -> list[MetricResult]:
        """Score many items; a model or service sees them together."""
        if self._resolved is None:
            return [self.measure(item) for item in items]
        expanded = self._expanded(items)
        return expanded.together(self._judged(expanded.items, self._resolved))

    def _judged(self, items: Sequence[Item], backend: QualityBackend) -> list[MetricResult]:
        prepared = [self._prepared(item, backend) for item in items]
        asked = [each for each in prepared if isinstance(each, QualityQuestion)]
        received = _one_each(backend.judge(self.measure_asked, asked) if asked else [], asked, backend)
        return [
            each if isinstance(each, MetricResult) else self._from_verdict(next(received), item, backend)
            for each, item in zip(prepared, items, strict=True)
        ]

    def start_batch(self, items: Sequence[Item]) -> StartedBatch:
        """The same without waiting, for a backend that can be left to answer. What fails, fails for its item alone."""
        backend: Any = self._resolved

        def prepared_or_failed(item: Item) -> QualityQuestion | MetricResult:
            try:
                return self._prepared(item, backend)
            except Exception as error:  # noqa: BLE001  # a user's own object may fail in any way when it is looked at
                reason = str(error) if isinstance(error, InputProblem) else describe_error(error)
                return self.unscored(reason, error=error, backend=backend.name)

        def finished(verdict: Verdict, item: Item) -> MetricResult:
            try:
                return self._from_verdict(verdict, item, backend)
            except (TypeError, ValueError) as error:
                return self.unscored(str(error), error=error, **self.shown(item), backend=backend.name)

        expanded = self._expanded(items)
        prepared = [prepared_or_failed(item) for item in expanded.items]
        asked = [each for each in prepared if isinstance(each, QualityQuestion)]

        def finish(verdicts: Sequence[Verdict]) -> list[MetricResult]:
            received = _one_each(verdicts, asked, backend)
            return expanded.together(
                [
                    each if isinstance(each, MetricResult) else finished(next(received), item)
                    for each, item in zip(prepared, expanded.items, strict=True)
                ]
            )

        return StartedBatch(backend.start(self.measure_asked, asked), finish)

    def _prepared(self, item: Item, backend: QualityBackend) -> QualityQuestion | MetricResult:
        """What to ask about an item, or the result when there is nothing to ask."""
        reason = self.missing(item)
        return self.unscored(reason, **self.shown(item), backend=backend.name) if reason else self.question(item)

    def missing(self, item: Item) -> str | None:
        """Why an item cannot be scored; ``None`` when it can."""
        if item.answer is None:
            return no_answer(item)
        return None if item.context else no_context(item)

    def shown(self, item: Item) -> dict[str, Any]:
        """What the detail always shows."""
        return {"answer": item.answer, "references": item.context}

    @abstractmethod
    def lexical(self, item: Item) -> MetricResult:
        """The catalog's fallback, without a model."""

    def scaled(self, value: float) -> float:
        """The metric's value of a backend's score."""
        return value

    def question(self, item: Item) -> QualityQuestion:
        """What a backend is asked about an item."""
        query = item.case.query
        expected = acceptable_answers(item.case.expected_output)
        return QualityQuestion(query, item.context, item.answer or "", expected)

    def _from_verdict(self, verdict: Verdict, item: Item, backend: QualityBackend) -> MetricResult:
        detail = {**self.shown(item), **verdict.detail, "backend": backend.name}
        if verdict.value is None:
            detail.setdefault("reason", f"backend {backend.name!r} gave no verdict and no reason")
            return MetricResult(self.name, None, detail)
        if isinstance(detail.get("judges"), list):
            # What each judge of a panel said is told on the metric's scale, as its value is.
            detail["judges"] = [
                {**each, "value": None if each["value"] is None else self.scaled(each["value"])}
                for each in detail["judges"]
            ]
        value = -1.0 if isinstance(verdict.value, str) else float(verdict.value)
        if not 0 <= value <= 1:
            raise ValueError(f"backend {backend.name!r} must score from 0 to 1; received {verdict.value!r:.80}")
        if isinstance(detail.get("threshold"), float):
            detail["threshold"] = round(self.scaled(detail["threshold"]), 6)
        detail["why"] = why_of_verdict(verdict, item.context, backend.name)
        scaled = self.scaled(value)
        if self._calibration is not None:
            detail["raw_value"] = scaled
            scaled = self._calibration.value_of(scaled)
            # The backend's threshold is one of the raw value; what people call good is mapped to 0.5.
            detail.pop("threshold", None)
        return MetricResult(self.name, scaled, detail)


def _one_each(
    verdicts: Sequence[Verdict], asked: Sequence[QualityQuestion], backend: QualityBackend
) -> Iterator[Verdict]:
    if len(verdicts) != len(asked):
        raise ValueError(f"backend {backend.name!r} gave {len(verdicts)} verdicts on {len(asked)} questions")
    return iter(verdicts)


@dataclass(frozen=True)
class _GroundedMetric(_QualityMetric):
    """What the two metrics of groundedness share: the evidence that a model or a judge holds the answer against."""

    measure_asked = "faithfulness"
    evidence: str | Sequence[str] = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        evidence_kinds(self.evidence, type(self).__name__)

    @cached_property
    def evidence_kinds(self) -> tuple[str, ...]:
        """Which kinds of evidence count."""
        return evidence_kinds(self.evidence, type(self).__name__)

    def missing(self, item: Item) -> str | None:
        """Why an item cannot be scored; ``None`` when it can."""
        if self._resolved is None:
            if "context" not in self.evidence_kinds:
                return "the lexical fallback reads the context only, which evidence= leaves out"
            return super().missing(item)
        if item.answer is None:
            return no_answer(item)
        if self._evidence(item).pieces:
            return None
        places = [
            (blank_context(item) if kind == "context" else None) or _EVIDENCE_PLACES[kind]
            for kind in self.evidence_kinds
        ]
        return f"nothing to check the answer against: {', '.join(places)}"

    def shown(self, item: Item) -> dict[str, Any]:
        """What the detail always shows."""
        if self._resolved is None:
            return super().shown(item)
        evidence = self._evidence(item)
        detail: dict[str, Any] = {"answer": item.answer, "references": evidence.texts, "sources": evidence.sources}
        if evidence.n_left_out:
            detail["evidence_left_out"] = evidence.n_left_out
        if any(piece.kind == "tools" for piece in evidence.pieces):
            detail[EVIDENCE_NOTE] = NOT_MEASURED
        return detail

    def question(self, item: Item) -> QualityQuestion:
        """What a backend is asked about an item."""
        evidence = self._evidence(item)
        return replace(super().question(item), context=evidence.texts, sources=evidence.sources)

    def _evidence(self, item: Item) -> Evidence:
        return evidence_of(item, self.evidence_kinds)

    def _from_verdict(self, verdict: Verdict, item: Item, backend: QualityBackend) -> MetricResult:
        claims = verdict.detail.get("claims")
        if isinstance(claims, list):
            pieces, first = self._evidence(item).pieces, getattr(backend, "first_passage", 0)
            located = [_located(claim, pieces, first) for claim in claims]
            verdict = replace(verdict, detail={**verdict.detail, "claims": located})
        return super()._from_verdict(verdict, item, backend)


_EVIDENCE_PLACES = {
    "context": "no case.context",
    "retrieved": "no documents of retrieval events",
    "tools": "no results of tool calls",
}


def _located(claim: Any, pieces: Sequence[EvidencePart], first: int) -> Any:
    """A claim with where the text that decides about it came from, or the one nearest to it by its words."""
    if not isinstance(claim, dict) or "source" in claim:
        return claim
    if "passage" not in claim:
        text = next((claim[key] for key in ("claim", "text") if isinstance(claim.get(key), str)), "")
        nearest = nearest_piece(text, pieces)
        return {**claim, "nearest_source": nearest.source if nearest else None}
    passage = claim["passage"]
    known = isinstance(passage, int) and 0 <= passage - first < len(pieces)
    return {**claim, "source": pieces[passage - first].source if known else None}


@dataclass(frozen=True)
class FaithfulnessMetric(_GroundedMetric):
    """How far the answer rests on what the agent saw. Lexical fallback: the share of context strings that are in it.

    A model or a judge is shown the case's context, retrieved documents and results of tool calls (at most 32,000
    characters of the latter two, most relevant first); ``evidence`` narrows that to ``"context"``, ``"retrieved"``,
    ``"tools"`` or a list of these. The lexical fallback reads the context only.

    >>> case = {"id": "q1", "context": ["Paris is in France.", "It has 2 million people."]}
    >>> FaithfulnessMetric(backend="lexical").evaluate(case, None, "Paris is in France.").value
    0.5
    """

    info = MetricInfo(
        name="faithfulness",
        family="quality",
        summary="How far the answer is supported by what the agent saw.",
        direction="higher",
        range=_SCORE_RANGE,
        inputs=("case.context or trace retrieval", "outcome.output"),
        detail_keys=("answer", "references"),
        backend=LEXICAL,
        informational=frozenset({LEXICAL}),
        version="6",
        question="Does what the agent saw support everything the answer says?",
        mean_of="support",
    )
    name = info.name

    def lexical(self, item: Item) -> MetricResult:
        """The share of context strings found in the answer."""
        return _repeated(self.name, item, share_true(item.context_found))


@dataclass(frozen=True)
class AnswerCorrectnessMetric(_QualityMetric):
    """How right the answer is, against the expected one. Lexical fallback: 1.0 if equal after trimming, otherwise 0.0.

    An expected output that is a list of strings means several acceptable answers.

    >>> case = {"id": "q1", "expected_output": "Paris"}
    >>> AnswerCorrectnessMetric(backend="lexical").evaluate(case, None, " Paris ").value
    1.0
    """

    measure_asked = "answer_correctness"
    info = MetricInfo(
        name="answer_correctness",
        family="quality",
        summary="How right the answer is, compared with the expected output.",
        direction="higher",
        range=_SCORE_RANGE,
        inputs=("case.expected_output", "outcome.output"),
        detail_keys=("expected", "answer"),
        backend=LEXICAL,
        informational=frozenset({LEXICAL}),
        version="3",
        question="Is the answer right?",
        mean_of="correctness",
    )
    name = info.name

    def missing(self, item: Item) -> str | None:
        """Why an item cannot be scored; ``None`` when it can."""
        expected = item.case.expected_output
        if expected.__class__ is not str and not acceptable_answers(expected):
            return nothing_expected(item)
        return no_answer(item) if item.answer is None else None

    def shown(self, item: Item) -> dict[str, Any]:
        """What the detail always shows."""
        return {"expected": item.case.expected_output, "answer": item.answer}

    def lexical(self, item: Item) -> MetricResult:
        """Equal to an acceptable answer after trimming, or not."""
        answer = (item.answer or "").strip()
        expected = item.case.expected_output
        if expected.__class__ is str:
            equal = answer == expected.strip()
        else:
            equal = any(answer == each.strip() for each in acceptable_answers(expected)) or same_data(expected, item)
        why = why_equal(equal, item.answer, expected)
        detail = {"expected": expected, "answer": item.answer, "backend": LEXICAL, "why": why}
        return MetricResult(self.name, 1.0 if equal else 0.0, detail)


@dataclass(frozen=True)
class HallucinationRateMetric(_GroundedMetric):
    """How much of the answer is not supported by what the agent saw; lower is better, 0.0 is fully grounded.

    Lexical fallback: 1.0 if any context string is missing from the answer. Any other backend: 1 − its faithfulness,
    with the same ``evidence``.

    >>> case = {"id": "q1", "context": ["Paris"]}
    >>> HallucinationRateMetric(backend="lexical").evaluate(case, None, "It is Paris.").value
    0.0
    """

    # The same measure turned round, so its version is the same too.
    info = replace(
        FaithfulnessMetric.info,
        name="hallucination_rate",
        summary="How much of the answer is not supported by what the agent saw.",
        direction="lower",
        question="Does the answer say anything that nothing the agent saw supports?",
        mean_of="lack of support",
    )
    name = info.name

    def lexical(self, item: Item) -> MetricResult:
        """1.0 if any context string is missing from the answer, else 0.0."""
        return _repeated(self.name, item, 0.0 if all(item.context_found) else 1.0)

    def scaled(self, value: float) -> float:
        """The rate is what groundedness leaves."""
        return 1.0 - value


@dataclass(frozen=True)
class RetrievalQualityMetric(_QualityMetric):
    """How useful the retrieved context was. Lexical fallback: the share of context strings that the answer repeats.

    >>> case = {"id": "q1", "context": ["Paris is in France.", "Bread is baked."]}
    >>> RetrievalQualityMetric(backend="lexical").evaluate(case, None, "paris is in france.").value
    0.5
    """

    measure_asked = "retrieval_quality"
    reads_earlier_turns = False
    info = MetricInfo(
        name="retrieval_quality",
        family="quality",
        summary="How much of the retrieved context was to the point.",
        direction="higher",
        range=_SCORE_RANGE,
        inputs=("case.context or trace retrieval", "outcome.output"),
        detail_keys=("references", "answer"),
        backend=LEXICAL,
        informational=frozenset({LEXICAL}),
        question="How much of the retrieved context is to the point?",
        graded=True,
        mean_of="relevance",
        version="2",
    )
    name = info.name

    def missing(self, item: Item) -> str | None:
        """Why an item cannot be scored: a backend may judge passages by the question alone, without an answer."""
        if item.answer is None and self._needs_no_answer:
            return None if item.context else no_context(item)
        return super().missing(item)

    @property
    def _needs_no_answer(self) -> bool:
        return self.measure_asked in getattr(self._resolved, "without_answer", ())

    def case_is_enough(self, item: Item) -> bool:
        """Whether a record in which no agent did anything can be scored: by its question and its passages."""
        try:
            return self._needs_no_answer and bool(item.case.query and item.context)
        except InputProblem:
            return False

    def lexical(self, item: Item) -> MetricResult:
        """The share of context strings found in the answer."""
        return _repeated(self.name, item, share_true(item.context_found))


def _repeated(name: str, item: Item, value: float | None) -> MetricResult:
    """A value by the texts of the context that the answer repeats: all that the lexical fallback looks at."""
    detail = {"answer": item.answer, "references": item.context, "backend": LEXICAL, "why": _why_repeated(item)}
    return MetricResult(name, value, detail)


def _why_repeated(item: Item) -> str:
    """Which texts of the context the answer repeats."""
    repeated = item.context_found
    n_passages = len(repeated)
    if False not in repeated:
        return f"all {n_passages} context texts are in the answer" if n_passages > 1 else "the context is in the answer"
    missing = quoted(item.context[repeated.index(False)])
    if n_passages == 1:
        return f"not in the answer, word for word: {missing}"
    return f"{repeated.count(True)} of {n_passages} context texts are in the answer, word for word; not {missing}"


@dataclass(frozen=True)
class ToolSuccessMetric(ItemMetric):
    """The share of tool calls that ended with status ``success``.

    A call with any other status counts in the total. So does one without a status beside calls that have one: it is
    listed in ``without_status``, and ``partial`` is true. Where no call states a status there is no score. MCP's
    ``is_error`` and the ``exit_code`` of a command replace a missing status. A last call that only hands in the answer
    (``finish``, ``submit``, ``attempt_completion``, ``final_answer``) succeeded where the run has one. A run without
    tool calls is scored by ``outcome.success`` (``detail["basis"]``), and one that failed before any call not at all.

    >>> events = [{"type": "tool_call", "payload": {"name": "search", "status": s}} for s in ("success", "error")]
    >>> ToolSuccessMetric().evaluate({"id": "q1"}, {"events": events}, "done").value
    0.5
    """

    info = MetricInfo(
        name="tool_success",
        family="quality",
        summary="The share of tool calls that succeeded.",
        direction="higher",
        range=_SCORE_RANGE,
        inputs=("trace tool_call or outcome.success",),
        detail_keys=("tool_calls", "basis", "partial", "without_status"),
        backend="trace",
        version="3",
        trust={"trace": "exact", "outcome": "recorded"},
    )
    name = info.name

    def score_item(self, item: Item) -> MetricResult:
        """Count the calls that say they succeeded."""
        calls = item.tool_calls
        if calls:
            return self._of_calls(item, calls)
        success = item.outcome.success
        if success is False and item.outcome.error is not None:
            return self.unscored("the agent failed before any tool call", tool_calls=[])
        if isinstance(success, bool):
            why = f"no tool calls, and the agent says that it {'succeeded' if success else 'failed'}"
            detail = _calls_detail([], "outcome.success", "outcome", why)
            return MetricResult(self.name, 1.0 if success else 0.0, detail)
        return self.unscored("no tool_call events, and outcome.success is unknown", tool_calls=[])

    def _of_calls(self, item: Item, calls: Sequence[Mapping[str, Any]]) -> MetricResult:
        statuses = [call.get("status") for call in calls]
        gives_answer = statuses[-1] is None and calls[-1].get("name") in _ANSWERING_TOOLS and item.answer is not None
        if gives_answer:
            statuses[-1] = "success"
        # That the answer was delivered says nothing about the other calls.
        stated = statuses[:-1] if gives_answer and len(calls) > 1 else statuses
        if not any(status is not None for status in stated):
            reason = f"no status is stated for {counted(len(stated), 'tool call')}: whether they succeeded is unknown"
            without = [call.get("name") for call in calls]
            return self.unscored(reason, tool_calls=[dict(call) for call in calls], without_status=without)
        n_succeeded = statuses.count("success")
        detail = _calls_detail(calls, "tool_calls", "trace", _why_calls(calls, statuses, n_succeeded))
        if None in statuses:
            detail["partial"] = True
            without = [call.get("name") for call, status in zip(calls, statuses, strict=True) if status is None]
            detail["without_status"] = without
        return MetricResult(self.name, n_succeeded / len(calls), detail)


# Tools of agents by which a run hands in its answer, and then ends: nothing comes back from them.
_ANSWERING_TOOLS = ("finish", "submit", "attempt_completion", "final_answer")


def _calls_detail(calls: Sequence[Mapping[str, Any]], basis: str, backend: str, why: str) -> dict[str, Any]:
    detail: dict[str, Any] = {"tool_calls": [dict(call) for call in calls], "basis": basis, "backend": backend}
    return {**detail, "partial": False, "without_status": [], "why": why}


def _why_calls(calls: Sequence[Mapping[str, Any]], statuses: Sequence[Any], n_succeeded: int) -> str:
    n_calls = len(calls)
    if n_succeeded == n_calls:
        return f"all {n_calls} tool calls succeeded" if n_calls > 1 else "the tool call succeeded"
    n_unknown = statuses.count(None)
    n_failed = n_calls - n_succeeded - n_unknown
    # A failure says more than a status that is missing.
    kept = ("success", None) if n_failed else ("success",)
    failed = next(call for call, status in zip(calls, statuses, strict=True) if status not in kept)
    name = failed.get("name")
    who = name if name and name.__class__ is str else "a call without a name"
    said = failed.get("error") or failed.get("status")
    how = "failed" if n_failed else "without a status"
    why = f"{n_failed or n_unknown} of {counted(n_calls, 'tool call')} {how}: {who}"
    why = f"{why} ({said})" if said.__class__ is str else why
    return sentence(f"{why}; {n_unknown} without a status" if n_failed and n_unknown else why)


@dataclass(frozen=True)
class CostMetric(ItemMetric):
    """What the run cost, in US dollars.

    A total is taken as it is (``trace.metadata["cost"]``, then ``outcome.cost``). Otherwise the costs of tool and
    LLM calls are added up, by list price where only tokens are known (extra ``prices``); ``partial`` is true when
    some usage could not be priced. A recorded cost of 0 with used tokens is unknown (``recorded_zero``), unless the
    model is free.

    >>> CostMetric().evaluate({"id": "q1"}, {"metadata": {"cost": 0.0032}}, "done").value
    0.0032
    """

    info = MetricInfo(
        name="cost",
        family="operational",
        summary="What the run cost, in US dollars.",
        direction="lower",
        range=(0.0, None),
        unit="USD",
        inputs=(
            "trace.metadata.cost or outcome.cost or trace tool_call cost or trace llm_call cost "
            "or trace llm_call usage",
        ),
        detail_keys=("cost", "source", "tool_cost", "llm_cost", "partial"),
        backend="recorded",
        trust={"recorded": "recorded", "prices": "list price"},
    )
    name = info.name

    def score_item(self, item: Item) -> MetricResult:
        """Take the recorded total, or add up what is known."""
        recorded = recorded_total(item)
        if recorded.cost is not None:
            turns = item.trace_metadata.get(COST_PARTS) if recorded.place == "outcome.cost" else None
            turns = turns if isinstance(turns, dict) else {}
            is_partial, backend = bool(turns.get("unpriced")), "prices" if turns.get("listed") else "recorded"
            why = f"{recorded.cost:.6g} USD, recorded in {recorded.place}"
            return self._result(recorded.cost, recorded.place, None, None, is_partial, backend, why)
        parts = itemised_cost(item)
        total = (parts.tool_cost or 0.0) + (parts.llm_cost or 0.0)
        zero: dict[str, Any] = {"recorded_zero": True} if recorded.zero_at or parts.zero_at else {}
        unknown = parts.tool_cost is None and parts.llm_cost is None
        # Free tools do not make a run free whose tokens have no price.
        if unknown or (zero and total == 0 and parts.llm_cost is None):
            reason = parts.unpriced or "no cost recorded, nor tool costs or LLM usage to derive it from"
            if zero:
                where = recorded.zero_at or parts.zero_at
                reason = f"{where} is 0 although tokens were used, which is taken as unknown; {reason}"
            return self.unscored(reason, **zero)
        backend = "prices" if parts.listed else "recorded"
        tools, models = amount(parts.tool_cost or 0.0), amount(parts.llm_cost or 0.0)
        why = f"{amount(total)} USD: tools {tools}, models {models}{' at list prices' if parts.listed else ''}"
        is_partial = parts.unpriced is not None
        result = self._result(total, "events", parts.tool_cost, parts.llm_cost, is_partial, backend, why)
        result.detail.update(zero)
        return result

    def _result(
        self,
        total: float,
        source: str | None,
        tool_cost: float | None,
        llm_cost: float | None,
        partial: bool,
        backend: str,
        why: str,
    ) -> MetricResult:
        if partial:
            why += "; not all calls have a price"
        detail = {"cost": total, "source": source, "tool_cost": tool_cost, "llm_cost": llm_cost}
        return MetricResult(self.name, total, {**detail, "partial": partial, "backend": backend, "why": why})


@dataclass(frozen=True)
class TokenUsageMetric(ItemMetric):
    """How many tokens the run used.

    Reads ``trace.metadata["usage"]``, then ``outcome.usage``, else adds up the trace's ``llm_call`` events.

    >>> usage = {"prompt_tokens": 150, "completion_tokens": 75}
    >>> TokenUsageMetric().evaluate({"id": "q1"}, {"metadata": {"usage": usage}}, "done").value
    225.0
    """

    info = MetricInfo(
        name="token_usage",
        family="operational",
        summary="How many tokens the run used.",
        direction="lower",
        range=(0.0, None),
        unit="tokens",
        inputs=("trace.metadata.usage or outcome.usage or trace llm_call usage",),
        detail_keys=("prompt_tokens", "completion_tokens", "total_tokens", "source"),
        backend="recorded",
        trust={"recorded": "recorded"},
    )
    name = info.name

    def score_item(self, item: Item) -> MetricResult:
        """Read the recorded counts."""
        found = find_usage(item)
        if found is None:
            return self.unscored("no token usage recorded in trace.metadata, outcome or llm_call events")
        tokens, source = found
        detail: dict[str, Any] = {
            "prompt_tokens": tokens.prompt,
            "completion_tokens": tokens.completion,
            "total_tokens": tokens.total,
            "source": source,
            "backend": "recorded",
        }
        if tokens.total is None:
            return self.unscored(f"{source} holds no total and not both of prompt and completion tokens", **detail)
        if tokens.prompt is None or tokens.completion is None or tokens.total >= _LARGE_COUNT:
            detail["why"] = f"{amount(tokens.total)} tokens, recorded in {source}"
        else:
            detail["why"] = f"{tokens.total} tokens: {tokens.prompt} prompt, {tokens.completion} completion"
        return MetricResult(self.name, float(tokens.total), detail)

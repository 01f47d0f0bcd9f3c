"""The contract of a metric: what it must offer, and what it may say about itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, ClassVar, Literal, Protocol, get_args, runtime_checkable

from agentunit.core.case import DatasetCase
from agentunit.core.results import INFORMATIONAL_NOTE, MetricResult
from agentunit.core.trace import TraceLog
from agentunit.metrics.inputs import NO_CONTENT, InputProblem, Item

__all__ = [
    "CompositeMetric",
    "ItemMetric",
    "Metric",
    "MetricInfo",
    "MetricResult",
    "describe",
    "describe_error",
    "fresh",
    "has_evaluate",
    "renamed_method",
    "unscored",
]

Direction = Literal["higher", "lower", "none"]
MetadataUse = Literal["answer_key", "shared"]
"""Who reads a field of a case's metadata: graders only, or agents as well."""
_ANSWER_KEY: MetadataUse = "answer_key"
_METADATA = "case.metadata."
Aggregate = Literal["mean", "last"]


@runtime_checkable
class Metric(Protocol):
    """What every metric offers: a name, and a verdict on one case."""

    name: str

    def evaluate(self, case: DatasetCase, trace: TraceLog, outcome: Any) -> MetricResult:
        """Score one case."""
        ...


@dataclass(frozen=True)
class MetricInfo:
    """The facts about a metric, written once: listings, docs, legends and contract tests are made from them.

    ``direction`` says which way is better, ``range`` which values are possible (``None`` is unbounded). ``inputs``
    are the places it cannot do without ("a or b": either is enough). ``metadata_inputs`` names each field of
    ``case.metadata`` that it reads: an ``answer_key`` reaches no agent, what is ``shared`` does; a field that only
    ``inputs`` names is an answer key. ``detail_keys`` are present in every detail.
    ``trust`` says, for each backend, what a score is worth where nobody has measured it ("exact", "descriptive", …);
    measured figures take its place. Scores of the backends in ``informational`` are shown but not gated. ``probes``
    are what must be measured while the agent runs. ``amount`` names a key of the detail and its unit: what tables show
    instead of a score that says little by itself. ``aggregate`` is how a run adds up: the mean over its cases, or
    the last value in dataset order, for a balance that each case changes. ``question`` is what a person is asked who
    labels a case: "yes" is the value 1.0; where it is ``graded``, any share between is an answer, too. ``mean_of``
    says what a mean is of where scores are a model's degrees and not verdicts ("support"): it is not a rate then.
    ``shown_share`` is the share of people's labels that a calibrated judge learned from: these are not evidence of it.
    ``check``: a value of 1.0 on one try is a pass, any other a fail.
    """

    name: str
    family: str
    summary: str
    direction: Direction = "none"
    range: tuple[float | None, float | None] = (None, None)
    unit: str = "score"
    inputs: tuple[str, ...] = ()
    detail_keys: tuple[str, ...] = ()
    backend: str = "custom"
    trust: Mapping[str, str] = field(default_factory=dict)
    informational: frozenset[str] = frozenset()
    extra: str | None = None
    probes: tuple[str, ...] = ()
    amount: tuple[str, str] | None = None
    stateful: bool = False
    version: str = "1"
    metadata_inputs: Mapping[str, MetadataUse] = field(default_factory=dict)
    aggregate: Aggregate = "mean"
    question: str = ""
    graded: bool = False
    mean_of: str = ""
    shown_share: float = 0.0
    check: bool = False

    @property
    def asked(self) -> str:
        """What a rater is asked; of a metric without a question of its own, whether its score should be high."""
        return self.question or f"Should this score be high? {self.summary}".strip()

    def __post_init__(self) -> None:
        if self.aggregate not in get_args(Aggregate):
            raise ValueError(
                f"MetricInfo: aggregate must be one of {', '.join(get_args(Aggregate))}; received {self.aggregate!r}"
            )
        if self.direction not in get_args(Direction):
            raise ValueError(
                f"MetricInfo: direction must be one of {', '.join(get_args(Direction))}; received {self.direction!r}"
            )
        for name in ("inputs", "detail_keys", "informational", "probes"):
            # A text would be taken for the list of its letters.
            if isinstance(value := getattr(self, name), str):
                raise ValueError(f"MetricInfo: {name} must be several texts, such as ({value!r},); received {value!r}")
        for name, use in self.metadata_inputs.items():
            if use not in get_args(MetadataUse):
                raise ValueError(
                    f"MetricInfo: metadata_inputs must say {' or '.join(get_args(MetadataUse))} for each field; "
                    f"received {use!r:.80} for {name!r}"
                )


class ItemMetric(Metric):
    """The base of AgentUnit's own metrics: ``measure`` reads an item whose readings all metrics of a run share.

    A user's metric needs none of this: ``name`` and ``evaluate`` are enough. ``name`` is that of ``info`` unless a
    class has its own. ``score_item`` was called ``judge``; subclasses that define or call it under that name still
    work.
    """

    name: str
    info: ClassVar[MetricInfo]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "info" in vars(cls) and not hasattr(cls, "name"):
            cls.name = cls.info.name
        for kind in cls.__mro__:
            found = vars(kind).get("score_item") or vars(kind).get("judge")
            if found is not None:
                # A method that an ItemMetric above defines is inherited under both names already.
                if kind is cls or ItemMetric not in kind.__mro__:
                    cls.score_item = cls.judge = found  # type: ignore[attr-defined,method-assign]
                return

    def evaluate(self, case: DatasetCase, trace: TraceLog, outcome: Any) -> MetricResult:
        """Score one case. Plain dicts are welcome for all three."""
        return self.measure(Item(case, trace, outcome))

    def measure(self, item: Item) -> MetricResult:
        """Score one item; an input that is there but unusable becomes a result that says so."""
        try:
            return self.score_item(item)
        except InputProblem as problem:
            return self.unscored(str(problem), error=problem)

    @abstractmethod
    def score_item(self, item: Item) -> MetricResult:
        """Read the declared inputs, stop with a reason if one is missing, call formulas, build the result."""

    def provenance(self, result: MetricResult) -> tuple[str, bool]:
        """What produced a result: the backend, and whether its scores are informational only."""
        backend = result.detail.get("backend", self.info.backend)
        return backend, backend in self.info.informational or INFORMATIONAL_NOTE in result.detail

    def unscored(self, reason: str, *, error: Exception | None = None, **known: Any) -> MetricResult:
        """A result without a value: every declared detail key, what is known, and why."""
        detail: dict[str, Any] = dict.fromkeys(self.info.detail_keys)
        detail["backend"] = self.info.backend
        return unscored(self.name, reason, error=error, detail={**detail, **known})


def unscored(
    name: str, reason: str, *, error: BaseException | None = None, detail: Mapping[str, Any] | None = None
) -> MetricResult:
    """A result of ``None`` with its reason; with ``error`` it counts as a failure, not as "does not apply".

    >>> unscored("cost", "no cost was recorded").detail
    {'reason': 'no cost was recorded'}
    """
    full = {**(detail or {}), "reason": reason}
    if error is not None:
        full["error"] = {"type": type(error).__name__, "message": _message(error)}
    return MetricResult(name, None, full)


def why_not_asked(metric: Any, info: MetricInfo, item: Item) -> str | None:
    """Why a metric is not asked about an item; one whose ``case_is_enough`` says so needs no work of an agent."""
    why = item.says_nothing_to(info.inputs)
    if why != NO_CONTENT:
        return why
    is_enough = getattr(metric, "case_is_enough", None)
    return None if is_enough is not None and is_enough(item) else why


def without_content(metric: Any, reason: str = NO_CONTENT) -> MetricResult:
    """The result of any metric on a record that holds nothing, or nothing that may be held against the agent."""
    info = describe(metric)
    backend = getattr(metric, "current_backend", info.backend)
    return unscored(metric.name, reason, detail={**dict.fromkeys(info.detail_keys), "backend": backend})


def describe_error(error: BaseException) -> str:
    """An exception in one line: its type, and its message if it has one that can be printed."""
    message = _message(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # an exception whose message fails still has a type
        return ""


def has_evaluate(metric: Any) -> bool:
    """Whether a metric, or the class of one, has an ``evaluate`` of its own, not only the empty one of the protocol."""
    evaluate = getattr(metric, "evaluate", None)
    return callable(evaluate) and getattr(evaluate, "__func__", evaluate) is not Metric.evaluate


def renamed_method(metric: Any) -> str:
    """The hint for a metric written for version 0.3, which has only ``compute``; empty for any other.

    >>> class Old:
    ...     def compute(self, case, outcome): ...
    >>> renamed_method(Old())
    ' (compute() is now called evaluate(case, trace, outcome): rename the method)'
    """
    if has_evaluate(metric) or not callable(getattr(metric, "compute", None)):
        return ""
    return " (compute() is now called evaluate(case, trace, outcome): rename the method)"


def describe(metric: Any) -> MetricInfo:
    """A metric's own info, or a minimal one for a metric that has only ``name`` and ``evaluate``.

    An ``info`` that cannot be read raises ``TypeError`` with the metric's name.
    """
    try:
        # Not getattr with a default: it would take an AttributeError inside a property for "has no info".
        info = metric.info if hasattr(type(metric), "info") or "info" in getattr(metric, "__dict__", ()) else None
    except Exception as error:
        raise TypeError(f"metric {_name_of(metric)!r}: its info cannot be read: {describe_error(error)}") from error
    if isinstance(info, MetricInfo):
        return info
    if info is not None:
        raise TypeError(f"metric {_name_of(metric)!r}: its info must be a MetricInfo; received {type(info).__name__}")
    documentation = (getattr(metric, "__doc__", None) or "").strip().splitlines()
    return MetricInfo(
        name=_name_of(metric),
        family="custom",
        summary=documentation[0] if documentation else "",
        stateful=bool(getattr(metric, "stateful", False)),
        version=str(getattr(metric, "version", "1")),
    )


def _name_of(metric: Any) -> str:
    return str(getattr(metric, "name", type(metric).__name__))


def metadata_inputs(metric: Any) -> dict[str, MetadataUse] | None:
    """Who reads which field of ``case.metadata``, for a metric as it was made; ``None`` when it does not say.

    A metric that was given another name looks for its answer key under that name.

    >>> from agentunit.metrics.assertions import ContainsMetric
    >>> metadata_inputs(ContainsMetric(name="city"))
    {'contains': 'answer_key', 'city': 'answer_key'}
    """
    if isinstance(metric, CompositeMetric):
        parts = [metadata_inputs(part) for part in metric.metrics]
        if None in parts:
            return None
        return answer_keys_first([part for part in parts if part is not None])
    info = describe(metric)
    found = info_metadata_inputs(info)
    if found is not None and metric.name not in found and info.name in found:
        found[metric.name] = found[info.name]
    return found


def info_metadata_inputs(info: MetricInfo) -> dict[str, MetadataUse] | None:
    """The same for what a metric says about itself."""
    if not info.inputs and not info.metadata_inputs:
        return None
    named = (place for each in info.inputs for place in each.split(" or "))
    keys = [place.strip().removeprefix(_METADATA) for place in named if place.strip().startswith(_METADATA)]
    return {**dict.fromkeys(keys, _ANSWER_KEY), **info.metadata_inputs}


def answer_keys_first(uses: Iterable[Mapping[str, MetadataUse]]) -> dict[str, MetadataUse]:
    """Several metrics' uses of the metadata as one: a field that is an answer key of one is one for all."""
    merged: dict[str, MetadataUse] = {}
    for each in uses:
        for name, use in each.items():
            merged[name] = use if merged.get(name) != _ANSWER_KEY else _ANSWER_KEY
    return merged


class CompositeMetric(ItemMetric):
    """The mean of several metrics' values, weighted if asked; metrics without a value do not count.

    ``detail`` is ``{metric_name: detail}``. With no value at all the result is ``None``, and only then the detail also
    has a ``reason``, made of the parts' reasons.

    >>> from agentunit.metrics.builtin import AnswerCorrectnessMetric, ToolSuccessMetric
    >>> both = CompositeMetric([AnswerCorrectnessMetric(), ToolSuccessMetric()])
    >>> both.evaluate({"id": "q1", "expected_output": "4"}, None, "4").value
    1.0
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        *,
        weights: Mapping[str, float] | None = None,
        name: str = "composite",
    ) -> None:
        self.metrics = tuple(metrics)
        self.name = name
        for metric in self.metrics:
            if isinstance(metric, type) or not isinstance(metric, Metric) or not has_evaluate(metric):
                raise TypeError(
                    "CompositeMetric: metrics must have a 'name' and an 'evaluate' method; "
                    f"received {metric!r:.80}{renamed_method(metric)}"
                )
        names = [metric.name for metric in self.metrics]
        if not names:
            raise ValueError("CompositeMetric: metrics must hold at least one metric; received none")
        repeated = sorted({each for each in names if names.count(each) > 1})
        if repeated:
            raise ValueError(f"CompositeMetric: metrics must have different names; received {repeated[0]!r} twice")
        self.weights = dict.fromkeys(names, 1.0)
        for each, weight in (weights or {}).items():
            if each not in self.weights:
                raise ValueError(
                    f"CompositeMetric: weights must name its metrics ({', '.join(names)}); received {each!r}"
                )
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < inf:
                raise ValueError(
                    f"CompositeMetric: weights must be finite and 0 or more; received {weight!r} for {each!r}"
                )
            self.weights[each] = float(weight)
        if not sum(self.weights.values()):
            raise ValueError("CompositeMetric: weights must not all be 0; received only zeros")
        infos = [describe(metric) for metric in self.metrics]
        self.info = MetricInfo(  # type: ignore[misc]  # a composite's facts depend on its parts
            name=name,
            family="composite",
            summary=f"Mean of {', '.join(names)}.",
            direction=infos[0].direction if len({info.direction for info in infos}) == 1 else "none",
            range=infos[0].range if len({info.range for info in infos}) == 1 else (None, None),
            inputs=(),
            detail_keys=tuple(names),
            backend="composite",
            probes=tuple(dict.fromkeys(probe for info in infos for probe in info.probes)),
            stateful=any(info.stateful for info in infos),
            version="+".join(info.version for info in infos),
            aggregate="last" if all(info.aggregate == "last" for info in infos) else "mean",
        )

    @property
    def asks_service(self) -> bool:
        """Whether one of its parts sends what it scores to a service."""
        return any(getattr(metric, "asks_service", False) for metric in self.metrics)

    def fresh(self) -> CompositeMetric:
        """The same composite of parts that have seen no case."""
        return CompositeMetric([fresh(metric) for metric in self.metrics], weights=self.weights, name=self.name)

    @property
    def starts_batches(self) -> bool:
        """Whether one of its parts can be left to a service while the engine goes on."""
        return any(_starts(metric) for metric in self.metrics)

    def start_batch(self, items: Sequence[Item]) -> StartedComposite:
        """Start the parts that can be left to a service; the others are scored when these are done."""
        parts: Sequence[Any] = self.metrics
        return StartedComposite(self, items, {part.name: part.start_batch(items) for part in parts if _starts(part)})

    def score_item(self, item: Item) -> MetricResult:
        """Average what the parts say."""
        return self.averaged({metric.name: evaluate_item(metric, item) for metric in self.metrics})

    def averaged(self, results: Mapping[str, MetricResult]) -> MetricResult:
        """The result of its parts' results."""
        detail = {name: result.detail for name, result in results.items()}
        scored = {name: result.value for name, result in results.items() if result.value is not None}
        for name, value in scored.items():
            if not isfinite(value):
                raise ValueError(f"CompositeMetric: every value must be finite; received {value!r} of {name!r}")
        weight = sum(self.weights[name] for name in scored)
        if not weight:
            return unscored(self.name, self._reason(results, scored), detail=detail)
        mean = sum(self.weights[name] * value for name, value in scored.items()) / weight
        result = CompositeResult(self.name, mean, detail)
        result.parts = [provenance(metric, results[metric.name]) for metric in self.metrics if metric.name in scored]
        return result

    def _reason(self, results: Mapping[str, MetricResult], scored: Mapping[str, float]) -> str:
        """Why there is no mean: what each part without a value says, and which parts weigh nothing."""
        parts = [
            f"{name}: {'has weight 0' if name in scored else result.detail.get('reason') or 'no reason recorded'}"
            for name, result in results.items()
        ]
        return f"no part has a value that counts ({'; '.join(parts)})"

    def provenance(self, result: MetricResult) -> tuple[str, bool]:
        """The backends its scored parts used; informational as soon as one of them is."""
        parts = result.parts if isinstance(result, CompositeResult) else []
        backends = sorted({backend for backend, _ in parts})
        return "+".join(backends) or self.info.backend, any(informational for _, informational in parts)


class StartedComposite:
    """A batch of a composite of which some parts are under way. A case that fails is its exception."""

    def __init__(self, composite: CompositeMetric, items: Sequence[Item], started: Mapping[str, Any]) -> None:
        self._composite = composite
        self._items = items
        self._started = started

    def done(self) -> bool:
        """Whether all parts under way are done."""
        return all(batch.done() for batch in self._started.values())

    def cancel(self) -> None:
        """Nobody waits any more."""
        for batch in self._started.values():
            batch.cancel()

    def result(self) -> list[MetricResult | Exception]:
        """Wait for the parts and average them."""
        ready = {name: batch.result() for name, batch in self._started.items()}
        return [self._averaged(ready, position) for position in range(len(self._items))]

    def _averaged(self, ready: Mapping[str, Sequence[MetricResult]], position: int) -> MetricResult | Exception:
        item = self._items[position]
        try:
            return self._composite.averaged(
                {
                    metric.name: ready[metric.name][position] if metric.name in ready else evaluate_item(metric, item)
                    for metric in self._composite.metrics
                }
            )
        except Exception as error:  # noqa: BLE001  # the border of a fault: it fails its case alone
            return error


def _starts(metric: Any) -> bool:
    return callable(getattr(metric, "start_batch", None)) and bool(getattr(metric, "starts_batches", True))


class CompositeResult(MetricResult):
    """A composite's result, which remembers what its scored parts came from: its detail holds only their details."""

    __slots__ = ("parts",)
    parts: list[tuple[str, bool]]


def provenance(metric: Any, result: MetricResult) -> tuple[str, bool]:
    """What produced a result of any metric: the backend, and whether its scores are informational only."""
    if isinstance(metric, ItemMetric):
        return metric.provenance(result)
    info = describe(metric)
    backend = str(result.detail.get("backend", info.backend))
    return backend, backend in info.informational or INFORMATIONAL_NOTE in result.detail


def fresh(metric: Any) -> Any:
    """The metric as a new run needs it: one that keeps state may offer ``fresh()``, a copy that has seen no case."""
    make = getattr(metric, "fresh", None)
    return make() if describe(metric).stateful and callable(make) else metric


def evaluate_item(metric: Any, item: Item) -> MetricResult:
    """Score an item with any metric, sharing the item's readings where the metric can use them."""
    # One look is enough for most items: describing a metric that has no info takes longer than scoring with it.
    if not item.is_open and (why := why_not_asked(metric, describe(metric), item)) is not None:
        return without_content(metric, why)
    if isinstance(metric, ItemMetric):
        return metric.measure(item)
    try:
        result: MetricResult = metric.evaluate(item.case, item.trace, item.outcome)
    except TypeError as error:
        reason = _missing_timestamps(error, item)
        if reason is None:
            raise
        return unscored(metric.name, reason)
    return result


def _missing_timestamps(error: TypeError, item: Item) -> str | None:
    """The reason when code that reads timestamps of events met one that was not recorded; ``None`` for other errors.

    A user's metric subtracts timestamps without a look at them, as the catalog's own example does. That a trace has
    none is a missing input, not a fault of the metric.
    """
    if "NoneType" not in _message(error):
        return None
    events = item.trace.events or ()
    missing = sum(getattr(event, "timestamp", 0) is None for event in events)
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if not missing or frame is None or "timestamp" not in frame.tb_frame.f_code.co_names:
        return None
    return f"no timestamps: {missing} of the trace's {len(events)} events have none ({describe_error(error)})"

"""What trace files hold, which metrics can score them, and what would have to change for the rest."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from msgspec import Struct, field, structs

from agentunit.addons.review._remedies import Origin, Remedy, lacks_of, remedies_for
from agentunit.addons.review._trace_settings import WORDS, Lack, LackCause
from agentunit.backends.quality import LEXICAL
from agentunit.core.records import Record
from agentunit.core.results import NO_REASON, CaseScores, InputError, MetricResult, Score, reason_of
from agentunit.engine.scoring.records import Run
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import registry
from agentunit.metrics.usage import prices_installed
from agentunit.multimodal.metrics import has_media
from agentunit.reports.reported_run import Mask
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.reading import TraceFiles
from agentunit.traces.spans import ReadingNotes

WatchScores = Callable[[Iterable[CaseScores]], Iterator[CaseScores]]

_MOST_KINDS_OF_CASES = 10_000
_MOST_SCOPES = 1_000
_ERRORS_KEPT = 20
_MOST_REASONS, _OTHER_REASONS = 100, "other reasons"
# Alike are cases of the same origin that lack the same. So many of them are all tried, and so are further ones up to
# so many and so many of their events; then one in ten, and after so many of these one in a hundred, and so on.
_ALL_TRIED, _MOST_TRIED, _EVENTS_TRIED, _ONE_IN = 20, 200, 10_000, 10
_ASKS_JUDGE = "it asks a judge, and nothing is sent anywhere here"
_NO_MEDIA = "no media: case.metadata names no image, audio or video, no captions and no transcript"
_EMPTY = "the answer is empty"
_UNTRIED = "a metric of another package is not tried here: it might send something; agentunit score -m {} does"

# The places of MetricInfo.inputs, and what keeps them empty.
_NEEDS: dict[str, tuple[Lack, ...]] = {
    "outcome.output": ("answer",),
    "case.context": ("documents", "document_texts"),
    "trace retrieval": ("documents", "document_texts"),
    "case.expected_output": ("expected",),
    "case.metadata.expected_tool_calls": ("expected_tools",),
    "trace tool_call": ("tool_calls",),
    "a check": ("success",),
    "case.metadata.contains": ("pattern",),
    "case.metadata.regex": ("pattern",),
    "case.metadata.json_schema": ("pattern",),
    "trace llm_call usage": ("model_calls", "tokens"),
    "trace llm_call": ("model_calls", "tokens", "model_names"),
    "trace.metadata.cost": ("cost", "model_names"),
    "trace timestamps": ("times",),
    "trace message": ("messages",),
    "trace message agent": ("agent_names", "messages"),
    "trace message to_agent": ("agent_names",),
    "trace.interactions": ("agent_names",),
    "trace tool_call result": ("tool_results",),
}
# Without the first, the others cannot be had: they are no advice of their own.
_FOLLOWS: tuple[tuple[Lack, frozenset[Lack]], ...] = (
    ("model_calls", frozenset(("tokens", "model_names", "cost"))),
    ("tokens", frozenset(("model_names", "cost"))),
    ("model_names", frozenset(("cost",))),
)
_PART_OF: dict[Lack, Lack] = {
    "tool_arguments": "tool_calls",
    "tool_results": "tool_calls",
    "messages": "model_calls",
    "document_texts": "documents",
}


class MissingReason(Struct):
    """Why a metric gave no value, in its own words, and for how many cases."""

    reason: str
    n_cases: int


class MetricHealth(Struct):
    """One metric on these files. ``remedies`` are the numbers of those that would help it."""

    metric: str
    n_cases: int
    n_scored: int
    reasons: list[MissingReason]
    remedies: list[int] = field(default_factory=list)

    @property
    def asks_judge(self) -> bool:
        """Whether a judge would have to be asked."""
        return [each.reason for each in self.reasons] == [_ASKS_JUDGE]


class FoundRemedy(Struct):
    """One thing to do: what it adds, for how many cases, whose instrumentation it is, and which metrics wait for it."""

    number: int
    adds: list[str]
    n_cases: int
    cause: LackCause
    origins: list[str]
    switch: str
    why: str
    metrics: list[str]
    warns: bool = False


class TraceHealth(Struct):
    """What the files hold. ``holds`` counts, for each thing that a case may say, the cases that say it.

    Metrics are tried on ``n_tried`` cases; each other counts as the last one tried that is like it.
    """

    n_files: int
    n_spans: int
    n_traces: int
    n_cases: int
    n_tried: int
    formats: dict[str, int]
    scopes: dict[str, int]
    kinds: dict[str, int]
    unplaced: dict[str, int]
    problems: dict[str, int]
    not_understood: dict[str, int]
    n_errors: int
    errors: list[str]
    holds: dict[str, int]
    metrics: list[MetricHealth]
    remedies: list[FoundRemedy]


def masked_health(health: TraceHealth, mask: Mask) -> TraceHealth:
    """The same with personal data masked in names and reasons, which are data or quote it."""

    def counts(named: dict[str, int]) -> dict[str, int]:
        masked: Counter[str] = Counter()
        for name, count in named.items():
            masked[mask.name(name)] += count
        return dict(masked)

    metrics = [
        structs.replace(row, reasons=[MissingReason(mask.name(each.reason), each.n_cases) for each in row.reasons])
        for row in health.metrics
    ]
    remedies = [structs.replace(each, origins=[mask.name(name) for name in each.origins]) for each in health.remedies]
    return structs.replace(
        health,
        scopes=counts(health.scopes),
        kinds=counts(health.kinds),
        unplaced=counts(health.unplaced),
        problems=counts(health.problems),
        not_understood=counts(health.not_understood),
        errors=[mask.name(error) for error in health.errors],
        metrics=metrics,
        remedies=remedies,
    )


@dataclass(frozen=True)
class _AskedOtherwise:
    """A metric that is asked in another way than a run asks it."""

    metric: Any

    @property
    def name(self) -> str:
        return str(self.metric.name)

    @property
    def info(self) -> MetricInfo:
        return describe(self.metric)


@dataclass(frozen=True)
class _MissingInput(_AskedOtherwise):
    """A metric that may ask a model: only whether it could score a case, for which none is loaded."""

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        """1.0 where the metric has all that it needs; else why it has not."""
        reason = self.missing(Item(case, trace, outcome))
        return MetricResult(self.name, None, {"reason": reason}) if reason else MetricResult(self.name, 1.0, {})

    def missing(self, item: Item) -> str | None:
        """Why an item cannot be scored; ``None`` when it can."""
        reason: str | None = self.metric.missing(item)
        return reason


@dataclass(frozen=True)
class _Readiness(_MissingInput):
    """A quality metric as a run has it, with the backend that is in use here, on which depends which evidence counts.

    No model and no judge is asked.
    """

    def case_is_enough(self, item: Item) -> bool:
        """Whether the metric needs no work of an agent."""
        is_enough = getattr(self.metric, "case_is_enough", None)
        return is_enough is not None and bool(is_enough(item))

    def missing(self, item: Item) -> str | None:
        """Why an item cannot be scored; ``None`` when it can."""
        reason = super().missing(item)
        return _EMPTY if reason is None and not (item.answer or "").strip() and self._reads_answers(item) else reason

    def _reads_answers(self, item: Item) -> bool:
        """Whether it judges what the answer says; the lexical fallback compares any two texts."""
        return self.metric.current_backend != LEXICAL and not self.case_is_enough(item)


@dataclass(frozen=True)
class _OfMedia(_AskedOtherwise):
    """A metric of images, recordings or videos, asked only about cases that have one; most score any text."""

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        """What the metric says, or that there is no media."""
        if not has_media(Item(case, trace, outcome).case_metadata):
            return MetricResult(self.name, None, {"reason": _NO_MEDIA})
        if hasattr(self.metric, "missing"):
            return _MissingInput(self.metric).evaluate(case, trace, outcome)
        result: MetricResult = self.metric.evaluate(case, trace, outcome)
        return result


class _Alike(Struct, frozen=True):
    """What cases that are alike share: where they come from, and what they lack."""

    origin: Origin
    lacks: frozenset[Lack]


class _KindOfCase(_Alike, frozen=True):
    """Cases that are alike, and the metrics that cannot score them."""

    unscored: frozenset[str]


def examine(files: TraceFiles, watch: WatchScores = iter) -> TraceHealth:
    """Read traces to their end and try every metric on them. No record is kept, and nothing is sent anywhere.

    Of many cases that are alike some are tried, and no model is loaded. ``watch`` is handed the cases as they pass, for
    progress.
    """
    tried, untried = _metrics()
    passing = _Passing(files)
    run = Run(passing, tried, aggregated=False)
    found = _FoundLack()
    n_tried = 0
    for case in watch(run):
        found.take_untried(passing.waiting)
        found.take(passing.waiting.popleft().alike, {name: _why_unscored(each) for name, each in case.scores.items()})
        n_tried += 1
    found.take_untried(passing.waiting)
    n_cases = found.n_cases
    rows = [found.row(metric.name) for metric in tried]
    remedies = _remedies(found.kinds, {metric.name: _needs(describe(metric)) for metric in tried}, files.notes)
    for row in rows:
        row.remedies = [remedy.number for remedy in remedies if row.metric in remedy.metrics]
    rows += [MetricHealth(name, n_cases, 0, [MissingReason(why, n_cases)]) for name, why in untried]
    order = {name: place for place, name in enumerate(registry.names())}
    rows.sort(key=lambda row: order.get(row.metric, len(order)))
    notes = files.notes
    return TraceHealth(
        n_files=notes.n_files,
        n_spans=notes.n_spans,
        n_traces=notes.n_traces,
        n_cases=n_cases,
        n_tried=n_tried,
        formats=dict(notes.formats.most_common()),
        scopes=dict(notes.scopes.most_common()),
        kinds=dict(notes.kinds.most_common()),
        unplaced=dict(notes.unplaced.most_common()),
        problems=dict(notes.problems.most_common()),
        not_understood=dict(notes.not_understood.most_common()),
        n_errors=run.n_input_errors,
        errors=[str(error) for error in run.input_errors[:_ERRORS_KEPT]],
        holds=_holds(found.kinds),
        metrics=rows,
        remedies=remedies,
    )


def _why_unscored(score: Score) -> str | None:
    """Why a metric gave no value; ``None`` where it gave one."""
    return None if score.value is not None else reason_of(score.result.detail) or NO_REASON


class _Waiting(NamedTuple):
    """A case whose scores are not there yet, or that is not tried."""

    alike: _Alike
    is_tried: bool


class _FoundLack:
    """What was found out about the cases so far: their kinds, and the reasons of each metric."""

    def __init__(self) -> None:
        self.n_cases = 0
        self.kinds: Counter[_KindOfCase] = Counter()
        self._reasons: dict[str, Counter[str]] = {}
        self._last: dict[_Alike, Mapping[str, str | None]] = {}

    def take(self, alike: _Alike, reasons: Mapping[str, str | None], n_alike: int = 1) -> None:
        """Count cases that are alike by why each metric gave no value."""
        self.n_cases += n_alike
        if alike in self._last or len(self._last) < _MOST_KINDS_OF_CASES:
            self._last[alike] = reasons
        for metric, reason in reasons.items():
            if reason is not None:
                counts = self._reasons.setdefault(metric, Counter())
                counts[reason if reason in counts or len(counts) < _MOST_REASONS else _OTHER_REASONS] += n_alike
        origin, lacks = alike.origin, alike.lacks
        kind = _KindOfCase(origin, lacks, frozenset(metric for metric, reason in reasons.items() if reason is not None))
        if kind not in self.kinds and len(self.kinds) >= _MOST_KINDS_OF_CASES:
            kind = _KindOfCase(Origin(origin.kind, ()), lacks, kind.unscored)
        self.kinds[kind] += n_alike

    def take_untried(self, waiting: deque[_Waiting]) -> None:
        """Count the cases that come before the next one tried as the last one like them."""
        untried: Counter[_Alike] = Counter()
        while waiting and not waiting[0].is_tried:
            untried[waiting.popleft().alike] += 1
        for alike, n_alike in untried.items():
            self.take(alike, self._last[alike], n_alike)

    def row(self, metric: str) -> MetricHealth:
        """What was found out about a metric."""
        counts = self._reasons.get(metric, Counter())
        reasons = [MissingReason(reason, n_cases) for reason, n_cases in counts.most_common()]
        return MetricHealth(metric, self.n_cases, self.n_cases - counts.total(), reasons)


class _Passing:
    """Records on their way to the metrics; what each comes from and lacks waits until its scores are there."""

    def __init__(self, files: TraceFiles) -> None:
        self.waiting: deque[_Waiting] = deque()
        self._n_alike: Counter[_Alike] = Counter()
        self._n_events: Counter[_Alike] = Counter()
        self._files = files
        self._scopes: dict[str, int] = {}
        self._formats: dict[str, int] = {}
        self._format = NATIVE_FORMAT

    def __iter__(self) -> Iterator[Record | InputError]:
        for found in self._files:
            if isinstance(found, InputError):
                yield found
                continue
            alike = _Alike(self._origin(), lacks_of(found))
            is_tried = self._is_tried(alike)
            self.waiting.append(_Waiting(alike, is_tried))
            if is_tried:
                self._n_events[alike] += len(found.trace.events)
                yield found

    def _is_tried(self, alike: _Alike) -> bool:
        if alike not in self._n_alike and len(self._n_alike) >= _MOST_KINDS_OF_CASES:
            return True
        n_before = self._n_alike[alike]
        self._n_alike[alike] += 1
        if n_before < _ALL_TRIED or (n_before < _MOST_TRIED and self._n_events[alike] < _EVENTS_TRIED):
            return True
        step = _ONE_IN
        while n_before >= step * _MOST_TRIED:
            step *= _ONE_IN
        return n_before % step == 0

    def _origin(self) -> Origin:
        """The notes grow as records are made: what was added since the last one belongs to this one."""
        notes = self._files.notes
        if len(notes.scopes) > _MOST_SCOPES:
            return Origin("spans", ())
        added = _grown(notes.scopes, self._scopes)
        if added:
            self._scopes = dict(notes.scopes)
            return Origin("spans", tuple(sorted(added)))
        for name in _grown(notes.formats, self._formats):
            self._format = name
        self._formats = dict(notes.formats)
        return Origin("records" if self._format == NATIVE_FORMAT else "log", (self._format,))


def _grown(now: Counter[str], before: dict[str, int]) -> list[str]:
    return [name for name, count in now.items() if count != before.get(name, 0)]


def _metrics() -> tuple[list[Any], list[tuple[str, str]]]:
    """The metrics to try, and those that are not with the reason. A judge may be set up; it is not asked here."""
    tried: list[Any] = []
    untried: list[tuple[str, str]] = []
    for name in registry.names():
        try:
            metric: Any = registry.create(name)
        except Exception as error:  # noqa: BLE001  # a broken third-party package must not stop the rest
            untried.append((name, f"{type(error).__name__}: {error}"))
            continue
        if not type(metric).__module__.startswith("agentunit."):
            untried.append((name, _UNTRIED.format(name)))
        elif describe(metric).backend == "lexical":
            tried.append(_Readiness(metric.unasked()))
        elif getattr(metric, "asks_service", False):
            untried.append((name, _ASKS_JUDGE))
        elif describe(metric).family == "multimodal":
            # Words alone tell as well whether a caption can be scored.
            tried.append(_OfMedia(replace(metric, use_semantic=False) if hasattr(metric, "use_semantic") else metric))
        else:
            tried.append(_MissingInput(metric) if hasattr(metric, "missing") else metric)
    return tried, untried


def _needs(info: MetricInfo) -> frozenset[Lack]:
    places = (place.strip() for group in info.inputs for place in group.split(" or "))
    return frozenset(lack for place in places for lack in _NEEDS.get(place, ()))


def _holds(kinds: Counter[_KindOfCase]) -> dict[str, int]:
    counts = dict.fromkeys(WORDS.values(), 0)
    for kind, n_cases in kinds.items():
        for lack, word in WORDS.items():
            if lack not in kind.lacks and _PART_OF.get(lack) not in kind.lacks:
                counts[word] += n_cases
    return counts


def _remedies(kinds: Counter[_KindOfCase], needs: dict[str, frozenset[Lack]], notes: ReadingNotes) -> list[FoundRemedy]:
    found: dict[Remedy, FoundRemedy] = {}
    adds_of: dict[Remedy, set[Lack]] = {}
    for kind, n_cases in kinds.items():
        blocked = {name: _blocking(kind.lacks & needs[name]) for name in kind.unscored}
        blocking = frozenset().union(*blocked.values())
        chosen = remedies_for(kind.origin, kind.lacks, blocking, all_scopes=notes.scopes, prices=prices_installed())
        for remedy, adds in chosen.items():
            entry = found.setdefault(
                remedy, FoundRemedy(0, [], 0, remedy.cause, [], remedy.switch, remedy.why, [], remedy.warns)
            )
            entry.n_cases += n_cases
            adds_of.setdefault(remedy, set()).update(adds)
            entry.origins += [name for name in kind.origin.names if name and name not in entry.origins]
            helped = [name for name, lacks in blocked.items() if not lacks.isdisjoint(adds)]
            entry.metrics = [name for name in needs if name in helped or name in entry.metrics]
    for remedy, entry in found.items():
        entry.adds = [word for lack, word in WORDS.items() if lack in adds_of[remedy]]
    ordered = sorted(
        found.values(), key=lambda each: (not each.warns, not each.metrics, each.cause == "unknown", -each.n_cases)
    )
    for number, entry in enumerate(ordered, 1):
        entry.number = number
    return ordered


def _blocking(lacks: frozenset[Lack]) -> frozenset[Lack]:
    for first, others in _FOLLOWS:
        if first in lacks:
            return lacks - others
    return lacks

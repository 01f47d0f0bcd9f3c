"""What trace files hold, which metrics can score them, and what would have to change for the rest."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, field

from agentunit.backends.prices import prices_installed
from agentunit.backends.quality import LEXICAL
from agentunit.core.records import Record
from agentunit.core.results import CaseScores, InputError, MetricResult
from agentunit.engine.scoring import score
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import registry
from agentunit.multimodal.coherence import has_media
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.reading import TraceFiles
from agentunit.traces.remedies import Origin, Remedy, lacks_of, remedies_for
from agentunit.traces.settings import WORDS, Cause, Lack
from agentunit.traces.spans import ReadingNotes

Watch = Callable[[Iterable[CaseScores]], Iterator[CaseScores]]

_MOST_KINDS_OF_CASES = 10_000
_MOST_SCOPES = 1_000
_ERRORS_KEPT = 20
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


class Reason(Struct):
    """Why a metric gave no value, in its own words, and for how many cases."""

    reason: str
    n_cases: int


class MetricHealth(Struct):
    """One metric on these files. ``remedies`` are the numbers of those that would help it."""

    metric: str
    n_cases: int
    n_scored: int
    reasons: list[Reason]
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
    cause: Cause
    origins: list[str]
    switch: str
    why: str
    metrics: list[str]
    warns: bool = False


class TraceHealth(Struct):
    """What the files hold. ``holds`` counts, for each thing that a case may say, the cases that say it."""

    n_files: int
    n_spans: int
    n_traces: int
    n_cases: int
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


@dataclass(frozen=True)
class _Asked:
    """A metric that is asked in another way than a run asks it."""

    metric: Any

    @property
    def name(self) -> str:
        return str(self.metric.name)

    @property
    def info(self) -> MetricInfo:
        return describe(self.metric)


@dataclass(frozen=True)
class _Readiness(_Asked):
    """A quality metric as a run has it, with the backend that is in use here: only whether it could score a case.

    Which evidence counts depends on the backend; no model and no judge is asked.
    """

    def case_is_enough(self, item: Item) -> bool:
        """Whether the metric needs no work of an agent."""
        is_enough = getattr(self.metric, "case_is_enough", None)
        return is_enough is not None and bool(is_enough(item))

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        """1.0 where the metric has all that it needs; else why it has not."""
        item = Item(case, trace, outcome)
        reason = self.metric.missing(item)
        if reason is None and not (item.answer or "").strip() and self._reads_answers(item):
            reason = _EMPTY
        return MetricResult(self.name, None, {"reason": reason}) if reason else MetricResult(self.name, 1.0, {})

    def _reads_answers(self, item: Item) -> bool:
        """Whether it judges what the answer says; the lexical fallback compares any two texts."""
        return self.metric.current_backend != LEXICAL and not self.case_is_enough(item)


@dataclass(frozen=True)
class _OfMedia(_Asked):
    """A metric of images, recordings or videos, asked only about cases that have one; most score any text."""

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        """What the metric says, or that there is no media."""
        if not has_media(Item(case, trace, outcome).case_metadata):
            return MetricResult(self.name, None, {"reason": _NO_MEDIA})
        result: MetricResult = self.metric.evaluate(case, trace, outcome)
        return result


class _KindOfCase(Struct, frozen=True):
    """Cases that are alike: where they come from, what they lack, which metrics cannot score them."""

    origin: Origin
    lacks: frozenset[Lack]
    unscored: frozenset[str]


def examine(files: TraceFiles, watch: Watch = iter) -> TraceHealth:
    """Read traces to their end and try every metric on them. No record is kept, and nothing is sent anywhere.

    ``watch`` is handed the cases as they pass, for progress.
    """
    tried, untried = _metrics()
    passing = _Passing(files)
    run = score(passing, tried)
    kinds: Counter[_KindOfCase] = Counter()
    for case in watch(run):
        origin, lacks = passing.waiting.popleft()
        unscored = frozenset(name for name, each in case.scores.items() if each.value is None)
        kind = _KindOfCase(origin, lacks, unscored)
        if kind not in kinds and len(kinds) >= _MOST_KINDS_OF_CASES:
            kind = _KindOfCase(Origin(origin.kind, ()), lacks, unscored)
        kinds[kind] += 1
    summary = run.summary()
    rows = [_row(metric.name, summary.n_cases, summary.unscored) for metric in tried]
    remedies = _remedies(kinds, {metric.name: _needs(describe(metric)) for metric in tried}, files.notes)
    for row in rows:
        row.remedies = [remedy.number for remedy in remedies if row.metric in remedy.metrics]
    rows += [MetricHealth(name, summary.n_cases, 0, [Reason(why, summary.n_cases)]) for name, why in untried]
    order = {name: place for place, name in enumerate(registry.names())}
    rows.sort(key=lambda row: order.get(row.metric, len(order)))
    notes = files.notes
    return TraceHealth(
        n_files=notes.n_files,
        n_spans=notes.n_spans,
        n_traces=notes.n_traces,
        n_cases=summary.n_cases,
        formats=dict(notes.formats.most_common()),
        scopes=dict(notes.scopes.most_common()),
        kinds=dict(notes.kinds.most_common()),
        unplaced=dict(notes.unplaced.most_common()),
        problems=dict(notes.problems.most_common()),
        not_understood=dict(notes.not_understood.most_common()),
        n_errors=summary.n_input_errors,
        errors=[str(error) for error in summary.input_errors[:_ERRORS_KEPT]],
        holds=_holds(kinds),
        metrics=rows,
        remedies=remedies,
    )


class _Passing:
    """Records on their way to the metrics; what each comes from and lacks waits until its scores are there."""

    def __init__(self, files: TraceFiles) -> None:
        self.waiting: deque[tuple[Origin, frozenset[Lack]]] = deque()
        self._files = files
        self._scopes: dict[str, int] = {}
        self._formats: dict[str, int] = {}
        self._format = NATIVE_FORMAT

    def __iter__(self) -> Iterator[Record | InputError]:
        for found in self._files:
            if isinstance(found, Record):
                self.waiting.append((self._origin(), lacks_of(found)))
            yield found

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
            tried.append(_Readiness(metric))
        elif getattr(metric, "asks_service", False):
            untried.append((name, _ASKS_JUDGE))
        elif describe(metric).family == "multimodal":
            tried.append(_OfMedia(metric))
        else:
            tried.append(metric)
    return tried, untried


def _row(name: str, n_cases: int, unscored: Iterable[Any]) -> MetricHealth:
    reasons = [Reason(each.reason, each.n_cases) for each in unscored if each.metric == name]
    return MetricHealth(name, n_cases, n_cases - sum(each.n_cases for each in reasons), reasons)


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

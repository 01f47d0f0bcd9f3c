"""What comparing a run with a baseline finds: by case, by metric, and as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal

from agentunit.core.results import JudgeSpend, PanelSummary
from agentunit.metrics.base import Direction
from agentunit.store.runs import RunHeader

_CASES_NAMED = 200
_ROUNDING = 1e-12

ToolChangeKind = Literal[
    "offered only now",
    "no longer offered",
    "called only now",
    "no longer called",
    "schema",
    "version",
    "server",
    "server version",
]
CompareVerdict = Literal["regression", "no worse", "better", "no change", "cannot tell", "not compared", "shown only"]
CaseKind = Literal["newly failing", "worse", "fixed", "better", "other answer", "unchanged"]
LISTED_KINDS: tuple[CaseKind, ...] = ("newly failing", "worse", "fixed", "better", "other answer")
"""The kinds of cases that reports list, in this order. Those that did not change are counted."""

TestedBy = Literal["gates", "named", "all", "all beside gates"]


@dataclass(frozen=True)
class CaseChange:
    """One case in both runs."""

    case_id: str
    baseline: float
    candidate: float


@dataclass(frozen=True)
class ScoreChange:
    """How one metric changed on a case; a case's repeats are averaged."""

    metric: str
    baseline: float
    candidate: float
    unit: str = "score"


@dataclass(frozen=True)
class CaseAnswer:
    """What came out of a case in one run: its answer, or how the agent failed."""

    text: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class CaseDifference:
    """What became of a case. ``scores`` are the counted metrics that changed on it, the greatest loss first.

    ``baseline`` and ``candidate`` are the two answers, where the records are at hand: of several repeats those that
    show the change best.
    """

    case_id: str
    kind: CaseKind
    scores: tuple[ScoreChange, ...] = ()
    same_answer: bool | None = None
    baseline: CaseAnswer | None = None
    candidate: CaseAnswer | None = None


@dataclass(frozen=True)
class CaseStanding:
    """One case in both runs: what became of it, and whether it meets the counted metrics before and now.

    ``None`` where nothing says which values are good enough. ``every_repeat`` says of a newly failing case that
    it fails in every repeat now and passed in every one of the baseline.
    """

    kind: CaseKind
    ok_before: bool | None = None
    ok_now: bool | None = None
    every_repeat: bool = False


@dataclass(frozen=True)
class MetricComparison:
    """One metric (of one backend) in both runs.

    ``difference`` is candidate − baseline, with its 95 % interval. ``p_worse`` is the chance of a loss as large if
    nothing had changed (for a metric without a direction: of a change either way), ``p_adjusted`` the same after
    Holm over ``n_tests`` of the gated metrics: those that so many changed cases could show, metrics that changed alike
    on every case being one. ``p_no_worse`` is the chance of so small a loss if the true one were the ``margin``.
    ``gated`` comparisons count for the exit code. ``n_lost`` cases have a value in the baseline alone.
    ``worst_assumed`` is the greatest loss of one case that was taken to be possible, where the metric's range does
    not say. ``smallest_detectable`` is the loss that this test would have found with a chance of 80 %.
    ``cases_needed`` is given where the data cannot tell.
    """

    metric: str
    backend: str | None
    verdict: CompareVerdict
    reason: str
    gated: bool
    direction: Direction = "none"
    unit: str = "score"
    note: str | None = None
    n_pairs: int = 0
    n_lost: int = 0
    baseline_mean: float | None = None
    candidate_mean: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    effect_size: float | None = None
    test: Literal["mcnemar", "sign-flip"] | None = None
    p_worse: float | None = None
    p_adjusted: float | None = None
    n_tests: int = 1
    p_better: float | None = None
    p_no_worse: float | None = None
    margin: float | None = None
    worst_assumed: float | None = None
    smallest_detectable: float | None = None
    cases_needed: int | None = None
    got_worse: tuple[CaseChange, ...] = ()
    got_better: tuple[CaseChange, ...] = ()


@dataclass(frozen=True)
class ToolChange:
    """What differs about a tool (or a server of tools) between two runs, and what each of them says, where it helps."""

    name: str
    change: ToolChangeKind
    baseline: str | None = None
    candidate: str | None = None


@dataclass(frozen=True)
class PairVerdict:
    """What a judge chose on one case: 1.0 the new answer, 0.0 the baseline's, 0.5 a tie, between when orders differ.

    ``turned`` says that the place won and not the answer: the same place in both orders.
    """

    case_id: str
    repeat: int
    value: float
    turned: bool = False
    why: tuple[str, ...] = ()
    judges_disagree: bool = False
    injection_suspected: bool = False


@dataclass(frozen=True)
class Pairwise:
    """How often a judge prefers the new answers, each pair asked in both orders.

    ``win_rate`` is over cases, a tie counts half, with a 95 % interval that holds for few cases, too. Cases with the
    same answer in both runs are ties that nobody was asked about. ``n_first_won`` of the ``n_decided`` questions with a
    winner were won by the answer that was shown first: half of them, if the judge has no favorite place; on
    ``n_turned`` pairs the place decided. ``pairs`` lists the verdicts, the losses first, up to a limit.
    """

    win_rate: float | None
    low: float | None
    high: float | None
    n_won: int
    n_lost: int
    n_tied: int
    n_same_answer: int
    n_without_answer: int
    n_failed: int
    failed_why: str | None
    n_decided: int
    n_first_won: int
    n_turned: int
    pairs: tuple[PairVerdict, ...] = ()
    spend: JudgeSpend | None = None
    panel: PanelSummary | None = None


@dataclass(frozen=True)
class Comparison:
    """A candidate run against a baseline. ``note`` is a doubt about the comparison as a whole.

    ``tools`` are changes of tools over the cases that both runs have; they never count for the exit code.
    ``differences`` are the cases that changed, by kind and the greatest change first, up to a limit for each kind;
    ``n_by_kind`` counts all, and ``cases`` has every case that both runs have. ``p_broken`` is the chance of
    so many cases that fail in every repeat now and passed in every one before, if nothing had changed. ``tested_by``
    says why the gated metrics are those, ``sentence`` what they show. ``n_set_aside`` known failures are not among
    the cases. ``is_clustered``: intervals and tests are over clusters of cases. ``pairwise`` is what a judge chose who
    saw both answers of each case. ``incomplete`` says what a run lacks that was stopped or not scored. ``baseline`` and
    ``candidate`` are ids; ``baseline_label`` and ``candidate_label`` are for people.
    """

    baseline: str
    candidate: str
    n_paired: int
    n_only_baseline: int
    n_only_candidate: int
    alpha: float
    metrics: tuple[MetricComparison, ...]
    note: str | None = None
    tools: tuple[ToolChange, ...] = ()
    differences: tuple[CaseDifference, ...] = ()
    n_by_kind: dict[CaseKind, int] = field(default_factory=dict)
    cases: dict[str, CaseStanding] = field(default_factory=dict)
    p_broken: float | None = None
    tested_by: TestedBy = "all"
    sentence: str = ""
    baseline_label: str = ""
    candidate_label: str = ""
    n_set_aside: int = 0
    is_clustered: bool = False
    pairwise: Pairwise | None = None
    incomplete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for side in ("baseline", "candidate"):
            if not getattr(self, f"{side}_label"):
                object.__setattr__(self, f"{side}_label", getattr(self, side))

    def _repr_html_(self) -> str:
        # For notebooks; the reports stand above the engine and load only when one asks.
        return str(import_module("agentunit.reports.notebook").comparison_html(self))

    @property
    def is_unchanged(self) -> bool:
        """Whether the runs have the same cases, and none of them has another answer or another counted score."""
        alone = self.n_only_baseline or self.n_only_candidate
        return not alone and 0 < self.n_paired == self.n_by_kind.get("unchanged")

    @property
    def has_scores(self) -> bool:
        """Whether at least one metric has values in both runs that were held against each other."""
        return any(each.verdict != "not compared" for each in self.metrics)

    @property
    def tested(self) -> list[str]:
        """The metrics that count for the exit code."""
        return [label for label, each in zip(self.labels, self.metrics, strict=True) if each.gated]

    def of_kind(self, kind: CaseKind) -> list[CaseDifference]:
        """The listed cases of one kind."""
        return [each for each in self.differences if each.kind == kind]

    @property
    def newly_failing(self) -> tuple[str, ...]:
        """The ids of all newly failing cases: those in every repeat first, then the greatest change."""
        listed = [each.case_id for each in self.of_kind("newly failing")]
        others = [case_id for case_id, each in self.cases.items() if each.kind == "newly failing"]
        broken = self.failing_in_every_repeat
        return tuple(sorted(dict.fromkeys(listed + others), key=lambda each: each not in broken))

    @property
    def failing_in_every_repeat(self) -> frozenset[str]:
        """The newly failing cases that passed in every repeat of the baseline and fail in every one now."""
        return frozenset(case_id for case_id, each in self.cases.items() if each.every_repeat)

    @property
    def breaks_cases(self) -> bool:
        """Whether more cases fail in every repeat now, and passed in every one before, than chance makes."""
        # One case and three repeats on each side make exactly 1 in 20.
        return self.p_broken is not None and self.p_broken <= self.alpha + 1e-9

    @property
    def regressions(self) -> list[MetricComparison]:
        """The gated metrics that became worse."""
        return [each for each in self.metrics if each.gated and each.verdict == "regression"]

    @property
    def undecided(self) -> list[MetricComparison]:
        """The gated metrics on which the data cannot tell."""
        return [
            each
            for each in self.metrics
            if each.gated and each.verdict in ("cannot tell", "not compared", "shown only")
        ]

    @property
    def labels(self) -> list[str]:
        """How one names each metric on the command line: with the backend where it has several."""
        times = Counter(each.metric for each in self.metrics)
        return [
            f"{each.metric}[{each.backend}]" if times[each.metric] > 1 and each.backend else each.metric
            for each in self.metrics
        ]


def labels_of(headers: Sequence[RunHeader]) -> list[str]:
    """What runs are called beside each other: their names, and what tells those of one name apart.

    That is the tags that differ, or else the ends of their ids.
    """
    names = [header.name for header in headers]
    keys = dict.fromkeys(key for header in headers for key in header.tags)
    telling = [key for key in keys if len({header.tags.get(key) for header in headers}) > 1]
    labels = []
    for header in headers:
        if names.count(header.name) == 1:
            labels.append(header.label if header.name in ("", header.id) else header.name)
            continue
        tags = " ".join(f"{key}={header.tags[key]}" for key in telling if key in header.tags)
        # A name that all of them have tells nothing.
        name = "" if len(set(names)) == 1 else header.name
        labels.append(f"{name} {tags}".strip() if tags else header.label)
    if len(set(labels)) == len({header.id for header in headers}):
        return labels
    labels = [header.label for header in headers]
    return labels if len(set(labels)) == len({header.id for header in headers}) else [each.id for each in headers]


def most_changed(paired: Sequence[CaseChange], sign: float) -> tuple[CaseChange, ...]:
    """The few cases that fell most (``sign`` 1) or rose most (``sign`` −1), the greatest change first."""

    def gain(change: CaseChange) -> float:
        return sign * (change.candidate - change.baseline)

    return tuple([change for change in sorted(paired, key=gain) if gain(change) < -_ROUNDING][:_CASES_NAMED])

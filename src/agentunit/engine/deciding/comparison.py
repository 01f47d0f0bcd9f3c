"""What comparing a run with a baseline finds: by case, by metric, and as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal

from agentunit.core.results import JudgeSpend, PanelSummary
from agentunit.core.said import Said
from agentunit.metrics.base import Direction
from agentunit.public import publish
from agentunit.store.runs import RunHeader

ALPHA = 0.01
"""The allowed chance of a false alarm, of everything that statistics decide."""

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
CompareVerdict = Literal[
    "regression", "no worse", "no loss shown", "better", "no change", "cannot tell", "not compared", "shown only"
]
"""``no loss shown``: nothing says that it got worse. ``no worse``: a loss of the margin is ruled out."""
CaseKind = Literal[
    "broken",
    "newly failing",
    "newly flaky",
    "lost",
    "still failing",
    "fixed",
    "flaky",
    "worse",
    "better",
    "changed",
    "other answer",
    "unchanged",
]
"""What became of a case: the first that holds of one of its checks, then of its other scores."""
LISTED_KINDS: tuple[CaseKind, ...] = (
    "broken",
    "newly failing",
    "newly flaky",
    "flaky",
    "lost",
    "fixed",
    "worse",
    "better",
    "changed",
    "other answer",
)
"""The kinds of cases that reports list, in this order. Those that did not change are counted."""
MOST_LISTED = 200
"""So many cases of a kind are listed at most."""

TestedBy = Literal["gates", "named", "nothing"]


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

    text: Said | None = None
    error: Said | None = None


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


@dataclass(frozen=True, slots=True)
class CaseStanding:
    """One case in both runs: what became of it, and whether its checks passed before and pass now.

    ``None`` where it has no checks. ``check`` is the one that ``kind`` is about; it failed in ``n_failed`` of
    ``n_tries`` tries now, and is broken once it fails in ``needed`` without a pass. ``passed_before`` says how often
    it passed before, of how many tries.
    """

    kind: CaseKind
    ok_before: bool | None = None
    ok_now: bool | None = None
    check: str | None = None
    n_failed: int = 0
    n_tries: int = 0
    needed: int | None = None
    passed_before: tuple[int, int] = (0, 0)


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
    why: tuple[Said, ...] = ()
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
    failed_why: Said | None
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
    ``n_by_kind`` counts all, and ``cases`` has every case that both runs have. ``gone`` and ``new`` are cases of one
    run alone. ``n_changed`` cases ask something else now under the same id: they are not compared. ``n_checks`` checks
    passed before; ``checks`` are their metrics, but for ``answered``. ``p_chance`` is the chance of so many newly
    failing checks if nothing had changed, where some were not tried to the end. ``too_few`` says why the runs share too
    little to be compared. ``tested_by`` says why the gated metrics are those, ``sentence`` what they show.
    ``n_set_aside`` known failures are not among the cases. ``is_clustered``: intervals and tests are over clusters of
    cases. ``pairwise`` is what a judge chose who saw both answers of each case. ``incomplete`` says what a run lacks
    that was stopped or not scored. ``with_margin``: a loss of a margin was to be ruled out. ``pass_fail`` says of the
    gated functions of a user whether the baseline makes them checks. ``baseline`` and ``candidate`` are ids;
    ``baseline_label`` and ``candidate_label`` are for people.
    """

    baseline: str
    candidate: str
    n_paired: int
    n_only_baseline: int
    n_only_candidate: int
    alpha: float
    metrics: tuple[MetricComparison, ...]
    note: Said | None = None
    tools: tuple[ToolChange, ...] = ()
    differences: tuple[CaseDifference, ...] = ()
    n_by_kind: dict[CaseKind, int] = field(default_factory=dict)
    cases: dict[str, CaseStanding] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    n_changed: int = 0
    n_checks: int = 0
    checks: tuple[str, ...] = ()
    p_chance: float | None = None
    too_few: str | None = None
    tested_by: TestedBy = "nothing"
    sentence: Said = ""
    baseline_label: Said = ""
    candidate_label: Said = ""
    n_set_aside: int = 0
    is_clustered: bool = False
    pairwise: Pairwise | None = None
    incomplete: tuple[str, ...] = ()
    with_margin: bool = False
    pass_fail: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for side in ("baseline", "candidate"):
            if not getattr(self, f"{side}_label"):
                object.__setattr__(self, f"{side}_label", getattr(self, side))

    def __repr__(self) -> str:
        return str(import_module("agentunit.reports.printed").comparison_text(self))

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
        return [difference for difference in self.differences if difference.kind == kind]

    def ids_of(self, *kinds: CaseKind) -> tuple[str, ...]:
        """The ids of all cases of these kinds, in the order of the kinds and of the dataset."""
        return tuple(case_id for kind in kinds for case_id, case in self.cases.items() if case.kind == kind)

    @property
    def broken(self) -> tuple[str, ...]:
        """The cases with a check that passed before and is broken for sure."""
        return self.ids_of("broken")

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The cases with a check that newly fails and was not tried to the end."""
        return self.ids_of("newly failing")

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


publish("agentunit", Comparison)

"""How far scores agree with people's labels: the measure behind every figure of trust.

Three steps, each usable alone: ``LabelJoin`` puts labels to records, ``score_labeled`` scores what is labeled, and
``measure_agreement`` says how well one metric and backend tells good from bad, and how sure that is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from agentunit.addons.review.labeling.agreement import (
    accuracy,
    auroc,
    auroc_interval,
    balanced_accuracy,
    bootstrap_statistic_interval,
    spearman,
)
from agentunit.addons.review.labeling.label_files import Label
from agentunit.core.codec import RecordError, as_record
from agentunit.core.results import InputError, RunSummary
from agentunit.engine.deciding.cut_offs import MIDDLE, leveled, own_threshold
from agentunit.engine.scoring.records import Run, score
from agentunit.formulas.statistics import Interval, wilson_interval
from agentunit.metrics.base import Direction, MetricInfo, describe

ScorerVerdict = Literal[
    "cannot tell", "too few labels to tell", "backwards", "no better than chance", "weak", "useful", "strong"
]
LabelMeaning = Literal["good", "bad"]

FEWEST_ROWS = 10
DEFAULT_THRESHOLD = MIDDLE
# The share of the way from chance to perfect that a score must surely have come: 0.3 is an AUROC of 0.65 or a rank
# correlation of 0.3, and 0.6 an AUROC of 0.8. Surely less than 0.1 (AUROC 0.55) is worth nothing, however sure it is.
NEGLIGIBLE_SKILL = 0.1
USEFUL_SKILL = 0.3
STRONG_SKILL = 0.6
_INCONCLUSIVE: tuple[ScorerVerdict, ...] = ("cannot tell", "too few labels to tell")
_CHANCE = {"AUROC": 0.5, "Spearman": 0.0}


class ScoredRow(NamedTuple):
    """One case with both: what people said, and what the metric said.

    ``threshold`` is the value from which the backend itself calls such a case good, where it names one: the case is
    cut there.
    """

    label: float
    value: float
    group: Hashable | None = None
    threshold: float | None = None


class Agreement(Struct, frozen=True):
    """How well one metric and backend agrees with labels.

    ``value`` is the ``statistic`` (AUROC for good/bad labels, Spearman for grades), with its 95 % interval. At the
    ``threshold``, ``agreement`` is the share of cases on the right side of it, ``balanced_accuracy`` the same with both
    classes counting alike. ``cut`` is the lowest and the highest threshold, where scores name their own; ``threshold``
    is ``None`` where these differ. What the labels cannot tell is ``None``, and ``reason`` says why.
    """

    metric: str
    backend: str
    statistic: str
    n: int
    verdict: ScorerVerdict
    n_good: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    balanced_accuracy: float | None = None
    agreement: float | None = None
    reason: str | None = None
    cut: tuple[float, float] | None = None


def measure_agreement(
    rows: Sequence[ScoredRow],
    *,
    metric: str,
    backend: str,
    direction: Direction = "higher",
    label_means: LabelMeaning = "good",
    threshold: float | None = DEFAULT_THRESHOLD,
    seed: int = 0,
) -> Agreement:
    """How well scores agree with labels.

    Labels that are all 0 or 1 are two classes: AUROC, and both accuracies of "good when the score is at the threshold
    or better". Any other numbers are grades: Spearman's rank correlation. ``label_means`` says what 1 (or a high
    grade) stands for; a metric whose ``direction`` is lower is turned round, so that more agreement is always a
    higher figure. A row that names a threshold is cut there, any other at ``threshold``. Intervals are bootstrapped,
    over whole groups where rows have one. Fewer than ten rows, or labels that are all the same, tell nothing.

    >>> rows = [ScoredRow(label=1, value=0.9), ScoredRow(label=0, value=0.2)] * 10
    >>> found = measure_agreement(rows, metric="faithfulness", backend="local")
    >>> found.statistic, found.value, found.balanced_accuracy, found.verdict
    ('AUROC', 1.0, 1.0, 'useful')
    """
    is_binary = all(row.label in (0, 1) for row in rows)
    turned = [_turned(row, direction, label_means, is_binary) for row in rows]
    labels = [row.label for row in turned]
    statistic = "AUROC" if is_binary else "Spearman"
    n_good = int(sum(labels)) if is_binary else None
    known: dict[str, Any] = {"metric": metric, "backend": backend, "statistic": statistic, "n": len(rows)}
    reason = _why_unmeasurable(labels, is_binary)
    if reason:
        return Agreement(**known, n_good=n_good, verdict="cannot tell", reason=reason)
    scores = [row.value for row in turned]
    if not is_binary and len(set(scores)) == 1:
        return Agreement(**known, verdict="no better than chance", reason=f"all {len(rows)} scores are the same")
    groups = _groups(turned)
    if is_binary:
        classes = [int(label) for label in labels]
        value = auroc(classes, scores)
        interval = _auroc_interval(classes, scores, groups, value, seed)
        known |= _at_threshold(rows, classes, direction, threshold)
    else:
        value = spearman(labels, scores)
        interval = bootstrap_statistic_interval(spearman, (labels, scores), groups=groups, seed=seed)
    low, high = (interval.low, interval.high) if interval else (None, None)
    verdict = verdict_of(statistic, low, high)
    return Agreement(**known, n_good=n_good, value=value, low=low, high=high, verdict=verdict)


def is_conclusive(agreements: Iterable[Agreement]) -> bool:
    """Whether the labels say of any metric what it is worth; that they are too few says nothing of one."""
    return any(each.verdict not in _INCONCLUSIVE for each in agreements)


def verdict_of(statistic: str, low: float | None, high: float | None) -> ScorerVerdict:
    """What a figure is worth in words, by its interval: what the labels surely show, not the lucky middle.

    Skill is (bound − chance) / (1 − chance). The lower bound decides between weak, useful (0.3) and strong (0.6). An
    interval that holds chance, or stays within 0.1 of it, means no better than chance; when it reaches useful too,
    labels are too few. One wholly below is backwards.

    >>> [verdict_of("AUROC", *bounds) for bounds in ((0.81, 0.9), (0.52, 0.9), (0.45, 0.55), (0.4, 0.8), (0.2, 0.4))]
    ['strong', 'weak', 'no better than chance', 'too few labels to tell', 'backwards']
    """
    if low is None or high is None:
        return "too few labels to tell"
    chance = _CHANCE[statistic]
    skill_low, skill_high = ((bound - chance) / (1.0 - chance) for bound in (low, high))
    if skill_low > -NEGLIGIBLE_SKILL and skill_high < NEGLIGIBLE_SKILL:
        return "no better than chance"
    if skill_high < 0:
        return "backwards"
    if skill_low <= 0:
        return "too few labels to tell" if skill_high >= USEFUL_SKILL else "no better than chance"
    if skill_low < USEFUL_SKILL:
        return "weak"
    return "useful" if skill_low < STRONG_SKILL else "strong"


class LabelJoin:
    """Records with their labels, joined by case id, as a stream; iterate it once, then read what did not match.

    A label speaks of one answer, so of several records with the same id only the first is taken.
    """

    def __init__(self, records: Iterable[Any], labels: Mapping[str, Label]) -> None:
        self._records = records
        self._labels = labels
        self._seen: set[str] = set()
        self.n_records_without_label = 0
        self.n_repeated_records = 0

    def __iter__(self) -> Iterator[tuple[Any, Label] | InputError]:
        for received in self._records:
            if isinstance(received, InputError):
                yield received
                continue
            case_id = str(getattr(getattr(received, "case", None), "id", None) or "")
            label = self._labels.get(case_id)
            if label is None:
                self.n_records_without_label += 1
            elif case_id in self._seen:
                self.n_repeated_records += 1
            else:
                self._seen.add(case_id)
                yield received, label

    @property
    def labels_without_record(self) -> list[str]:
        """The labeled ids that no record had, in the order of the labels."""
        return [case_id for case_id in self._labels if case_id not in self._seen]


class LabeledScores(Struct):
    """Labeled cases after scoring: the rows of each metric and backend, and the run's own summary."""

    rows: dict[tuple[str, str], list[ScoredRow]]
    infos: dict[str, MetricInfo]
    summary: RunSummary

    def agreements(self, threshold: float | None = None) -> list[Agreement]:
        """The agreement of each metric and backend that scored anything, in the order of the metrics.

        Scores are cut at ``threshold``; without one where they say themselves, otherwise at 0.5.
        """
        found = []
        for (metric, backend), rows in self.rows.items():
            info = self.infos[metric]
            at = threshold_for(info, threshold)
            if threshold is not None:
                rows = [row._replace(threshold=None) for row in rows]
            found.append(
                measure_agreement(rows, metric=metric, backend=backend, direction=info.direction, threshold=at)
            )
        order = list(self.infos)
        return sorted(found, key=lambda each: order.index(each.metric))


def score_labeled(
    labeled: Iterable[tuple[Any, Label] | InputError],
    metrics: Any = None,
    *,
    batch_size: int = 64,
    jobs: int | None = None,
) -> LabeledScores:
    """Score labeled records with any metrics; higher labels are better. Backends are kept apart.

    >>> case = {"id": "q1", "expected_output": "4"}
    >>> scored = score_labeled([({"case": case, "outcome": "4"}, Label(1.0))], ["answer_correctness"])
    >>> scored.rows
    {('answer_correctness', 'lexical'): [ScoredRow(label=1.0, value=1.0, group=None, threshold=None)]}
    """
    labels: list[Label] = []
    run: Run = score(_records_of(labeled, labels), metrics, batch_size=batch_size, jobs=jobs)
    rows: dict[tuple[str, str], list[ScoredRow]] = {}
    infos = {metric.name: describe(metric) for metric in run.metrics}
    for case in run:
        label = labels[case.index]
        for name, each in case.scores.items():
            if each.value is not None:
                threshold = own_threshold(infos[name], each.result.detail)
                rows.setdefault((name, each.backend), []).append(
                    ScoredRow(label.value, each.value, label.group, threshold)
                )
    return LabeledScores(rows, infos, run.summary())


def threshold_for(info: MetricInfo, asked: float | None) -> float | None:
    """Where to draw the line between good and bad: as asked, else 0.5 for scores that have a scale of their own.

    >>> threshold_for(MetricInfo("cost", "operational", "", range=(0.0, None)), None) is None
    True
    """
    if asked is not None:
        return asked
    # A metric that declares no range is most often a user's own score of 0 to 1; one that is open upwards never is.
    return DEFAULT_THRESHOLD if info.range in ((0.0, 1.0), (None, None)) else None


def _records_of(labeled: Iterable[tuple[Any, Label] | InputError], labels: list[Label]) -> Iterator[Any]:
    for each in labeled:
        if isinstance(each, InputError):
            yield each
            continue
        received, label = each
        try:
            # Converted here, so that a record that is refused takes no label with it and the rest stay in step.
            record = as_record(received)
        except RecordError as error:
            yield InputError("records", None, str(error))
            continue
        labels.append(label)
        yield record


def _turned(row: ScoredRow, direction: Direction, label_means: LabelMeaning, is_binary: bool) -> ScoredRow:
    label = row.label
    if label_means == "bad":
        label = 1 - label if is_binary else -label
    return ScoredRow(label, -row.value if direction == "lower" else row.value, row.group)


def _why_unmeasurable(labels: Sequence[float], is_binary: bool) -> str | None:
    if len(labels) < FEWEST_ROWS:
        rows = "1 row is" if len(labels) == 1 else f"{len(labels)} rows are"
        return f"{rows} labeled and scored; at least {FEWEST_ROWS} are needed"
    if len(set(labels)) == 1:
        same = ("good" if labels[0] else "bad") if is_binary else f"{labels[0]:g}"
        return f"all {len(labels)} labels are {same}; there is nothing to distinguish"
    return None


def _groups(rows: Sequence[ScoredRow]) -> list[Hashable] | None:
    if all(row.group is None for row in rows):
        return None
    return [("row", position) if row.group is None else ("group", row.group) for position, row in enumerate(rows)]


def _auroc_interval(
    classes: Sequence[int],
    scores: Sequence[float],
    groups: Sequence[Hashable] | None,
    value: float | None,
    seed: int,
) -> Interval | None:
    interval = auroc_interval(classes, scores, groups=groups, seed=seed)
    if interval is None or value not in (0.0, 1.0):
        return interval
    # Every resample of a perfect ranking is perfect, which is not proof. Each independent row of the rarer class was
    # ranked rightly against all others: that many successes in that many trials bound what the labels can show.
    sources = range(len(classes)) if groups is None else groups
    independent = min(
        len({source for label, source in zip(classes, sources, strict=True) if label == side}) for side in (0, 1)
    )
    return wilson_interval(independent if value else 0, independent)


def _at_threshold(
    rows: Sequence[ScoredRow], classes: Sequence[int], direction: Direction, threshold: float | None
) -> dict[str, Any]:
    if threshold is None:
        return {}
    cuts = [threshold if row.threshold is None else row.threshold for row in rows]
    # By a threshold of its own a score is leveled, so that rounding does not decide.
    held = [
        (row.value, threshold) if row.threshold is None else (leveled(row.value, row.threshold), MIDDLE) for row in rows
    ]
    predictions = [int(value <= line if direction == "lower" else value >= line) for value, line in held]
    return {
        "threshold": cuts[0] if len(set(cuts)) == 1 else None,
        "cut": (min(cuts), max(cuts)),
        "balanced_accuracy": balanced_accuracy(classes, predictions),
        "agreement": accuracy(classes, predictions),
    }

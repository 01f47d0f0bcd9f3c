"""The labeled rate of a run: what people would say about all of its cases, from the labels of some.

What a label may speak for depends on how its case was chosen. Cases that ``agentunit label`` draws all have the same
chance; of labels of a file nothing is known, and they are taken for a random sample. Labels that were given on another
run speak for the answers that both runs share; for answers that only this run has, others are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from msgspec import structs

from agentunit.core.results import LabeledSummary, MetricSummary
from agentunit.core.score_block import Place, ScoreRow
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.labeled import LabeledRate, labeled_rate
from agentunit.formulas.statistics import krippendorff_alpha
from agentunit.store.labels import StoredLabel, label_values, places_of, sampled_labels, unshown_labels

_MOST_TAUGHT = 0.25
"""The share of labels that a judge may have learned from for its scores still to be used beside the rest."""
_FEW_NEW = 0.05
"""Up to this share of new, unlabeled answers the labels of the others give a rate, with a wider interval."""


@dataclass
class LabeledSample:
    """The records that a metric scored, in dataset order, and the labels among them, by index.

    ``strata`` are the groups within which labels are taken for random; ``unasked`` counts the records of groups that
    have no label at all. ``taught`` are the labels that a calibrated judge learned from, not among the others.
    """

    places: list[Place]
    scores: list[float | None]
    clusters: list[int] | None
    labels: dict[int, float] = field(default_factory=dict)
    strata: list[int] | None = None
    skipped: set[int] = field(default_factory=set)
    unasked: int = 0
    taught: dict[int, float] = field(default_factory=dict)

    def rate(self) -> LabeledRate | None:
        """The labeled rate; ``None`` where there is no label, or too many records are of a group without any."""
        if not self.labels:
            return None
        if self.unasked:
            return self._rate_with_new_answers()
        everything = range(len(self.places))
        if not self.taught:
            return self._rate_of(everything, self.labels)
        # What taught a judge cannot correct its scores. Where that is much of the labels, all labels without the scores
        # tell more. Their number decides, not the intervals: the narrower of two would hold less often than either.
        if len(self.taught) > _MOST_TAUGHT * (len(self.taught) + len(self.labels)):
            return self._rate_of(everything, {**self.labels, **self.taught}, with_scores=False)
        rest = [index for index in everything if index not in self.taught]
        return self._with_taught(self._rate_of(rest, self.labels))

    def _rate_of(
        self, indices: Sequence[int], labels: Mapping[int, float], *, with_scores: bool = True
    ) -> LabeledRate | None:
        return labeled_rate(
            [self.scores[index] if with_scores else None for index in indices],
            {at: labels[index] for at, index in enumerate(indices) if index in labels},
            strata=None if self.strata is None else [self.strata[index] for index in indices],
            clusters=None if self.clusters is None else [self.clusters[index] for index in indices],
            skipped=[at for at, index in enumerate(indices) if index in self.skipped],
        )

    def _rate_with_new_answers(self) -> LabeledRate | None:
        """The rate where few answers are new and unlabeled: the interval allows for any label of theirs."""
        n_cases = len(self.places)
        if self.strata is None or self.unasked > _FEW_NEW * n_cases:
            return None
        labels = {**self.labels, **self.taught}
        asked = {self.strata[index] for index in labels}
        kept = [index for index, stratum in enumerate(self.strata) if stratum in asked]
        known = self._rate_of(kept, labels, with_scores=not self.taught)
        if known is None:
            return None
        share = len(kept) / n_cases
        return replace(known, low=share * known.low, high=share * known.high + 1.0 - share, n_cases=n_cases)

    def _with_taught(self, found: LabeledRate | None) -> LabeledRate | None:
        """The rate of all records, of that of the rest: what people said of those that taught a judge is known."""
        if found is None:
            return None
        share = len(self.taught) / len(self.places)
        known = share * fmean(self.taught.values())
        rate, low, high = (known + (1.0 - share) * each for each in (found.rate, found.low, found.high))
        return replace(found, rate=rate, low=low, high=high, n_cases=len(self.places))


def scored_rows(run: ScoredRun, metric: str, backend: str | None = None) -> list[ScoreRow]:
    """The records that a metric is about: those it scored by this backend, or failed to."""
    rows = [row for row in run.metrics.get(metric, ()) if row.status != "not_applicable"]
    return [row for row in rows if backend is None or row.backend == backend]


def labeled_sample(run: ScoredRun, metric: str, backend: str | None = None) -> LabeledSample:
    """The scores of a metric with the labels of its own question."""
    rows = scored_rows(run, metric, backend)
    places = [row.place for row in rows]
    sample = LabeledSample(places, [row.value for row in rows], _clusters(run, rows))
    labels = _sampled(run, metric)
    values = label_values(labels, metric)
    index_of = {place: index for index, place in enumerate(places)}
    sample.labels = {index_of[place]: value for place, value in values.items() if place in index_of}
    sample.skipped = {index_of[label.place] for label in labels if label.place in index_of} - sample.labels.keys()
    _set_taught_aside(sample, labels, run.info(metric).shown_share)
    if sample.labels:
        _stratify(sample, _groups(run, metric, places))
    return sample


def _set_taught_aside(sample: LabeledSample, labels: Sequence[StoredLabel], shown_share: float) -> None:
    """Set aside the labels that a calibrated judge learned from: it is right about them because it was told.

    Of these records the label is known, and the score does not count. Which they are depends on the answer alone, not
    on its score or label, so the other labels are a random sample of the other records.
    """
    unshown = {label.place for label in unshown_labels(labels, shown_share)}
    sample.taught = {index: value for index, value in sample.labels.items() if sample.places[index] not in unshown}
    sample.labels = {index: value for index, value in sample.labels.items() if index not in sample.taught}


def draw_seed(run: ScoredRun, metric: str) -> int:
    """The seed of the order in which cases of a run are asked about: the same for every rater and on every machine."""
    return int.from_bytes(hashlib.sha256(f"{run.header.id}/{metric}".encode()).digest()[:6], "big")


def own_frame(run: ScoredRun, metric: str, sample: LabeledSample) -> list[int]:
    """The indices that cases are drawn from: all, or the answers that no run labeled before this one had."""
    own = run.header.id
    return [at for at, group in enumerate(_groups(run, metric, sample.places)) if group.split("+")[0] == own]


def with_labels(rows: Iterable[MetricSummary], run: ScoredRun) -> Iterator[MetricSummary]:
    """The rows of a metric in a run's summary, with the labeled rate where people labeled cases for it.

    It is of all cases of a backend. Where these have several rows (scores of unmeasured text have one of their own) it
    stands at the one with the most scores.
    """
    rows = list(rows)
    most = {row.backend: row for row in sorted(rows, key=lambda row: row.n_scored)}
    for row in rows:
        if row is most[row.backend] and row.n_scored and any(label.metric == row.metric for label in run.labels):
            yield structs.replace(row, labeled=labeled_summary(run, row.metric, row.backend))
        else:
            yield row


def labeled_summary(run: ScoredRun, metric: str, backend: str | None = None) -> LabeledSummary | None:
    """The labeled rate of a metric with what it rests on; ``None`` where no label is about its cases."""
    sample = labeled_sample(run, metric, backend)
    if not sample.labels and not sample.skipped:
        return None
    places = {sample.places[index] for index in sample.labels}
    labels = [each for each in _sampled(run, metric) if each.place in places and each.value is not None]
    by_place = places_of(labels).values()
    said = [[label.value or 0.0 for label in each] for each in by_place]
    rate = sample.rate()
    summary = LabeledSummary(
        rate=None if rate is None else rate.rate,
        low=None if rate is None else rate.low,
        high=None if rate is None else rate.high,
        n_labels=len(sample.labels) if rate is None else rate.n_labels,
        n_cases=len(sample.places),
        method="" if rate is None else rate.method,
        weight=0.0 if rate is None else rate.weight,
        raters=sorted({label.rater for label in labels}),
        n_skipped=len(sample.skipped),
        n_disagreed=sum(len(set(values)) > 1 for values in said),
        alpha=krippendorff_alpha(said),
        n_taught=len(sample.taught) if rate is None or rate.n_labels == len(sample.labels) else 0,
        assumed_random=len(sample.labels) < len(sample.places)
        and any(all(label.draw is None for label in each) for each in by_place),
    )
    if sample.unasked and sample.labels:
        summary.reason = f"{sample.unasked:,} of {len(sample.places):,} answers are not in the run that was labeled"
    elif rate is None:
        summary.reason = "every case that was asked about was skipped"
    return summary


def _sampled(run: ScoredRun, metric: str) -> list[StoredLabel]:
    """The labels of a metric from which the rate follows."""
    labels = [label for label in run.labels if label.metric == metric]
    places = [label.place for label in labels]
    first = {place: group.split("+")[0] for place, group in zip(places, _groups(run, metric, places), strict=True)}
    return sampled_labels(labels, first, run.header.id)


def _groups(run: ScoredRun, metric: str, places: Sequence[Place]) -> list[str]:
    """The name of the group within which the labels of each record are random: its run's, unless others had it."""
    frames = run.frames.get(metric, {})
    return [frames.get(place, run.header.id) for place in places]


def _stratify(sample: LabeledSample, groups: Sequence[str]) -> None:
    """Put each record into its group, and count those of groups without any label."""
    labeled = {groups[index] for index in sample.labels}
    sample.unasked = sum(group not in labeled for group in groups)
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if len(numbers) > 1:
        sample.strata = [numbers[group] for group in groups]


def _clusters(run: ScoredRun, rows: Sequence[ScoreRow]) -> list[int] | None:
    """Records that are alike: of one cluster of the suite, or repeats of one case."""
    if run.clusters is not None:
        return [run.clusters.of_case(row.position) for row in rows]
    return [row.position for row in rows] if run.n_repeats > 1 else None

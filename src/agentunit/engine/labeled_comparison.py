"""What people's labels say about the difference of two runs, beside what the scores say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agentunit.engine.comparison import CompareVerdict, MetricComparison
from agentunit.engine.gate_expressions import LABELED, Gate
from agentunit.engine.labeled_rates import LabeledSample, labeled_sample, scored_rows
from agentunit.engine.margins import Margin, margin_in_unit
from agentunit.engine.scored_run import ScoredRun
from agentunit.formulas.labeled import LabeledRate, labeled_difference
from agentunit.store.labels import subject_of

Key = tuple[str, int]


class _Judged(NamedTuple):
    """What is known of one record: its score, its label, and how it came to have one."""

    score: float | None
    label: float | None
    is_skipped: bool
    stratum: int
    cluster: int | None


def labeled_comparisons(
    candidate: ScoredRun,
    baseline: ScoredRun,
    names: Sequence[str],
    gates: Sequence[Gate],
    margin: Margin | Mapping[str, Margin] | None,
) -> Iterator[MetricComparison]:
    """A row for each metric and backend that people labeled in both runs; it counts where a gate asks for labels."""
    for name in names:
        both = [
            {row.backend for row in scored_rows(run, name) if row.value is not None} for run in (baseline, candidate)
        ]
        for backend in sorted(both[0] & both[1]):
            if all(any(label.metric == name for label in run.labels) for run in (baseline, candidate)):
                yield _compared(candidate, baseline, name, backend, gates, margin)


def _compared(
    candidate: ScoredRun,
    baseline: ScoredRun,
    name: str,
    backend: str,
    gates: Sequence[Gate],
    margin: Margin | Mapping[str, Margin] | None,
) -> MetricComparison:
    info = candidate.info(name)
    samples = [labeled_sample(run, name, backend) for run in (candidate, baseline)]
    new, old = (_by_key(run, sample) for run, sample in zip((candidate, baseline), samples, strict=True))
    keys = [key for key in old if key in new]
    found = None
    if keys and not any(sample.unasked for sample in samples):
        ours, theirs = ([each[key] for key in keys] for each in (new, old))
        found = labeled_difference(
            [each.score for each in ours],
            {at: each.label for at, each in enumerate(ours) if each.label is not None},
            [each.score for each in theirs],
            {at: each.label for at, each in enumerate(theirs) if each.label is not None},
            same=_same_answers(candidate, baseline, keys),
            skipped={at for at, each in enumerate(ours) if each.is_skipped},
            baseline_skipped={at for at, each in enumerate(theirs) if each.is_skipped},
            strata=[each.stratum for each in ours],
            baseline_strata=[each.stratum for each in theirs],
            clusters=_clusters(ours),
        )
    allowed = margin_in_unit(name, backend, margin, 1.0, 1.0)
    rates = [sample.rate() for sample in samples]
    verdict, reason = _verdict(found, -1.0 if info.direction == "lower" else 1.0, allowed)
    return MetricComparison(
        metric=f"{name} {LABELED}",
        backend=backend,
        verdict=verdict,
        reason=reason,
        gated=any(
            gate.metric == name and gate.aggregate == LABELED and gate.backend in (None, backend) for gate in gates
        ),
        direction=info.direction,
        note="from people's labels and the scores of all cases",
        n_pairs=len(keys),
        baseline_mean=None if rates[1] is None else rates[1].rate,
        candidate_mean=None if rates[0] is None else rates[0].rate,
        difference=None if found is None else found.rate,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        margin=allowed,
    )


def _by_key(run: ScoredRun, sample: LabeledSample) -> dict[Key, _Judged]:
    """Score and label of each record, by case and repeat."""
    ids = {(record.position, record.repeat): record.case_id for record in run.records}
    return {
        (ids[place], place[1]): _Judged(
            sample.scores[index],
            sample.labels.get(index),
            index in sample.skipped,
            0 if sample.strata is None else sample.strata[index],
            None if sample.clusters is None else sample.clusters[index],
        )
        for index, place in enumerate(sample.places)
        if place in ids
    }


def _clusters(judged: Sequence[_Judged]) -> list[int] | None:
    clusters = [each.cluster for each in judged if each.cluster is not None]
    return clusters if len(clusters) == len(judged) else None


def _same_answers(candidate: ScoredRun, baseline: ScoredRun, keys: Sequence[Key]) -> set[int]:
    """Where both runs gave the same answer: people would say the same of both."""
    if candidate.read_records is None or baseline.read_records is None:
        return set()
    subjects = [
        {(each.case_id, each.repeat): subject_of(each.record) for each in run.read_records()}
        for run in (candidate, baseline)
        if run.read_records is not None
    ]
    return {at for at, key in enumerate(keys) if key in subjects[0] and subjects[0][key] == subjects[1].get(key)}


def _verdict(found: LabeledRate | None, sign: float, margin: float) -> tuple[CompareVerdict, str]:
    """What the interval of the difference rules out; ``sign`` is −1 where lower is better."""
    if found is None:
        return "cannot tell", "too few labels, or answers that are not in the run that was labeled"
    low, high = sorted((sign * found.low, sign * found.high))
    labels = f"by {found.n_labels:,} labels"
    if high < 0.0:
        verdict: CompareVerdict = "regression" if low < -margin else "no worse"
        return verdict, f"people's rate fell, by {-high:.2f} or more ({labels})"
    if low > 0.0:
        return "better", f"people's rate rose, by {low:.2f} or more ({labels})"
    if low > -margin:
        return "no worse", f"a loss of {margin:g} is ruled out ({labels})"
    return "cannot tell", f"a loss of up to {-low:.2f} is possible: label more cases of both runs ({labels})"

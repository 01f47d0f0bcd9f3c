"""What people's labels say about the difference of two runs, beside what the scores say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agentunit.engine.deciding.comparison import CompareVerdict, MetricComparison
from agentunit.engine.deciding.cut_offs import Margin, margin_in_unit
from agentunit.engine.deciding.gate_expressions import LABELED, Gate
from agentunit.engine.scoring.labeled_rates import LabeledSample, labeled_sample, scored_rows
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.labeled import LabeledRate, labeled_difference
from agentunit.store.labels import subject_of

Key = tuple[str, int]
_AS_SHOWN = 0.0005
"""Tables show differences with three digits."""


class _Judged(NamedTuple):
    """What is known of one record: its score, its label, and how it came to have one."""

    score: float | None
    label: float | None
    is_skipped: bool
    is_open: bool
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
        if not all(any(label.metric == name for label in run.labels) for run in (baseline, candidate)):
            continue
        both = [
            {row.backend for row in scored_rows(run, name) if row.value is not None} for run in (baseline, candidate)
        ]
        for backend in sorted(both[0] & both[1]):
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
    ours, theirs = ([each[key] for key in keys] for each in (new, old))
    same = _same_answers(candidate, baseline, keys)
    found = None
    if keys and not any(sample.unasked for sample in samples):
        found = labeled_difference(
            [each.score for each in ours],
            {at: each.label for at, each in enumerate(ours) if each.label is not None},
            [each.score for each in theirs],
            {at: each.label for at, each in enumerate(theirs) if each.label is not None},
            same=same,
            skipped={at for at, each in enumerate(ours) if each.is_skipped},
            baseline_skipped={at for at, each in enumerate(theirs) if each.is_skipped},
            strata=[each.stratum for each in ours],
            baseline_strata=[each.stratum for each in theirs],
            clusters=_clusters(ours),
        )
    allowed = margin_in_unit(name, backend, margin, 1.0, 1.0)
    rates = [sample.rate() for sample in samples]
    verdict, reason = _verdict(found, -1.0 if info.direction == "lower" else 1.0, allowed)
    if found is not None:
        reason += f" ({_describe_basis(found, *rates)})"
    if verdict == "cannot tell":
        n_open = [sum(each.is_open for at, each in enumerate(of) if at not in same) for of in (theirs, ours)]
        reason += _what_to_label(*n_open)
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
    ids = {record.place: record.case_id for record in run.records}
    return {
        (ids[place], place[1]): _Judged(
            sample.scores[index],
            sample.labels.get(index),
            index in sample.skipped,
            not any(index in each for each in (sample.labels, sample.taught, sample.skipped)),
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


def _verdict(found: LabeledRate | None, sign: float, margin: float | None) -> tuple[CompareVerdict, str]:
    """What the interval of the difference says; ``sign`` is −1 where lower is better."""
    if found is None:
        return "cannot tell", "too few labels, or answers that are not in the run that was labeled"
    low, high = sorted((sign * found.low, sign * found.high))
    if high < 0.0:
        verdict: CompareVerdict = "regression" if margin is None or low < -margin else "no worse"
        return verdict, f"people's rate got worse, by {-high:.2f} or more"
    if low > 0.0:
        return "better", f"people's rate got better, by {low:.2f} or more"
    if margin is None:
        return "no loss shown", f"a loss of more than {-low:.2f} is ruled out"
    if low > -margin:
        return "no worse", f"a loss of {margin:g} is ruled out"
    return "cannot tell", f"a loss of up to {-low:.2f} is possible"


def _describe_basis(found: LabeledRate, candidate: LabeledRate | None, baseline: LabeledRate | None) -> str:
    """Which labels a difference follows from, and that it is not that of the two rates beside it, where it is not."""
    if not found.n_labels:
        return "every answer is the same in both runs"
    one, several, of = ("case", "cases", " labeled in both runs") if found.is_paired else ("label", "labels", "")
    labels = f"from {found.n_labels:,} {one if found.n_labels == 1 else several}{of}"
    if candidate is None or baseline is None or abs(candidate.rate - baseline.rate - found.rate) < _AS_SHOWN:
        return labels
    return f"{labels}, of answers that differ; each rate is from all labels of its run"


def _what_to_label(n_baseline: int, n_candidate: int) -> str:
    """Which run has cases without a label that would tell more, and how many."""
    left = [f"{run} ({n:,} left)" for run, n in (("the baseline", n_baseline), ("the candidate", n_candidate)) if n]
    return f": label more cases of {' and of '.join(left)}" if left else ""

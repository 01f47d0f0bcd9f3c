"""Whether a run is worse than a baseline: paired by case, metric by metric, in the direction that is worse for each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from agentunit.engine.case_differences import CountedScores, case_differences, chance_of_broken, count_kinds
from agentunit.engine.comparison import CompareVerdict, Comparison, MetricComparison, labels_of
from agentunit.engine.detectable import describe_result
from agentunit.engine.gate_expressions import LABELED, Gate, parse_gate, stored_gates
from agentunit.engine.known_failures import set_aside, without_cases
from agentunit.engine.labeled_comparison import labeled_comparisons
from agentunit.engine.margins import Margin
from agentunit.engine.paired_scores import (
    ANSWERED,
    BackendScores,
    answered_scores,
    baseline_subject,
    case_ids,
    check_names,
    clusters_by_case,
    scores_by_backend,
    wanted_backends,
)
from agentunit.engine.paired_tests import ComparisonSettings, Measured, measure, with_verdicts
from agentunit.engine.rescoring import rescore_baseline
from agentunit.engine.scored_run import ScoredRun, sequential_answers
from agentunit.engine.unfinished import is_unfinished, n_with_scores, planned_cases, what_is_missing
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import describe_trust

CLOCK_UNITS = frozenset({"s", "ms"})
DEFAULT_ALPHA = 0.05


def compare_runs(
    candidate: ScoredRun,
    baseline: ScoredRun,
    *,
    metrics: Sequence[str] | None = None,
    on: Sequence[str] | None = None,
    gates: Iterable[Gate | str] | None = None,
    margin: Margin | Mapping[str, Margin] | None = None,
    alpha: float = DEFAULT_ALPHA,
    min_coverage: float = 0.8,
    resamples: int | None = None,
    labels: tuple[str, str] | None = None,
) -> Comparison:
    """Hold a run against a baseline, over the cases that both have.

    ``metrics`` limits the comparison to those named (``name`` or ``name[backend]``). Which of them count: those named
    by ``on``; else all that ``metrics`` names; else those that ``gates`` are about (the candidate's own, unless given);
    else those with a direction that are neither informational nor clock time. The others are described, not tested.

    Of each case as many repeats are tested as both runs have, the first ones: unequal numbers would raise alarms of
    their own. What became of a case is said by all of its repeats.

    A metric without a changed value is *no change*. A loss is a *regression* when it is significant (exact McNemar for
    pass/fail, sign flips otherwise, Holm over the counted metrics that so many changed cases could show) and not shown
    to be smaller than the ``margin``. Without one it is *no worse* only when a loss of the margin is ruled out; that
    needs no Holm, since all must pass. When fewer than ``min_coverage`` of the baseline's cases are in both runs, or of
    a metric's scores, it does not pass: what is missing may be what went wrong. Where the agent failed in either run,
    ``answered`` is compared and counts, whatever is named: 1.0 for each repeat without a failure. Cases that the
    candidate's dataset marks as known to fail are left out of both runs. ``labels`` are what the baseline and the
    candidate are called, where there are further runs beside them.
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"compare_runs: alpha must be above 0 and below 0.5; received {alpha!r}")
    if not 0.0 <= min_coverage <= 1.0:
        raise ValueError(f"compare_runs: min_coverage must be from 0 to 1; received {min_coverage!r}")
    names = list(dict.fromkeys([*baseline.metrics, *candidate.metrics]))
    recorded = bool(baseline.records and candidate.records)
    known = {
        name: dict.fromkeys(row.backend for run in (baseline, candidate) for row in run.metrics.get(name, ()))
        for name in names
    }
    if recorded:
        known.setdefault(ANSWERED.name, {ANSWERED.backend: None})
    check_names("metrics", metrics or (), known)
    check_names("on", on or (), known)
    check_names("margin", margin if isinstance(margin, Mapping) else (), known)
    compared_names = [name for name in names if wanted_backends(name, metrics) is not None]
    before = baseline
    missing = tuple(what_is_missing(run) for run in (baseline, candidate))
    baseline, rescored, refused = rescore_baseline(candidate, baseline, compared_names)
    aside = set_aside(candidate)
    n_set_aside = len(aside & (case_ids(candidate) | case_ids(baseline)))
    candidate, baseline = without_cases(candidate, aside), without_cases(baseline, aside)
    held_to = _gates_of(candidate, gates)
    clusters = clusters_by_case(candidate, baseline)
    scores = [
        (
            name,
            candidate.infos.get(name) or baseline.info(name),
            scores_by_backend(baseline.metrics.get(name, ())),
            scores_by_backend(candidate.metrics.get(name, ())),
            wanted_backends(name, metrics) or set(),
        )
        for name in compared_names
    ]
    asked_for = any(wanted_backends(ANSWERED.name, named) for named in (metrics, on) if named is not None)
    failed = any(record.failed for run in (baseline, candidate) for record in run.records)
    found: list[Measured] = []
    settings = ComparisonSettings(margin, alpha, min_coverage, resamples)
    ways = list(_ways_to_count(settings, metrics, on, held_to))
    for settings in ways:
        found = [
            each for facts in scores for each in _compare_metric(*facts, settings, refused.get(facts[0]), clusters)
        ]
        if any(each.comparison.gated for each in found):
            break
    if recorded and (asked_for or failed):
        old, new = answered_scores(baseline), answered_scores(candidate)
        counted = replace(settings, counted_by="named", counted=frozenset([ANSWERED.name]))
        found += _compare_metric(ANSWERED.name, ANSWERED, old, new, set(), counted, None, clusters)
    baseline_cases, candidate_cases = case_ids(baseline), case_ids(candidate)
    shared = baseline_cases & candidate_cases
    counted_scores = list(_counted_scores(found, held_to))
    differences, standings, tools, not_compared = case_differences(candidate, baseline, shared, counted_scores)
    fingerprints = {run.header.settings.get("dataset_fingerprint") for run in (baseline, candidate)} - {None}
    baseline_label, candidate_label = labels or labels_of([baseline.header, candidate.header])
    incomplete = tuple(
        f"{label} {what}" for label, what in zip((baseline_label, candidate_label), missing, strict=True) if what
    )
    n_planned = planned_cases(baseline) if is_unfinished(baseline) else 0
    too_few = _too_few_shared(len(shared), max(len(baseline_cases), n_planned), settings)
    too_few = too_few or _too_few_scored(candidate, baseline, settings)
    too_few = "; ".join([too_few, *incomplete]) if too_few else None
    comparison = Comparison(
        baseline=baseline.header.id,
        candidate=candidate.header.id,
        n_paired=len(shared),
        n_only_baseline=len(baseline_cases - candidate_cases),
        n_only_candidate=len(candidate_cases - baseline_cases),
        alpha=alpha,
        metrics=(
            *_with_evidence(with_verdicts(found, too_few, settings), candidate, baseline),
            *labeled_comparisons(candidate, baseline, compared_names, held_to, margin),
        ),
        note="; ".join(
            [
                *incomplete,
                *(["the datasets differ: cases of the same id may not be the same case"] * (len(fingerprints) > 1)),
                *_rescored_note(rescored, before, baseline),
                *([not_compared] if not_compared else []),
                *_clusters_note(candidate, baseline, shared, clusters),
                *_repeats_note(found),
                *_left_out_note(found),
            ]
        )
        or None,
        tools=tools,
        differences=tuple(differences),
        n_by_kind=count_kinds(standings),
        cases=standings,
        p_broken=chance_of_broken(standings, counted_scores),
        tested_by="all beside gates" if held_to and settings.counted_by == "all" else settings.counted_by,
        baseline_label=baseline_label,
        candidate_label=candidate_label,
        n_set_aside=n_set_aside,
        is_clustered=clusters is not None,
        incomplete=incomplete,
    )
    widths = [*(_width(each) for each in found), *[None] * (len(comparison.metrics) - len(found))]
    return replace(comparison, sentence=describe_result(comparison, widths))


def _with_evidence(
    metrics: Iterable[MetricComparison], candidate: ScoredRun, baseline: ScoredRun
) -> Iterable[MetricComparison]:
    """Verdicts of a run until decided: a test of fixed size does not hold where the values say when to stop."""
    shown = sequential_answers(candidate.header.settings)
    verdicts: dict[str | None, CompareVerdict] = {"yes": "no worse", "no": "regression", None: "cannot tell"}
    for each in metrics:
        answer = shown.get(baseline_subject(each.metric, each.backend, baseline.header.id))
        if answer is None or each.verdict not in ("regression", "no worse", "better", "cannot tell"):
            yield each
            continue
        verdict = verdicts[answer.answer]
        # Only a loss that is shown has a number to it: which others would have been seen is not known.
        p_value = answer.p_value if verdict == "regression" else None
        yield replace(each, verdict=verdict, reason=answer.text, p_adjusted=p_value, cases_needed=None)


def _gates_of(run: ScoredRun, gates: Iterable[Gate | str] | None) -> list[Gate]:
    """The gates of a run, or those given; one of its own that cannot be read is left to the decision to report."""
    if gates is not None:
        return [gate if isinstance(gate, Gate) else parse_gate(gate) for gate in gates]
    return stored_gates(run.header.settings)


def _ways_to_count(
    settings: ComparisonSettings, metrics: Sequence[str] | None, on: Sequence[str] | None, gates: Sequence[Gate]
) -> Iterable[ComparisonSettings]:
    """By what it is told which metrics count; where nothing that a gate names can be compared, by the general rule."""
    if on is not None:
        yield replace(settings, counted_by="named", counted=frozenset(on))
    elif metrics is not None:
        yield replace(settings, counted_by="named", counted=frozenset(metrics))
    else:
        if gates:
            # A gate on what people say is held to by their labels, not by the scores.
            by_scores = frozenset(gate.subject for gate in gates if gate.aggregate != LABELED)
            yield replace(settings, counted_by="gates", counted=by_scores)
        yield settings


def _counts(
    name: str, backend: str | None, info: MetricInfo, informational: bool, settings: ComparisonSettings
) -> bool:
    if settings.counted_by != "all" and f"{name}[{backend}]" in settings.counted:
        return True
    if settings.counted_by == "named":
        return name in settings.counted
    # Seconds differ from machine to machine, also where a gate limits them.
    if informational or info.direction == "none" or info.unit in CLOCK_UNITS:
        return False
    return settings.counted_by != "gates" or name in settings.counted


def _counted_scores(found: Sequence[Measured], gates: Sequence[Gate]) -> Iterable[CountedScores]:
    for each in found:
        metric, backend = each.comparison.metric, each.comparison.backend
        if each.comparison.gated and each.old is not None and each.new is not None:
            about = (gate for gate in gates if gate.metric == metric and gate.backend in (None, backend))
            yield CountedScores(metric, each.info, each.old, each.new, tuple(about))


def _width(each: Measured) -> float | None:
    return None if each.sample is None else each.sample.width


def _rescored_note(names: Sequence[str], before: ScoredRun, after: ScoredRun) -> Iterable[str]:
    """That scores of the baseline are not those that it was kept with."""
    changes = []
    for name in names:
        old, new = ({row.version for row in run.metrics[name] if row.value is not None} for run in (before, after))
        changes.append(f"{name} (version {'/'.join(sorted(old))} → {'/'.join(sorted(new)) or 'without a value'})")
    if changes:
        yield f"the baseline was scored again from its records with newer metrics: {', '.join(changes)}"


def _clusters_note(
    candidate: ScoredRun, baseline: ScoredRun, shared: Collection[str], clusters: Mapping[str, int] | None
) -> Iterable[str]:
    """That clusters were tested, not cases."""
    if clusters is not None:
        n_clusters = len({clusters[case_id] for case_id in shared if case_id in clusters})
        yield f"intervals and tests are over {n_clusters:,} {candidate.clusters or baseline.clusters}, not over cases"


def _repeats_note(found: Sequence[Measured]) -> Iterable[str]:
    """That not all repeats were compared."""
    if n_unequal := max((each.n_unequal for each in found), default=0):
        cases = "1 case has" if n_unequal == 1 else f"{n_unequal:,} cases have"
        yield f"{cases} more repeats in one of the runs: as many were tested as both have, the first ones"


def _left_out_note(found: Sequence[Measured]) -> Iterable[str]:
    """That informational scores beside others are not compared."""
    counts = {
        each.comparison.metric: (each.old.n_left_out, each.new.n_left_out)
        for each in found
        if each.old is not None and each.new is not None and (each.old.n_left_out or each.new.n_left_out)
    }
    if counts:
        parts = (f"{name} ({before:,} in the baseline, {after:,} now)" for name, (before, after) in counts.items())
        yield f"informational scores beside others are left out: {', '.join(parts)}"


def _note(info: MetricInfo, backend: str, informational: bool) -> str | None:
    if informational:
        return f"informational: {describe_trust(info, backend)}"
    if info.unit in CLOCK_UNITS:
        return "seconds differ from machine to machine: they count only when named (--metrics)"
    return None


def _other_judge(old: frozenset[str], new: frozenset[str]) -> str | None:
    """That different models judged: a difference may be theirs and not the agent's."""
    if old == new:
        return None
    before, after = (", ".join(sorted(each)) or "no model named" for each in (old, new))
    return f"judged by {before} in the baseline and by {after} in the candidate: a change may be the judge's"


def _too_few_shared(n_paired: int, n_baseline: int, settings: ComparisonSettings) -> str | None:
    if n_paired >= settings.min_coverage * n_baseline - 1e-9:
        return None
    return f"only {n_paired} of {n_baseline} cases are in both runs, {settings.min_coverage:.0%} are needed"


def _too_few_scored(candidate: ScoredRun, baseline: ScoredRun, settings: ComparisonSettings) -> str | None:
    """That scoring did not come to the end: the cases it did not come to may be those that went wrong."""
    for run in (baseline, candidate):
        if n_with_scores(run) < settings.min_coverage * len(run.records) - 1e-9:
            return f"too few of the recorded cases were scored, {settings.min_coverage:.0%} are needed"
    return None


def _compare_metric(
    name: str,
    info: MetricInfo,
    old: Mapping[str, BackendScores],
    new: Mapping[str, BackendScores],
    wanted: set[str | None],
    settings: ComparisonSettings,
    not_rescored: str | None = None,
    clusters: Mapping[str, int] | None = None,
) -> list[Measured]:
    """One comparison for each backend that scored in both runs; the others say why there is none."""
    # Sorted where they come from a set: a report must not depend on the order of hashes.
    only = sorted(each for each in wanted if each) if None not in wanted else []
    backends = only or list(dict.fromkeys([*old, *new]))
    shared = [backend for backend in backends if backend in old and backend in new]
    compared = []
    for backend in shared:
        informational = old[backend].informational or new[backend].informational
        start = MetricComparison(
            metric=name,
            backend=backend,
            verdict="not compared",
            reason="",
            gated=_counts(name, backend, info, informational, settings),
            direction=info.direction,
            unit=info.unit,
            note=_note(info, backend, informational) or _other_judge(old[backend].models, new[backend].models),
        )
        versions = old[backend].versions, new[backend].versions
        if versions[0] != versions[1] or len(versions[0]) > 1:
            both = " and ".join("/".join(sorted(each)) for each in versions)
            reason = f"versions {both} of the metric may not mean the same, and the baseline cannot be scored again"
            refused = replace(start, reason=f"{reason}: {not_rescored}" if not_rescored else reason)
            compared.append(Measured(refused, info))
        elif info.aggregate == "last":
            compared.append(Measured(_last_values(start, old[backend], new[backend]), info))
        else:
            compared.append(measure(start, info, old[backend], new[backend], settings, clusters))
    missing = [backend for backend in backends if backend not in shared]
    if missing or not backends:
        before = ", ".join(backend for backend in old if backend not in shared)
        after = ", ".join(backend for backend in new if backend not in shared)
        lost = [backend for backend in missing if backend in old and not old[backend].informational]
        counts = any(_counts(name, each, info, False, settings) for each in lost or missing or ("",))
        compared.append(
            Measured(
                MetricComparison(
                    metric=name,
                    backend=missing[0] if len(missing) == 1 else None,
                    verdict="not compared",
                    reason=_why_missing(before, after),
                    gated=counts and bool(lost or settings.counted_by == "named"),
                    direction=info.direction,
                    unit=info.unit,
                ),
                info,
            )
        )
    return compared


def _last_values(start: MetricComparison, old: BackendScores, new: BackendScores) -> MetricComparison:
    """Two balances beside each other: one number a run has no spread, so no test can tell them apart."""
    assert old.last is not None
    assert new.last is not None
    return replace(
        start,
        gated=False,
        verdict="shown only",
        reason="one balance a run, the last: hold it to a gate",
        n_pairs=1,
        baseline_mean=old.last,
        candidate_mean=new.last,
        difference=new.last - old.last,
    )


def _why_missing(before: str, after: str) -> str:
    if before and after:
        return f"scored by {before} in the baseline and by {after} in the candidate: their values do not compare"
    if before:
        return f"the candidate has no value of {before}, the baseline has"
    return f"new: the baseline has no value of {after}" if after else "no value in either run"

"""Whether a run is worse than a baseline: paired by case, metric by metric, in the direction that is worse for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentunit.engine.comparison import CaseChange, CompareVerdict, Comparison, MetricComparison, most_changed
from agentunit.engine.margins import Margin, margin_in_unit, range_width
from agentunit.engine.paired_scores import (
    ANSWERED,
    BackendScores,
    answered_scores,
    case_ids,
    check_names,
    scores_by_backend,
    wanted_backends,
)
from agentunit.engine.rescoring import rescore_baseline
from agentunit.engine.scored_run import ScoredRun
from agentunit.engine.tool_changes import tool_changes
from agentunit.formulas.paired import (
    Alternative,
    effect_size,
    holm,
    mcnemar_test,
    paired_bootstrap_interval,
    paired_permutation_test,
)
from agentunit.formulas.proportions import (
    bounded_mean_test,
    cases_needed,
    cases_to_show_no_worse,
    paired_proportion_interval,
    paired_proportion_test,
    smallest_detectable_effect,
)
from agentunit.formulas.statistics import Interval
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import describe_trust

CLOCK_UNITS = frozenset({"s", "ms"})
DEFAULT_ALPHA = 0.05
# A raw quantity has no worst value. No case is taken to grow by more than twice the mean, or than one was seen to.
WORST_GROWTH = 2.0
# Beyond some 1000 cases the sign-flip test gets fewer resamples: a second is enough to wait for a p-value.
_SIGN_BUDGET, _FEWEST_SIGNS, _MOST_SIGNS = 10_000_000, 999, 10_000


@dataclass(frozen=True)
class _Settings:
    margin: Margin | Mapping[str, Margin] | None
    alpha: float
    min_coverage: float
    resamples: int | None


def compare_runs(
    candidate: ScoredRun,
    baseline: ScoredRun,
    *,
    metrics: Sequence[str] | None = None,
    margin: Margin | Mapping[str, Margin] | None = None,
    alpha: float = DEFAULT_ALPHA,
    min_coverage: float = 0.8,
    resamples: int | None = None,
) -> Comparison:
    """Hold a run against a baseline, over the cases that both have.

    ``metrics`` limits the comparison to those named (``name`` or ``name[backend]``) and gates them all; without it,
    every metric is shown and those with a direction that are neither informational nor clock time are gated. A loss is
    a *regression* when it is significant (exact McNemar for pass/fail, sign flips otherwise, Holm over the gated
    metrics) and not shown to be smaller than the ``margin``. Without one it is *no worse* only when a loss of the
    margin is ruled out; that needs no Holm, since all must pass. When fewer than ``min_coverage`` of the baseline's
    cases are in both runs, or of a metric's scores, it does not pass: what is missing may be what went wrong. Where the
    agent failed in either run, ``answered`` is compared and gated, whatever ``metrics`` names: 1.0 for each repeat
    without a failure.
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"compare_runs: alpha must be above 0 and below 0.5; received {alpha!r}")
    if not 0.0 <= min_coverage <= 1.0:
        raise ValueError(f"compare_runs: min_coverage must be from 0 to 1; received {min_coverage!r}")
    settings = _Settings(margin, alpha, min_coverage, resamples)
    names = list(dict.fromkeys([*baseline.metrics, *candidate.metrics]))
    recorded = bool(baseline.records and candidate.records)
    known = {
        name: dict.fromkeys(row.backend for run in (baseline, candidate) for row in run.metrics.get(name, ()))
        for name in names
    }
    if recorded:
        known.setdefault(ANSWERED.name, {ANSWERED.backend: None})
    check_names("metrics", metrics or (), known)
    check_names("margin", margin if isinstance(margin, Mapping) else (), known)
    compared_names = [name for name in names if wanted_backends(name, metrics) is not None]
    before = baseline
    baseline, rescored, refused = rescore_baseline(candidate, baseline, compared_names)
    baseline_cases, candidate_cases = case_ids(baseline), case_ids(candidate)
    found: list[MetricComparison] = []
    for name in compared_names:
        info = candidate.infos.get(name) or baseline.info(name)
        old = scores_by_backend(baseline.metrics.get(name, ()))
        new = scores_by_backend(candidate.metrics.get(name, ()))
        wanted = wanted_backends(name, metrics) or set()
        found += _compare_metric(name, info, old, new, wanted, settings, refused.get(name))
    asked_for = metrics is not None and wanted_backends(ANSWERED.name, metrics) is not None
    if recorded and (asked_for or any(record.failed for run in (baseline, candidate) for record in run.records)):
        old, new = answered_scores(baseline), answered_scores(candidate)
        found += _compare_metric(ANSWERED.name, ANSWERED, old, new, set(), settings)
    n_paired = len(baseline_cases & candidate_cases)
    tools, not_compared = tool_changes(candidate, baseline, baseline_cases & candidate_cases)
    fingerprints = {run.header.settings.get("dataset_fingerprint") for run in (baseline, candidate)} - {None}
    return Comparison(
        baseline=baseline.header.id,
        candidate=candidate.header.id,
        n_paired=n_paired,
        n_only_baseline=len(baseline_cases - candidate_cases),
        n_only_candidate=len(candidate_cases - baseline_cases),
        alpha=alpha,
        metrics=tuple(_with_verdicts(found, _too_few_shared(n_paired, len(baseline_cases), settings), settings)),
        note="; ".join(
            [
                *(["the datasets differ: cases of the same id may not be the same case"] * (len(fingerprints) > 1)),
                *_rescored_note(rescored, before, baseline),
                *([not_compared] if not_compared else []),
            ]
        )
        or None,
        tools=tools,
    )


def _rescored_note(names: Sequence[str], before: ScoredRun, after: ScoredRun) -> Iterable[str]:
    """That scores of the baseline are not those that it was kept with."""
    changes = []
    for name in names:
        old, new = ({row.version for row in run.metrics[name] if row.value is not None} for run in (before, after))
        changes.append(f"{name} (version {'/'.join(sorted(old))} → {'/'.join(sorted(new)) or 'without a value'})")
    if changes:
        yield f"the baseline was scored again from its records with newer metrics: {', '.join(changes)}"


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


def _too_few_shared(n_paired: int, n_baseline: int, settings: _Settings) -> str | None:
    if n_paired >= settings.min_coverage * n_baseline - 1e-9:
        return None
    return f"only {n_paired} of {n_baseline} cases are in both runs, {settings.min_coverage:.0%} are needed"


def _compare_metric(
    name: str,
    info: MetricInfo,
    old: Mapping[str, BackendScores],
    new: Mapping[str, BackendScores],
    wanted: set[str | None],
    settings: _Settings,
    not_rescored: str | None = None,
) -> list[MetricComparison]:
    """One comparison for each backend that scored in both runs; the others say why there is none."""
    named = bool(wanted)
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
            gated=named or (not informational and info.direction != "none" and info.unit not in CLOCK_UNITS),
            direction=info.direction,
            unit=info.unit,
            note=_note(info, backend, informational) or _other_judge(old[backend].models, new[backend].models),
        )
        versions = old[backend].versions, new[backend].versions
        if versions[0] != versions[1] or len(versions[0]) > 1:
            both = " and ".join("/".join(sorted(each)) for each in versions)
            reason = f"versions {both} of the metric may not mean the same, and the baseline cannot be scored again"
            compared.append(replace(start, reason=f"{reason}: {not_rescored}" if not_rescored else reason))
        elif info.aggregate == "last":
            compared.append(_last_values(start, old[backend], new[backend]))
        else:
            compared.append(_measure(start, info, old[backend].values, new[backend].values, settings))
    missing = [backend for backend in backends if backend not in shared]
    if missing or not backends:
        before = ", ".join(backend for backend in old if backend not in shared)
        after = ", ".join(backend for backend in new if backend not in shared)
        lost = any(not old[backend].informational for backend in missing if backend in old)
        compared.append(
            MetricComparison(
                metric=name,
                backend=missing[0] if len(missing) == 1 else None,
                verdict="not compared",
                reason=_why_missing(before, after),
                gated=named or (lost and info.direction != "none"),
                direction=info.direction,
                unit=info.unit,
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


def _measure(
    start: MetricComparison,
    info: MetricInfo,
    old: Mapping[str, float],
    new: Mapping[str, float],
    settings: _Settings,
) -> MetricComparison:
    """All numbers of a comparison; the verdict waits until Holm has seen the other metrics."""
    paired = [CaseChange(case_id, value, new[case_id]) for case_id, value in old.items() if case_id in new]
    n_lost = len(old) - len(paired)
    if not paired:
        return replace(start, n_lost=n_lost, reason="no case has a value in both runs")
    sign = -1.0 if info.direction == "lower" else 1.0
    one_way = info.direction != "none"
    n = len(paired)
    differences = [change.candidate - change.baseline for change in paired]
    gains = [sign * difference for difference in differences]
    baseline_mean = math.fsum([change.baseline for change in paired]) / n
    candidate_mean = math.fsum([change.candidate for change in paired]) / n
    values = [value for change in paired for value in (change.baseline, change.candidate)]
    width = range_width(info, values)
    pass_or_fail = info.unit == "score" and width == 1.0 and all(value in (0.0, 1.0) for value in values)
    scale = abs(baseline_mean) or abs(candidate_mean) or 1.0
    margin = margin_in_unit(start.metric, start.backend, settings.margin, width, scale)
    worst = max(width or max(WORST_GROWTH * scale, 2.0 * margin), -min(gains))
    spread = _spread(differences)
    interval: Interval | None
    p_no_worse: float | None
    if pass_or_fail:
        b, c = gains.count(1.0), gains.count(-1.0)
        p_less, p_more = mcnemar_test(b, c, alternative="less"), mcnemar_test(b, c, alternative="greater")
        p_either = mcnemar_test(b, c)
        p_no_worse = paired_proportion_test(b, c, n, margin=margin)
        interval = paired_proportion_interval(differences.count(1.0), differences.count(-1.0), n)
    else:
        p_less, p_more = _sign_flip(gains, "less", settings), _sign_flip(gains, "greater", settings)
        p_either = _sign_flip(gains, "two-sided", settings) if not one_way else 1.0
        p_no_worse = bounded_mean_test(gains, margin=margin, worst=worst)
        resamples = 1000 if settings.resamples is None else settings.resamples
        interval = paired_bootstrap_interval(differences, resamples=resamples)
    limit = math.inf if width is None else width
    measured = replace(
        start,
        n_pairs=n,
        n_lost=n_lost,
        baseline_mean=baseline_mean,
        candidate_mean=candidate_mean,
        difference=math.fsum(differences) / n,
        low=max(-limit, interval.low) if interval else None,
        high=min(limit, interval.high) if interval else None,
        effect_size=effect_size(differences),
        test="mcnemar" if pass_or_fail else "sign-flip",
        p_worse=p_less if one_way else p_either,
        p_better=p_more if one_way else None,
        p_no_worse=p_no_worse if one_way else None,
        margin=margin if one_way else None,
        worst_assumed=worst if one_way and width is None else None,
        smallest_detectable=smallest_detectable_effect(spread, n, alpha=settings.alpha) if spread else None,
        got_worse=most_changed(paired, sign),
        got_better=most_changed(paired, -sign),
    )
    if not one_way:
        return replace(measured, verdict="shown only", reason="neither way is better, so it cannot get worse")
    needed = _cases_to_settle(measured, spread, None if pass_or_fail else worst, settings.alpha)
    return replace(measured, verdict="cannot tell", cases_needed=needed)


def _with_verdicts(
    found: Sequence[MetricComparison], too_few_shared: str | None, settings: _Settings
) -> Iterable[MetricComparison]:
    """Holm over the gated metrics, then each one's verdict; none passes where too few cases are in both runs."""
    gated = [each for each in found if each.verdict == "cannot tell" and each.gated]
    worse = iter(holm([each.p_worse or 0.0 for each in gated]))
    better = iter(holm([each.p_better or 0.0 for each in gated]))
    for each in found:
        if each.verdict == "cannot tell":
            p_worse = next(worse) if each.gated else each.p_worse
            p_better = next(better) if each.gated else each.p_better or 0.0
            yield _decided(replace(each, p_adjusted=p_worse), p_better, len(gated), too_few_shared, settings)
        else:
            yield each


def _decided(
    each: MetricComparison, p_better: float, n_tests: int, too_few_shared: str | None, settings: _Settings
) -> MetricComparison:
    assert each.p_adjusted is not None
    assert each.p_no_worse is not None
    assert each.difference is not None
    within_margin = each.p_no_worse < settings.alpha
    size = f"{abs(each.difference):.3g}"
    holm_note = f" after Holm over {n_tests} metrics" if each.gated and n_tests > 1 else ""
    if each.p_adjusted < settings.alpha and not within_margin:
        reason = f"worse by {size}, p {_p(each.p_adjusted)}{holm_note}"
        return replace(each, verdict="regression", reason=reason, cases_needed=None)
    passed: CompareVerdict | None = None
    reason = ""
    if p_better < settings.alpha:
        passed, reason = "better", f"better by {size}, p {_p(p_better)}{holm_note}"
    elif within_margin:
        loss = f"worse by {size}, but " if each.p_adjusted < settings.alpha else ""
        reason = f"{loss}worse by {each.margin:.3g} is ruled out, p {_p(each.p_no_worse)}"
        if each.worst_assumed is not None:
            grows = "grows" if each.direction == "lower" else "falls"
            reason += f", assuming that no unseen case {grows} by more than {each.worst_assumed:.3g}"
        passed = "no worse"
    if passed and too_few_shared:
        return replace(each, reason=f"{too_few_shared}; otherwise {passed}", cases_needed=None)
    n_before = each.n_pairs + each.n_lost
    if passed and each.n_lost > (1.0 - settings.min_coverage) * n_before + 1e-9:
        reason = f"{each.n_lost} of {n_before} cases lost their score, which may be what went wrong; otherwise {passed}"
        return replace(each, reason=reason, cases_needed=None)
    if passed:
        return replace(each, verdict=passed, reason=reason, cases_needed=None)
    pairs = "1 case shows" if each.n_pairs == 1 else f"{each.n_pairs} cases show"
    settle = "" if each.cases_needed is None else f"; about {each.cases_needed:,} would settle it"
    reason = f"{pairs} neither that it is worse nor that it is worse by less than {each.margin:.3g}{settle}"
    return replace(each, reason=reason)


def _cases_to_settle(each: MetricComparison, spread: float | None, worst: float | None, alpha: float) -> int | None:
    """How many cases would show that it is no worse, if nothing changed; beyond that, going by the loss seen."""
    assert each.margin is not None
    assert each.difference is not None
    sd = spread or 0.0
    needed = cases_to_show_no_worse(each.margin, sd, worst=worst, alpha=alpha)
    if needed is None or needed > each.n_pairs:
        return needed
    loss = each.difference if each.direction == "lower" else -each.difference
    ways = [cases_needed(loss, sd, alpha=alpha)] if loss > 0.0 else []
    to_spare = min(each.margin - loss, 0.99 * (worst or 1.0))
    if to_spare > 0.0:
        ways.append(cases_to_show_no_worse(to_spare, sd, worst=worst, alpha=alpha))
    known = [way for way in ways if way is not None]
    return max(each.n_pairs + 1, min(known)) if known else None


def _sign_flip(gains: Sequence[float], alternative: Alternative, settings: _Settings) -> float:
    budget = max(_FEWEST_SIGNS, min(_MOST_SIGNS, _SIGN_BUDGET // len(gains)))
    p_value = paired_permutation_test(gains, alternative=alternative, resamples=settings.resamples or budget)
    return 1.0 if p_value is None else p_value


def _spread(differences: Sequence[float]) -> float | None:
    n = len(differences)
    if n < 2:
        return None
    mean = math.fsum(differences) / n
    return math.sqrt(math.fsum([(difference - mean) ** 2 for difference in differences]) / (n - 1))


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 0.001 else "< 0.001"

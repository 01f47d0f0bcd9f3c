"""The paired test of one metric: its numbers, and the verdict once Holm has seen the other metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentunit.engine.comparison import CaseChange, CompareVerdict, MetricComparison, TestedBy, most_changed
from agentunit.engine.detectable import (
    ROUNDING,
    Sample,
    cases_to_settle,
    describe_holm,
    describe_not_ruled_out,
    describe_power,
    describe_seen,
    loss_seen,
    spread,
)
from agentunit.engine.margins import Margin, margin_in_unit, range_width
from agentunit.engine.paired_scores import BackendScores, equally_repeated
from agentunit.formulas.paired import (
    Alternative,
    effect_size,
    holm,
    mcnemar_test,
    paired_bootstrap_interval,
    paired_permutation_test,
)
from agentunit.formulas.proportions import bounded_mean_test, paired_proportion_interval, paired_proportion_test
from agentunit.formulas.running import ClusterTotals
from agentunit.formulas.statistics import Interval
from agentunit.metrics.base import MetricInfo

# A raw quantity has no worst value. No case is taken to grow by more than twice the mean, or than one was seen to.
WORST_GROWTH = 2.0
# Beyond some 1000 cases the sign-flip test gets fewer resamples: a second is enough to wait for a p-value.
_SIGN_BUDGET, _FEWEST_SIGNS, _MOST_SIGNS = 10_000_000, 999, 10_000


@dataclass(frozen=True)
class ComparisonSettings:
    """How strictly runs are compared, and which metrics count.

    ``counted`` are the labels of the metrics that count, where ``counted_by`` is not "all".
    """

    margin: Margin | Mapping[str, Margin] | None
    alpha: float
    min_coverage: float
    resamples: int | None
    counted_by: TestedBy = "all"
    counted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Measured:
    """One comparison before its verdict, with the scores of both runs, in all of their repeats."""

    comparison: MetricComparison
    info: MetricInfo
    old: BackendScores | None = None
    new: BackendScores | None = None
    sample: Sample | None = None
    n_unequal: int = 0
    """The cases that one of the runs repeated more often, of which the first repeats are compared."""
    is_same: bool = False
    """Whether every case has the same value in both runs, over all of their repeats."""

    @property
    def gains(self) -> dict[str, float]:
        """By how much each case got better."""
        if self.sample is None or self.old is None or self.new is None:
            return {}
        shared = [case_id for case_id in self.old.values if case_id in self.new.values]
        return dict(zip(shared, self.sample.gains, strict=True))


def measure(
    start: MetricComparison,
    info: MetricInfo,
    old: BackendScores,
    new: BackendScores,
    settings: ComparisonSettings,
    clusters: Mapping[str, int] | None = None,
) -> Measured:
    """All numbers of a comparison; the verdict waits until Holm has seen the other metrics.

    Of each case as many repeats are compared as both runs have. Where cases belong to ``clusters``, what is tested is
    the sum of each cluster: a cluster is lost or won as a whole.
    """
    whole = old, new
    old, new, n_unequal = equally_repeated(*whole)
    shared = [(case_id, value) for case_id, value in old.values.items() if case_id in new.values]
    paired = [CaseChange(case_id, value, new.values[case_id]) for case_id, value in shared]
    n_lost = len(old.values) - len(paired)
    if not paired:
        return Measured(replace(start, n_lost=n_lost, reason="no case has a value in both runs"), info)
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
    tested, times = gains, 1.0
    totals: ClusterTotals | None = None
    if clusters is not None:
        totals = ClusterTotals()
        for place, (change, gain) in enumerate(zip(paired, gains, strict=True)):
            totals.add(clusters.get(change.case_id, -1 - place), gain)
        tested, times = totals.scaled_totals()
        # A cluster's sum is neither a pass nor a failure.
        pass_or_fail = False
    sample = Sample(gains, width, pass_or_fail, None if totals is None else tested)
    interval: Interval | None
    p_less = p_more = p_either = p_no_worse = None
    if pass_or_fail:
        b, c = gains.count(1.0), gains.count(-1.0)
        interval = paired_proportion_interval(differences.count(1.0), differences.count(-1.0), n)
    elif totals is not None:
        interval = totals.interval()
        if interval is not None and sign < 0.0:
            interval = Interval(-interval.high, -interval.low, interval.method)
        if interval is not None and all(value in (0.0, 1.0) for value in values):
            # Clusters that happen to change alike must not claim ± 0.
            plain = paired_proportion_interval(differences.count(1.0), differences.count(-1.0), n)
            interval = Interval(min(interval.low, plain.low), max(interval.high, plain.high), interval.method)
    else:
        resamples = 1000 if settings.resamples is None else settings.resamples
        interval = paired_bootstrap_interval(differences, resamples=resamples)
    if start.gated and pass_or_fail:
        p_less, p_more = mcnemar_test(b, c, alternative="less"), mcnemar_test(b, c, alternative="greater")
        p_either = mcnemar_test(b, c)
        p_no_worse = paired_proportion_test(b, c, n, margin=margin)
    elif start.gated:
        p_less, p_more = _sign_flip(tested, "less", settings), _sign_flip(tested, "greater", settings)
        p_either = _sign_flip(tested, "two-sided", settings) if not one_way else 1.0
        p_no_worse = bounded_mean_test(tested, margin=margin, worst=worst * times)
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
        test=("mcnemar" if pass_or_fail else "sign-flip") if start.gated else None,
        p_worse=p_less if one_way else p_either,
        p_better=p_more if one_way else None,
        p_no_worse=p_no_worse if one_way else None,
        margin=margin if one_way else None,
        worst_assumed=worst if one_way and width is None else None,
        got_worse=most_changed(paired, sign),
        got_better=most_changed(paired, -sign),
    )
    # A repeat that only one run has may have changed, too: it is not tested, and yet the runs are not the same.
    is_same = not sample.n_changed and all(
        abs(whole[1].values[case_id] - value) <= ROUNDING
        for case_id, value in whole[0].values.items()
        if case_id in whole[1].values
    )
    found = Measured(measured, info, *whole, sample, n_unequal, is_same)
    if is_same and start.gated:
        same = replace(measured, reason="no value changed", p_adjusted=measured.p_worse)
        return replace(found, comparison=replace(same, verdict="cannot tell" if one_way else "no change"))
    if not one_way or not start.gated:
        reason = "described, not tested" if one_way else "neither way is better, so it cannot get worse"
        return replace(found, comparison=replace(measured, verdict="shown only", reason=reason))
    needed = None
    if totals is None:
        needed = cases_to_settle(measured, spread(differences), None if pass_or_fail else worst, settings.alpha)
    return replace(found, comparison=replace(measured, verdict="cannot tell", cases_needed=needed))


def with_verdicts(
    found: Sequence[Measured], too_few_shared: str | None, settings: ComparisonSettings
) -> Iterable[MetricComparison]:
    """Holm over the metrics that count, then each one's verdict; none passes where too few cases are in both runs.

    A metric on which so few cases changed that no p-value could be below alpha takes nothing from the others (Tarone,
    Biometrics 46, 1990). Metrics that changed alike on every case (a rate and 1 minus that rate) ask one question:
    they are one of the family.
    """
    first_of: dict[int, Measured] = {}
    family: list[Measured] = []
    for each in found:
        if each.comparison.verdict == "cannot tell" and each.sample and each.sample.can_show(settings.alpha):
            first_of[id(each)] = next((other for other in family if _changed_alike(each, other)), each)
            if first_of[id(each)] is each:
                family.append(each)
    worse = dict(zip(map(id, family), holm([each.comparison.p_worse or 0.0 for each in family]), strict=True))
    better = dict(zip(map(id, family), holm([each.comparison.p_better or 0.0 for each in family]), strict=True))
    for each in found:
        comparison, sample = each.comparison, each.sample
        if comparison.verdict != "cannot tell" or sample is None:
            yield comparison
            continue
        first = first_of.get(id(each))
        n_tests = len(family) + (first is None)
        comparison = replace(
            comparison,
            p_adjusted=comparison.p_worse if first is None else worse[id(first)],
            n_tests=n_tests,
            smallest_detectable=sample.smallest_detectable(settings.alpha / n_tests),
        )
        p_better = 1.0 if first is None else better[id(first)]
        decided = _decided(comparison, each, p_better, too_few_shared, settings)
        if first is not None and first is not each:
            same = f"changed as {first.comparison.metric} did on every case, so both count as one metric"
            decided = replace(decided, reason=f"{decided.reason}; {same}")
        yield decided


def _changed_alike(each: Measured, other: Measured) -> bool:
    """Whether two metrics got better or worse by the same amount on every case."""
    ours, theirs = each.gains, other.gains
    return ours.keys() == theirs.keys() and all(abs(gain - theirs[key]) <= ROUNDING for key, gain in ours.items())


def _decided(
    each: MetricComparison,
    measured: Measured,
    p_better: float,
    too_few_shared: str | None,
    settings: ComparisonSettings,
) -> MetricComparison:
    sample = measured.sample
    assert sample is not None
    assert each.p_adjusted is not None
    assert each.p_no_worse is not None
    assert each.difference is not None
    within_margin = each.p_no_worse < settings.alpha
    size = f"{abs(each.difference):.3g}"
    holm_note = describe_holm(each)
    loss = "rise" if each.direction == "lower" else "drop"
    not_ruled_out = describe_not_ruled_out(each, sample.width)
    if each.p_adjusted < settings.alpha and not within_margin:
        reason = f"worse by {size}, p {_p(each.p_adjusted)}{holm_note}"
        if loss_seen(each) < (each.margin or 0.0):
            reason += f"; that is less than the margin, but a {loss} {not_ruled_out}"
        return replace(each, verdict="regression", reason=reason, cases_needed=None)
    passed: CompareVerdict | None = None
    reason = ""
    if measured.is_same:
        passed, reason = "no change", "no value changed"
    elif p_better < settings.alpha:
        passed, reason = "better", f"better by {size}, p {_p(p_better)}{holm_note}"
    elif within_margin:
        significant = f"worse by {size}, but " if each.p_adjusted < settings.alpha else ""
        reason = f"{significant}worse by {each.margin:.3g} is ruled out, p {_p(each.p_no_worse)}"
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
    pairs = "1 case" if each.n_pairs == 1 else f"{each.n_pairs:,} cases"
    settle = "" if each.cases_needed is None else f"; about {each.cases_needed:,} cases would settle it"
    power = describe_power(each, sample.width)
    if loss_seen(each):
        seen = f"{describe_seen(each, sample.width, settings.alpha)}; {power}"
        ruled_out = f"; one {not_ruled_out}"
    else:
        seen, ruled_out = power, f"; none was, but a {loss} {not_ruled_out}"
    reason = f"{pairs}: {seen}{ruled_out if each.smallest_detectable else ''}{settle}"
    return replace(each, reason=reason)


def _sign_flip(gains: Sequence[float], alternative: Alternative, settings: ComparisonSettings) -> float:
    budget = max(_FEWEST_SIGNS, min(_MOST_SIGNS, _SIGN_BUDGET // len(gains)))
    p_value = paired_permutation_test(gains, alternative=alternative, resamples=settings.resamples or budget)
    return 1.0 if p_value is None else p_value


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 0.001 else "< 0.001"

"""The paired test of one metric: its numbers, and the verdict once Holm has seen the other metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentunit.engine.deciding.comparison import (
    CaseChange,
    Comparison,
    MetricComparison,
    ScoreChange,
    TestedBy,
    most_changed,
)
from agentunit.engine.deciding.cut_offs import Margin, margin_in_unit, range_width, within
from agentunit.engine.deciding.paired_scores import BackendScores, equally_repeated
from agentunit.formulas.paired import (
    Alternative,
    effect_size,
    holm,
    mcnemar_test,
    paired_bootstrap_interval,
    paired_permutation_test,
    smallest_detectable_drop,
)
from agentunit.formulas.proportions import (
    bounded_mean_test,
    cases_needed,
    cases_to_show_no_worse,
    paired_proportion_interval,
    paired_proportion_test,
    smallest_detectable_effect,
)
from agentunit.formulas.running import ClusterTotals
from agentunit.formulas.statistics import Interval
from agentunit.metrics.base import MetricInfo

# What a comparison of this size could have shown, and the one sentence that says what it did show.

POWER = 0.8
ROUNDING = 1e-12
_METRICS_NAMED = 3
_LEAST_ALPHA = 1e-6


@dataclass(frozen=True)
class Sample:
    """The gains of one metric by case, higher being better, and how its test counts them.

    ``width`` is that of the metric's range, ``None`` for a quantity; ``is_pass_fail`` picks McNemar's test. Where cases
    come in clusters, ``by_cluster`` are the gains that are tested in place of those of cases.
    """

    gains: Sequence[float]
    width: float | None
    is_pass_fail: bool
    by_cluster: Sequence[float] | None = None

    @property
    def tested(self) -> Sequence[float]:
        """The independent gains."""
        return self.gains if self.by_cluster is None else self.by_cluster

    @property
    def n_changed(self) -> int:
        """The cases with another value."""
        return sum(abs(gain) > ROUNDING for gain in self.gains)

    def can_show(self, alpha: float) -> bool:
        """Whether any choice of signs is significant: k changed cases have no p-value below 2^-k."""
        return bool(0.5 ** sum(abs(gain) > ROUNDING for gain in self.tested) < alpha)

    def smallest_detectable(self, alpha: float) -> float | None:
        """The mean loss that the test finds with a chance of 80 %; ``None`` where no loss is found that often.

        A loss is taken to come all at once, in few cases: that is how agents break, and it is the hardest to find. A
        quantity has no worst value, so all its cases are taken to shift alike.
        """
        n, alpha = len(self.tested), max(alpha, _LEAST_ALPHA)
        if self.is_pass_fail:
            gained = sum(gain > 0.0 for gain in self.gains)
            return smallest_detectable_drop(gained, self.n_changed - gained, n, alpha=alpha, power=POWER)
        if 0.5**n >= alpha:
            return None
        sd = spread(self.tested) or 0.0
        if self.width is None:
            return smallest_detectable_effect(sd, n, alpha=alpha, power=POWER) if sd else None
        least = smallest_detectable_drop(0, 0, n, alpha=alpha, power=POWER)
        if least is None:
            return None
        missed, found = least * self.width, self.width
        if self._finds(missed, sd, alpha):
            return missed
        while found - missed > 1e-5 * self.width:
            middle = (missed + found) / 2.0
            missed, found = (missed, middle) if self._finds(middle, sd, alpha) else (middle, found)
        return found

    def _finds(self, loss: float, sd: float, alpha: float) -> bool:
        assert self.width is not None
        # Cases that lose the whole width, as many as make up the loss, add their own spread.
        both = math.sqrt(sd * sd + loss * (self.width - loss))
        return smallest_detectable_effect(both, len(self.tested), alpha=alpha, power=POWER) <= loss


def spread(differences: Sequence[float]) -> float | None:
    """The standard deviation of differences; ``None`` for fewer than two."""
    n = len(differences)
    if n < 2:
        return None
    mean = math.fsum(differences) / n
    return math.sqrt(math.fsum([(difference - mean) ** 2 for difference in differences]) / (n - 1))


def cases_to_settle(each: MetricComparison, sd: float | None, worst: float | None, alpha: float) -> int | None:
    """How many cases would show that it is no worse, if nothing changed; beyond that, going by the loss seen."""
    assert each.margin is not None
    assert each.difference is not None
    sd = sd or 0.0
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


def describe_loss(each: MetricComparison, amount: float, width: float | None) -> str:
    """A loss as a person says it: in points of a share, in percent of a quantity, else in the metric's unit."""
    if each.unit == "score" and width == 1.0:
        points = 100.0 * amount
        shown = f"{points:.0f}" if points >= 9.5 else f"{points:.2g}"
        return f"{shown} {'point' if shown == '1' else 'points'}"
    if width is None and each.baseline_mean:
        percent = 100.0 * amount / abs(each.baseline_mean)
        return f"{percent:,.0f} %" if percent >= 9.5 else f"{percent:.2g} %"
    return f"{amount:.3g}"


def describe_power(each: MetricComparison, width: float | None) -> str:
    """What the test of one metric would have found, with a chance of 80 %.

    >>> each = MetricComparison("task_success", "b", "cannot tell", "", True, "higher", smallest_detectable=0.0997)
    >>> describe_power(each, 1.0)
    'a drop of 10 points or more would have been seen'
    """
    noun = "rise" if each.direction == "lower" else "drop"
    if each.smallest_detectable is None:
        return f"too few cases to see any {noun}"
    return f"a {noun} of {describe_loss(each, each.smallest_detectable, width)} or more would have been seen"


def describe_not_ruled_out(each: MetricComparison, width: float | None) -> str:
    """That a loss of the margin is not ruled out, and why, where the interval alone would say otherwise.

    >>> each = MetricComparison("m", "b", "cannot tell", "", True, "higher", low=-0.1, high=0.1, margin=0.05)
    >>> describe_not_ruled_out(each, 1.0)
    'a drop of 5 points is not ruled out'
    """
    assert each.margin is not None
    noun = "rise" if each.direction == "lower" else "drop"
    said = f"a {noun} of {describe_loss(each, each.margin, width)} is not ruled out"
    reaches = each.high if each.direction == "lower" else None if each.low is None else -each.low
    worst = each.worst_assumed or width
    if reaches is None or reaches >= each.margin or worst is None:
        return said
    rare = f"1 case in {max(2, round(worst / each.margin)):,}"
    return f"{said}: the interval is of these cases, and {rare} that breaks may not be among them"


def describe_result(comparison: Comparison, widths: Sequence[float | None]) -> str:
    """What the tested metrics show, in one sentence. ``widths`` are those of the metrics' ranges."""
    tested = [
        (label, each, width)
        for label, each, width in zip(comparison.labels, comparison.metrics, widths, strict=True)
        if each.gated and each.p_adjusted is not None
    ]
    lost = [
        f"{label} {'rose' if each.direction == 'lower' else 'fell'} by "
        f"{describe_loss(each, abs(each.difference or 0.0), width)} (p {describe_p(each.p_adjusted or 0.0)})"
        for label, each, width in tested
        if each.verdict == "regression"
    ]
    if lost:
        more = f" and {len(lost) - _METRICS_NAMED} more got worse" if len(lost) > _METRICS_NAMED else ""
        return f"{', '.join(lost[:_METRICS_NAMED])}{more}"
    open_ = [entry for entry in tested if entry[1].verdict != "no change"]
    seen = [
        f"{'a rise' if each.direction == 'lower' else 'a drop'} of "
        f"{describe_loss(each, each.smallest_detectable, width)} or more in {label}"
        for label, each, width in open_
        if each.smallest_detectable is not None
    ]
    if not seen:
        return "no tested score changed" if tested and not open_ else ""
    others = f" (and in {len(seen) - _METRICS_NAMED} more)" if len(seen) > _METRICS_NAMED else ""
    return f"{', or '.join(seen[:_METRICS_NAMED])}{others} would have been seen"


def describe_p(value: float) -> str:
    """A p-value as one writes it."""
    return f"= {value:.2g}" if value >= 0.001 else "< 0.001"


# A raw quantity has no worst value. No case is taken to grow by more than twice the mean, or than one was seen to.
WORST_GROWTH = 2.0
# Beyond some 1000 cases the sign-flip test gets fewer resamples: a second is enough to wait for a p-value.
_SIGN_BUDGET, _FEWEST_SIGNS, _MOST_SIGNS = 10_000_000, 999, 10_000
MARGIN_ALPHA = 0.05
"""How sure it must be that a loss is smaller than the margin."""


@dataclass(frozen=True)
class ComparisonSettings:
    """How strictly runs are compared, and which metrics count: ``counted`` are their labels.

    Without a ``margin`` the question is whether anything got worse; with one, a loss of that size must be ruled out.
    """

    margin: Margin | Mapping[str, Margin] | None
    alpha: float
    min_coverage: float
    resamples: int | None
    counted_by: TestedBy = "nothing"
    counted: frozenset[str] = frozenset()

    def margin_of(self, each: MetricComparison, width: float | None, scale: float) -> float | None:
        """The loss of one metric that must be ruled out, in its unit."""
        return margin_in_unit(each.metric, each.backend, self.margin, width, scale)


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

    def gains_of_cases(self) -> Iterable[tuple[str, float]]:
        """By how much each case got better, over all of its repeats."""
        if self.old is None or self.new is None:
            return
        for case_id, before in self.old.values.items():
            now = self.new.values.get(case_id)
            if now is not None:
                yield case_id, before - now if self.info.direction == "lower" else now - before

    def score_change(self, case_id: str) -> ScoreChange:
        """How the metric changed on a case."""
        assert self.old is not None
        assert self.new is not None
        label = self.comparison.metric
        return ScoreChange(label, self.old.values[case_id], self.new.values[case_id], self.info.unit)

    def telling_repeats(self, case_id: str, *, is_loss: bool) -> tuple[int, int]:
        """Of a loss the best repeat before and the worst now, of a gain the other way round."""
        assert self.old is not None
        assert self.new is not None
        (old_low, old_high), (new_low, new_high) = self.old.extremes(case_id), self.new.extremes(case_id)
        higher_first = is_loss != (self.info.direction == "lower")
        return (old_high, new_low) if higher_first else (old_low, new_high)

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
    gains = differences if sign > 0.0 else [-difference for difference in differences]
    baseline_mean = math.fsum([change.baseline for change in paired]) / n
    candidate_mean = math.fsum([change.candidate for change in paired]) / n
    values = [value for change in paired for value in (change.baseline, change.candidate)]
    width = range_width(info, values)
    pass_or_fail = info.unit == "score" and width == 1.0 and all(value in (0.0, 1.0) for value in values)
    scale = abs(baseline_mean) or abs(candidate_mean) or 1.0
    margin = settings.margin_of(start, width, scale)
    worst = max(width or max(WORST_GROWTH * scale, 2.0 * (margin or 0.0)), -min(gains))
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
        p_no_worse = None if margin is None else paired_proportion_test(b, c, n, margin=margin)
    elif start.gated:
        p_less, p_more = _sign_flip(tested, "less", settings), _sign_flip(tested, "greater", settings)
        p_either = _sign_flip(tested, "two-sided", settings) if not one_way else 1.0
        p_no_worse = None if margin is None else bounded_mean_test(tested, margin=margin, worst=worst * times)
    if width is not None:
        interval = within(interval, (-width, width))
    measured = replace(
        start,
        n_pairs=n,
        n_lost=n_lost,
        baseline_mean=baseline_mean,
        candidate_mean=candidate_mean,
        difference=math.fsum(differences) / n,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        effect_size=effect_size(differences),
        test=("mcnemar" if pass_or_fail else "sign-flip") if start.gated else None,
        p_worse=p_less if one_way else p_either,
        p_better=p_more if one_way else None,
        p_no_worse=p_no_worse if one_way else None,
        margin=margin if one_way else None,
        worst_assumed=worst if one_way and width is None and margin is not None else None,
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
    if totals is None and margin is not None:
        needed = cases_to_settle(measured, spread(differences), None if pass_or_fail else worst, MARGIN_ALPHA)
    return replace(found, comparison=replace(measured, verdict="cannot tell", cases_needed=needed))


def with_verdicts(found: Sequence[Measured], settings: ComparisonSettings) -> Iterable[MetricComparison]:
    """Holm over the metrics that count, then each one's verdict.

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
        yield _decided(comparison, each, p_better, settings)


def _changed_alike(each: Measured, other: Measured) -> bool:
    """Whether two metrics got better or worse by the same amount on every case."""
    ours, theirs = each.gains, other.gains
    return ours.keys() == theirs.keys() and all(abs(gain - theirs[key]) <= ROUNDING for key, gain in ours.items())


def _decided(
    each: MetricComparison, measured: Measured, p_better: float, settings: ComparisonSettings
) -> MetricComparison:
    """What became of one metric that counts."""
    sample = measured.sample
    assert sample is not None
    assert each.p_adjusted is not None
    assert each.difference is not None
    size = f"{abs(each.difference):.3g}"
    within_margin = each.p_no_worse is not None and each.p_no_worse < MARGIN_ALPHA
    is_worse = each.p_adjusted < settings.alpha
    if is_worse and not within_margin:
        return replace(each, verdict="regression", reason=f"worse by {size}, p {describe_p(each.p_adjusted)}")
    n_before = each.n_pairs + each.n_lost
    if each.n_lost > (1.0 - settings.min_coverage) * n_before + ROUNDING:
        return replace(each, reason=f"{each.n_lost} of {n_before} cases lost their score", cases_needed=None)
    if measured.is_same:
        return replace(each, verdict="no change", reason="no value changed", cases_needed=None)
    if p_better < settings.alpha:
        return replace(each, verdict="better", reason=f"better by {size}, p {describe_p(p_better)}", cases_needed=None)
    if each.margin is None:
        return replace(each, verdict="no loss shown", reason=describe_power(each, sample.width))
    if within_margin:
        reason = f"worse by {each.margin:.3g} is ruled out, p {describe_p(each.p_no_worse or 0.0)}"
        return replace(each, verdict="no worse", reason=reason, cases_needed=None)
    settle = "" if each.cases_needed is None else f"; about {each.cases_needed:,} cases would settle it"
    return replace(each, reason=f"{describe_not_ruled_out(each, sample.width)}{settle}")


def _sign_flip(gains: Sequence[float], alternative: Alternative, settings: ComparisonSettings) -> float:
    budget = max(_FEWEST_SIGNS, min(_MOST_SIGNS, _SIGN_BUDGET // len(gains)))
    p_value = paired_permutation_test(gains, alternative=alternative, resamples=settings.resamples or budget)
    return 1.0 if p_value is None else p_value

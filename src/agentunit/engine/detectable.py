"""What a comparison of this size could have shown, and the one sentence that says what it did show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentunit.engine.comparison import Comparison, MetricComparison
from agentunit.formulas.paired import smallest_detectable_drop
from agentunit.formulas.proportions import cases_needed, cases_to_show_no_worse, smallest_detectable_effect

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
    """What the test of one metric would have found.

    >>> each = MetricComparison("task_success", "b", "cannot tell", "", True, "higher", smallest_detectable=0.0997)
    >>> describe_power(each, 1.0)
    'a drop of 10 points would have been seen with 80 % probability'
    """
    noun = "rise" if each.direction == "lower" else "drop"
    if each.smallest_detectable is None:
        return f"too few to see any {noun} with {POWER * 100:.0f} % probability"
    loss = describe_loss(each, each.smallest_detectable, width)
    return f"a {noun} of {loss} would have been seen with {POWER * 100:.0f} % probability"


def loss_seen(each: MetricComparison) -> float:
    """How much worse a metric is on average; 0.0 where it is not."""
    difference = each.difference or 0.0
    loss = difference if each.direction == "lower" else -difference
    return loss if loss > ROUNDING else 0.0


def describe_not_ruled_out(each: MetricComparison, width: float | None) -> str:
    """That a loss of the margin is not ruled out, and why, where the interval alone would say otherwise.

    >>> each = MetricComparison("m", "b", "cannot tell", "", True, "higher", low=-0.1, high=0.1, margin=0.05)
    >>> describe_not_ruled_out(each, 1.0)
    'of 5 points is not ruled out'
    """
    assert each.margin is not None
    said = f"of {describe_loss(each, each.margin, width)} is not ruled out"
    reaches = each.high if each.direction == "lower" else None if each.low is None else -each.low
    worst = each.worst_assumed or width
    if reaches is None or reaches >= each.margin or worst is None:
        return said
    rare = f"1 case in {max(2, round(worst / each.margin)):,}"
    return f"{said}: the interval is of these cases, and {rare} that breaks may not be among them"


def describe_holm(each: MetricComparison) -> str:
    """By how many metrics a p-value was corrected; nothing where it was not."""
    return f" after Holm over {each.n_tests} metrics" if each.n_tests > 1 else ""


def describe_seen(each: MetricComparison, width: float | None, alpha: float) -> str:
    """A loss that was seen and is not shown to be one, and what its test says.

    >>> each = MetricComparison("m", "b", "cannot tell", "", True, "higher", difference=-0.13, p_adjusted=0.125)
    >>> describe_seen(each, 1.0, 0.05)
    'fell by 13 points, which may be chance (p = 0.12)'
    """
    assert each.p_adjusted is not None
    moved = f"{'rose' if each.direction == 'lower' else 'fell'} by {describe_loss(each, loss_seen(each), width)}"
    if each.p_adjusted < alpha:
        return f"{moved}, which is within the margin"
    holm = describe_holm(each)
    end = each.low if each.direction == "lower" else None if each.high is None else -each.high
    corrected = "is not corrected for them" if holm else "is approximate, the test exact"
    interval = f"; the interval without 0 {corrected}" if end is not None and end > ROUNDING else ""
    return f"{moved}, which may be chance (p = {each.p_adjusted:.2g}{holm}{interval})"


def describe_result(comparison: Comparison, widths: Sequence[float | None]) -> str:
    """The sentence about a comparison: what its counted metrics show, with numbers. ``widths`` are those of metrics."""
    cases = "1 case" if comparison.n_paired == 1 else f"{comparison.n_paired:,} cases"
    tested = [
        (label, each, width)
        for label, each, width in zip(comparison.labels, comparison.metrics, widths, strict=True)
        if each.gated and each.p_adjusted is not None
    ]
    if not comparison.has_scores:
        return f"{cases}: no score was compared."
    if comparison.is_unchanged and all(each.verdict == "no change" for _, each, _ in tested):
        return f"{cases}: no change."
    lost = [each for each in tested if each[1].verdict == "regression"]
    if lost:
        words = [
            f"{label} {'rose' if each.direction == 'lower' else 'fell'} by "
            f"{describe_loss(each, abs(each.difference or 0.0), width)}"
            for label, each, width in lost[:_METRICS_NAMED]
        ]
        more = f" and {len(lost) - _METRICS_NAMED} more got worse" if len(lost) > _METRICS_NAMED else ""
        return f"{cases}: {', '.join(words)}{more}."
    if not tested:
        return ""
    if all(each.verdict == "no change" for _, each, _ in tested):
        return f"{cases}: no tested score changed."
    moved = [
        f"{label} {describe_seen(each, width, comparison.alpha)}" for label, each, width in tested if loss_seen(each)
    ]
    fell = "; ".join(moved[:_METRICS_NAMED] + ([f"{len(moved) - _METRICS_NAMED} more"] * (len(moved) > _METRICS_NAMED)))
    before = f"{cases}: {fell}; " if fell else f"{cases}: "
    if len(tested) == 1:
        ((_, each, width),) = tested
        unseen = "" if each.smallest_detectable is None or moved else "; none was"
        return f"{before}{describe_power(each, width)}{unseen}."
    seen = [each for each in tested if each[1].smallest_detectable is not None]
    if not seen:
        return f"{before}too few to see any loss with {POWER * 100:.0f} % probability."
    parts = [
        f"a {'rise' if each.direction == 'lower' else 'drop'} of "
        f"{describe_loss(each, each.smallest_detectable or 0.0, width)} in {label}"
        for label, each, width in seen[:_METRICS_NAMED]
    ]
    others = f" (and in {len(seen) - _METRICS_NAMED} more metrics)" if len(seen) > _METRICS_NAMED else ""
    listed = ", ".join(parts[:-1]) + f" or {parts[-1]}" if len(parts) > 1 else parts[0]
    unseen = "" if moved else "; none was"
    return f"{before}{listed}{others} would have been seen with {POWER * 100:.0f} % probability{unseen}."

"""Numbers as people read them: scores, dollars, tokens and seconds, each with what belongs beside it."""

from __future__ import annotations

from math import floor, log10

from agentunit.core.results import AmountSummary, MetricSummary
from agentunit.engine.scored_run import ScoredRun
from agentunit.metrics.base import MetricInfo

INTERVAL_HEADING = "value, 95 %"
"""Over every column of values with their intervals."""


def spoken_value(row: MetricSummary, unit: str) -> str:
    """The middle of a table row: the mean with its 95 % interval, a raw quantity with its tail, or the last balance.

    >>> row = MetricSummary("cost", "recorded", "1", "ok", 2, 2, mean=0.0123, low=0.01, high=0.0146, p95=0.02)
    >>> spoken_value(row, "USD")
    '$0.0123 ± 0.0023, p95 0.0200'
    >>> row.amount = AmountSummary("Wh", 0.52, 0.5, 0.54, 0.61, 1.04, True)
    >>> spoken_value(row, "score")
    '0.52 ± 0.02 Wh, p95 0.61'
    """
    if row.mean is None:
        return "–"
    if row.amount is not None:
        return _spoken_amount(row.amount)
    if row.aggregate == "last":
        return f"{quantity(row.mean, unit)} at the end"
    value = with_interval(row.mean, row.low, row.high, unit)
    if unit == "score" or row.p95 is None:
        return value
    approximately = "" if row.exact_quantiles else "~"
    return f"{value}, p95 {approximately}{number(row.p95, unit)}"


def with_interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    """A number with its interval.

    >>> with_interval(0.857, 0.487, 1.0, "score"), with_interval(3.0, 2.5, 3.5, "s"), with_interval(3.0, 0.0, 7.5, "s")
    ('0.86 [0.49, 1.00]', '3 s ± 0.5', '3 s [0, 7.5]')
    """
    return f"{quantity(value, unit)}{_interval(value, low, high, unit)}"


def counted_cases(n_cases: int, n_repeats: int = 1, n_records: int | None = None) -> str:
    """How large a run is, in cases and repeats.

    >>> counted_cases(66, 3, 198), counted_cases(66, 3, 150), counted_cases(1)
    ('66 cases × 3 repeats', '66 cases × 3 repeats (150 records)', '1 case')
    """
    cases = "1 case" if n_cases == 1 else f"{n_cases:,} cases"
    if n_repeats <= 1:
        return cases
    uneven = n_records is not None and n_records != n_cases * n_repeats
    return f"{cases} × {n_repeats} repeats{f' ({n_records:,} records)' if uneven else ''}"


def failed_words(run: ScoredRun) -> str:
    """On how much of a run the agent failed."""
    n_cases = len({record.position for record in run.records if record.failed})
    if run.n_repeats > 1:
        return f"in {run.n_failed:,} of {run.n_records:,} records, on {n_cases:,} of {counted_cases(run.n_cases)}"
    return f"on {run.n_failed:,} of {counted_cases(run.n_cases)}"


def shown_direction(row: MetricSummary, info: MetricInfo) -> str:
    """Which way the shown value is better: an amount in place of its score is better when it is smaller."""
    return "lower" if row.amount is not None else info.direction


def quantity(value: float, unit: str) -> str:
    """One number in its unit.

    >>> quantity(0.8567, "score"), quantity(0.0032, "USD"), quantity(15234.0, "tokens"), quantity(1.25, "s")
    ('0.86', '$0.0032', '15,234', '1.25 s')
    """
    if unit == "score":
        return f"{value:.2f}"
    if unit == "USD":
        return f"${number(value, unit)}"
    if unit == "tokens":
        return number(value, unit)
    return f"{number(value, unit)} {unit}"


def number(value: float, unit: str) -> str:
    """The digits of a quantity, without its unit."""
    if unit == "score":
        return f"{value:.2f}"
    if unit == "USD":
        if abs(value) >= 10:
            return f"{value:,.2f}"
        # A call of a small model costs a fraction of a cent: two digits that say something, never all zeros.
        places = 4 if value == 0 or abs(value) >= 0.001 else min(12, 1 - floor(log10(abs(value))))
        return f"{value:.{places}f}"
    if unit == "tokens" or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """A span of time as one says it.

    >>> duration(0.42), duration(75), duration(7300)
    ('0.4 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def _spoken_amount(amount: AmountSummary) -> str:
    # From a tenth of the unit on it is left alone: 0.52 Wh reads better than 520 mWh.
    prefix, factor = "", 1.0
    if 0 < amount.mean < 0.1:
        prefix, factor = next((pair for pair in _PREFIXES if amount.mean * pair[1] >= 1), _PREFIXES[-1])
    unit = prefix + amount.unit
    mean = amount.mean * factor
    low, high = (None if end is None else end * factor for end in (amount.low, amount.high))
    approximately = "" if amount.exact_quantiles else "~"
    p95 = number(amount.p95 * factor, unit)
    return f"{number(mean, unit)}{_interval(mean, low, high, unit)} {unit}, p95 {approximately}{p95}"


def _interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    if low is None or high is None:
        return ""
    margin = max(high - value, value - low)
    # A score has a range: near its end, and for shares anywhere, the interval is lopsided, and no "±" is true. Nor is
    # one that would reach below zero where nothing does.
    if unit == "score" or value - margin < 0.0 <= low:
        return f" [{number(low, unit)}, {number(high, unit)}]"
    return f" ± {number(margin, unit)}"


_PREFIXES = (("m", 1e3), ("µ", 1e6), ("n", 1e9))

"""Numbers as people read them: scores, dollars, tokens and seconds, each with what belongs beside it."""

from __future__ import annotations

from math import floor, log10

from agentunit.core.results import AmountSummary, MetricSummary
from agentunit.metrics.base import MetricInfo


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
    value = f"{quantity(row.mean, unit)}{_margin(row, unit)}"
    if unit == "score" or row.p95 is None:
        return value
    approximately = "" if row.exact_quantiles else "~"
    return f"{value}, p95 {approximately}{number(row.p95, unit)}"


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
    margin = ""
    if amount.low is not None and amount.high is not None:
        margin = f" ± {number(max(amount.high - amount.mean, amount.mean - amount.low) * factor, unit)}"
    approximately = "" if amount.exact_quantiles else "~"
    p95 = number(amount.p95 * factor, unit)
    return f"{number(amount.mean * factor, unit)}{margin} {unit}, p95 {approximately}{p95}"


_PREFIXES = (("m", 1e3), ("µ", 1e6), ("n", 1e9))


def _margin(row: MetricSummary, unit: str) -> str:
    if row.low is None or row.high is None or row.mean is None:
        return ""
    # Intervals of shares are lopsided near 0 and 1; the wider side is the honest "±".
    return f" ± {number(max(row.high - row.mean, row.mean - row.low), unit)}"

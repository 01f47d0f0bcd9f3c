"""How much worse a metric may get before that counts: margins as they are written, and in the metric's unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from agentunit.metrics.base import MetricInfo

# What a score may lose unnoticed, as a share of its range; of a raw quantity, as a share of the baseline's mean.
SCORE_MARGIN, QUANTITY_MARGIN = 0.05, 0.1

Margin = float | str
"""A margin in the metric's unit, or a text like ``"10%"``: a share of the baseline's mean."""


def parse_margin(received: Margin) -> float:
    """The number of a margin; a share for one in percent.

    >>> parse_margin("10%"), parse_margin("0.02")
    (0.1, 0.02)
    """
    try:
        text = str(received).strip()
        number = float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise ValueError(f"margin: must be a number above 0, such as 0.02 or 10%; received {received!r}")
    return number


def margin_in_unit(
    metric: str,
    backend: str | None,
    received: Margin | Mapping[str, Margin] | None,
    width: float | None,
    scale: float,
) -> float:
    """The margin of one metric in its unit: the one given for it, or the default.

    ``width`` is that of its range, None for a raw quantity; ``scale`` the size that a share is of.
    """
    if isinstance(received, Mapping):
        received = received.get(f"{metric}[{backend}]", received.get(metric))
    if received is None:
        return QUANTITY_MARGIN * scale if width is None else SCORE_MARGIN * width
    margin = parse_margin(received)
    amount = margin * scale if isinstance(received, str) and received.strip().endswith("%") else margin
    if width is not None and amount >= width:
        raise ValueError(
            f"compare_runs: the margin of {metric} must be below {width:g}, the width of its range; "
            f"received {received!r}"
        )
    return amount


def are_shares(info: MetricInfo) -> bool:
    """Whether a metric's values are shares from 0 to 1, so that 0 and 1 are fail and pass and not two amounts.

    A user's own metric rarely declares its range; without one a score is taken for a share.
    """
    return info.unit == "score" and info.range in ((0.0, 1.0), (None, None))


def possible_range(info: MetricInfo, minimum: float | None, maximum: float | None) -> tuple[float | None, float | None]:
    """The values a metric can take, as far as known; ``minimum`` and ``maximum`` are those that were seen.

    A user's own metric rarely declares its range: a score whose values all are from 0 to 1 is taken for a share.
    """
    is_share = minimum is not None and maximum is not None and minimum >= 0.0 and maximum <= 1.0
    return (0.0, 1.0) if info.unit == "score" and info.range == (None, None) and is_share else info.range


def range_width(info: MetricInfo, values: Sequence[float]) -> float | None:
    """How far a metric's values can lie apart; None where nothing bounds them."""
    low, high = info.range
    if low is not None and high is not None:
        return high - low
    # A user's own metric rarely declares its range.
    return 1.0 if info.unit == "score" and all(0.0 <= value <= 1.0 for value in values) else None

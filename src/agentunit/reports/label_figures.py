"""Phrases about labels that every report shares: the labeled rate, who labeled, and means that are no rates."""

from __future__ import annotations

from collections.abc import Iterable

from agentunit.core.results import LabeledSummary, MetricSummary
from agentunit.metrics.base import MetricInfo
from agentunit.reports.figures import DIRECTION_MARK, MetricCells, counted, with_interval

LABELED_ROW = "labeled rate"
"""The name of the row below a metric's own in tables."""


def labeled_cells(row: MetricSummary, info: MetricInfo) -> MetricCells | None:
    """The row below a metric's own that says what people would; ``None`` where nobody labeled its cases."""
    labeled = row.labeled
    if labeled is None:
        return None
    value = "cannot tell"
    if labeled.rate is not None:
        value = with_interval(labeled.rate, labeled.low, labeled.high, "score")
    count = f"{labeled.n_labels}/{labeled.n_cases}"
    return MetricCells(DIRECTION_MARK[info.direction], value, count, "labels", describe_raters(labeled))


def describe_raters(labeled: LabeledSummary) -> str:
    """Who labeled, and how far they agree.

    >>> describe_raters(LabeledSummary(0.8, 0.7, 0.9, 60, 900, raters=["ana", "ben"], alpha=0.71))
    '2 raters, alpha 0.71'
    """
    if labeled.reason is not None:
        return labeled.reason
    parts = [f"by {labeled.raters[0]}" if len(labeled.raters) == 1 else counted(len(labeled.raters), "rater")]
    if labeled.alpha is not None and len(labeled.raters) > 1:
        parts.append(f"alpha {labeled.alpha:.2f}")
    return ", ".join(parts)


def describe_labeled(labeled: LabeledSummary) -> str:
    """The labeled rate in one line, with what it rests on.

    >>> describe_labeled(LabeledSummary(0.83, 0.73, 0.91, 60, 1240, raters=["ana"]))
    'labeled rate 0.83 [0.73, 0.91] (60 labels of 1,240)'
    """
    of = f"{counted(labeled.n_labels, 'label')} of {labeled.n_cases:,}"
    if labeled.rate is None:
        return f"labeled rate: cannot tell, {labeled.reason} ({of})"
    notes = [of]
    if labeled.reason is not None:
        notes.append(f"{labeled.reason}: the interval allows for any label of theirs")
    if len(labeled.raters) > 1:
        notes.append(describe_raters(labeled))
    if labeled.n_disagreed:
        notes.append(f"raters disagree on {labeled.n_disagreed:,}: their mean counts")
    if labeled.n_skipped:
        notes.append(f"{labeled.n_skipped:,} skipped")
    if labeled.n_taught:
        notes.append(f"{labeled.n_taught:,} more taught the judge and count only as themselves")
    if labeled.assumed_random:
        notes.append("taken for a random sample: no draw is known")
    return f"labeled rate {with_interval(labeled.rate, labeled.low, labeled.high, 'score')} ({'; '.join(notes)})"


def label_notes(rows: Iterable[MetricSummary]) -> list[str]:
    """The lines under a table about its labeled rates, and about means that are no rates.

    >>> row = MetricSummary("faithfulness", "local", "2", "ok", 4, 4, mean=0.55, mean_of="support")
    >>> label_notes([row])
    ['faithfulness is mean support, not a rate: agentunit label measures the rate']
    """
    lines = []
    means = {}
    for row in rows:
        if row.labeled is not None:
            raw = "–" if row.mean is None else f"{row.mean:.2f}"
            lines.append(f"{row.metric} {raw} raw, {describe_labeled(row.labeled)}")
        elif row.mean_of and row.status == "ok" and row.mean is not None:
            means[row.metric] = row.mean_of
    if len(means) == 1:
        [(metric, of)] = means.items()
        lines.append(f"{metric} is mean {of}, not a rate: agentunit label measures the rate")
    elif means:
        named = ", ".join(dict.fromkeys(means.values()))
        lines.append(f"{named}: means of degrees that a model gives, not rates (agentunit label measures the rate)")
    return lines

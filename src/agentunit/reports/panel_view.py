"""A panel of judges in words that every report shares: how its judges stand to each other, and to people."""

from __future__ import annotations

from collections.abc import Sequence

from agentunit.core.results import MetricSummary, PanelSummary
from agentunit.engine.decision import named_cases
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line

_CASES_NAMED = 5


def panel_rows(rows: Sequence[MetricSummary]) -> list[tuple[str, PanelSummary]]:
    """The metrics that a panel of judges scored, by name."""
    return list({row.metric: row.panel for row in rows if row.panel is not None}.items())


def describe_panel(panel: PanelSummary) -> list[str]:
    """How the judges agree, what each says on average and against labels, and where they lie far apart.

    >>> from agentunit.core.results import JudgeStanding
    >>> judges = [JudgeStanding("a", 4, 0, 0.5), JudgeStanding("b", 3, 1, 0.75, "HTTP 403", 10, 0.1, 0.9)]
    >>> for line in describe_panel(PanelSummary(judges, 0.61, 1, ["q7"])):
    ...     print(line)
    2 judges, agreement 0.61 (Krippendorff's alpha)
    a: mean 0.50
    b: mean 0.75, no value 1 time (HTTP 403), +0.10 against people, same side as they on 90 % of 10 labels
    far apart on 1 answer, worth a label: q7
    """
    alpha = "agreement not known" if panel.alpha is None else f"agreement {panel.alpha:.2f} (Krippendorff's alpha)"
    lines = [f"{len(panel.judges)} judges, {alpha}"]
    for each in panel.judges:
        parts = [] if each.mean is None else [f"mean {each.mean:.2f}"]
        if each.n_without_value:
            why = f" ({printable_line(each.reason, 200)})" if each.reason else ""
            parts.append(f"no value {counted(each.n_without_value, 'time')}{why}")
        if each.bias is not None and each.agreement is not None:
            parts.append(f"{each.bias:+.2f} against people")
            parts.append(f"same side as they on {100 * each.agreement:.0f} % of {counted(each.n_labels, 'label')}")
        lines.append(f"{each.judge}: {', '.join(parts)}")
    if panel.n_disagree:
        named = named_cases(panel.disagree_cases, _CASES_NAMED)
        lines.append(f"far apart on {counted(panel.n_disagree, 'answer')}, worth a label: {named}")
    return lines

"""What people and judges say of scores, in words that every report shares: labeled rates, panels, choices of two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentunit.core.results import LabeledSummary, MetricSummary, PanelSummary
from agentunit.engine.deciding.comparison import Pairwise
from agentunit.engine.deciding.decision import named_cases
from agentunit.formulas.text import shown_share
from agentunit.metrics.base import MetricInfo
from agentunit.reports.figures import (
    DIRECTION_MARK,
    MetricCells,
    counted,
    counted_cases,
    describe_judge_spend,
    with_interval,
)
from agentunit.reports.printable import printable_line

# What judges say together, in words that every report shares: a panel, and the choice between two answers.

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
    b: mean 0.75, no value 1 time (HTTP 403), +0.10 against people, agrees with them on 90% of 10 labels
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
            parts.append(f"agrees with them on {shown_share(each.agreement)} of {counted(each.n_labels, 'label')}")
        lines.append(f"{each.judge}: {', '.join(parts)}")
    if panel.n_disagree:
        named = named_cases(panel.disagree_cases, _CASES_NAMED)
        lines.append(f"far apart on {counted(panel.n_disagree, 'answer')}, worth a label: {named}")
    return lines


def describe_pairwise(found: Pairwise) -> list[str]:
    """What a judge chose between the answers of two runs, and how far its place decided, line by line.

    >>> chosen = Pairwise(0.7, 0.35, 0.93, n_won=6, n_lost=2, n_tied=2, n_same_answer=1, n_without_answer=0, n_failed=0,
    ...     failed_why=None, n_decided=16, n_first_won=9, n_turned=1)
    >>> print("\\n".join(describe_pairwise(chosen)))
    the new answers win 0.70 [0.35, 0.93] of 10 cases: 6 better, 2 worse, 2 ties (a tie counts half)
    asked in both orders: the answer shown first won 9 of 16 decided questions, on 1 pair the order decided
    1 pair with the same answer was not asked about
    """
    n_cases = found.n_won + found.n_lost + found.n_tied
    if found.win_rate is None or found.low is None or found.high is None:
        lines = ["no pair of answers was judged"]
    else:
        rate = f"{found.win_rate:.2f} [{found.low:.2f}, {found.high:.2f}]"
        ties = counted(found.n_tied, "tie")
        lines = [
            f"the new answers win {rate} of {counted_cases(n_cases)}: {found.n_won} better, {found.n_lost} worse, "
            f"{ties} (a tie counts half)"
        ]
    if found.n_decided:
        place = f", on {counted(found.n_turned, 'pair')} the order decided" if found.n_turned else ""
        lines.append(
            f"asked in both orders: the answer shown first won {found.n_first_won} of {found.n_decided} decided "
            f"questions{place}"
        )
    if found.n_same_answer:
        was = "was" if found.n_same_answer == 1 else "were"
        lines.append(f"{counted(found.n_same_answer, 'pair')} with the same answer {was} not asked about")
    if found.n_without_answer:
        lines.append(f"{counted(found.n_without_answer, 'pair')} without an answer in one of the runs left out")
    if found.n_failed:
        lines.append(f"{counted(found.n_failed, 'pair')} without a verdict: {found.failed_why}")
    suspected = [each.case_id for each in found.pairs if each.injection_suspected]
    if suspected:
        lines.append(f"texts that seem to address the judge: {named_cases(suspected, _CASES_NAMED)}")
    if found.panel is not None:
        lines += [f"panel: {line}" for line in describe_panel(found.panel)]
    if found.spend is not None:
        lines.append(f"judge: {describe_judge_spend(found.spend)}")
    return lines


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

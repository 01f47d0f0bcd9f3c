"""Runs, decisions and comparisons as Python prints them: at most a screen of text, with personal data masked."""

from __future__ import annotations

from collections.abc import Sequence

from agentunit.core.results import RunFinding, RunSummary
from agentunit.engine.deciding.case_findings import CaseFinding
from agentunit.engine.deciding.comparison import Comparison
from agentunit.engine.deciding.decision import Decision, decide_comparison
from agentunit.engine.scoring.scored_run import ScoredRun, info_of
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import FINDINGS_SHOWN
from agentunit.reports.figures import (
    INTERVAL_HEADING,
    aligned,
    counted,
    counted_cases,
    describe_unscored,
    errors_first,
    metric_cells,
)
from agentunit.reports.finding_text import describe_run_finding
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.reports.run_facts import (
    describe_finding,
    describe_kinds,
    describe_pairs,
    findings_by_heading,
    lines_under,
    word_of,
)

_MOST_LISTED = 8
_MOST_LINES = 11
_LINE_LENGTH = 200


def decision_text(decision: Decision) -> str:
    """What was decided, what statistics add, and the cases that are not fine, each with why."""
    masked = Mask().decision(decision)
    cases: list[str] = []
    for findings in findings_by_heading(masked).values():
        for finding in findings:
            why = describe_finding(finding, masked.comparison)
            cases.append(f"{finding.case_id}: {word_of(finding)}: {why}")
    return _text([masked.headline or "nothing was decided", *lines_under(masked)], cases)


def result_text(run: ScoredRun, decision: Decision) -> str:
    """What was decided about a run, what statistics add, and what is wrong with it, each with evidence."""
    reported = ReportedRun(run, decision=decision)
    decision = reported.decision
    return _text([decision.headline or "nothing was decided", *lines_under(decision)], finding_lines(reported.findings))


def finding_lines(findings: Sequence[RunFinding]) -> list[str]:
    """Findings as lines: what is wrong, and under it the evidence of one case."""
    lines: list[str] = []
    for finding in findings[:FINDINGS_SHOWN]:
        text = describe_run_finding(finding)
        lines.append(text.what)
        if text.evidence:
            lines.append(f"  {text.evidence}")
    n_more = len(findings) - FINDINGS_SHOWN
    return [*lines, f"… and {counted(n_more, 'more finding')}"] if n_more > 0 else lines


def summary_text(summary: RunSummary, infos: dict[str, MetricInfo] | None = None) -> str:
    """The figures of each metric, and what was not scored."""
    infos = infos or {}
    masked = Mask().view(summary)
    rows: list[Sequence[str]] = [("metric", INTERVAL_HEADING, "scored", "backend")]
    for row in masked.metrics[:_MOST_LISTED]:
        cells = metric_cells(row, infos.get(row.metric) or info_of(row.metric))
        rows.append((printable_line(f"{row.metric}{cells.mark}", _LINE_LENGTH // 3), *cells[1:4]))
    table = "\n".join(aligned(rows)) if masked.metrics else "no metric"
    n_more = len(masked.metrics) - _MOST_LISTED
    size = counted_cases(summary.n_cases, summary.n_repeats, summary.n_records or None)
    unscored = _text([], [describe_unscored(entry) for entry in errors_first(masked.unscored)])
    found = _text([], finding_lines(masked.findings))
    size = str(summary.counts) if summary.counts else size
    return "\n".join(filter(None, [size, found, table, f"… and {n_more} more metrics" if n_more > 0 else "", unscored]))


def cases_text(findings: Sequence[CaseFinding]) -> str:
    """The first of some cases that are not fine, each with why."""
    lines = []
    for finding in findings[:_MOST_LISTED]:
        masked = Mask().view(finding)
        lines.append(f"{finding.case_id}: {word_of(masked)}: {describe_finding(masked)}")
    n_more = len(findings) - _MOST_LISTED
    return _text([*lines, f"… and {n_more:,} more"] if n_more > 0 else lines) or "no cases"


def unscored_text(n_cases: int) -> str:
    """A run of ``agentunit.score`` that is not finished: printing it must not score the rest, which may cost money."""
    return f"run: {counted_cases(n_cases)} scored so far; run.summary() scores the rest and shows the result"


def run_text(run: ScoredRun) -> str:
    """Which run it is, how large, and by what it is scored; nothing is read or added up for it."""
    size = counted_cases(run.n_cases, run.n_repeats, run.n_records)
    failed = f", the agent failed on {run.n_failed:,} of {run.n_records:,} records" if run.n_failed else ""
    return _text([f"run {run.header.label}: {size}{failed}", f"scored by {', '.join(run.metrics) or 'nothing'}"])


def comparison_text(comparison: Comparison) -> str:
    """What a comparison decides, of which runs, and what became of their cases."""
    runs = f"{comparison.candidate_label} against {comparison.baseline_label}: {describe_pairs(comparison)}"
    decided = Mask().decision(decide_comparison(comparison))
    return _text([decided.headline, runs, describe_kinds(comparison), *lines_under(decided)])


def _text(lines: Sequence[str], listed: Sequence[str] = ()) -> str:
    """These lines, and the first of those that are listed under them."""
    shown = [printable_line(line, _LINE_LENGTH) for line in lines if line]
    for line in listed[:_MOST_LINES]:
        # What belongs to the line before stands under it.
        indent = "    " if line.startswith("  ") else "  "
        shown.append(f"{indent}{printable_line(line, _LINE_LENGTH)}")
    if len(listed) > _MOST_LINES:
        shown.append(f"  … and {len(listed) - _MOST_LINES:,} more")
    return "\n".join(shown)

"""Runs and comparisons as a notebook shows them: small tables of markup without script, style sheet or request.

Notebooks are shared, printed and shown in light and dark: colors are the reader's own, personal data is masked as in
every report, and what a record wrote stands in it as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from agentunit.core.results import RunFinding, RunSummary
from agentunit.engine.deciding.comparison import LISTED_KINDS, Comparison
from agentunit.engine.deciding.decision import Decision, decide_comparison, named_cases
from agentunit.engine.scoring.scored_run import ScoredRun, info_of
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import FINDINGS_SHOWN
from agentunit.reports.figures import (
    DIRECTION_MARK,
    INTERVAL_HEADING,
    counted,
    counted_cases,
    describe_failed,
    describe_mean,
    describe_reason,
    describe_unscored,
    errors_first,
    informational_notes,
    metric_cells,
    threshold_notes,
)
from agentunit.reports.finding_text import describe_run_finding
from agentunit.reports.printable import printable_line, xml_safe
from agentunit.reports.raters import describe_labeled
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.reports.run_facts import (
    KIND_HEADINGS,
    describe_difference,
    describe_finding,
    describe_pairs,
    describe_tested,
    failed_cases,
    further_reasons,
    lines_under,
)

_TEXT_LENGTH = 300
_ROWS = 60
_LINES = 8
_CASES_NAMED = 8
_CASES_LISTED = 5
# A rule of half-clear gray is seen on white and on black; everything else has the color of the reader's own text.
_RULE = "1px solid rgba(128,128,128,.45)"
_CELL = f"text-align:left;vertical-align:top;padding:.25em .8em .25em 0;border-bottom:{_RULE}"


def run_html(run: ScoredRun) -> str:
    """A stored or imported run: its verdict and why, and one row for each metric."""
    reported = ReportedRun(run)
    size = counted_cases(run.n_cases, run.n_repeats, run.n_records)
    failed = f", the agent failed {describe_failed(run)}" if run.n_failed else ""
    return _block(
        f"Run {run.header.label}",
        f"{size}{failed}",
        _verdict(reported.decision),
        _findings(reported.findings),
        _metrics(reported.summary, reported.infos),
        _notes(reported.summary),
    )


def result_html(run: ScoredRun, decision: Decision) -> str:
    """What came of a run: its verdict, the cases that are not fine with why, and one row for each metric."""
    reported = ReportedRun(run, decision=decision)
    decision = reported.decision
    return _block(
        decision.headline or "Nothing was decided",
        f"{run.header.label}, {counted_cases(run.n_cases, run.n_repeats, run.n_records)}",
        _lines([*lines_under(decision), decision.way_out or "", *map(describe_reason, further_reasons(decision))]),
        _findings(reported.findings),
        _metrics(reported.summary, reported.infos),
        _notes(reported.summary),
    )


def summary_html(summary: RunSummary, infos: dict[str, MetricInfo] | None = None) -> str:
    """The summary of a run: one row for each metric, and what was not scored."""
    infos = infos or {}
    known = {row.metric: infos.get(row.metric) or info_of(row.metric) for row in summary.metrics}
    masked = Mask().view(summary)
    size = counted_cases(summary.n_cases, summary.n_repeats, summary.n_records or None)
    size = str(summary.counts) if summary.counts else size
    return _block("Scores", size, _findings(masked.findings), _metrics(masked, known), _notes(masked))


def comparison_html(comparison: Comparison) -> str:
    """A comparison: its verdict, the difference of each metric, and which cases changed."""
    masked = Mask().view(comparison)
    rows = [
        (
            f"{label}{DIRECTION_MARK[each.direction]}",
            describe_mean(each.baseline_mean, each.unit),
            describe_mean(each.candidate_mean, each.unit),
            describe_difference(each),
            each.verdict if each.gated else f"{each.verdict} (not counted)",
        )
        for label, each in zip(masked.labels, masked.metrics, strict=True)
    ]
    kinds = [
        f"{KIND_HEADINGS[kind]} ({masked.n_by_kind[kind]:,}): "
        + named_cases([each.case_id for each in masked.of_kind(kind)], _CASES_NAMED)
        for kind in LISTED_KINDS
        if masked.n_by_kind.get(kind)
    ]
    return _block(
        f"{masked.candidate_label} against {masked.baseline_label}",
        describe_pairs(masked),
        _verdict(Mask().decision(decide_comparison(masked))),
        _table(("metric", masked.baseline_label, masked.candidate_label, "difference, 95 %", "verdict"), rows),
        _lines([*kinds, describe_tested(masked), masked.note or ""]),
    )


def unscored_html(n_cases: int) -> str:
    """A run of ``agentunit.score`` that is not finished: showing it must not score the rest, which may cost money."""
    return _block("Run", f"{counted_cases(n_cases)} scored so far; run.summary() scores the rest and shows the result")


def _verdict(decision: Decision) -> str:
    if not decision.headline:
        return ""
    head = f"<p style='margin:.4em 0'><strong>{_text(decision.headline)}</strong></p>"
    cases = [
        f"{case_id}: {describe_finding(each, decision.comparison)}" for case_id, each in failed_cases(decision).items()
    ]
    more = [f"{len(cases) - _CASES_LISTED:,} more cases"] if len(cases) > _CASES_LISTED else []
    reasons = [*cases[:_CASES_LISTED], *more, *map(describe_reason, further_reasons(decision))]
    return head + _lines([*lines_under(decision), decision.way_out or "", *reasons])


def _findings(findings: Sequence[RunFinding]) -> str:
    """What is wrong, each with the evidence of one case."""
    items: list[str] = []
    for finding in findings[:FINDINGS_SHOWN]:
        text = describe_run_finding(finding)
        evidence = f"<br>{_text(text.evidence)}" if text.evidence else ""
        items.append(f"<li><strong>{_text(text.what)}</strong>{evidence}</li>")
    if len(findings) > FINDINGS_SHOWN:
        items.append(f"<li>{counted(len(findings) - FINDINGS_SHOWN, 'more finding')}</li>")
    return f"<ul style='margin:.4em 0;padding-left:1.2em'>{''.join(items)}</ul>" if items else ""


def _metrics(summary: RunSummary, infos: dict[str, MetricInfo]) -> str:
    rows: list[Sequence[str]] = []
    for row in summary.metrics:
        cells = metric_cells(row, infos[row.metric])
        rows.append((f"{row.metric}{cells.mark}", *cells[1:]))
        if row.labeled is not None:
            rows.append(("  labeled rate", describe_labeled(row.labeled).removeprefix("labeled rate "), "", "", ""))
    return _table(("metric", INTERVAL_HEADING, "scored", "backend", "trust"), rows)


def _notes(summary: RunSummary) -> str:
    unscored = map(describe_unscored, errors_first(summary.unscored))
    refused = (
        [f"{counted(summary.n_input_errors, 'part')} of the input could not be read"] if summary.n_input_errors else []
    )
    return _lines([*threshold_notes(summary.metrics), *informational_notes(summary.metrics), *refused, *unscored])


def _block(title: str, size: str, *parts: str) -> str:
    head = f"<p style='margin:0'><strong>{_text(title)}</strong> <span style='opacity:.8'>{_text(size)}</span></p>"
    return f"<div class='agentunit' style='max-width:100%;overflow-x:auto'>{head}{''.join(parts)}</div>"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th scope='col' style='{_CELL}'>{_text(each)}</th>" for each in headings)
    body = "".join(
        f"<tr><th scope='row' style='{_CELL};font-weight:600'>{_text(first)}</th>"
        + "".join(f"<td style='{_CELL}'>{_text(each)}</td>" for each in others)
        + "</tr>"
        for first, *others in rows[:_ROWS]
    )
    more = f"<p style='margin:.2em 0'>{counted(len(rows) - _ROWS, 'more row')}</p>" if len(rows) > _ROWS else ""
    content = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    # Frames without a document type give a table colors of its own.
    style = "border-collapse:collapse;margin:.4em 0;color:inherit;font:inherit"
    return f"<table style='{style}'>{content}</table>{more}"


def _lines(lines: Iterable[str]) -> str:
    shown = [each for each in lines if each]
    items = "".join(f"<li>{_text(each)}</li>" for each in shown[:_LINES])
    if len(shown) > _LINES:
        items += f"<li>{len(shown) - _LINES:,} more</li>"
    return f"<ul style='margin:.4em 0;padding-left:1.2em'>{items}</ul>" if items else ""


def _text(text: str) -> str:
    return escape(xml_safe(printable_line(text, _TEXT_LENGTH)), quote=True)

"""The upper half of the HTML report: the facts of a run, its gates, its metrics, and what was not scored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone

from msgspec import structs

from agentunit.core.results import MetricSummary, RunSummary
from agentunit.engine.comparison import CaseDifference, Comparison
from agentunit.engine.decision import Decision
from agentunit.engine.gates import GateVerdict
from agentunit.metrics.base import MetricInfo
from agentunit.reports.comparison_view import (
    KIND_HEADINGS,
    describe_answers,
    describe_difference,
    describe_kinds,
    describe_pairs,
    describe_scores,
    describe_tested,
    describe_tool_changes,
)
from agentunit.reports.figures import (
    GATE_WORDS,
    INTERVAL_HEADING,
    better_direction,
    counted_cases,
    describe_clusters,
    describe_direction,
    describe_failed,
    describe_mean,
    describe_reason,
    describe_spending,
    describe_spread,
    duration,
    errors_first,
    gate_rule,
    informational_notes,
    is_about,
    metric_cells,
    quantity,
    spread_rows,
)
from agentunit.reports.html_tables import case_link, html_table, html_text, several_section, slices_section
from agentunit.reports.label_figures import LABELED_ROW, label_notes, labeled_cells
from agentunit.reports.panel_view import describe_pairwise, describe_panel, panel_rows
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun, how_to_resume
from agentunit.reports.run_facts import describe_known_failures, origin_facts
from agentunit.reports.several_runs import describe_several

_IDS_SHOWN, _IDS_LENGTH = 100, 4_000
_ANSWER_LENGTH = 1_000
_SECTION_ID = re.compile(r'<h2 id="[a-z-]+">')
_WORD_CLASS = {"PASS": "pass", "met": "pass", "FAIL": "fail", "ERRORS": "fail", "ERROR": "fail"}


def overview(reported: ReportedRun) -> str:
    """The header of the page and everything above the cases."""
    verdict = reported.verdict
    word = f" {_word(verdict.word)}" if verdict.word else ""
    head = f"<header>\n<h1>{html_text(title_of(reported))}{word}</h1>\n"
    if not reported.others:
        return f"{head}{_fact_list(reported)}</header>\n<main>\n{_sections(reported)}"
    parts = [f"{head}</header>\n<main>\n", _verdict(verdict), several_section(reported)]
    for run in reported.runs:
        # Ids name a place of the page once: those of the sections belong to the page of a single run.
        sections = _SECTION_ID.sub("<h2>", _fact_list(run) + _sections(run))
        word = _word(run.decision.word) if run.decision.word else ""
        parts.append(
            f'<details class="note run"><summary>{html_text(run.label)} {word}</summary>{sections}</details>\n'
        )
    return "".join(parts)


def title_of(reported: ReportedRun) -> str:
    """What the page is about: a run, or several against a baseline."""
    if not reported.others:
        return reported.run.header.name
    return describe_several([run.label for run in reported.runs], reported.baseline_label)


def _fact_list(reported: ReportedRun) -> str:
    facts = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _facts(reported))
    return f'<dl class="facts">{facts}</dl>\n'


def _sections(reported: ReportedRun) -> str:
    """Everything about one run but its cases."""
    decision = reported.decision
    return "".join(
        (
            _verdict(decision),
            _differences(reported),
            _failures(reported),
            _known_failures(decision),
            _gates(decision.gates),
            f'<h2 id="metrics">Metrics</h2>\n{_metric_table(reported, decision.gates)}',
            slices_section(reported),
            _comparison(decision.comparison),
            _judge(reported),
            _unscored(reported.summary),
        )
    )


def _facts(reported: ReportedRun) -> list[tuple[str, str]]:
    run, header = reported.run, reported.run.header
    created = datetime.fromtimestamp(header.created_at, timezone.utc)
    facts = [
        ("run", f"<code>{html_text(header.id)}</code>"),
        ("when", f'<time datetime="{created.isoformat()}">{created:%Y-%m-%d %H:%M} UTC</time>'),
        ("size", counted_cases(run.n_cases, run.n_repeats, run.n_records)),
        ("agent failed", f'<span class="broken">{describe_failed(run)}</span>' if run.n_failed else "0"),
    ]
    if reported.summary.n_without_content:
        facts.append(("without content", f"{reported.summary.n_without_content:,} records"))
    if reported.summary.n_user_failed:
        facts.append(("simulated user failed", f"{reported.summary.n_user_failed:,}"))
    if header.status != "finished":
        planned = "" if header.n_planned is None else f" of {header.n_planned:,}"
        facts.append(("status", f"{html_text(header.status)}, {run.n_records:,}{planned} done"))
        if (resume := how_to_resume(header)) is not None:
            facts.append(("next", f"<code>{html_text(resume)}</code>"))
    if header.finished_at is not None and header.finished_at > header.created_at:
        facts.append(("duration", duration(header.finished_at - header.created_at)))
    facts += [
        (name, f"<code>{html_text(str(header.settings[name]), 120)}</code>")
        for name in ("agent", "dataset")
        if header.settings.get(name)
    ]
    facts += [(name, f"<code>{html_text(text, 200)}</code>") for name, text in origin_facts(header)]
    facts.append(("AgentUnit", html_text(header.agentunit_version)))
    return facts


def _verdict(decision: Decision) -> str:
    lines = "".join(f"<li>{html_text(describe_reason(each), 600)}</li>" for each in decision.reasons)
    reasons = f'<ul class="plain">{lines}</ul>\n' if lines else ""
    return f'<h2 id="verdict">Verdict</h2>\n<p><strong>{html_text(decision.headline, 600)}</strong></p>\n{reasons}'


def _failures(reported: ReportedRun) -> str:
    """Why the agent failed: one entry a cause, with all of its cases."""
    if not reported.failures:
        return ""
    entries = []
    for group in reported.failures:
        at = f"<br>at <code>{html_text(group.place)}</code>" if group.place else ""
        source = f": <code>{html_text(group.line)}</code>" if group.place and group.line else ""
        cases = f"<br>in {html_text(', '.join(group.cases[:_IDS_SHOWN]), _IDS_LENGTH)}"
        more = f" and {len(group.cases) - _IDS_SHOWN:,} more" if len(group.cases) > _IDS_SHOWN else ""
        error = f"{group.n_records:,} × <code>{html_text(group.error, 500)}</code>"
        shown = f"<br>next: <code>{html_text(group.next)}</code>"
        entries.append(f"<li>{error}{at}{source}{cases}{more}{shown}</li>")
    return f'<h2 id="failures">Why the agent failed</h2>\n<ul class="plain">{"".join(entries)}</ul>\n'


def _known_failures(decision: Decision) -> str:
    lines = "".join(f"<li>{html_text(line, 600)}</li>" for line in describe_known_failures(decision))
    return f'<h2 id="known">Known failures</h2>\n<ul class="plain">{lines}</ul>\n' if lines else ""


def _gates(verdicts: Sequence[GateVerdict]) -> str:
    if not verdicts:
        return ""
    lines = []
    for verdict in verdicts:
        gate, reason = html_text(str(verdict.gate)), html_text(verdict.reason)
        lines.append(f"<li>{_word(GATE_WORDS[verdict.verdict])} <code>{gate}</code>: {reason}</li>")
    return f'<h2 id="gates">Gates</h2>\n<ul class="plain">{"".join(lines)}</ul>\n'


def _differences(reported: ReportedRun) -> str:
    """What became of the cases, before any statistics; each case leads to all that the page has about it."""
    comparison = reported.decision.comparison
    if comparison is None:
        return ""
    against = f"{html_text(comparison.baseline_label)}, {describe_pairs(comparison)}"
    title = f'<h2 id="cases-changed">Against {against}</h2>\n'
    parts = [title, f"<p>{html_text(describe_kinds(comparison))}</p>\n"]
    for kind, heading in KIND_HEADINGS.items():
        listed = comparison.of_kind(kind)
        if not listed:
            continue
        rows = "".join(_difference_row(each, reported.run.header.id) for each in listed)
        known = {each.case_id for each in listed}
        unlisted = [each for each, found in comparison.cases.items() if found.kind == kind and each not in known]
        ids = html_text(", ".join(unlisted))
        more = f'<p class="soft">… and {len(unlisted):,} more: {ids}</p>' if unlisted else ""
        table = html_table(("case", "scores", "before", "now"), rows)
        is_open = " open" if kind in ("newly failing", "worse") else ""
        summary = f"<summary>{heading} ({comparison.n_by_kind[kind]:,})</summary>"
        parts.append(f'<details class="note"{is_open}>{summary}{table}{more}</details>\n')
    return "".join(parts)


def _difference_row(each: CaseDifference, run_id: str) -> str:
    answers = dict(describe_answers(each))
    same = answers.get("same answer")
    shown = [answers.get(when, "") if same is None else same for when in ("before", "now")]
    cells = (describe_scores(each), *(printable_line(text, _ANSWER_LENGTH) for text in shown))
    columns = zip(("scores", "before", "now"), cells, strict=True)
    body = "".join(f'<td data-name="{name}">{html_text(cell)}</td>' for name, cell in columns)
    return f"<tr><td>{case_link(each.case_id, run_id)}</td>{body}</tr>\n"


def _comparison(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    rows = []
    for label, each in zip(comparison.labels, comparison.metrics, strict=True):
        means = (describe_mean(mean, each.unit) for mean in (each.baseline_mean, each.candidate_mean))
        verdict = each.verdict + ("" if each.gated else " (not gated)")
        cells = (label, *means, describe_difference(each), verdict)
        rows.append(f"<tr>{''.join(f'<td>{html_text(cell)}</td>' for cell in cells)}</tr>\n")
    table = html_table(("metric", "baseline", "now", "difference, 95 %", "verdict"), "".join(rows))
    said = [f"<p><strong>{html_text(comparison.sentence)}</strong></p>\n"] if comparison.sentence else []
    asides = (describe_tested(comparison), comparison.note)
    said += [f'<p class="soft">{html_text(each)}</p>\n' for each in asides if each]
    title = '<h2 id="comparison">Statistics of the comparison</h2>'
    changes = describe_tool_changes(comparison)
    facts = "".join(f"<div><dt>{change}</dt><dd>{html_text(names)}</dd></div>\n" for change, names in changes)
    tools = f'<h3>Tools</h3>\n<dl class="facts">\n{facts}</dl>\n' if facts else ""
    return f"{title}\n{''.join(said)}{table}{_pairwise(comparison)}{tools}"


def _pairwise(comparison: Comparison) -> str:
    if comparison.pairwise is None:
        return ""
    lines = "".join(f"<li>{html_text(line)}</li>" for line in describe_pairwise(comparison.pairwise))
    rows = "".join(
        f"<tr><td>{case_link(each.case_id, comparison.candidate)}</td><td>{each.value:g}</td>"
        f"<td>{html_text(' / '.join(each.why))}</td></tr>\n"
        for each in comparison.pairwise.pairs
    )
    table = html_table(("case", "new answer", "why"), rows) if rows else ""
    listed = f"<details><summary>Verdicts by case</summary>{table}</details>\n" if table else ""
    return f'<h3 id="pairwise">By a judge, pair by pair</h3>\n<ul class="plain">{lines}</ul>\n{listed}'


def _metric_table(reported: ReportedRun, verdicts: Sequence[GateVerdict]) -> str:
    if not reported.summary.metrics:
        return '<p class="soft">Nothing is scored yet.</p>\n'
    headings = ["metric", INTERVAL_HEADING, "", "scored", "backend", "trust", *(["gate"] if verdicts else [])]
    head = "".join(f'<th scope="col"{" class=num" if each == "scored" else ""}>{each}</th>' for each in headings)
    body = "".join(_metric_row(row, reported.infos[row.metric], verdicts) for row in reported.summary.metrics)
    notes = [*label_notes(reported.summary.metrics)]
    notes += [f"i: {each}" for each in informational_notes(reported.summary.metrics)]
    note = "".join(f'<p class="soft">{html_text(each)}</p>\n' for each in notes)
    if clusters := describe_clusters(reported.summary):
        note = f'<p class="soft">{html_text(clusters)}</p>\n{note}'
    table = f'<table class="metrics wide">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>'
    return f'<div class="card">{table}</div>\n{note}'


def _metric_row(row: MetricSummary, info: MetricInfo, verdicts: Sequence[GateVerdict]) -> str:
    informational = ' <span class="soft">i</span>' if row.status == "informational" else ""
    shown = metric_cells(row, info)
    direction = f'<span aria-hidden="true">{shown.mark}</span>'
    for_screen_readers = f'<span class="sr">{describe_direction(better_direction(row, info))}</span>'
    scored = shown.scored if row.n_scored == row.n_cases else f"<strong>{shown.scored}</strong>"
    name = f'<strong class="mono">{html_text(row.metric)}</strong>{direction}{for_screen_readers}{informational}'
    cells = [
        f'<td title="{html_text(info.summary)}">{name}</td>',
        f'<td data-name="value">{html_text(shown.value)}</td>',
        f'<td data-name="interval">{_interval_bar(row, info)}</td>' if row.mean is not None else "<td></td>",
        f'<td class="num" data-name="scored">{scored}</td>',
        f'<td data-name="backend">{html_text(shown.backend)}</td>',
        f'<td data-name="trust">{html_text(shown.trust)}</td>',
    ]
    if verdicts:
        named = [verdict for verdict in verdicts if is_about(verdict, row.metric, row.backend)]
        gates = [f"<code>{html_text(gate_rule(each))}</code> {_word(GATE_WORDS[each.verdict])}" for each in named]
        cells.append(f'<td data-name="gate">{"<br>".join(gates)}</td>' if gates else "<td></td>")
    aside = "" if row.status == "ok" else ' class="aside"'
    return f"<tr{aside}>{''.join(cells)}</tr>\n{_labeled_row(row, info, gated=bool(verdicts))}"


def _labeled_row(row: MetricSummary, info: MetricInfo, *, gated: bool) -> str:
    """What people would say, below what the scores say."""
    shown = labeled_cells(row, info)
    if shown is None or row.labeled is None:
        return ""
    labeled = row.labeled
    rate = structs.replace(row, mean=labeled.rate, low=labeled.low, high=labeled.high)
    cells = [
        f'<td>{html_text(LABELED_ROW)}<span aria-hidden="true">{shown.mark}</span></td>',
        f'<td data-name="labeled">{html_text(shown.value)}</td>',
        f"<td>{_interval_bar(rate, info)}</td>",
        f'<td class="num">{shown.scored}</td>',
        f"<td>{html_text(shown.backend)}</td>",
        f"<td>{html_text(shown.trust)}</td>",
        *(["<td></td>"] if gated else []),
    ]
    return f'<tr class="labeled">{"".join(cells)}</tr>\n'


def _interval_bar(row: MetricSummary, info: MetricInfo) -> str:
    """The mean and its interval on the metric's range; where that has no end, on the values that were seen."""
    if row.mean is None:
        return ""
    low = info.range[0] if info.range[0] is not None else row.minimum
    high = info.range[1] if info.range[1] is not None else row.maximum
    if low is None or high is None or high <= low:
        return ""

    def at(value: float | None) -> float:
        share = 0.0 if value is None else (value - low) / (high - low)
        return 100 * min(1.0, max(0.0, share))

    start, end = (at(row.low), at(row.high)) if row.low is not None and row.high is not None else (at(row.mean),) * 2
    label = f"{quantity(row.mean, info.unit)} on a scale from {quantity(low, info.unit)} to {quantity(high, info.unit)}"
    if row.low is not None and row.high is not None:
        label += f", 95 % interval {quantity(row.low, info.unit)} to {quantity(row.high, info.unit)}"
    return (
        f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{html_text(label)}">'
        f"<title>{html_text(label)}</title>"
        '<rect class="track" x="0" y="0" width="100" height="8"/>'
        f'<rect class="span" x="{start:.2f}" y="0" width="{max(0.5, end - start):.2f}" height="8"/>'
        f'<rect class="mean" x="{min(98.8, max(0.0, at(row.mean) - 0.6)):.2f}" y="0" width="1.2" height="8"/></svg>'
    )


def _judge(reported: ReportedRun) -> str:
    summary = reported.summary
    lines = [
        f"<li><code>{html_text(row.metric)}</code>: "
        f"{html_text(describe_spread(spread, reported.infos[row.metric].unit))}</li>"
        for row, spread in spread_rows(summary.metrics)
    ]
    for metric, panel in panel_rows(summary.metrics):
        said = "<br>".join(map(html_text, describe_panel(panel)))
        lines.append(f"<li>panel of <code>{html_text(metric)}</code>: {said}</li>")
    lines += [f"<li>spent by the {who}: {html_text(words)}</li>" for who, words in describe_spending(summary)]
    return f'<h2 id="judge">Judge</h2>\n<ul class="plain">{"".join(lines)}</ul>\n' if lines else ""


def _unscored(summary: RunSummary) -> str:
    if not summary.unscored:
        return ""
    lines = []
    for entry in errors_first(summary.unscored):
        mark = '<span class="broken">error</span> ' if entry.status == "error" else ""
        cases = ", ".join(f"<code>{html_text(each, 80)}</code>" for each in entry.first_cases)
        more = ", …" if entry.n_cases > len(entry.first_cases) else ""
        reason = f"{entry.n_records} × {html_text(entry.reason, 500)}"
        where = f'<span class="soft">({cases}{more})</span>'
        lines.append(f"<li>{mark}<code>{html_text(entry.metric)}</code>: {reason} {where}</li>")
    total = sum(entry.n_records for entry in summary.unscored)
    summary_line = f"<summary>Not scored: {total:,} scores, and why</summary>"
    # What went wrong is in view; what does not apply is there for those who ask.
    is_fault = summary.n_user_failed or any(entry.status == "error" for entry in summary.unscored)
    opened = " open" if is_fault else ""
    return f'<details class="note"{opened}>{summary_line}<ul class="plain">{"".join(lines)}</ul></details>\n'


def _word(word: str) -> str:
    return f'<span class="word {_WORD_CLASS.get(word, "unsure")}">{html_text(word)}</span>'

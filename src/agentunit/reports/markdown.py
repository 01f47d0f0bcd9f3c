"""A run as Markdown that fits a comment on a pull request.

Whatever a case, an agent or a metric wrote is shown as text: it is escaped, and stands where GitHub looks for no
mentions and links.
"""

from __future__ import annotations

import html
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

from agentunit.core.results import MetricSummary, RunSummary
from agentunit.engine.deciding.comparison import Comparison
from agentunit.engine.deciding.decision import Decision
from agentunit.engine.deciding.gate_expressions import GateVerdict
from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import CaseView, conversation_text, view_case, worst_repeat
from agentunit.reports.console import FINDINGS_SHOWN
from agentunit.reports.figures import (
    CASE_REASONS,
    GATE_WORDS,
    INTERVAL_HEADING,
    counted,
    counted_cases,
    describe_clusters,
    describe_failed,
    describe_mean,
    describe_reason,
    describe_spending,
    describe_spread,
    errors_first,
    gate_rule,
    gates_of_row,
    informational_notes,
    metric_cells,
    quantity,
    spread_rows,
    threshold_notes,
)
from agentunit.reports.finding_text import describe_run_finding
from agentunit.reports.markdown_text import code, html_code, inline
from agentunit.reports.printable import printable
from agentunit.reports.raters import (
    LABELED_ROW,
    describe_pairwise,
    describe_panel,
    label_notes,
    labeled_cells,
    panel_rows,
)
from agentunit.reports.reported_run import ReportedCase, ReportedRun, how_to_resume
from agentunit.reports.run_facts import (
    FAILING_HEADINGS,
    KIND_HEADINGS,
    WRONG,
    describe_answers,
    describe_beside,
    describe_change,
    describe_difference,
    describe_finding,
    describe_kinds,
    describe_known_failures,
    describe_pairs,
    describe_tested,
    describe_tool_changes,
    findings_by_case,
    findings_by_heading,
    further_reasons,
    lines_under,
    origin_facts,
    word_of,
)
from agentunit.reports.several_runs import cases_by_runs, describe_several, metrics_by_runs
from agentunit.reports.slice_table import SLICE_HEADINGS, describe_slices, slice_cells, slices_note

MOST_CHARACTERS = 65_000
"""GitHub refuses comments of more than 65,536."""

_ROOM_FOR_TAIL = 400
_CASES_SHOWN = 10
_REASONS_SHOWN = 12
_ROWS_SHOWN = 100
_TEXT_LENGTH = 700
_ANSWER_LENGTH = 300
_VERDICT_MARK = {"pass": "✅ PASS", "fail": "❌ FAIL", "errors": "❌ ERRORS", "cannot tell": "⚠️ CANNOT TELL"}
_GATE_MARK = {"pass": "✅", "fail": "❌", "error": "❌", "cannot tell": "❔"}


def run_markdown(reported: ReportedRun, *, full_cases: bool = True) -> str:
    """The report of a run in at most ``MOST_CHARACTERS``; without ``full_cases`` the worst cases are only named."""
    if reported.others:
        return _several_markdown(reported)
    title = f"### {code(reported.header.name)}{_verdict_mark(reported.decision)}"
    blocks = [title, *_run_blocks(reported)]
    text = "\n\n".join(block for block in blocks if block)
    if len(text) > MOST_CHARACTERS - _ROOM_FOR_TAIL:
        text = text[: text.rfind("\n", 0, MOST_CHARACTERS - _ROOM_FOR_TAIL)] + "\n\n…"
    return _with_worst_cases(text, reported, full_cases=full_cases)


def _run_blocks(reported: ReportedRun) -> Iterator[str]:
    decision = reported.decision
    yield from (*_sentence(decision), *_beside(reported), *_findings(reported))
    yield from (
        _metric_table(reported),
        _facts(reported),
        *_cases(decision),
        *_slices(reported),
        *_known_failures(decision),
        *_judge(reported),
    )
    yield from (*_comparison(decision.comparison), *_unscored(reported.summary))


def _several_markdown(reported: ReportedRun) -> str:
    """Several runs against one baseline: what all of them show, then each run as far as there is room."""
    runs, verdict = reported.runs, reported.verdict
    title = inline(describe_several([run.label for run in runs], reported.baseline_label), 300)
    blocks = [f"### {title}{_verdict_mark(verdict)}", *_sentence(verdict)]
    compared = [run.decision.comparison for run in runs if run.decision.comparison is not None]
    labels = [code(label) for label in (reported.baseline_label, *(run.label for run in runs))]
    rows = [(code(metric), *map(inline, cells)) for metric, cells in metrics_by_runs(compared)]
    blocks.append(_table(["metric", *labels], rows))
    cases = cases_by_runs(compared)
    changed = [row for row in cases if row.is_changed]
    rows = [(code(row.case_id, 60), inline(row.baseline), *map(inline, row.runs)) for row in changed[:_ROWS_SHOWN]]
    if rows:
        blocks += [f"**Cases that changed ({len(changed):,})**", _table(["case", *labels], rows)]
    left_out = [f"{len(changed) - len(rows):,} more that changed"] if len(changed) > len(rows) else []
    left_out += [f"{len(cases) - len(changed):,} that changed in no run"] if len(cases) > len(changed) else []
    blocks.append(f"… and {' and '.join(left_out)}" if left_out else "")
    for run in runs:
        body = "\n\n".join(block for block in _run_blocks(run) if block)
        summary = f"<summary>{html_code(run.label)}{_verdict_mark(run.decision)}</summary>"
        blocks.append(f"<details>{summary}\n\n{body}\n\n</details>")
    text = ""
    for place, block in enumerate(each for each in blocks if each):
        if len(text) + len(block) > MOST_CHARACTERS - _ROOM_FOR_TAIL:
            return f"{text}… and {counted(len(blocks) - place, 'more part')} that do not fit here\n"
        text += f"{block}\n\n"
    return text.rstrip("\n") + "\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A table of cells that are Markdown already; ``align`` has an ``r`` for each column of numbers."""
    rule = "|".join("--:" if each == "r" else "---" for each in align.ljust(len(headings)))
    lines = (f"| {' | '.join(cells)} |" for cells in (headings, *rows))
    return "\n".join([next(lines), f"|{rule}|", *lines])


def _slices(reported: ReportedRun) -> Iterator[str]:
    """The tables by slice, what differs most first."""
    for table in reported.slices:
        rows = [
            (code(each.metric), inline(each.slice, 60), *map(inline, each[2:]))
            for each in slice_cells(table, reported.infos)
        ]
        more = [f"… and {counted(len(rows) - _ROWS_SHOWN, 'more row')}"] if len(rows) > _ROWS_SHOWN else []
        shown = [_table(SLICE_HEADINGS, rows[:_ROWS_SHOWN], "   rr")] if rows else []
        note = inline(slices_note(table, _ROWS_SHOWN), 300)
        yield "\n\n".join([f"**{inline(describe_slices(table))}**", *shown, *more, note])


def _block(text: str) -> str:
    # Inside <pre> nothing is Markdown until </pre>, which cannot be in escaped text.
    shown = printable(text)
    left_off = len(shown) - _TEXT_LENGTH
    if left_off > 0:
        shown = f"{shown[:_TEXT_LENGTH]}… ({left_off:,} more characters)"
    return f"<pre>{html.escape(shown, quote=False)}</pre>"


def _verdict_mark(decision: Decision) -> str:
    return f": {_VERDICT_MARK[decision.verdict]}" if decision.verdict else ""


def _facts(reported: ReportedRun) -> str:
    run = reported.run
    cases = counted_cases(run.n_cases, run.n_repeats, run.n_records)
    failed = f", the agent failed {describe_failed(run)}" if run.n_failed else ""
    n_user_failed = len(run.user_failed)
    failed += f", the simulated user failed in {n_user_failed:,}" if n_user_failed else ""
    unfinished = "" if run.header.status == "finished" else f", {run.header.status}"
    if (resume := how_to_resume(run.header)) is not None:
        unfinished += f" (next: {code(reported.mask.text(resume))})"
    origin = "".join(f" · {name} {code(text)}" for name, text in origin_facts(reported.header))
    return f"{cases}{failed} · run {code(run.header.id)}{unfinished} · {_utc(run.header.created_at)}{origin}"


def _utc(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _sentence(decision: Decision) -> Iterator[str]:
    """The sentence, and below it statistics and the reasons that it cuts short."""
    yield f"**{inline(decision.headline, 600)}**"
    yield "<br>".join(inline(line, 600) for line in lines_under(decision))
    yield "\n".join(f"- {inline(describe_reason(each), 600)}" for each in further_reasons(decision))
    if decision.way_out:
        yield f"next: {code(decision.way_out)}"


def _beside(reported: ReportedRun) -> Iterator[str]:
    """What other commands decided about the run."""
    yield "\n".join(
        f"- {inline(describe_beside(stored, decision, _utc(stored.made_at)), 600)}"
        for stored, decision in reported.beside
    )


def _cases(decision: Decision) -> Iterator[str]:
    """The cases that are not fine, or what became of them, before any statistics."""
    if decision.comparison is not None:
        yield from _differences(decision, decision.comparison)
    for heading, findings in findings_by_heading(decision).items():
        # Beside a baseline, what a missed gate rests on may be no news.
        if decision.comparison is None or heading == WRONG:
            said = ((each.case_id, describe_finding(each, decision.comparison)) for each in findings[:_CASES_SHOWN])
            lines = [f"- {code(case_id, 60)} {inline(text, 300)}" for case_id, text in said]
            yield _folded(heading, len(findings), lines)


def _findings(reported: ReportedRun) -> Iterator[str]:
    """What is wrong with the run: one entry a finding, with the evidence and the command that shows an example."""
    findings = reported.findings
    lines: list[str] = []
    for finding in findings[:FINDINGS_SHOWN]:
        text = describe_run_finding(finding)
        lines.append(f"- **{inline(text.what, 300)}**")
        evidence = f"{inline(text.evidence, 300)}<br>" if text.evidence else ""
        lines.append(f"  <br>{evidence}{code(text.command)}" if text.command else f"  <br>{evidence}")
    if len(findings) > FINDINGS_SHOWN:
        lines.append(f"- … and {counted(len(findings) - FINDINGS_SHOWN, 'more finding')}")
    yield "\n".join(lines)


def _known_failures(decision: Decision) -> Iterator[str]:
    lines = [f"- {inline(line, _TEXT_LENGTH)}" for line in describe_known_failures(decision)]
    if lines:
        yield "\n".join(["**Known failures**", "", *lines])


def _metric_table(reported: ReportedRun) -> str:
    rows, verdicts = reported.summary.metrics, reported.decision.gates
    if not rows:
        return "Nothing is scored yet."
    headings = ["metric", INTERVAL_HEADING, "scored", "backend", "trust", *(["gate"] if verdicts else [])]
    lines = ["| " + " | ".join(headings) + " |", "|---|---|--:|---|---|" + ("---|" if verdicts else "")]
    for row in rows:
        cells = _cells(row, reported.infos[row.metric])
        if verdicts:
            cells.append("<br>".join(_rule_and_word(verdict, row) for verdict in gates_of_row(verdicts, row, rows)))
        lines.append("| " + " | ".join(cells) + " |")
        if labeled := labeled_cells(row, reported.infos[row.metric]):
            said = [f"{LABELED_ROW}{labeled.mark}", *map(inline, labeled[1:]), *([""] if verdicts else [])]
            lines.append("| " + " | ".join(said) + " |")
    if clusters := describe_clusters(reported.summary):
        lines += ["", inline(clusters)]
    for note in (*label_notes(rows), *threshold_notes(rows)):
        lines += ["", inline(note, _TEXT_LENGTH)]
    for note in informational_notes(rows):
        lines += ["", f"_i_: {inline(note, _TEXT_LENGTH)}"]
    return "\n".join(lines)


def _rule_and_word(verdict: GateVerdict, row: MetricSummary) -> str:
    # A gate may count other scores than the row: without known failures, or with informational ones.
    own = verdict.gate.aggregate == "mean" and verdict.value is not None and verdict.n_scored != row.n_scored
    value = f" ({quantity(verdict.value or 0.0, verdict.unit)} of {counted(verdict.n_scored, 'score')})" if own else ""
    return f"{code(gate_rule(verdict))} {_GATE_MARK[verdict.verdict]} {GATE_WORDS[verdict.verdict]}{value}"


def _cells(row: MetricSummary, info: MetricInfo) -> list[str]:
    cells = metric_cells(row, info)
    informational = " _i_" if row.status == "informational" else ""
    name = code(row.metric) + cells.mark + informational
    return [name, inline(cells.value), cells.scored, inline(cells.backend), inline(cells.trust)]


def _judge(reported: ReportedRun) -> Iterator[str]:
    lines = [
        f"- {code(row.metric)}: {inline(describe_spread(spread, reported.unit(row.metric)), 400)}"
        for row, spread in spread_rows(reported.summary.metrics)
    ]
    for metric, panel in panel_rows(reported.summary.metrics):
        lines.append(f"- panel of {code(metric)}: {inline('; '.join(describe_panel(panel)), 800)}")
    lines += [f"- spent by the {who}: {inline(words, 400)}" for who, words in describe_spending(reported.summary)]
    if lines:
        yield "\n".join(lines)


def _differences(decision: Decision, comparison: Comparison) -> Iterator[str]:
    """What became of the cases, by kind."""
    kinds = f": {describe_kinds(comparison)}" if comparison.n_paired else ""
    yield f"**Against {code(comparison.baseline_label)}**, {describe_pairs(comparison)}{kinds}"
    findings = findings_by_case(decision)
    for kind, heading in KIND_HEADINGS.items():
        lines = []
        for each in comparison.of_kind(kind)[:_CASES_SHOWN]:
            line = f"- {code(each.case_id, 60)} {inline(describe_change(each, comparison, findings), 300)}".rstrip()
            answers = (f"  - {when}: {code(text, _ANSWER_LENGTH)}" for when, text in describe_answers(each))
            lines.append("\n".join([line, *answers]))
        if lines:
            yield _folded(heading, comparison.n_by_kind[kind], lines)


def _folded(heading: str, n_cases: int, lines: list[str]) -> str:
    """A list of cases under its heading; those that fail the run are unfolded."""
    more = [f"- … and {n_cases - len(lines):,} more"] if n_cases > len(lines) else []
    is_open = " open" if heading in FAILING_HEADINGS else ""
    summary = f"<summary>{heading} ({n_cases:,})</summary>"
    return f"<details{is_open}>{summary}\n\n" + "\n".join([*lines, *more]) + "\n\n</details>"


def _comparison(comparison: Comparison | None) -> Iterator[str]:
    if comparison is None:
        return
    yield inline(describe_tested(comparison), 600)
    lines = ["| metric | baseline | now | difference | verdict |", "|---|--:|--:|---|---|"]
    for each in comparison.metrics:
        backend = f" {inline(each.backend)}" if each.backend else ""
        means = [inline(describe_mean(mean, each.unit)) for mean in (each.baseline_mean, each.candidate_mean)]
        verdict = f"**{each.verdict}**" if each.gated and each.verdict == "regression" else each.verdict
        informational = "" if each.gated else " _(not tested)_"
        cells = [code(each.metric) + backend, *means, inline(describe_difference(each)), verdict + informational]
        lines.append("| " + " | ".join(cells) + " |")
    if comparison.note:
        yield inline(comparison.note, 600)
    yield "\n".join(lines)
    if comparison.pairwise is not None:
        chosen = "\n".join(f"- {inline(line, 600)}" for line in describe_pairwise(comparison.pairwise))
        yield f"**By a judge, pair by pair**\n\n{chosen}"
    if comparison.tools:
        tools = (f"- {change}: {inline(names, _TEXT_LENGTH)}" for change, names in describe_tool_changes(comparison))
        yield "\n".join(["**Tools**", "", *tools])


def _unscored(summary: RunSummary) -> Iterator[str]:
    if not summary.unscored:
        return
    ordered = errors_first(summary.unscored)
    lines = []
    for entry in ordered[:_REASONS_SHOWN]:
        mark = "**error** " if entry.status == "error" else ""
        cases = ", ".join(code(each, 60) for each in entry.first_cases)
        more = ", …" if entry.n_cases > len(entry.first_cases) else ""
        lines.append(f"- {mark}{code(entry.metric)}: {entry.n_records} × {inline(entry.reason, 300)} ({cases}{more})")
    if len(ordered) > _REASONS_SHOWN:
        lines.append(f"- … and {counted(len(ordered) - _REASONS_SHOWN, 'more reason')}")
    total = sum(entry.n_records for entry in ordered)
    yield (
        f"<details><summary>Not scored: {counted(total, 'score')}, and why</summary>\n\n"
        + "\n".join(lines)
        + "\n\n</details>"
    )


def _worst_cases(reported: ReportedRun) -> dict[str, list[str]]:
    """Case ids, each with why it is among the worst; those behind a reason of the decision first."""
    decision = reported.decision
    findings = findings_by_case(decision)
    worst: dict[str, list[str]] = {}
    for reason in decision.reasons:
        for case_id in reason.cases[:_CASES_SHOWN]:
            is_case = reason.kind in CASE_REASONS and case_id in findings
            worst.setdefault(case_id, []).append(word_of(findings[case_id]) if is_case else reason.subject)
    for case_id, metrics in reported.worst_cases().items():
        worst.setdefault(case_id, []).extend(metrics)
    return dict(list(worst.items())[:_CASES_SHOWN])


def _with_worst_cases(text: str, reported: ReportedRun, *, full_cases: bool) -> str:
    worst = _worst_cases(reported)
    if not worst:
        return text + "\n"
    opening = f"\n\n<details><summary>Worst cases ({len(worst)})</summary>\n\n"
    blocks = []
    room = MOST_CHARACTERS - _ROOM_FOR_TAIL - len(text) - len(opening)
    cases = reported.cases_of(list(worst)) if full_cases else {}
    for case_id, why in worst.items():
        title = f"**{code(case_id)}** ({', '.join(inline(each) for each in dict.fromkeys(why))})"
        repeats = cases.get(case_id, ())
        block = _case_block(title, repeats, reported) if repeats else f"- {title}"
        room -= len(block) + 2
        if room < 0:
            break
        blocks.append(block)
    if not blocks:
        return text + "\n"
    left_out = len(worst) - len(blocks)
    if left_out:
        blocks.append(f"… and {left_out} more that do not fit here")
    if reported.reference:
        blocks.append(
            f"{code(shlex.join(['agentunit', 'show', reported.reference, 'CASE']))} shows everything about a case."
        )
    return text + opening + "\n\n".join(blocks) + "\n\n</details>\n"


def _case_block(title: str, repeats: Sequence[ReportedCase], reported: ReportedRun) -> str:
    view = view_case(worst_repeat(repeats, reported.infos), brief=True)
    parts = [title]
    if view.turns:
        parts.append(f"Conversation\n\n{_block(conversation_text(view.turns))}")
    elif view.query:
        parts.append(f"Question\n\n{_block(view.query)}")
    if view.user_failure:
        parts.append(f"Simulated user\n\n{_block(view.user_failure)}")
    if view.error:
        parts.append(f"Error\n\n{_block(view.error)}")
    if view.recorded and not view.turns:
        parts.append(f"Answer\n\n{_block(view.answer) if view.answer else '(none)'}")
    if view.expected:
        parts.append(f"Expected\n\n{_block(' | '.join(view.expected))}")
    parts.append(_score_line(view, reported))
    return "\n\n".join(parts)


def _score_line(view: CaseView, reported: ReportedRun) -> str:
    scores = []
    for score in view.scores:
        if score.value is not None:
            why = f" ({inline(score.reason, 200)})" if score.reason else ""
            value = quantity(score.value, reported.unit(score.metric))
            scores.append(f"{code(score.metric)} {inline(value)}{why}")
    return " · ".join(scores)

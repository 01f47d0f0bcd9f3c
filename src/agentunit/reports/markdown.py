"""A run as Markdown that fits a comment on a pull request.

Whatever a case, an agent or a metric wrote is shown as text: it is escaped, and stands where GitHub looks for no
mentions and links.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone

from agentunit.core.results import MetricSummary, RunSummary
from agentunit.engine.comparison import Comparison
from agentunit.engine.decision import Decision
from agentunit.engine.gates import GateVerdict
from agentunit.engine.scored_run import ScoredRun
from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import CaseView, view_case, worst_repeat
from agentunit.reports.decisions import difference_words, reason_line
from agentunit.reports.figures import (
    INTERVAL_HEADING,
    counted_cases,
    failed_words,
    quantity,
    shown_direction,
    spoken_value,
)
from agentunit.reports.gate_words import GATE_WORDS, gate_rule, is_about
from agentunit.reports.judge_words import spent_words, spread_rows, spread_words
from agentunit.reports.masked import Mask, ReportedCase
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import how_to_resume

MOST_CHARACTERS = 65_000
"""GitHub refuses comments of more than 65,536."""

_ROOM_FOR_TAIL = 400
_CASES_TOLD = 10
_CASES_PER_METRIC = 5
_REASONS_TOLD = 12
_TEXT_LENGTH = 700
_NAME_LENGTH = 120
_VERDICT_MARK = {"pass": "✅ PASS", "fail": "❌ FAIL", "errors": "❌ ERRORS", "cannot tell": "⚠️ CANNOT TELL"}
_GATE_MARK = {"pass": "✅", "fail": "❌", "error": "❌"}
# Everything that Markdown or GitHub could read as more than text. A dot only matters in an address.
_ACTIVE = re.compile(r"[\\`*_{}\[\]()#+!|~:@$^/]|(?<=www)\.")

CaseLookup = Callable[[str], Sequence[ReportedCase]]


def run_markdown(
    run: ScoredRun, decision: Decision, *, mask: Mask | None = None, case_of: CaseLookup | None = None
) -> str:
    """The report of a run in at most ``MOST_CHARACTERS``; with ``case_of`` it shows the worst cases in full."""
    mask = mask or Mask()
    summary, decision = mask.summary(run.summary()), mask.decision(decision)
    infos = {name: run.info(name) for name in run.metrics}
    blocks = [_heading(run, decision), *_reasons(decision), _metric_table(summary, infos, decision.gates)]
    blocks += _judge(summary, infos)
    blocks += _comparison(decision.comparison)
    blocks += _unscored(summary)
    text = "\n\n".join(block for block in blocks if block)
    if len(text) > MOST_CHARACTERS - _ROOM_FOR_TAIL:
        text = text[: text.rfind("\n", 0, MOST_CHARACTERS - _ROOM_FOR_TAIL)] + "\n\n…"
    return _with_worst_cases(text, run, _worst_cases(summary, infos, decision), infos, case_of)


def inline(text: str, most: int = _NAME_LENGTH) -> str:
    """Foreign text inside a line or a table cell.

    >>> inline("a|b <i>`@me`")
    'a&#124;b &lt;i&gt;&#96;&#64;me&#96;'
    """
    escaped = html.escape(printable_line(text, most), quote=False)
    return _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", escaped)


def code(text: str, most: int = _NAME_LENGTH) -> str:
    """Foreign text in one line as code, where a mention or a reference is not followed."""
    return f"<code>{inline(text, most)}</code>"


def _block(text: str) -> str:
    # Inside <pre> nothing is Markdown until </pre>, which cannot be in escaped text.
    shown = printable(text)
    left_off = len(shown) - _TEXT_LENGTH
    if left_off > 0:
        shown = f"{shown[:_TEXT_LENGTH]}… ({left_off:,} more characters)"
    return f"<pre>{html.escape(shown, quote=False)}</pre>"


def _heading(run: ScoredRun, decision: Decision) -> str:
    verdict = f": {_VERDICT_MARK[decision.verdict]}" if decision.verdict else ""
    cases = counted_cases(run.n_cases, run.n_repeats, run.n_records)
    failed = f", the agent failed {failed_words(run)}" if run.n_failed else ""
    when = datetime.fromtimestamp(run.header.created_at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    unfinished = "" if run.header.status == "finished" else f", {run.header.status}"
    if (resume := how_to_resume(run.header)) is not None:
        unfinished += f" (next: {code(resume)})"
    return f"### {code(run.header.name)}{verdict}\n\n{cases}{failed} · run {code(run.header.id)}{unfinished} · {when}"


def _reasons(decision: Decision) -> Iterator[str]:
    """The headline, and below it every reason with the cases behind it."""
    lines = [f"- {inline(reason_line(reason), 600)}" for reason in decision.reasons]
    yield "\n".join([f"**{inline(decision.headline, 600)}**", *([""] if lines else []), *lines])


def _metric_table(summary: RunSummary, infos: dict[str, MetricInfo], verdicts: Sequence[GateVerdict]) -> str:
    if not summary.metrics:
        return "Nothing is scored yet."
    headings = ["metric", INTERVAL_HEADING, "scored", "backend", "trust", *(["gate"] if verdicts else [])]
    lines = ["| " + " | ".join(headings) + " |", "|---|---|--:|---|---|" + ("---|" if verdicts else "")]
    for row in summary.metrics:
        cells = _cells(row, infos[row.metric])
        if verdicts:
            named = [verdict for verdict in verdicts if is_about(verdict, row.metric, row.backend)]
            cells.append("<br>".join(_rule_and_word(verdict) for verdict in named))
        lines.append("| " + " | ".join(cells) + " |")
    if any(row.status == "informational" for row in summary.metrics):
        lines += ["", "_i_: informational, shown but no ground for a decision"]
    return "\n".join(lines)


def _rule_and_word(verdict: GateVerdict) -> str:
    return f"{code(gate_rule(verdict))} {_GATE_MARK[verdict.verdict]} {GATE_WORDS[verdict.verdict]}"


def _cells(row: MetricSummary, info: MetricInfo) -> list[str]:
    mark = {"higher": " ↑", "lower": " ↓", "none": ""}[shown_direction(row, info)]
    informational = " _i_" if row.status == "informational" else ""
    return [
        code(row.metric) + mark + informational,
        inline(spoken_value(row, info.unit)),
        f"{row.n_scored}/{row.n_cases}",
        inline(row.backend) if row.n_scored else "–",
        inline(row.trust or "–"),
    ]


def _judge(summary: RunSummary, infos: dict[str, MetricInfo]) -> Iterator[str]:
    lines = [
        f"- {code(row.metric)}: {inline(spread_words(spread, infos[row.metric].unit), 400)}"
        for row, spread in spread_rows(summary.metrics)
    ]
    lines += [f"- spent by the {who}: {inline(words, 400)}" for who, words in spent_words(summary)]
    if lines:
        yield "\n".join(lines)


def _comparison(comparison: Comparison | None) -> Iterator[str]:
    if comparison is None:
        return
    lines = ["| metric | baseline | now | difference | verdict |", "|---|--:|--:|---|---|"]
    for each in comparison.metrics:
        backend = f" {inline(each.backend)}" if each.backend else ""
        means = [_amount(each.baseline_mean, each.unit), _amount(each.candidate_mean, each.unit)]
        verdict = f"**{each.verdict}**" if each.gated and each.verdict == "regression" else each.verdict
        informational = "" if each.gated else " _(not gated)_"
        cells = [code(each.metric) + backend, *means, inline(difference_words(each)), verdict + informational]
        lines.append("| " + " | ".join(cells) + " |")
    title = f"**Against {code(comparison.baseline)}**, {counted_cases(comparison.n_paired)} in both"
    if comparison.n_only_baseline:
        title += f", {comparison.n_only_baseline:,} only in the baseline"
    if comparison.note:
        title += f" ({comparison.note})"
    yield "\n".join([title, "", *lines])


def _amount(value: float | None, unit: str) -> str:
    return "–" if value is None else inline(quantity(value, unit))


def _unscored(summary: RunSummary) -> Iterator[str]:
    if not summary.unscored:
        return
    ordered = sorted(summary.unscored, key=lambda entry: (entry.status != "error", -entry.n_cases))
    lines = []
    for entry in ordered[:_REASONS_TOLD]:
        mark = "**error** " if entry.status == "error" else ""
        cases = ", ".join(code(each, 60) for each in entry.first_cases)
        more = ", …" if entry.n_cases > len(entry.first_cases) else ""
        lines.append(f"- {mark}{code(entry.metric)}: {entry.n_records} × {inline(entry.reason, 300)} ({cases}{more})")
    if len(ordered) > _REASONS_TOLD:
        lines.append(f"- … and {len(ordered) - _REASONS_TOLD} more reasons")
    total = sum(entry.n_records for entry in ordered)
    yield f"<details><summary>Not scored: {total:,} scores, and why</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _worst_cases(summary: RunSummary, infos: dict[str, MetricInfo], decision: Decision) -> dict[str, list[str]]:
    """Case ids, each with why it is among the worst; those behind a reason of the decision first."""
    worst: dict[str, list[str]] = {}
    for reason in decision.reasons:
        for case_id in reason.cases[:_CASES_TOLD]:
            worst.setdefault(case_id, []).append(reason.subject)
    rows = [row for row in summary.metrics if row.status == "ok" and infos[row.metric].unit == "score"]
    for rank in range(_CASES_PER_METRIC):
        for row in rows:
            if rank < len(row.worst_cases):
                worst.setdefault(row.worst_cases[rank], []).append(row.metric)
    return dict(list(worst.items())[:_CASES_TOLD])


def _with_worst_cases(
    text: str, run: ScoredRun, worst: dict[str, list[str]], infos: dict[str, MetricInfo], case_of: CaseLookup | None
) -> str:
    if not worst:
        return text + "\n"
    opening = f"\n\n<details><summary>Worst cases ({len(worst)})</summary>\n\n"
    blocks = []
    room = MOST_CHARACTERS - _ROOM_FOR_TAIL - len(text) - len(opening)
    for case_id, why in worst.items():
        block = _case_block(case_id, why, case_of(case_id) if case_of else (), infos)
        room -= len(block) + 2
        if room < 0:
            break
        blocks.append(block)
    if not blocks:
        return text + "\n"
    left_out = len(worst) - len(blocks)
    if left_out:
        blocks.append(f"… and {left_out} more that have no room here")
    blocks.append(f"{code(f'agentunit show {run.header.id} CASE')} tells everything about a case.")
    return text + opening + "\n\n".join(blocks) + "\n\n</details>\n"


def _case_block(case_id: str, why: list[str], repeats: Sequence[ReportedCase], infos: dict[str, MetricInfo]) -> str:
    title = f"**{code(case_id)}** ({', '.join(inline(each) for each in dict.fromkeys(why))})"
    if not repeats:
        return f"- {title}"
    view = view_case(worst_repeat(repeats, infos), brief=True)
    parts = [title]
    if view.query:
        parts.append(f"Question\n\n{_block(view.query)}")
    if view.error:
        parts.append(f"Error\n\n{_block(view.error)}")
    parts.append(f"Answer\n\n{_block(view.answer) if view.answer else '(none)'}")
    if view.expected:
        parts.append(f"Expected\n\n{_block(' | '.join(view.expected))}")
    parts.append(_score_line(view, infos))
    return "\n\n".join(parts)


def _score_line(view: CaseView, infos: dict[str, MetricInfo]) -> str:
    told = []
    for score in view.scores:
        if score.value is None:
            continue
        unit = infos[score.metric].unit if score.metric in infos else "score"
        why = f" ({inline(score.reason, 200)})" if score.reason else ""
        told.append(f"{code(score.metric)} {inline(quantity(score.value, unit))}{why}")
    return " · ".join(told)

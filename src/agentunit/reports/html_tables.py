"""Tables of the HTML report that runs share: several runs against one baseline, and scores by slice."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from agentunit.reports.printable import printable, printable_line, xml_safe
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.several_runs import CaseByRuns, cases_by_runs, metrics_by_runs
from agentunit.reports.slice_table import SLICE_HEADINGS, describe_slices, slice_cells, slices_note


def several_section(reported: ReportedRun) -> str:
    """Metrics by runs and cases by runs, each run against the baseline."""
    compared = [run.decision.comparison for run in reported.runs if run.decision.comparison is not None]
    labels = [reported.baseline_label, *(run.label for run in reported.runs)]
    rows = "".join(_row(labels, metric, cells) for metric, cells in metrics_by_runs(compared))
    parts = [
        f'<h2 id="runs">Each against {html_text(reported.baseline_label)}</h2>\n',
        html_table(("metric", *labels), rows),
    ]
    if any(not each.gated for comparison in compared for each in comparison.metrics):
        parts.append('<p class="soft">i: described, not counted</p>\n')
    cases = cases_by_runs(compared)
    changed = [row for row in cases if row.is_changed]
    parts.append(f'<h2 id="cases-by-runs">Cases by runs: {len(changed):,} of {len(cases):,} changed</h2>\n')
    for shown, title in ((changed, None), ([row for row in cases if not row.is_changed], "Changed in no run")):
        table = html_table(("case", *labels), "".join(_case_row(labels, row) for row in shown))
        if shown and title is None:
            parts.append(table)
        elif shown:
            summary = f"<summary>{title} ({len(shown):,})</summary>"
            parts.append(f'<details class="note">{summary}{table}</details>\n')
    return "".join(parts)


def _case_row(labels: Sequence[str], row: CaseByRuns) -> str:
    cells = [f'<td data-name="{html_text(labels[0])}">{_standing(row.baseline)}</td>']
    for label, word, scores in zip(labels[1:], row.runs, row.scores, strict=True):
        soft = f' <span class="soft">{html_text(scores)}</span>' if scores else ""
        cells.append(f'<td data-name="{html_text(label)}">{_standing(word)}{soft}</td>')
    return f"<tr><td>{case_link(row.case_id)}</td>{''.join(cells)}</tr>\n"


def _standing(word: str) -> str:
    shade = "fail" if word.startswith(("newly", "fails", "worse")) else "pass" if word in ("fixed", "better") else ""
    return f'<span class="word {shade}">{word}</span>' if shade else word


def slices_section(reported: ReportedRun) -> str:
    """The tables by slice, what differs most first."""
    parts = []
    for table in reported.slices:
        rows = "".join(_row(SLICE_HEADINGS[1:], metric, cells) for metric, *cells in slice_cells(table, reported.infos))
        parts.append(
            f"<h2>{html_text(describe_slices(table))}</h2>\n{html_table(SLICE_HEADINGS, rows) if rows else ''}"
        )
        parts.append(f'<p class="soft">{html_text(slices_note(table))}</p>\n')
    return "".join(parts)


def _row(names: Sequence[str], first: str, cells: Sequence[str]) -> str:
    body = "".join(
        f'<td data-name="{html_text(name)}">{html_text(cell)}</td>' for name, cell in zip(names, cells, strict=True)
    )
    return f'<tr><td><strong class="mono">{html_text(first)}</strong></td>{body}</tr>\n'


def html_table(headings: Sequence[str], rows: str) -> str:
    """A table of rows that are markup already."""
    head = "".join(f'<th scope="col">{html_text(each)}</th>' for each in headings)
    table = f'<table class="wide">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>'
    return f'<div class="card">{table}</div>\n'


def case_link(case_id: str, run_id: str | None = None) -> str:
    """A case id that leads to all that the page has about the case, of this run where there are several.

    >>> case_link("a b", "r1")
    '<a href="#a%20b/r1"><code>a b</code></a>'
    """
    # As encodeURIComponent of the page's script writes them.
    parts = (quote(each, safe="!'()*", errors="replace") for each in (case_id, run_id) if each is not None)
    return f'<a href="#{"/".join(parts)}"><code>{html_text(case_id, 80)}</code></a>'


def html_text(text: str, most: int | None = None) -> str:
    """Foreign text inside markup, also inside a quoted attribute."""
    shown = printable(text) if most is None else printable_line(text, most)
    return escape(xml_safe(shown), quote=True)

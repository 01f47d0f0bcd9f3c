"""What ``agentunit validity`` found, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from agentunit.core.results import InputError, Unscored
from agentunit.engine.validity import Agreement, LabelJoin, is_conclusive
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import print_line
from agentunit.reports.figures import DIRECTION_MARK, counted, describe_cut
from agentunit.reports.printable import printable_line

_SHOWN = 10


class ValidityReport(Struct):
    """What ``agentunit validity --json`` prints."""

    labels: str
    n_labels: int
    agreements: list[Agreement]
    unscored: list[Unscored]
    not_joined: list[str]
    input_errors: list[InputError]
    n_score_errors: int
    v: int = 1

    @property
    def is_conclusive(self) -> bool:
        """Whether the labels say something about any metric."""
        return is_conclusive(self.agreements)


def print_validity(report: ValidityReport, infos: Mapping[str, MetricInfo], console: Console) -> None:
    """The table, what the labels cannot tell, what was left out, and what could not be read."""
    if report.agreements:
        console.print(_table(report.agreements, infos))
    lists = {
        "No figure": [f"{row.metric} ({row.backend}): {row.reason}" for row in report.agreements if row.reason],
        "Not joined": report.not_joined,
        "Not scored": [f"{entry.metric}: {entry.n_cases} × {entry.reason}" for entry in report.unscored],
        "Errors": [str(error) for error in report.input_errors],
    }
    for heading, lines in lists.items():
        if lines:
            console.print(f"\n[bold]{heading}[/bold]")
        for line in lines[:_SHOWN]:
            print_line(f"  {printable_line(line)}", console)
        if len(lines) > _SHOWN:
            console.print(f"  … and {len(lines) - _SHOWN} more (--json lists them)", highlight=False)
    if not report.is_conclusive:
        labels_read = counted(report.n_labels, "label")
        console.print(
            f"\nThe data cannot tell: {labels_read} read, no metric could be judged by them. More labels may tell.",
            highlight=False,
        )
    else:
        first = report.agreements[0].metric
        console.print(f"next: agentunit metrics {escape(first)}   says what it was measured on", style="bold")


def _table(rows: Sequence[Agreement], infos: Mapping[str, MetricInfo]) -> Table:
    statistics = sorted({row.statistic for row in rows})
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", "backend", "n", f"{'/'.join(statistics)}, 95 %", "balanced acc.", "verdict"):
        numeric = heading in ("n", "balanced acc.")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=heading == "metric")
    colours = {"strong": "green", "useful": "green", "weak": "yellow"}
    for row in rows:
        better = DIRECTION_MARK[infos[row.metric].direction]
        figure = "–" if row.value is None else f"{row.value:.2f}"
        if row.low is not None and row.high is not None:
            figure += f" [{row.low:.2f}, {row.high:.2f}]"
        if len(statistics) > 1:
            figure = f"{row.statistic} {figure}"
        at = "–" if row.balanced_accuracy is None else f"{row.balanced_accuracy:.2f}"
        at += "" if row.cut is None else f" at {describe_cut(row.cut)}"
        verdict = Text(row.verdict, style=colours.get(row.verdict, "red"))
        table.add_row(Text(row.metric + better), Text(row.backend), f"{row.n:,}", Text(figure), at, verdict)
    return table


def unmatched(join: LabelJoin) -> list[str]:
    """What a join left out, a line each: labels without a record, and records without a label."""
    missing = join.labels_without_record
    named = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
    repeated = "with the id of an earlier one; a label is about one answer, so the first is used"
    lines = {
        f"{counted(len(missing), 'label')} without a record ({named})": len(missing),
        f"{counted(join.n_records_without_label, 'record')} without a label": join.n_records_without_label,
        f"{counted(join.n_repeated_records, 'record')} {repeated}": join.n_repeated_records,
    }
    return [line for line, count in lines.items() if count]

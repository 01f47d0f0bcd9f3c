"""How far a run's scorers agree with its labels, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentunit.engine.label_validity import CalibrationBin, RaterAgreement, ScorerValidity, ThresholdChoice
from agentunit.engine.second_look import SecondLook
from agentunit.engine.validity import is_conclusive
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import plain_table, print_line, print_next
from agentunit.reports.figures import DIRECTION_MARK, counted, describe_cut
from agentunit.reports.printable import printable_line

_COLORS = {"strong": "green", "useful": "green", "weak": "yellow"}
_SHOWN = 10
_BAR = 20


class RunValidity(Struct):
    """What ``agentunit validity RUN --json`` prints."""

    run: str
    n_labels: int
    scorers: list[ScorerValidity]
    second_look: list[SecondLook]
    by: str | None = None
    v: int = 1

    @property
    def is_conclusive(self) -> bool:
        """Whether the labels say something about any metric."""
        return is_conclusive(each.agreement for each in self.scorers)


def print_run_validity(report: RunValidity, infos: Mapping[str, MetricInfo], console: Console) -> None:
    """The table, then what each scorer gets wrong, then what may be wrong with the labels and cases themselves."""
    if report.scorers:
        console.print(_table(report.scorers, infos))
    for each in report.scorers:
        lines = list(_about(each, report.by, infos[each.agreement.metric].direction))
        if lines:
            print_line(f"\n{printable_line(each.agreement.metric)} ({each.agreement.backend})", console, "bold")
        for line in lines:
            print_line(f"  {line}", console)
    if report.second_look:
        console.print("\n[bold]Your labels or your test may be wrong here[/bold]")
        for item in report.second_look[:_SHOWN]:
            print_line(
                f"  {printable_line(item.case_id)}  {item.metric}, {item.kind}: {printable_line(item.text)}", console
            )
        if len(report.second_look) > _SHOWN:
            print_line(f"  … and {len(report.second_look) - _SHOWN} more (--json lists them)", console, "dim")
    if not report.is_conclusive:
        print_line(f"\nThe data cannot tell: {counted(report.n_labels, 'label')}.", console)
        print_next([f"agentunit label {report.run}"], console)
    elif report.second_look:
        print_next([f"agentunit show {report.run} {printable_line(report.second_look[0].case_id)}"], console)


def _table(rows: Sequence[ScorerValidity], infos: Mapping[str, MetricInfo]) -> Table:
    table = plain_table(
        "metric", "backend", "labels", "AUROC, 95 %", "agree", "kappa", "verdict", right=("labels",), fixed=("metric",)
    )
    for each in rows:
        found = each.agreement
        figure = "–" if found.value is None else f"{found.value:.2f}"
        if found.low is not None and found.high is not None:
            figure += f" [{found.low:.2f}, {found.high:.2f}]"
        if found.statistic != "AUROC":
            figure = f"{found.statistic} {figure}"
        table.add_row(
            Text(printable_line(found.metric) + DIRECTION_MARK[infos[found.metric].direction]),
            Text(printable_line(found.backend)),
            f"{found.n:,}",
            figure,
            "–" if found.agreement is None else f"{found.agreement:.0%}",
            "–" if each.kappa is None else f"{each.kappa:.2f}",
            Text(found.verdict, style=_COLORS.get(found.verdict, "red")),
        )
    return table


def _about(each: ScorerValidity, by: str | None, direction: str) -> Iterator[str]:
    found = each.agreement
    if found.reason:
        yield f"no figure: {found.reason}"
    if each.n_tied:
        yield f"{counted(each.n_tied, 'case')} left out: as many raters say yes as say no"
    if each.warning:
        yield f"careful: {each.warning}"
    if each.raters is not None:
        yield _describe_raters(each.raters)
    if each.threshold is not None:
        yield _describe_threshold(each.threshold, lower=direction == "lower")
    if each.calibration:
        turned = "1 − score" if direction == "lower" else "scores"
        yield f"{turned}, and what people say:"
        yield from map(_describe_bin, each.calibration)
    if each.slices and found.cut is not None:
        yield f"wrong side of {describe_cut(found.cut)}, by {by or 'kind of case (described, not tested)'}:"
    for part in each.slices[:_SHOWN] if found.cut is not None else ():
        wrong = part.n_too_good + part.n_too_bad
        sides = f"{part.n_too_good} scored too good, {part.n_too_bad} too bad"
        yield f"  {printable_line(part.name)}: {wrong} of {part.n}{f' ({sides})' if wrong else ''}"


def _describe_raters(raters: RaterAgreement) -> str:
    kappas = [f"{pair} κ {kappa:.2f}" for pair, kappa in raters.kappas.items() if kappa is not None]
    alpha = [] if raters.alpha is None else [f"Krippendorff's α {raters.alpha:.2f}"]
    figures = "; ".join([*kappas[:3], *alpha])
    shared = counted(raters.n_shared, "shared case")
    return printable_line(f"raters agree on {raters.agreement:.0%} of {shared}{f' ({figures})' if figures else ''}")


def _describe_threshold(choice: ThresholdChoice, *, lower: bool) -> str:
    aim = "best balance" if choice.asked is None else f"precision {choice.asked:g}"
    held_out = "" if choice.held_out_precision is None else f" ({choice.held_out_precision:.2f} on labels held out)"
    return (
        f"{aim}: of cases that score {choice.threshold:.2f} or {'less' if lower else 'more'}, "
        f"{choice.precision:.2f} [{choice.low:.2f}, {choice.high:.2f}] are good{held_out}; "
        f"they hold {choice.recall:.0%} of all good cases"
    )


def _describe_bin(each: CalibrationBin) -> str:
    bar = "█" * round(_BAR * each.label_rate)
    said = f"{each.label_rate:.2f} good, mean score {each.mean_score:.2f}, {counted(each.n, 'case')}"
    return f"  {each.low:.1f}–{each.high:.1f}  {bar:<{_BAR}}  {said}"

"""``agentunit label RUN --measure``: the scores of a run against the labels that people gave its answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import click
from msgspec import Struct

from agentunit.addons.review.label_command import LabelOptions
from agentunit.addons.review.labeling.scorer_agreement import is_conclusive
from agentunit.addons.review.labeling.scorer_validity import (
    CalibrationBin,
    RaterAgreement,
    ScorerValidity,
    ThresholdChoice,
    scorer_validity,
)
from agentunit.addons.review.labeling.second_look import SecondLook, second_look
from agentunit.cli.main import EXIT_CANNOT_TELL, EXIT_OK
from agentunit.cli.options import InputFailure, open_store
from agentunit.cli.references import load_run, unreadable_runs_fail
from agentunit.engine.deciding.gate_expressions import nearest_name
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.formulas.text import shown_share
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import plain_table, print_line, print_next
from agentunit.reports.figures import DIRECTION_MARK, counted, describe_cut
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.terminal import Terminal, Text, TextTable

# How far a run's scorers agree with its labels, in the terminal.

_COLORS = {"strong": "green", "useful": "green", "weak": "yellow"}
_SHOWN = 10
_BAR = 20


class RunValidity(Struct):
    """What ``agentunit label RUN --measure --json`` prints."""

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


def print_run_validity(report: RunValidity, infos: Mapping[str, MetricInfo], console: Terminal) -> None:
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
        console.print("\nYour labels or your test may be wrong here", style="bold")
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


def _table(rows: Sequence[ScorerValidity], infos: Mapping[str, MetricInfo]) -> TextTable:
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
            "–" if found.agreement is None else shown_share(found.agreement),
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
    return printable_line(
        f"raters agree on {shown_share(raters.agreement)} of {shared}{f' ({figures})' if figures else ''}"
    )


def _describe_threshold(choice: ThresholdChoice, *, lower: bool) -> str:
    aim = "best balance" if choice.asked is None else f"precision {choice.asked:g}"
    held_out = "" if choice.held_out_precision is None else f" ({choice.held_out_precision:.2f} on labels held out)"
    return (
        f"{aim}: of cases that score {choice.threshold:.2f} or {'less' if lower else 'more'}, "
        f"{choice.precision:.2f} [{choice.low:.2f}, {choice.high:.2f}] are good{held_out}; "
        f"they hold {shown_share(choice.recall)} of all good cases"
    )


def _describe_bin(each: CalibrationBin) -> str:
    bar = "█" * round(_BAR * each.label_rate)
    said = f"{each.label_rate:.2f} good, mean score {each.mean_score:.2f}, {counted(each.n, 'case')}"
    return f"  {each.low:.1f}–{each.high:.1f}  {bar:<{_BAR}}  {said}"


_MOST_RUNS = 30


def report_run(context: click.Context, options: LabelOptions) -> None:
    """Print how far a run's scorers agree with its labels; the exit code says whether the labels can tell."""
    reference, by = options.references[0], options.by
    run = load_run(reference, options.store_path)
    wanted = [name.strip() for group in options.names for name in group.split(",") if name.strip()]
    for name in wanted:
        if name not in run.metrics:
            raise InputFailure(f"run {run.header.label} has no scores of {name!r}; {nearest_name(name, run.metrics)}")
    scorers: list[ScorerValidity] = []
    for metric in wanted or run.metrics:
        for backend in dict.fromkeys(row.backend for row in run.metrics[metric] if row.value is not None):
            found = scorer_validity(run, metric, backend, precision=options.precision, by=by)
            if found is not None:
                scorers.append(found)
    others = [] if os.path.isfile(reference) else _other_runs(run, options.store_path)
    report = RunValidity(run.header.id, len(run.labels), scorers, second_look(run, others), by)
    if options.as_json:
        click.echo(printable_json(report))
    else:
        print_run_validity(report, {name: run.info(name) for name in run.metrics}, Terminal())
    context.exit(EXIT_OK if report.is_conclusive else EXIT_CANNOT_TELL)


def _other_runs(run: ScoredRun, store_path: str) -> list[ScoredRun]:
    """The newest other runs of the same suite or dataset: those that share its name."""
    with unreadable_runs_fail(), open_store(store_path, read_only=True) as store:
        alike = [each for each in store.runs() if each.name == run.header.name and each.id != run.header.id]
        return [run_from_store(store, each.id, labels=False) for each in alike[:_MOST_RUNS] if each.n_done]

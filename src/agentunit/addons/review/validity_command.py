"""``agentunit label --measure``: how well metrics agree with your own labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
from msgspec import Struct

from agentunit.addons.review._validity_of_run import report_run
from agentunit.addons.review.label_command import LabelOptions
from agentunit.addons.review.labeling.calibrating import (
    FEW_LABELS,
    CalibrationError,
    LabeledAnswer,
    calibrate,
    labeled_answers,
    provisional,
)
from agentunit.addons.review.labeling.label_files import (
    LabelFile,
    LabelsError,
    labeled_records,
    labels_by_id,
    orient_labels,
    read_label_file,
)
from agentunit.addons.review.labeling.scorer_agreement import (
    Agreement,
    LabeledScores,
    LabelJoin,
    is_conclusive,
    score_labeled,
)
from agentunit.backends.quality import LEXICAL, SERVICES
from agentunit.cli.judge_options import JudgeChoice
from agentunit.cli.main import EXIT_CANNOT_TELL, EXIT_ERRORS, EXIT_OK
from agentunit.cli.options import InputFailure, metrics_from, open_store
from agentunit.cli.references import unreadable_runs_fail
from agentunit.cli.sending_notice import ask_before_sending
from agentunit.core.results import InputError, Unscored, encode_json
from agentunit.engine.scoring.judging import SAMPLE_SIZE, Sending, judge_run, judged_metrics, plan_sending
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.calibration import Calibration, Figure
from agentunit.metrics.registry import registry
from agentunit.reports.console import plain_table, print_line, print_next
from agentunit.reports.figures import DIRECTION_MARK, counted, describe_cut
from agentunit.reports.printable import printable_line
from agentunit.reports.progress import Progress
from agentunit.reports.reported_run import masked_error
from agentunit.reports.terminal import Terminal, Text, TextTable
from agentunit.store.labels import labels_of_run, places_of
from agentunit.traces.native import STDIN
from agentunit.traces.reading import read_records

# ``agentunit label RUN --calibrate FILE``: fit a judge to the labels of a run, and say what that is worth.


def calibrate_run(reference: str, metric: Any, options: LabelOptions) -> None:
    """Learn from the labels of a run, write the file, and print how well it agrees with labels not shown."""
    target = str(options.calibrate_to)
    if "calibration" not in ([each.name for each in fields(metric)] if is_dataclass(metric) else ()):
        raise click.UsageError(f"{metric.name} cannot be calibrated: it is exact, or not a score from 0 to 1")
    if getattr(metric, "current_backend", "") == LEXICAL:
        raise click.UsageError(f"{metric.name} is scored without a model here: name a judge, or --backend local")
    if os.path.isdir(target):
        raise click.UsageError(f"{target} is a folder: name a file")
    answers = _labeled_answers(reference, metric.name, options.store_path)
    if getattr(metric, "current_backend", "") in SERVICES:
        ask_before_sending(_calibration_sending(metric, answers), yes=options.choice.yes)
    try:
        # One run to the judge: what it may spend holds for all passes together.
        with judge_run([metric]):
            found = calibrate(metric, answers, on_pass=lambda words: _say(f"{metric.name} {words} …"))
    except CalibrationError as error:
        raise InputFailure(str(error)) from None
    Path(target).write_bytes(msgspec.json.format(encode_json(found), indent=2) + b"\n")
    if options.as_json:
        click.echo(encode_json(found).decode())
        return
    _print_calibration(found, target, reference)


def _labeled_answers(reference: str, metric: str, store_path: str) -> list[LabeledAnswer]:
    with open_store(store_path, read_only=True) as store:
        run_id = store.find_run(reference).id
        labels = places_of(labels_of_run(store, run_id, metric))
        stored = [each for each in store.records(run_id) if each.place in labels]
        return labeled_answers([(each.record, labels[each.position, each.repeat]) for each in stored])


def _calibration_sending(metric: Any, answers: list[LabeledAnswer]) -> Sending | None:
    """All passes: as it is, with examples, and with those of the other part where labels are few."""
    records = [each.record for each in answers]
    plain = plan_sending([metric], records, n_cases=len(records), exact=True)
    taught = replace(metric, calibration=provisional(metric, answers))
    again = plan_sending([taught], records, n_cases=len(records), exact=True)
    if plain is None or again is None:
        return plain or again
    times = 2 if len(answers) < FEW_LABELS else 1

    def added(one: Any, other: Any) -> Any:
        return None if one is None or other is None else one + times * other

    return replace(
        plain,
        n_calls=added(plain.n_calls, again.n_calls),
        n_tokens=added(plain.n_tokens, again.n_tokens),
        cost_usd=added(plain.cost_usd, again.cost_usd),
    )


def _say(words: str) -> None:
    click.echo(words, err=True)


def _print_calibration(found: Calibration, target: str, reference: str) -> None:
    console = Terminal()
    table = plain_table(found.metric, "agreement, 95 %", "AUROC", "mean off by", "labels", fixed=("labels",))
    rows = [("as it is", found.before)]
    if found.examples:
        rows.append((f"with {counted(len(found.examples), 'example')}", found.with_examples))
    rows.append(("and scores mapped" if found.knots else "without a mapping", found.measured))
    for name, figure in rows:
        table.add_row(name, *_figure_cells(figure))
    console.print(table)
    way = "each part with what the other part taught" if found.crossed else "those that nothing was learned from"
    print_line(f"measured on {counted(found.measured.n, 'label')} that the judge was not shown: {way}", console, "dim")
    if found.threshold is not None:
        print_line(f"people call an answer good from a score of about {found.threshold:.2f} on", console)
    elif not found.knots:
        print_line("too few labels on both sides to map scores; they stay as they are", console, "yellow")
    print_line(
        f"{target}: {counted(len(found.examples), 'example')} with their texts, {counted(len(found.knots), 'point')}",
        console,
    )
    if found.metric in registry.names():
        use = f"agentunit score {reference} -m {found.metric} --param {found.metric}.calibration={target} --again"
        print_next([use], console)
    else:
        print_line(f"use it as a parameter of the metric: calibration: {target}", console)


def _figure_cells(figure: Figure) -> tuple[str, str, str, str]:
    if figure.agreement is None or figure.low is None or figure.high is None:
        return "–", "–", "–", str(figure.n)
    ranked = "–" if figure.auroc is None else f"{figure.auroc:.2f}"
    off = "–" if figure.bias is None else f"{figure.bias:+.2f}"
    return f"{figure.agreement:.2f} [{figure.low:.2f}, {figure.high:.2f}]", ranked, off, str(figure.n)


# What ``agentunit label --measure`` found, in the terminal.

_SHOWN = 10


class ValidityReport(Struct):
    """What ``agentunit label --measure --json`` prints of a file of labels."""

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


def print_validity(report: ValidityReport, infos: Mapping[str, MetricInfo], console: Terminal) -> None:
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
            console.print(f"\n{heading}", style="bold")
        for line in lines[:_SHOWN]:
            print_line(f"  {printable_line(line)}", console)
        if len(lines) > _SHOWN:
            console.print(f"  … and {len(lines) - _SHOWN} more (--json lists them)")
    if not report.is_conclusive:
        labels_read = counted(report.n_labels, "label")
        console.print(
            f"\nThe data cannot tell: {labels_read} read, no metric could be judged by them. More labels may tell.",
        )
    else:
        first = report.agreements[0].metric
        console.print(f"next: agentunit metrics {first}   says what it was measured on", style="bold")


def _table(rows: Sequence[Agreement], infos: Mapping[str, MetricInfo]) -> TextTable:
    statistics = sorted({row.statistic for row in rows})
    headings = ("metric", "backend", "n", f"{'/'.join(statistics)}, 95 %", "balanced acc.", "verdict")
    table = plain_table(*headings, right=("n", "balanced acc."), fixed=("metric",))
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


def measure(context: click.Context, options: LabelOptions) -> None:
    """Hold scores against labels: of a run, or of a file that is scored; or fit a metric to the labels of a run."""
    records, names, labels_path, choice = options.references, options.names, options.labels_path, options.choice
    if options.calibrate_to is not None:
        choice.configure()
        metrics = choice.adjust(metrics_from(names, choice))
        if len(records) != 1 or len(metrics) != 1 or labels_path is not None:
            raise click.UsageError("--calibrate takes one stored RUN with labels, and one metric (--metrics NAME)")
        with unreadable_runs_fail():
            calibrate_run(records[0], metrics[0], options)
        return
    if labels_path is None:
        if len(records) != 1:
            raise click.UsageError("name one RUN that was labeled, or a file of labels: --labels FILE")
        report_run(context, options)
        return
    if options.precision is not None or options.by is not None:
        raise click.UsageError("--precision and --by are for a RUN; with --labels, the records are scored again")
    choice.configure()
    metrics = choice.adjust(metrics_from(names, choice))
    _refuse_missing([*records, labels_path])
    try:
        labels = read_label_file(labels_path, options.label_column)
        if judged_metrics(metrics):
            _ask_about(labels, records, metrics, options.label_means, choice)
        report, scored = judge(labels, records, metrics, options.label_means, options.threshold, options.jobs)
    except LabelsError as error:
        raise InputFailure(str(error)) from None
    if options.as_json:
        click.echo(encode_json(report).decode())
    else:
        print_validity(report, scored.infos, Terminal())
    unreadable, failed = len(report.input_errors), report.n_score_errors
    if unreadable or failed:
        click.echo(f"errors: {unreadable + failed} ({unreadable} unreadable, {failed} failed scores)", err=True)
        context.exit(EXIT_ERRORS)
    context.exit(EXIT_OK if report.is_conclusive else EXIT_CANNOT_TELL)


def _ask_about(
    labels: LabelFile,
    records: Sequence[str],
    metrics: Sequence[Any],
    label_means: Literal["good", "bad"],
    choice: JudgeChoice,
) -> None:
    """Ask whether a judge may see the labeled cases. Standard input can be read only once, so it gives no sample."""
    oriented = orient_labels(labels, label_means)
    sample: list[Any] = []
    if not records:
        sample = list(islice(labeled_records(labels, oriented), SAMPLE_SIZE))
    elif STDIN not in records:
        sample = list(islice(LabelJoin(read_records(*records), labels_by_id(labels, oriented)), SAMPLE_SIZE))
    sample = [each[0] for each in sample if isinstance(each, tuple)]
    sending = plan_sending(metrics, sample, n_cases=len(oriented), exact=not records)
    ask_before_sending(sending, yes=choice.yes)


def judge(
    labels: LabelFile,
    records: Sequence[str],
    metrics: Any,
    label_means: Literal["good", "bad"] = "good",
    threshold: float | None = None,
    jobs: int | None = None,
) -> tuple[ValidityReport, LabeledScores]:
    """Join, score and measure; what could not be used is in the report."""
    oriented = orient_labels(labels, label_means)
    not_joined = [f"{counted(labels.n_unlabeled, 'row')} without a label"] if labels.n_unlabeled else []
    if records:
        join = LabelJoin(read_records(*records), labels_by_id(labels, oriented))
        scored = score_labeled(Progress("records").watch(join), metrics, jobs=jobs)
        not_joined += unmatched(join)
    else:
        labeled = Progress("cases").watch(labeled_records(labels, oriented))
        scored = score_labeled(labeled, metrics, jobs=jobs)
    report = ValidityReport(
        labels=labels.path,
        n_labels=len(oriented),
        agreements=scored.agreements(threshold),
        unscored=scored.summary.unscored,
        not_joined=not_joined,
        input_errors=[masked_error(each) for each in (*labels.errors, *scored.summary.input_errors)],
        n_score_errors=scored.summary.n_score_errors,
    )
    return report, scored


def _refuse_missing(paths: Sequence[str]) -> None:
    for path in paths:
        if path != STDIN and not os.path.isfile(path):
            raise InputFailure(f"{path}: {'is not a file' if os.path.exists(path) else 'no such file'}")

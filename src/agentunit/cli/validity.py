"""``agentunit validity``: how well metrics agree with your own labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from math import isfinite
from typing import Any, Literal

import click

from agentunit.cli.calibrate import calibrate_option, calibrate_run
from agentunit.cli.consent import ask_before_sending
from agentunit.cli.judge_options import JudgeChoice, judge_options
from agentunit.cli.main import EXIT_CANNOT_TELL, EXIT_ERRORS, EXIT_OK
from agentunit.cli.options import InputFailure, by_option, jobs_option, json_option, metrics_from, store_option
from agentunit.cli.references import unreadable_runs_fail
from agentunit.cli.validity_of_run import report_run
from agentunit.core.results import encode_json
from agentunit.datasets.labels import (
    LabelFile,
    LabelsError,
    labeled_records,
    labels_by_id,
    orient_labels,
    read_label_file,
)
from agentunit.engine.judge_plan import SAMPLE_SIZE, plan_sending
from agentunit.engine.judging import judged_metrics
from agentunit.engine.validity import LabeledScores, LabelJoin, score_labeled
from agentunit.reports.console import Terminal
from agentunit.reports.figures import counted
from agentunit.reports.progress import Progress
from agentunit.reports.validity_console import ValidityReport, print_validity, unmatched
from agentunit.traces.native import STDIN
from agentunit.traces.reading import read_records


@click.command()
@click.argument("records", nargs=-1, metavar="[RUN|RECORDS…]")
@click.option(
    "--labels",
    "labels_path",
    metavar="FILE",
    help="Your labels: CSV or JSONL, one row per case. Default: those of RUN.",
)
@calibrate_option
@click.option(
    "-m",
    "--metrics",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Metrics, separated by commas. Default: the standard set; of a run, those with labels.",
)
@click.option("--label-column", default="label", show_default=True, help="The column that holds the label.")
@click.option(
    "--label-means",
    type=click.Choice(["good", "bad"]),
    default="good",
    show_default=True,
    help="What true, yes, 1 or a high number means. Pass, good and correct always mean good.",
)
@click.option(
    "--threshold",
    type=float,
    help="A score at least this good counts as good.  [default: the score's own, otherwise 0.5, for scores of 0 to 1]",
)
@click.option(
    "--precision",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    metavar="SHARE",
    help="With RUN: find the score from which this share of the cases is good.  [default: the best balance]",
)
@by_option
@jobs_option
@json_option("Print everything as JSON instead of a table.")
@store_option
@judge_options
@click.pass_context
def validity(
    context: click.Context,
    records: tuple[str, ...],
    labels_path: str | None,
    calibrate_to: str | None,
    names: tuple[str, ...],
    label_column: str,
    label_means: Literal["good", "bad"],
    threshold: float | None,
    precision: float | None,
    by: str | None,
    jobs: int | None,
    as_json: bool,
    store_path: str,
    choice: JudgeChoice,
) -> None:
    """How well do metrics agree with your own labels?

    \b
    agentunit validity last --precision 0.9
    agentunit validity runs.jsonl --labels mine.csv --metrics faithfulness,answer_correctness
    agentunit validity --labels answers.csv --label-column hallucinated --label-means bad
    agentunit validity last --metrics helpfulness --calibrate helpfulness.json

    With a RUN that was labeled ('agentunit label', 'agentunit import --run'), its scores are held against its labels:
    agreement, calibration, where to draw the line, which kinds of cases are scored wrong, and a list of labels and
    cases that may be wrong themselves.

    With --labels and RECORDS, the labels file needs the columns id (or case_id) and label; rows are joined to records
    by case id. Without RECORDS, it holds the texts too: query, context (a text, or a JSON list of texts), answer,
    expected, label, and optionally group (cases of one document or user, which are not independent).

    Labels are true/false, yes/no, 1/0, pass/fail, good/bad, correct/incorrect, or numbers as grades. The verdict
    follows the 95 % interval, not the figure in its middle. Exit codes: 0 a verdict for some metric, 2 usage,
    3 something could not be read (the rest still counts), 4 the labels cannot tell ("too few labels to tell" is no
    verdict).
    """
    if threshold is not None and not isfinite(threshold):
        raise click.BadParameter(f"must be a finite number; received {threshold}", param_hint="--threshold")
    if calibrate_to is not None:
        choice.configure()
        metrics = choice.adjust(metrics_from(names, choice))
        if len(records) != 1 or len(metrics) != 1 or labels_path is not None:
            raise click.UsageError("--calibrate takes one stored RUN with labels, and one metric (--metrics NAME)")
        with unreadable_runs_fail():
            calibrate_run(records[0], metrics[0], calibrate_to, choice, store_path, as_json=as_json)
        return
    if labels_path is None:
        if len(records) != 1:
            raise click.UsageError("name one RUN that was labeled, or a file of labels: --labels FILE")
        report_run(context, records[0], names, store_path, precision=precision, by=by, as_json=as_json)
        return
    if precision is not None or by is not None:
        raise click.UsageError("--precision and --by are for a RUN; with --labels, the records are scored again")
    choice.configure()
    metrics = choice.adjust(metrics_from(names, choice))
    _refuse_missing([*records, labels_path])
    try:
        labels = read_label_file(labels_path, label_column)
        if judged_metrics(metrics):
            _ask_about(labels, records, metrics, label_means, choice)
        report, scored = judge(labels, records, metrics, label_means, threshold, jobs)
    except LabelsError as error:
        raise InputFailure(str(error)) from None
    if as_json:
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
        input_errors=[*labels.errors, *scored.summary.input_errors],
        n_score_errors=scored.summary.n_score_errors,
    )
    return report, scored


def _refuse_missing(paths: Sequence[str]) -> None:
    for path in paths:
        if path != STDIN and not os.path.isfile(path):
            raise InputFailure(f"{path}: {'is not a file' if os.path.exists(path) else 'no such file'}")

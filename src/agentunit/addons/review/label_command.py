"""``agentunit label``: people say what is right, one key a case, and scores are held against what they said."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import click

from agentunit.addons.review._label_screen import LineInput, ScreenInput, describe_left, label_cases
from agentunit.addons.review.labeling.rating import LabelSession, labeled_info, main_backend, metrics_to_label
from agentunit.cli.judge_options import JudgeChoice, judge_options
from agentunit.cli.options import (
    InputFailure,
    Option,
    Verb,
    by_option,
    end_signals_interrupt,
    jobs_option,
    json_option,
    open_store,
    show_personal_data_option,
    store_option,
    user_name,
)
from agentunit.cli.references import names_traces, unreadable_runs_fail
from agentunit.cli.taken_in import run_of_traces
from agentunit.engine.deciding.gate_expressions import nearest_name
from agentunit.engine.scoring.labeled_rates import scored_rows
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.reports.console import print_line, print_next
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.raters import describe_labeled
from agentunit.reports.reported_run import Mask, ReportedRun, store_arguments
from agentunit.reports.terminal import Terminal
from agentunit.store.run_store import RunStore

DEFAULT_WIDTH = 0.2


@dataclass(frozen=True)
class LabelOptions:
    """What the command line of ``agentunit label`` says, by the names that the command's decorators give it."""

    references: tuple[str, ...]
    names: tuple[str, ...]
    rater: str | None
    width: float
    labels_path: str | None
    annotation: str | None
    label_column: str
    label_means: Literal["good", "bad"]
    measures: bool
    calibrate_to: str | None
    threshold: float | None
    precision: float | None
    by: str | None
    jobs: int | None
    as_json: bool
    show_personal_data: bool
    store_path: str
    choice: JudgeChoice

    @property
    def metric(self) -> str | None:
        """The one metric that labels are about."""
        if len(self.names) > 1:
            raise click.UsageError("labels are about one metric: name it with --metrics NAME")
        return self.names[0] if self.names else None

    @property
    def run_reference(self) -> str:
        """The one run that labels are about."""
        if len(self.references) != 1:
            raise click.UsageError("name the RUN whose answers are labeled, or what --measure reads")
        return self.references[0]

    def check(self) -> None:
        """Refuse what does not go together."""
        for name, value in (("--threshold", self.threshold), ("--precision", self.precision), ("--by", self.by)):
            if value is not None and not self.measures:
                raise click.UsageError(f"{name} is about scores held against labels: it goes with --measure")
        if self.threshold is not None and not isfinite(self.threshold):
            raise click.BadParameter(f"must be a finite number; received {self.threshold}", param_hint="--threshold")


@click.command(
    cls=Verb,
    first="--metrics --rater --width --labels --measure --by --precision --calibrate --judge --json",
)
@click.argument("references", nargs=-1, metavar="[RUN|RECORDS…]")
@click.option(
    "-m",
    "--metrics",
    "names",
    cls=Option,
    former=("--metric",),
    multiple=True,
    metavar="NAMES",
    help="What is judged: NAME or NAME[backend] (default: the run's first quality metric), or what is measured, "
    "separated by commas (default: of a run, those with labels; otherwise the standard set).",
)
@click.option("--rater", metavar="NAME", help="Who labels.  [default: your user name; with --labels FILE]")
@click.option(
    "--width",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=DEFAULT_WIDTH,
    show_default=True,
    help="How wide the 95 % interval of the labeled rate may be: from 10 labels on, says how many more that takes.",
)
@click.option(
    "--labels", "labels_path", metavar="FILE", help="Take the labels of this file instead of asking: CSV or JSONL."
)
@click.option(
    "--measure", "measures", is_flag=True, help="Measure how well scores agree with the labels of RUN or --labels."
)
@by_option
@click.option(
    "--precision",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    metavar="SHARE",
    help="With --measure: find the score from which this share of the cases is good.  [default: the best balance]",
)
@click.option(
    "--calibrate",
    "calibrate_to",
    metavar="FILE",
    help="Fit the metric to the labels of a stored RUN: a third of them become examples and a mapping of scores, the "
    "others say what that is worth. '--param METRIC.calibration=FILE' uses it.",
)
@click.option(
    "--threshold",
    type=float,
    help="A score at least this good counts as good.  [default: the score's own, otherwise 0.5, for scores of 0 to 1]",
)
@click.option("--name", "annotation", metavar="NAME", help="Of another tool's annotations, those of this name.")
@click.option("--label-column", default="label", show_default=True, help="The column that holds the label.")
@click.option(
    "--label-means",
    type=click.Choice(["good", "bad"]),
    default="good",
    show_default=True,
    help="What true, yes, 1 or a high number means. Pass, good and correct always mean good.",
)
@jobs_option
@judge_options
@json_option("Print what was measured as JSON instead of a table.")
@show_personal_data_option
@store_option
@click.pass_context
def label(context: click.Context, /, **received: Any) -> None:
    """Label cases of a run: one key says whether each answer is right. With --measure, hold scores against labels.

    Cases are drawn at random, and you see the score of one only after you labeled it. From a few dozen labels and all
    scores follows the labeled rate: what people would say about all cases, with an interval that holds whatever the
    scorer's bias. Every table and report of the run shows it, and gates may use it ('faithfulness labeled >= 0.8').

    RUN is an id, the beginning of one, a name or 'last'; or a file of traces, which becomes a run. Each label is kept
    at once: q stops, and the same command continues. Without a terminal, answers are read line by line.

    \b
    agentunit label last --metrics faithfulness
    agentunit label traces.jsonl --metrics faithfulness --width 0.1
    agentunit label last --labels labels.csv --metrics faithfulness --rater ana
    agentunit label last --measure --precision 0.9
    agentunit label runs.jsonl --measure --labels mine.csv --metrics faithfulness,answer_correctness
    agentunit label --measure --labels answers.csv --label-column hallucinated --label-means bad
    agentunit label last --metrics helpfulness --calibrate helpfulness.json

    A FILE of labels has the columns id (or case_id) and label, and optionally rater, note, answer (a label of another
    answer is left out) and repeat; annotations exported from Langfuse (scores), Phoenix or LangSmith (feedback) are
    joined by trace id; of records, the outcomes say whether they succeeded. Labels are true/false, yes/no, 1/0,
    pass/fail, good/bad, correct/incorrect or a grade from 0 to 1.

    --measure holds the scores of a labeled RUN against its labels: agreement, calibration, where to draw the line,
    which kinds of cases are scored wrong, and a list of labels and cases that may be wrong themselves. With --labels
    and RECORDS, labels are joined by case id and the records are scored; without RECORDS, the file holds the texts,
    too: query, context (a text, or a JSON list of texts), answer, expected, label, and optionally group (cases of one
    document or user, which are not independent). The verdict follows the 95 % interval, not the figure in its middle.

    Exit codes with --measure: 0 a verdict for some metric, 2 usage, 3 something could not be read (the rest still
    counts), 4 the labels cannot tell ("too few labels to tell" is no verdict).
    """
    options = LabelOptions(**received)
    options.check()
    if options.measures or options.calibrate_to is not None:
        from agentunit.addons.review.validity_command import measure

        measure(context, options)
    elif options.labels_path is not None:
        from agentunit.addons.review.import_labels import import_labels

        if not os.path.isfile(options.labels_path):
            raise InputFailure(f"{options.labels_path}: no such file")
        import_labels(options.labels_path, options)
    else:
        _ask(options)


def _ask(options: LabelOptions) -> None:
    """Let a person label cases of a run, one after the other."""
    store_path, run_reference = options.store_path, options.run_reference
    named = (options.rater or user_name()).strip()
    if not named:
        raise click.BadParameter("must name the person who labels", param_hint="--rater")
    wanted, backend = _split(options.metric)
    with unreadable_runs_fail():
        if os.path.isfile(run_reference) or names_traces(run_reference, store_path):
            run_reference = run_of_traces(run_reference, store_path, wanted)
        with open_store(store_path) as store:
            run = run_from_store(store, run_reference)
            name = wanted or default_metric(run)
            session = LabelSession(
                store, run, labeled_info(run, name), named, backend=_backend(run, name, backend), width=options.width
            )
            _label(session, store, Mask(show_all=options.show_personal_data), store_path)


def _label(session: LabelSession, store: RunStore, mask: Mask, store_path: str) -> None:
    console = Terminal()
    raw = ReportedRun(session.run, store=store, show_personal_data=True)
    is_terminal = sys.stdin.isatty() and console.is_terminal
    rater = ScreenInput(console) if is_terminal else LineInput(console)
    if not is_terminal:
        click.echo("standard input is not a terminal: type y, n, s, b, u, t, d or q and Enter", err=True)
    n_before = session.n_given
    with end_signals_interrupt():
        label_cases(session, raw, mask, rater)
    if session.current is None:
        print_line("no case is left to ask about", console)
    n_new = session.n_given - n_before
    print_line(f"{counted(n_new, 'new label')} by {printable_line(session.rater)}, {session.n_given:,} in all", console)
    summary = session.summary()
    if summary is not None:
        print_line(f"{session.info.name}: {describe_labeled(summary)}", console, "bold")
        if left := describe_left(session.standing(), session.width):
            print_line(left, console)
    run_id = session.run.header.id
    where = store_arguments(store_path)
    commands = (["show", run_id], ["label", run_id, "--measure"])
    print_next([shlex.join(["agentunit", *words, *where]) for words in commands], console)


def default_metric(run: ScoredRun) -> str:
    """The metric whose question is asked when none is named: the first whose mean is not a rate, else any with one."""
    names = metrics_to_label(run)
    if not names:
        raise InputFailure(
            f"run {run.header.label} has no scores from 0 to 1 to label by: score it with --metrics first"
        )
    return names[0]


def _backend(run: ScoredRun, metric: str, asked: str | None) -> str:
    if metric not in run.metrics:
        raise InputFailure(
            f"run {run.header.label} has no scores of {metric!r}; {nearest_name(metric, run.metrics)} "
            f"('agentunit score {run.header.id} --metrics {metric}' adds them)"
        )
    usual = main_backend(run, metric)
    if usual is None:
        raise InputFailure(f"{metric} scored no case of run {run.header.label}: there is nothing to label")
    backend = asked or usual
    scored = [row.backend for row in scored_rows(run, metric) if row.value is not None]
    if backend not in scored:
        raise InputFailure(f"{metric} was not scored by {backend!r}; {nearest_name(backend, dict.fromkeys(scored))}")
    return backend


def _split(metric: str | None) -> tuple[str | None, str | None]:
    if metric is None:
        return None, None
    name, _, backend = metric.strip().removesuffix("]").partition("[")
    return name, backend or None

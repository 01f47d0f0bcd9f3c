"""``agentunit label``: people say what is right, one key a case."""

from __future__ import annotations

import getpass
import os
import sys

import click

from agentunit.addons.review._label_screen import LineInput, ScreenInput, describe_left, label_cases
from agentunit.addons.review.labeling.rating import LabelSession, labeled_info, main_backend, metrics_to_label
from agentunit.cli.options import (
    InputFailure,
    end_signals_interrupt,
    open_store,
    run_argument,
    show_personal_data_option,
    store_option,
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
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.reports.terminal import Terminal
from agentunit.store.opening import DEFAULT_PATH, shown_address
from agentunit.store.run_store import RunStore

DEFAULT_WIDTH = 0.2


@click.command()
@run_argument
@click.option(
    "-m",
    "--metric",
    metavar="NAME",
    help="What is judged: NAME or NAME[backend]. Default: the run's first quality metric.",
)
@click.option("--rater", metavar="NAME", help="Who labels.  [default: your user name]")
@click.option(
    "--width",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=DEFAULT_WIDTH,
    show_default=True,
    help="How wide the 95 % interval of the labeled rate may be: from 10 labels on, says how many more that takes.",
)
@show_personal_data_option
@store_option
def label(
    run_reference: str, metric: str | None, rater: str | None, width: float, show_personal_data: bool, store_path: str
) -> None:
    """Label cases of a run: one key says whether each answer is right.

    Cases are drawn at random, and you see the score of one only after you labeled it. From a few dozen labels and all
    scores follows the labeled rate: what people would say about all cases, with an interval that holds whatever the
    scorer's bias. Every table and report of the run shows it, and gates may use it ('faithfulness labeled >= 0.8').

    RUN is an id, the beginning of one, a name or 'last'; or a file of traces, which becomes a run. Each label is kept
    at once: q stops, and the same command continues. Without a terminal, answers are read line by line.

    \b
    agentunit label last --metric faithfulness
    agentunit label traces.jsonl --metric faithfulness --width 0.1
    agentunit label last --rater ben
    agentunit import labels.csv --run last --metric faithfulness
    """
    named = (rater or _user_name()).strip()
    if not named:
        raise click.BadParameter("must name the person who labels", param_hint="--rater")
    wanted, backend = _split(metric)
    with unreadable_runs_fail():
        if os.path.isfile(run_reference) or names_traces(run_reference, store_path):
            run_reference = run_of_traces(run_reference, store_path, wanted)
        with open_store(store_path) as store:
            run = run_from_store(store, run_reference)
            name = wanted or default_metric(run)
            session = LabelSession(
                store, run, labeled_info(run, name), named, backend=_backend(run, name, backend), width=width
            )
            _label(session, store, Mask(show_all=show_personal_data), store_path)


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
    where = (
        ""
        if store_path in (DEFAULT_PATH, os.environ.get("AGENTUNIT_STORE"))
        else f" --store {shown_address(store_path)}"
    )
    print_next([f"agentunit show {run_id}{where}", f"agentunit validity {run_id}{where}"], console)


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


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""

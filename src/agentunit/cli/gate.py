"""``agentunit gate``: decide on a scored run, with the gates it was made with or new ones, at no cost."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import click

from agentunit.cli.options import InputFailure, open_store, show_personal_data_option, store_option
from agentunit.cli.streams import remember_exit_code
from agentunit.engine.compare import DEFAULT_ALPHA, compare_runs
from agentunit.engine.comparison import Comparison
from agentunit.engine.decision import Decision, decide_run, stored_min_coverage
from agentunit.engine.gate_expressions import Gate, GateError, parse_gate
from agentunit.engine.gates import DEFAULT_MIN_COVERAGE, refuse_unknown_names
from agentunit.engine.margins import Margin, parse_margin
from agentunit.engine.scored_run import ScoredRun, find_scored_run, run_from_file
from agentunit.reports.console import Terminal
from agentunit.reports.decision_console import print_comparison, print_decision, print_gates
from agentunit.reports.json_report import decision_as_data
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.reported_run import Mask
from agentunit.store.schema import StoreError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("reference", metavar="RUN|FILE", default="last")
@click.option(
    "-g",
    "--gate",
    "expressions",
    multiple=True,
    metavar="EXPR",
    help="Such as 'faithfulness >= 0.8' or 'cost p95 <= 0.02'. Default: the gates stored with the run.",
)
@click.option("--baseline", metavar="RUN|FILE", help="Also compare with this run: a regression fails, too.")
@click.option(
    "-m",
    "--metrics",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Metrics to compare with the baseline, separated by commas. "
    "Default: all but informational ones and clock time.",
)
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="METRIC=LOSS",
    help="What a metric may lose against the baseline: 0.02, or 10% of its mean. Without METRIC= for all. "
    "Default: 0.05 for scores, 10% for quantities.",
)
@click.option("--alpha", type=float, default=DEFAULT_ALPHA, show_default=True, help="Chance of a false alarm allowed.")
@click.option(
    "--min-coverage",
    type=click.FloatRange(0.0, 1.0),
    metavar="SHARE",
    help=f"Share of the records a gated metric must have scored. Default: the run's own, else {DEFAULT_MIN_COVERAGE}.",
)
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    metavar="N",
    help="Failed cases plus failed scores that are allowed. Default: the run's own, else 0.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@show_personal_data_option
@store_option
def gate(
    reference: str,
    expressions: tuple[str, ...],
    baseline: str | None,
    names: tuple[str, ...],
    margins: tuple[str, ...],
    alpha: float,
    min_coverage: float | None,
    max_errors: int | None,
    as_json: bool,
    show_personal_data: bool,
    store_path: str,
) -> None:
    """Decide on a scored run: gates, an error allowance and, with --baseline, a comparison.

    RUN is an id, the beginning of one, a name, 'last' (the default) or an exported file. Nothing is run or scored
    again. A gate reads METRIC [AGGREGATE] OPERATOR NUMBER [coverage SHARE]; aggregates are mean (the default),
    median, min, max, sum, p95, all, any, pass^3, pass@3. METRIC[backend] picks one of several backends.

    \b
    agentunit gate last --gate "task_success pass^3 >= 0.7" --gate "pii_leakage all == 1"
    agentunit gate last --baseline main.json --margin faithfulness=0.02

    Exit codes: 1 a gate failed or a metric got worse, 2 a gate names what the run does not have, 3 errors beyond the
    allowance (or a gate the run cannot answer), 4 the data cannot tell whether it is worse than the baseline; the
    first that applies.
    """
    run = load_run(reference, store_path)
    gates = _gates(run, expressions)
    if not gates and baseline is None:
        raise click.UsageError(f"run {run.header.id} has no gates of its own: give some with --gate, or a --baseline")
    if min_coverage is None:
        min_coverage = stored_min_coverage(run.header.settings)
    comparison = None
    if baseline is not None:
        old = load_run(baseline, store_path)
        comparison = compared(run, old, names, margins, alpha, min_coverage=min_coverage)
    decision = decide_run(run, gates, comparison, min_coverage=min_coverage, max_errors=max_errors)
    decision = Mask(show_all=show_personal_data).decision(decision)
    remember_exit_code(decision.exit_code)
    if as_json:
        facts = {"run": run.header.id, "name": run.header.name}
        click.echo(printable_json({**facts, **decision_as_data(decision)}))
    else:
        console = Terminal()
        print_gates(decision.gates, console)
        if comparison is not None:
            print_comparison(comparison, console)
        print_decision(decision, console, next_command(reference, run, decision))
    if decision.exit_code:
        raise click.exceptions.Exit(decision.exit_code)


def load_run(reference: str, store_path: str) -> ScoredRun:
    """A run of a file or of the store; a file needs no store."""
    try:
        if os.path.isfile(reference):
            return run_from_file(reference)
        with open_store(store_path, read_only=True) as store:
            return find_scored_run(reference, store)
    except StoreError as error:
        raise InputFailure(str(error)) from None


def compared(
    candidate: ScoredRun,
    baseline: ScoredRun,
    names: Sequence[str],
    margins: Sequence[str],
    alpha: float,
    *,
    min_coverage: float = DEFAULT_MIN_COVERAGE,
) -> Comparison:
    """The comparison that a command line asks for; what is wrong with it is a usage error."""
    wanted = [name.strip() for group in names for name in group.split(",") if name.strip()]
    try:
        return compare_runs(
            candidate,
            baseline,
            metrics=wanted or None,
            margin=_margins(margins),
            alpha=alpha,
            min_coverage=min_coverage,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def next_command(reference: str, run: ScoredRun, decision: Decision) -> str:
    """How to look at a run, or at the case that matters most in it."""
    shown = ["agentunit", "show", reference if os.path.isfile(reference) else run.header.id]
    first = decision.failing_cases[:1]
    return shlex.join([*shown, *map(printable_line, first)])


def _gates(run: ScoredRun, expressions: Sequence[str]) -> list[Gate]:
    stored = run.header.settings.get("gates")
    try:
        if expressions or not isinstance(stored, (list, tuple)):
            named = [parse_gate(each) for each in expressions]
            refuse_unknown_names(run, named)
            return named
        return [parse_gate(each) for each in stored]
    except GateError as error:
        raise click.UsageError(str(error)) from None


def _margins(given: Sequence[str]) -> Margin | dict[str, Margin] | None:
    by_metric: dict[str, Margin] = {}
    for_all: Margin | None = None
    for text in given:
        name, equals, loss = text.rpartition("=")
        parse_margin(loss)
        if equals:
            by_metric[name.strip()] = loss
        else:
            for_all = loss
    if for_all is not None and by_metric:
        raise ValueError("--margin: give one for all metrics, or METRIC=LOSS for some; received both")
    return by_metric or for_all

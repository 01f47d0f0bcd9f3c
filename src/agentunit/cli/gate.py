"""``agentunit gate``: decide on a scored run, with the gates it was made with or new ones, at no cost."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

import click

from agentunit.cli.main import output_may_be_closed
from agentunit.cli.options import InputFailure, open_store, store_option
from agentunit.core.results import encode_json
from agentunit.engine.compare import DEFAULT_ALPHA, compare_runs
from agentunit.engine.comparison import Comparison
from agentunit.engine.gate_expressions import Gate, GateError, parse_gate
from agentunit.engine.gates import (
    DEFAULT_MIN_COVERAGE,
    GateVerdict,
    count_errors,
    decide,
    evaluate_gates,
    refuse_unknown_names,
    strictest,
)
from agentunit.engine.margins import Margin, parse_margin
from agentunit.engine.scored_run import ScoredRun, find_scored_run, run_from_file
from agentunit.reports.console import Terminal
from agentunit.reports.decisions import case_to_show, decision_line, print_comparison, print_gates
from agentunit.reports.printable import printable_line
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
    settings = run.header.settings
    if min_coverage is None:
        min_coverage = _stored(settings.get("min_coverage"), DEFAULT_MIN_COVERAGE)
    if max_errors is None:
        max_errors = int(_stored(settings.get("max_errors"), 0))
    verdicts = evaluate_gates(run, gates, min_coverage=min_coverage)
    n_errors = count_errors(run)
    code = decide(verdicts, n_errors, max_errors)
    comparison = None
    if baseline is not None:
        old = load_run(baseline, store_path)
        comparison = compared(run, old, names, margins, alpha, min_coverage=min_coverage)
        code = strictest(code, comparison.exit_code)
    with output_may_be_closed():
        if as_json:
            click.echo(encode_json(_as_data(run, verdicts, comparison, n_errors, max_errors, code)).decode())
        else:
            console = Terminal()
            print_gates(verdicts, console)
            if comparison is not None:
                print_comparison(comparison, console)
            line = decision_line(code, verdicts, comparison, n_errors=n_errors, max_errors=max_errors)
            print_decision(line, code, next_command(reference, run, case_to_show(verdicts, comparison)), console)
    if code:
        raise click.exceptions.Exit(code)


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


def print_decision(line: str, code: int, next_step: str, console: Terminal) -> None:
    """The last line: what was decided, and the next command."""
    style = {0: "bold green", 4: "bold yellow"}.get(code, "bold red")
    console.print(f"\n{line}", style=style, highlight=False, markup=False, soft_wrap=True)
    console.print(f"next: {next_step}", style="bold", highlight=False, markup=False, soft_wrap=True)


def next_command(reference: str, run: ScoredRun, case_id: str | None) -> str:
    """How to look at a run, or at the case that matters most in it."""
    shown = ["agentunit", "show", reference if os.path.isfile(reference) else run.header.id]
    return shlex.join([*shown, printable_line(case_id)] if case_id else shown)


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


def _stored(value: object, default: float) -> float:
    # A run may come from another machine or version: what it says about itself is not trusted blindly.
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else default


def _as_data(
    run: ScoredRun,
    verdicts: Sequence[GateVerdict],
    comparison: Comparison | None,
    n_errors: int,
    max_errors: int,
    code: int,
) -> dict[str, Any]:
    return {
        "run": run.header.id,
        "name": run.header.name,
        "gates": [{"expression": str(each.gate), "coverage": each.coverage, **_fields(each)} for each in verdicts],
        "n_errors": n_errors,
        "max_errors": max_errors,
        "comparison": comparison,
        "exit_code": code,
    }


def _fields(verdict: GateVerdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in verdict.__dataclass_fields__ if name != "gate"}

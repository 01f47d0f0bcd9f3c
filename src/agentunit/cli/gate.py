"""``agentunit gate``: decide on a scored run, with the gates it was made with or new ones, at no cost."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentunit.cli.compare import compare_as_asked, comparison_options, findings_of_file_or_run, keep_beside
from agentunit.cli.options import json_option, show_personal_data_option, store_option, unsure_option
from agentunit.cli.references import how_to_complete, load_run, shown_name
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.taken_in import run_or_traces
from agentunit.engine.deciding.decision import decide_run, stored_min_coverage
from agentunit.engine.deciding.gate_expressions import DEFAULT_MIN_COVERAGE, Gate, GateError, parse_gate
from agentunit.engine.deciding.gates import refuse_slips
from agentunit.engine.deciding.stored import own_decision
from agentunit.engine.recording.suite_run import baseline_reference
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.reports.console import print_line
from agentunit.reports.decision_console import next_command, print_verdict
from agentunit.reports.json_report import decision_as_data
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.reported_run import Mask
from agentunit.reports.terminal import Terminal
from agentunit.urls import is_file


@click.command()
@click.argument("reference", metavar="RUN|FILE", default="last")
@click.option(
    "-g",
    "--gate",
    "expressions",
    multiple=True,
    metavar="EXPR",
    help="Such as 'faithfulness >= 0.8' or 'cost p95 <= 0.02'. Default: the gates stored with the run.",
)
@click.option("--baseline", metavar="RUN|FILE", help="Also hold every case against this run.")
@comparison_options(
    "With --baseline: the metrics to compare, separated by commas. Default: all, of which checks and those with gates "
    "count. What is gated is said by --gate."
)
@unsure_option
@click.option(
    "--min-coverage",
    type=click.FloatRange(0.0, 1.0),
    metavar="SHARE",
    help=f"Share of records that a gated metric must score. Default: the run's own, otherwise {DEFAULT_MIN_COVERAGE}.",
)
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    metavar="N",
    help="Count cases that the agent failed as errors, and allow N of them and of failed scores. Default: the run's "
    "own; without one such a case is wrong, and no score may fail.",
)
@json_option("Print the verdicts as JSON.")
@show_personal_data_option
@store_option
def gate(
    reference: str,
    expressions: tuple[str, ...],
    baseline: str | None,
    names: tuple[str, ...],
    on: tuple[str, ...],
    margins: tuple[str, ...],
    alpha: float,
    min_coverage: float | None,
    max_errors: int | None,
    as_json: bool,
    show_personal_data: bool,
    store_path: str,
) -> None:
    """Decide on a scored run: by its cases, gates, an error allowance and, with --baseline, a comparison.

    RUN is an id, the beginning of one, a name, 'last' (the default), an exported file or a score table (.parquet).
    Nothing is run or scored again. A file or folder of traces becomes a run first, scored by the standard set and the
    metrics of the gates. A gate reads METRIC [AGGREGATE] OPERATOR NUMBER [coverage SHARE]; aggregates are
    mean (the default), median, min, max, sum, p95, all, any, pass^3, pass@3, and labeled: the rate that people would
    give, from the labels of some cases ('agentunit label'). METRIC[backend] picks one of several backends.

    \b
    agentunit gate last --gate "task_success pass^3 >= 0.7" --gate "pii_leakage all == 1"
    agentunit gate last --baseline main.json --margin faithfulness=0.02
    agentunit gate scores.parquet --gate "faithfulness >= 0.8"
    agentunit gate exports/ --gate "tool_success >= 0.9"

    Where some scores of a metric are informational (agentunit score marks them with i), the others decide, and
    coverage counts the others only. METRIC[backend] counts all scores of that backend.

    Exit codes, the first that applies: 2 a gate names what the run does not have, 1 a case is broken (without
    --baseline: wrong, and no gate says how many may be), a gate is missed or a metric got worse, 3 errors beyond the
    allowance, or a gate the run cannot answer, 4 nothing can decide: a gate has only informational scores or those of
    several backends, a labeled rate has too few labels, cases newly fail and were not tried to the end ('agentunit
    rerun' does), a --margin is not ruled out, or too much is missing.
    """
    if baseline is None and (
        without := [flag for flag, given in (("--metrics", names), ("--on", on), ("--margin", margins)) if given]
    ):
        raise click.UsageError(
            f"{without[0]} says what is compared with --baseline RUN, and there is none; a gate names its metric "
            "itself: --gate 'METRIC >= NUMBER'"
        )
    reference = run_or_traces(reference, store_path, expressions)
    run = load_run(reference, store_path)
    gates = gates_for(run, expressions, reference if is_file(reference) else None)
    if not gates and baseline is None:
        raise click.UsageError(f"run {run.header.label} has no gates: give some with --gate, or a --baseline")
    if min_coverage is None:
        min_coverage = stored_min_coverage(run.header.settings)
    comparison = None
    runs = {reference: run}
    if baseline is not None:
        baseline = run_or_traces(baseline, store_path, expressions)
        old = load_run(baseline, store_path)
        runs = {baseline: old, **runs}
        comparison = compare_as_asked(run, old, names, margins, alpha, on=on, gates=gates, min_coverage=min_coverage)
    decision = decide_run(run, gates, comparison, min_coverage=min_coverage, max_errors=max_errors)
    options = {} if baseline is None else {"baseline": baseline_reference(baseline, old)}
    decision = keep_beside(run, decision, "gate", store_path, gates=[str(gate) for gate in gates], **options)
    decision = Mask(show_all=show_personal_data).decision(decision)
    remember_exit_code(decision.exit_code)
    if as_json:
        facts = {"run": run.header.id, "name": run.header.name}
        click.echo(printable_json({**facts, **decision_as_data(decision)}))
    else:
        console = Terminal()
        steps = how_to_complete(runs, store_path) or [next_command(shown_name(reference, run), decision)]
        findings = findings_of_file_or_run(run, decision, shown_name(reference, run), show_personal_data)
        print_verdict(decision, findings, console, *steps, all_gates=True)
        own = own_decision(run)
        if own is not None and own.exit_code > decision.exit_code == 0:
            # It was decided by more than these gates: it was held against a baseline.
            said = Mask(show_all=show_personal_data).decision(own).headline
            print_line(printable_line(f"the run itself was decided otherwise: {said}", 240), console, "yellow")
    if decision.exit_code:
        raise click.exceptions.Exit(decision.exit_code)


def gates_for(run: ScoredRun, expressions: Sequence[str], path: str | None = None) -> list[Gate]:
    """The gates of a command line, or without any those stored with the run; a wrong one is a usage error.

    ``path`` is the file that the run was read from, if it was.
    """
    stored = run.header.settings.get("gates")
    try:
        if expressions or not isinstance(stored, (list, tuple)):
            named = [parse_gate(each) for each in expressions]
            refuse_slips(run, named, path)
            return named
        return [parse_gate(each) for each in stored]
    except GateError as error:
        raise click.BadParameter(str(error), param_hint="--gate") from None

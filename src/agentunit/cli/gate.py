"""``agentunit show RUN --gate``: decide on a scored run, with the gates it was made with or new ones, at no cost."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentunit.cli.compare import compare_as_asked, findings_of_file_or_run, keep_beside
from agentunit.cli.references import how_to_complete, load_run, shown_name
from agentunit.cli.show import STORED_GATES, ShowOptions
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.taken_in import run_or_traces
from agentunit.engine.deciding.comparison import ALPHA
from agentunit.engine.deciding.decision import decide_run, stored_min_coverage
from agentunit.engine.deciding.gate_expressions import Gate, GateError, parse_gate
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


def decide_as_asked(options: ShowOptions) -> None:
    """Decide on a scored run as the command line says, print it, and leave with the exit code that says it."""
    store_path, baseline, margins = options.store_path, options.baseline, options.margins
    if baseline is None and (
        without := [
            flag for flag, given in (("--metrics", options.names), ("--on", options.on), ("--margin", margins)) if given
        ]
    ):
        raise click.UsageError(
            f"{without[0]} says what is compared with --baseline RUN, and there is none; a gate names its metric "
            "itself: --gate 'METRIC >= NUMBER'"
        )
    expressions = [each for each in options.gates if each != STORED_GATES]
    reference = run_or_traces(options.run_reference, store_path, expressions)
    run = load_run(reference, store_path)
    gates = gates_for(run, expressions, reference if is_file(reference) else None)
    if expressions and len(expressions) < len(options.gates):
        gates = [*gates_for(run, ()), *gates]
    if not gates and baseline is None:
        raise click.UsageError(f"run {run.header.label} has no gates: give some with --gate, or a --baseline")
    min_coverage = options.min_coverage
    if min_coverage is None:
        min_coverage = stored_min_coverage(run.header.settings)
    comparison = None
    runs = {reference: run}
    if baseline is not None:
        baseline = run_or_traces(baseline, store_path, expressions)
        old = load_run(baseline, store_path)
        runs = {baseline: old, **runs}
        comparison = compare_as_asked(
            run,
            old,
            options.names,
            margins,
            ALPHA if options.alpha is None else options.alpha,
            on=options.on,
            gates=gates,
            min_coverage=min_coverage,
        )
    decision = decide_run(run, gates, comparison, min_coverage=min_coverage, max_errors=options.max_errors)
    held = {} if baseline is None else {"baseline": baseline_reference(baseline, old)}
    decision = keep_beside(run, decision, "gate", store_path, gates=[str(gate) for gate in gates], **held)
    mask = Mask(show_all=options.show_personal_data)
    decision = mask.decision(decision)
    remember_exit_code(decision.exit_code)
    if options.as_json:
        facts = {"run": run.header.id, "name": run.header.name}
        click.echo(printable_json({**facts, **decision_as_data(decision)}))
    else:
        console = Terminal()
        steps = how_to_complete(runs, store_path) or [next_command(shown_name(reference, run), decision)]
        findings = findings_of_file_or_run(run, decision, shown_name(reference, run), options.show_personal_data)
        print_verdict(decision, findings, console, *steps, all_rows=options.all_rows or None, all_gates=True)
        own = own_decision(run)
        if own is not None and own.exit_code > decision.exit_code == 0:
            # It was decided by more than these gates: it was held against a baseline.
            said = mask.decision(own).headline
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

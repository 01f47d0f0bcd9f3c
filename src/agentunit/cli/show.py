"""``agentunit show``: a run, or everything about one of its cases."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import click

from agentunit.cli.options import (
    InputFailure,
    all_rows_option,
    by_option,
    json_option,
    show_personal_data_option,
    store_option,
)
from agentunit.cli.references import (
    find_reported_run,
    run_argument,
    sliced_as_asked,
    unknown_case,
    unreadable_runs_fail,
)
from agentunit.engine.slices import slices_of_run
from agentunit.reports.case_console import print_case
from agentunit.reports.case_view import view_case, worst_repeat
from agentunit.reports.console import Terminal, print_line
from agentunit.reports.json_report import run_as_data
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.reported_run import ReportedCase, ReportedRun, how_to_resume
from agentunit.reports.run_console import print_stored_run


@click.command()
@run_argument
@click.argument("case_id", required=False, metavar="[CASE]")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Which repeat of the case, counted from 1.")
@click.option("--full", is_flag=True, help="Show long texts whole.")
@by_option
@all_rows_option
@json_option("Print it as JSON.")
@show_personal_data_option
@store_option
def show(
    run_reference: str,
    case_id: str | None,
    repeat: int | None,
    full: bool,
    by: str | None,
    all_rows: bool,
    as_json: bool,
    show_personal_data: bool,
    store_path: str,
) -> None:
    """Show a run, or everything about one of its cases.

    RUN is an id, the beginning of one, a name, 'last', 'last~1', or an exported file. Of a case that was repeated,
    the worst repeat is shown.

    \b
    agentunit show last
    agentunit show last --by metadata.category
    agentunit show last desk-016
    agentunit show last desk-016 --repeat 2 --full
    """
    if repeat is not None and case_id is None:
        raise click.UsageError("--repeat needs a CASE")
    if by is not None and case_id is not None:
        raise click.UsageError("--by goes with a whole run, not with a CASE")
    with (
        unreadable_runs_fail(),
        find_reported_run(run_reference, store_path, show_personal_data=show_personal_data) as reported,
    ):
        if case_id is not None:
            _show_case(reported, case_id, repeat, full=full, as_json=as_json)
            return
        if by is not None:
            reported.add_slices(sliced_as_asked(slices_of_run, reported.run, by))
        if as_json:
            sliced = {"slices": reported.slices[0]} if reported.slices else {}
            click.echo(printable_json({**run_as_data(reported), **sliced}))
        else:
            next_steps = _next_steps(reported, run_reference, store_path)
            print_stored_run(reported, Terminal(), next_steps=next_steps, all_rows=all_rows)


def _show_case(reported: ReportedRun, case_id: str, repeat: int | None, *, full: bool, as_json: bool) -> None:
    repeats = reported.case(case_id)
    if not repeats:
        # An id as it was printed: what steers a terminal or a CI log is not in it.
        printed = next((each for each in reported.case_ids() if printable_line(each) == case_id), None)
        repeats = [] if printed is None else reported.case(printed)
    if not repeats:
        raise unknown_case(reported.label, case_id, reported.case_ids())
    wanted = [case for case in repeats if repeat is None or case.repeat + 1 == repeat]
    if not wanted:
        there = ", ".join(str(case.repeat + 1) for case in repeats)
        raise InputFailure(f"case {case_id!r} has no repeat {repeat}; it has {there}")
    if as_json:
        click.echo(printable_json([view_case(case) for case in wanted]))
        return
    console = Terminal()
    chosen = worst_repeat(wanted, reported.infos)
    print_case(view_case(chosen), reported.infos, console, run_id=reported.run.header.id, full=full)
    if len(repeats) > 1:
        _print_other_repeats(repeats, chosen, console)


def _print_other_repeats(repeats: Sequence[ReportedCase], chosen: ReportedCase, console: Terminal) -> None:
    console.print("\nRepeats", style="bold")
    for case in repeats:
        mark = "→" if case is chosen else " "
        scores = ", ".join(
            f"{metric} {score.result.value:.3g}"
            for metric, score in case.scores.items()
            if score.result.value is not None and score.status == "ok"
        )
        print_line(
            f"{mark} {case.repeat + 1}  {'the agent failed' if case.failed else printable_line(scores, 200)}", console
        )


def _next_steps(reported: ReportedRun, reference: str, store_path: str) -> list[str]:
    """The command to go on with: the rest of an unfinished run, a case behind the decision, or one of the worst."""
    ids = [*reported.decision.failing_cases, *reported.worst_cases()] or reported.case_ids()[:1]
    quoted = shlex.quote(reference)
    steps = [f"agentunit show {quoted} {shlex.quote(ids[0])}"] if ids else []
    resume = None if os.path.isfile(reference) else how_to_resume(reported.run.header, store_path)
    return [*([resume] if resume else []), *steps, f"agentunit export {quoted} --to run.html"][:1]

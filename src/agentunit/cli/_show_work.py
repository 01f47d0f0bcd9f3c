"""The work of ``agentunit show``: a run, or the repeats of one of its cases, found and printed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import click

from agentunit.cli.options import InputFailure
from agentunit.cli.references import (
    find_reported_run,
    is_demo,
    meant_case,
    names_traces,
    sliced_as_asked,
    unknown_case,
    unreadable_runs_fail,
)
from agentunit.cli.show import ShowOptions
from agentunit.metrics.base import MetricInfo, describe
from agentunit.reports.case_view import repeat_name, view_case, worst_repeat
from agentunit.reports.console import print_line
from agentunit.reports.printable import printable_json, printable_line, show_command
from agentunit.reports.reported_run import Mask, ReportedCase, ReportedRun, how_to_resume, masked_error
from agentunit.reports.terminal import Terminal
from agentunit.store.runs import is_again
from agentunit.urls import is_file


def show_run(options: ShowOptions) -> None:
    """Print a run of a store or a file, or one of its cases, or a case of a file of traces."""
    run_reference, case_id, store_path = options.run_reference, options.case_id, options.store_path
    is_recording = is_demo(run_reference, store_path)
    if is_recording and case_id is None:
        from agentunit.cli.demo import show_demo

        show_demo(options)
        return
    if is_recording or names_traces(run_reference, store_path):
        if case_id is None:
            _refuse_unreadable(run_reference)
            raise click.UsageError(
                f"{run_reference} holds no run: 'agentunit score {shlex.quote(run_reference)}' scores it, and "
                f"'agentunit show {shlex.quote(run_reference)} CASE' shows one of its cases"
            )
        mask = Mask(show_all=options.show_personal_data)
        ids, found, infos, files = _cases_of_file(run_reference, case_id, mask)
        if not found:
            if not ids:
                _refuse_unreadable(run_reference)
            meant = meant_case(case_id, ids)
            if meant is None:
                raise unknown_case(run_reference, case_id, ids)
            _, found, infos, files = _cases_of_file(run_reference, meant, mask)
        _print_repeats(found, case_id, options, infos, "", files)
        return
    with (
        unreadable_runs_fail(),
        find_reported_run(
            run_reference, store_path, show_personal_data=options.show_personal_data, held=case_id is None
        ) as reported,
    ):
        if case_id is not None:
            _show_case(reported, case_id, options)
            return
        # A case is shown without these.
        from agentunit.reports.run_console import print_stored_run

        if options.by is not None:
            from agentunit.engine.scoring.slices import slices_of_run

            reported.add_slices(sliced_as_asked(slices_of_run, reported.run, options.by))
        if options.as_json:
            from agentunit.reports.json_report import run_as_data

            sliced = {"slices": reported.slices[0]} if reported.slices else {}
            click.echo(printable_json({**run_as_data(reported), **sliced}))
        else:
            next_steps = _next_steps(reported, run_reference, store_path)
            reported.shown_as = run_reference
            print_stored_run(reported, Terminal(), next_steps=next_steps, all_rows=options.all_rows)


def _show_case(reported: ReportedRun, case_id: str, options: ShowOptions) -> None:
    repeats = reported.case(case_id)
    if not repeats:
        meant = meant_case(case_id, reported.case_ids())
        if meant is None:
            raise unknown_case(reported.label, case_id, reported.case_ids())
        repeats = reported.case(meant)
    _print_repeats(repeats, case_id, options, reported.infos, reported.run.header.id)


def _refuse_unreadable(path: str) -> None:
    """Say what is wrong with a file that does not even begin like traces, or what else it is."""
    from agentunit.cli.trace_inputs import trace_files_from
    from agentunit.core.results import InputError

    first = next(iter(trace_files_from([path], None, "trace")), None)
    if isinstance(first, InputError):
        raise InputFailure(str(masked_error(first)))


def _cases_of_file(
    path: str, case_id: str, mask: Mask
) -> tuple[list[str], list[ReportedCase], dict[str, MetricInfo], list[str]]:
    """The ids of the records of a file or folder, those of one case, scored, the facts about metrics, and their files.

    Nobody was asked whether a judge may see them, so none is.
    """
    from agentunit.cli.trace_inputs import trace_files_from
    from agentunit.core.records import Record
    from agentunit.datasets.demo import DEMO, DEMO_METRICS, demo_records
    from agentunit.engine.scoring.records import score
    from agentunit.metrics.parameters import kept_here
    from agentunit.metrics.registry import DEFAULT_METRICS, resolve_metrics

    is_recording = path == DEMO and not os.path.exists(path)
    names = DEMO_METRICS if is_recording else DEFAULT_METRICS
    metrics = [kept for each in resolve_metrics(names) if (kept := kept_here(each)) is not None]
    ids: dict[str, None] = {}
    wanted: list[Record] = []
    place_of: list[int] = []
    files: list[str] = []
    source = None if is_recording else trace_files_from([path], None, "trace")
    records = demo_records() if source is None else iter(source)
    for position, record in enumerate(each for each in records if isinstance(each, Record)):
        # As scoring calls it.
        record.case.id = record.case.id or f"case-{position + 1}"
        ids[record.case.id] = None
        if record.case.id == case_id:
            wanted.append(record)
            place_of.append(position)
            files.append("" if source is None else source.current_file or "")
    scored = list(score(wanted, metrics)) if wanted else []
    found = [
        ReportedCase(place_of[place], place, record.case.id, False, 0.0, record, case.scores)
        for place, (record, case) in enumerate(zip(wanted, scored, strict=True))
    ]
    infos = {metric.name: describe(metric) for metric in metrics}
    return list(ids), list(map(mask.case, found)), infos, files


def _print_repeats(
    repeats: Sequence[ReportedCase],
    case_id: str,
    options: ShowOptions,
    infos: dict[str, MetricInfo],
    run_id: str,
    files: Sequence[str] = (),
) -> None:
    """Print the worst of the repeats, or the one that was asked for; ``files`` are those of records with one id."""
    repeat = options.repeat
    wanted = [case for case in repeats if repeat is None or case.repeat + 1 == repeat]
    if not wanted:
        there = ", ".join(str(case.repeat + 1) for case in repeats)
        raise InputFailure(f"case {case_id!r} has no repeat {repeat}; it has {there}")
    if options.as_json:
        click.echo(printable_json([view_case(case) for case in wanted]))
        return
    from agentunit.reports.case_console import print_case

    console = Terminal()
    chosen = worst_repeat(wanted, infos)
    print_case(view_case(chosen), infos, console, run_id=run_id, full=options.all_rows)
    if len(repeats) > 1:
        _print_other_repeats(repeats, chosen, files if len(set(files)) > 1 else [], console)


def _print_other_repeats(
    repeats: Sequence[ReportedCase], chosen: ReportedCase, files: Sequence[str], console: Terminal
) -> None:
    heading = "\nCases with this id, of several files (--repeat N shows another)" if files else "\nRepeats"
    console.print(heading, style="bold")
    for number, case in enumerate(repeats):
        mark = "→" if case is chosen else " "
        scores = ", ".join(
            f"{metric} {score.result.value:.3g}"
            for metric, score in case.scores.items()
            if score.result.value is not None and score.status == "ok"
        )
        where = f"{printable_line(files[number])}: " if files else ""
        how = "the agent failed" if case.failed else printable_line(scores, 200)
        named = repeat_name(case.repeat) if is_again(case.repeat) else str(case.repeat + 1)
        print_line(f"{mark} {named}  {where}{how}", console)


def _next_steps(reported: ReportedRun, reference: str, store_path: str) -> list[str]:
    """The command to go on with: the rest of an unfinished run, a case behind the decision, or one of the worst."""
    ids = [*reported.decision.cases_to_see, *reported.worst_cases()] or reported.case_ids()[:1]
    quoted = shlex.quote(reference)
    steps = [show_command(reference, ids[0])] if ids else []
    resume = None if is_file(reference) else how_to_resume(reported.run.header, store_path)
    return [*([resume] if resume else []), *steps, f"agentunit export {quoted} --to run.html"][:1]

"""``agentunit export``: a run as a file for people, for CI or for another machine."""

from __future__ import annotations

import os
from contextlib import ExitStack

import click

from agentunit.cli.compare import compare_as_asked, unsure_option
from agentunit.cli.gate import gates_for
from agentunit.cli.judge_options import JudgeChoice, judge_settings_options
from agentunit.cli.options import by_option, open_store, show_personal_data_option, store_option
from agentunit.cli.pairwise import JudgedPairs, ask_about_pairs, pairwise_option
from agentunit.cli.references import (
    find_reported_run,
    load_run,
    note_what_stays,
    sliced_as_asked,
    unreadable_runs_fail,
)
from agentunit.cli.taken_in import run_or_traces
from agentunit.engine.compare import DEFAULT_ALPHA
from agentunit.engine.comparison import labels_of
from agentunit.engine.decision import Decision, Unsure, count_unsure, decide_run, stored_min_coverage
from agentunit.engine.scored_run import ScoredRun
from agentunit.engine.slices import slices_of_comparison, slices_of_run
from agentunit.reports.figures import counted_cases
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.reporters import (
    PORTABLE,
    STDOUT,
    format_for,
    known_endings,
    reporter_named,
    reporter_names,
)
from agentunit.store.portable import export_run
from agentunit.store.table_reading import is_table
from agentunit.traces.remote import is_file

_WITH_TEXTS = ("html", "markdown")
_WITHOUT_VERDICT = (PORTABLE, "csv", "parquet", "otel")


@click.command()
@click.argument("references", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--to", "target", required=True, metavar="FILE", help="The file to write; '-' is standard output.")
@click.option(
    "-f",
    "--format",
    "format_name",
    metavar="NAME",
    help=f"{', '.join(reporter_names())}. Default: by the file's ending.",
)
@click.option("-g", "--gate", "gates", multiple=True, metavar="EXPR", help="Gates instead of the run's own.")
@click.option("--baseline", metavar="RUN|FILE", help="Also compare with this run, as 'agentunit run --baseline' does.")
@click.option("--on", "on", multiple=True, metavar="METRIC", help="A metric that counts against the baseline.")
@by_option
@unsure_option
@pairwise_option
@judge_settings_options
@show_personal_data_option
@store_option
def export(
    references: tuple[str, ...],
    target: str,
    format_name: str | None,
    gates: tuple[str, ...],
    baseline: str | None,
    on: tuple[str, ...],
    by: str | None,
    unsure: Unsure | None,
    judge: str | None,
    choice: JudgeChoice,
    show_personal_data: bool,
    store_path: str,
) -> None:
    """Write a run, or several against one baseline, to one file.

    RUN is an id, the beginning of one, a name, 'last', a file that was exported before, or a score table (.parquet); a
    file or folder of traces becomes a run first, scored by the standard set and the metrics of the gates. A .json file
    holds everything and can be imported again; the others are for reading: HTML for people, Markdown for a
    pull request, JUnit XML for CI, CSV and Parquet for tables (one row per case, repeat and metric; gate, compare and
    show read the Parquet table as they read a run). An http(s) address gets every
    score as an OpenTelemetry event (OTLP logs, extra otel).

    Several runs need a --baseline, and HTML, Markdown or JUnit: one report with metrics by runs, cases by runs, and
    everything about each run. The allowed chance of a false alarm is shared among them, as 'agentunit compare' does.

    The verdict that HTML, Markdown and JUnit hold is printed, too. The exit code is 0 whatever it says, as the file was
    written ('agentunit gate' ends with the verdict's exit code).

    Reports mask e-mail addresses, card numbers, credentials and the like. A .json file keeps them: it is the run itself
    ('agentunit redact' makes records to share).

    \b
    agentunit export last --to run.html
    agentunit export last --to baseline.json.gz
    agentunit export last --to junit.xml
    agentunit export variant-a variant-b --baseline main.json --to report.html
    agentunit export langfuse-export/ --gate "tool_success >= 0.9" --to comment.md
    agentunit export last --to http://localhost:4318/v1/logs
    """
    chosen = _known(format_name) if format_name else _format_of(target)
    for reference in references:
        _refuse_overwriting(target, reference, store_path)
    if len(references) > 1 and baseline is None:
        raise click.UsageError("several runs need --baseline RUN: the run that each of them is compared with")
    if judge is not None and baseline is None:
        raise click.UsageError("--judge pairwise needs --baseline RUN: the run whose answers are the other ones")
    is_decided = baseline is not None or on or unsure is not None
    if len(references) == 1 and chosen in _WITHOUT_VERDICT and is_decided:
        raise click.UsageError(
            f"--baseline, --on and --unsure are for html, markdown and junit: {chosen} holds scores and no verdict "
            "('agentunit compare BASE RUN --json' prints a comparison as JSON)"
        )
    references = tuple(run_or_traces(each, store_path, gates) for each in references)
    baseline = None if baseline is None else run_or_traces(baseline, store_path, gates)
    verdict: Decision | None = None
    with unreadable_runs_fail():
        if chosen == PORTABLE:
            written = _write_portable(references, target, store_path, by)
        else:
            reporter = reporter_named(chosen)
            if len(references) > 1 and not getattr(reporter, "several", False):
                raise click.UsageError(f"--format {chosen} writes one run; html, markdown and junit take several")
            with ExitStack() as opened:
                runs = [
                    opened.enter_context(
                        find_reported_run(reference, store_path, show_personal_data=show_personal_data)
                    )
                    for reference in references
                ]
                old = None if baseline is None else load_run(baseline, store_path)
                if old is not None and len(runs) > 1:
                    _put_together(runs, old)
                judged: list[JudgedPairs | None] = [None] * len(runs)
                if old is not None:
                    judged = ask_about_pairs(judge, choice, old, [reported.run for reported in runs])
                alpha = DEFAULT_ALPHA / len(runs)
                for reported, pairs in zip(runs, judged, strict=True):
                    reported.baseline = old
                    _decide(reported, old, runs[0].baseline_label, gates, on, by, unsure, alpha, pairs)
                written = reporter.write(runs[0], target)
                verdict = None if chosen in _WITHOUT_VERDICT else runs[0].verdict
    if target != STDOUT:
        click.echo(printable(f"{target}: {written}"))
    if chosen in _WITH_TEXTS and not show_personal_data:
        note_what_stays(references, store_path)
    if verdict is not None and verdict.verdict is not None:
        click.echo(printable_line(verdict.headline), err=True)


def _decide(
    reported: ReportedRun,
    baseline: ScoredRun | None,
    baseline_label: str,
    expressions: tuple[str, ...],
    on: tuple[str, ...],
    by: str | None,
    unsure: Unsure | None,
    alpha: float,
    judged: JudgedPairs | None,
) -> None:
    """Decide about a run by its gates and against a baseline, and cut its scores into slices if asked."""
    run = reported.run
    gates = gates_for(run, expressions, reported.path)
    coverage = stored_min_coverage(run.header.settings)
    comparison = None
    if baseline is not None:
        labels = (baseline_label, reported.label) if baseline_label else None
        comparison = compare_as_asked(
            run, baseline, alpha=alpha, on=on, gates=gates, min_coverage=coverage, labels=labels, judged=judged
        )
    reported.decision = count_unsure(decide_run(run, gates, comparison), unsure)
    if by is not None:
        if comparison is not None and baseline is not None:
            reported.add_slices(sliced_as_asked(slices_of_comparison, comparison, run, baseline, by))
        reported.add_slices(sliced_as_asked(slices_of_run, run, by))


def _put_together(runs: list[ReportedRun], baseline: ScoredRun) -> None:
    """Make one report of runs that were compared with the same baseline."""
    first, *others = runs
    if len({reported.run.header.id for reported in runs}) < len(runs):
        raise click.UsageError("a run is named twice: name each one once")
    for reported in others:
        # One report: a pseudonym means the same in all of its runs.
        reported.mask = first.mask
    base, *labels = labels_of([first.mask.header(baseline.header), *(reported.header for reported in runs)])
    for reported, label in zip(runs, labels, strict=True):
        reported.label = label
    first.baseline_label, first.others = base, tuple(others)


def _known(format_name: str) -> str:
    if format_name in reporter_names():
        return format_name
    raise click.BadParameter(
        f"must be one of {', '.join(reporter_names())}; received {format_name!r}", param_hint="--format"
    )


def _format_of(target: str) -> str:
    found = format_for(target)
    if found is None:
        endings = ", ".join(known_endings())
        raise click.BadParameter(
            f"name a file that ends in {endings}, or say --format; received {target!r}", param_hint="--to"
        )
    return found


def _refuse_overwriting(target: str, reference: str, store_path: str) -> None:
    for path in (reference, store_path):
        if os.path.exists(target) and os.path.exists(path) and os.path.samefile(target, path):
            raise click.UsageError(f"{target} is where the run is read from: writing there would destroy it")
    if os.path.isdir(target):
        raise click.UsageError(f"{target} is a folder: name a file")


def _write_portable(references: tuple[str, ...], target: str, store_path: str, by: str | None) -> str:
    if len(references) > 1:
        raise click.UsageError("a .json file holds one run with all its records: export each run to its own file")
    if by is not None:
        raise click.UsageError("--by is for reports: a .json file holds the run itself ('agentunit show RUN --by')")
    reference = references[0]
    if target == STDOUT:
        raise click.UsageError("a run with all its records goes to a file, not to standard output")
    if is_file(reference):
        if is_table(reference):
            raise click.UsageError(f"{reference} is a score table, without the records that a .json file holds")
        raise click.UsageError(f"{reference} is an exported run already: copy it")
    with open_store(store_path, read_only=True) as store:
        run_id = store.find_run(reference).id
        n_records = export_run(store, run_id, target)
        placed = {(row.position, row.repeat) for row in store.record_rows(run_id)}
    size = counted_cases(
        len({position for position, _ in placed}), 1 + max((r for _, r in placed), default=0), n_records
    )
    return f"{size}   elsewhere: agentunit import {target}"

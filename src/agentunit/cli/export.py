"""``agentunit export``: a run as a file for people, for CI or for another machine."""

from __future__ import annotations

import os

import click

from agentunit.cli.compare import compare_as_asked, unsure_option
from agentunit.cli.gate import gates_for
from agentunit.cli.options import open_store, show_personal_data_option, store_option
from agentunit.cli.references import find_reported_run, load_run, run_argument, unreadable_runs_fail
from agentunit.engine.comparison import Comparison
from agentunit.engine.decision import Unsure, count_unsure, decide_run, stored_min_coverage
from agentunit.engine.gate_expressions import Gate
from agentunit.engine.scored_run import ScoredRun
from agentunit.reports.figures import counted_cases
from agentunit.reports.reporters import (
    PORTABLE,
    STDOUT,
    format_for,
    known_endings,
    reporter_named,
    reporter_names,
)
from agentunit.store.portable import export_run


@click.command()
@run_argument
@click.option("-o", "--to", "target", required=True, metavar="FILE", help="The file to write; '-' is standard output.")
@click.option(
    "-f",
    "--format",
    "format_name",
    metavar="NAME",
    help=f"{', '.join(reporter_names())}. Default: by the file's ending.",
)
@click.option("-g", "--gate", "gates", multiple=True, metavar="EXPR", help="Gates in place of the run's own.")
@click.option("--baseline", metavar="RUN|FILE", help="Also compare with this run, as 'agentunit run --baseline' does.")
@click.option("--on", "on", multiple=True, metavar="METRIC", help="A metric that counts against the baseline.")
@unsure_option
@show_personal_data_option
@store_option
def export(
    run_reference: str,
    target: str,
    format_name: str | None,
    gates: tuple[str, ...],
    baseline: str | None,
    on: tuple[str, ...],
    unsure: Unsure | None,
    show_personal_data: bool,
    store_path: str,
) -> None:
    """Write a run to one file.

    RUN is an id, the beginning of one, a name, 'last', or a file that was exported before. A .json file holds
    everything and can be imported again; the others are for reading: HTML for people, Markdown for a pull request,
    JUnit XML for CI, CSV and Parquet for tables (one row a case, repeat and metric). An http(s) address gets every
    score as an OpenTelemetry event (OTLP logs, extra otel).

    Reports mask e-mail addresses, card numbers, credentials and the like. A .json file keeps them: it is the run itself
    ('agentunit redact' makes records to share).

    \b
    agentunit export last --to run.html
    agentunit export last --to baseline.json.gz
    agentunit export last --to junit.xml
    agentunit export last --to http://localhost:4318/v1/logs
    """
    chosen = _known(format_name) if format_name else _format_of(target)
    _refuse_overwriting(target, run_reference, store_path)
    with unreadable_runs_fail():
        if chosen == PORTABLE:
            written = _write_portable(run_reference, target, store_path)
        else:
            with find_reported_run(run_reference, store_path, show_personal_data=show_personal_data) as reported:
                old = None if baseline is None else load_run(baseline, store_path)
                decided_by = gates_for(reported.run, gates)
                comparison = None if old is None else _compared(reported.run, old, decided_by, on)
                reported.decision = count_unsure(decide_run(reported.run, decided_by, comparison), unsure)
                written = reporter_named(chosen).write(reported, target)
    if target != STDOUT:
        click.echo(f"{target}: {written}")


def _compared(run: ScoredRun, baseline: ScoredRun, gates: list[Gate], on: tuple[str, ...]) -> Comparison:
    return compare_as_asked(run, baseline, on=on, gates=gates, min_coverage=stored_min_coverage(run.header.settings))


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


def _write_portable(reference: str, target: str, store_path: str) -> str:
    if target == STDOUT:
        raise click.UsageError("a run with all its records goes to a file, not to standard output")
    if os.path.isfile(reference):
        raise click.UsageError(f"{reference} is an exported run already: copy it")
    with open_store(store_path, read_only=True) as store:
        run_id = store.find_run(reference).id
        n_records = export_run(store, run_id, target)
        placed = {(row.position, row.repeat) for row in store.record_rows(run_id)}
    size = counted_cases(
        len({position for position, _ in placed}), 1 + max((r for _, r in placed), default=0), n_records
    )
    return f"{size}   elsewhere: agentunit import {target}"

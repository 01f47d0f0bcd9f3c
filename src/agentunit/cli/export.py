"""``agentunit export``: a run as a file for people, for CI or for another machine."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from agentunit.cli.options import InputFailure, open_store, store_option
from agentunit.cli.show import find_reported_run
from agentunit.core.codec import RecordError
from agentunit.engine.gate_expressions import GateError
from agentunit.reports.gate_words import verdicts_of
from agentunit.reports.html import write_html
from agentunit.reports.junit import write_junit
from agentunit.reports.markdown import run_markdown
from agentunit.reports.otel_events import send_scores
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.table_files import write_csv, write_parquet
from agentunit.reports.whole_file import STDOUT, ReportError, whole_file
from agentunit.store.portable import export_run
from agentunit.store.schema import StoreError

_FORMAT_OF_ENDING = {
    ".json": "json",
    ".jsonl": "json",
    ".json.gz": "json",
    ".jsonl.gz": "json",
    ".xml": "junit",
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".parquet": "parquet",
    ".html": "html",
    ".htm": "html",
}
_FORMATS = ("json", "junit", "markdown", "csv", "parquet", "html", "otel")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run_reference", metavar="RUN")
@click.option("-o", "--to", "target", required=True, metavar="FILE", help="The file to write; '-' is standard output.")
@click.option(
    "-f",
    "--format",
    "format_name",
    type=click.Choice(_FORMATS),
    help="Default: by the file's ending (.json, .jsonl, .json.gz, .xml, .md, .csv, .parquet, .html).",
)
@click.option("-g", "--gate", "gates", multiple=True, metavar="EXPR", help="Gates in place of the run's own.")
@store_option
def export(run_reference: str, target: str, format_name: str | None, gates: tuple[str, ...], store_path: str) -> None:
    """Write a run to one file.

    RUN is an id, the beginning of one, a name, 'last', or a file that was exported before. A .json file holds
    everything and can be imported again; the others are for reading: HTML for people, Markdown for a pull request,
    JUnit XML for CI, CSV and Parquet for tables (one row a case, repeat and metric). An http(s) address gets every
    score as an OpenTelemetry event (OTLP logs, extra otel).

    \b
    agentunit export last --to run.html
    agentunit export last --to baseline.json.gz
    agentunit export last --to junit.xml
    agentunit export last --to http://localhost:4318/v1/logs
    """
    chosen = format_name or _format_of(target)
    _refuse_overwriting(target, run_reference, store_path)
    try:
        told = _write(chosen, run_reference, target, gates or None, store_path)
    except GateError as error:
        raise click.UsageError(str(error)) from None
    except (StoreError, RecordError, ReportError) as error:
        raise InputFailure(printable_line(str(error))) from None
    if target != STDOUT:
        click.echo(f"{target}: {told}")


def _format_of(target: str) -> str:
    if target.startswith(("http://", "https://")):
        return "otel"
    name = os.path.basename(target).lower()
    for ending in sorted(_FORMAT_OF_ENDING, key=len, reverse=True):
        if name.endswith(ending):
            return _FORMAT_OF_ENDING[ending]
    endings = ", ".join(_FORMAT_OF_ENDING)
    raise click.BadParameter(
        f"name a file that ends in {endings}, or say --format; received {target!r}", param_hint="--to"
    )


def _refuse_overwriting(target: str, reference: str, store_path: str) -> None:
    for path in (reference, store_path):
        if os.path.exists(target) and os.path.exists(path) and os.path.samefile(target, path):
            raise click.UsageError(f"{target} is where the run is read from: writing there would destroy it")
    if os.path.isdir(target):
        raise click.UsageError(f"{target} is a folder: name a file")


def _write(format_name: str, reference: str, target: str, gates: Sequence[str] | None, store_path: str) -> str:
    if format_name == "json":
        return _write_portable(reference, target, store_path)
    with find_reported_run(reference, store_path) as reported:
        return _write_report(format_name, reported, target, gates)


def _write_report(format_name: str, reported: ReportedRun, target: str, gates: Sequence[str] | None) -> str:
    if format_name == "otel":
        return f"{send_scores(reported, target):,} events"
    if format_name in ("csv", "parquet"):
        write = write_csv if format_name == "csv" else write_parquet
        return f"{write(reported, target):,} rows"
    verdicts = verdicts_of(reported.run, gates)
    if format_name == "junit":
        return _cases(write_junit(reported, target, verdicts=verdicts))
    if format_name == "html":
        return _cases(write_html(reported, target, verdicts=verdicts))
    text = run_markdown(reported.run, verdicts=verdicts, case_of=reported.case)
    with whole_file(target) as stream:
        stream.write(text.encode("utf-8", "replace"))
    return f"{len(text):,} characters"


def _write_portable(reference: str, target: str, store_path: str) -> str:
    if target == STDOUT:
        raise click.UsageError("a run with all its records goes to a file, not to standard output")
    if os.path.isfile(reference):
        raise click.UsageError(f"{reference} is an exported run already: copy it")
    with open_store(store_path, read_only=True) as store:
        n_cases = export_run(store, store.find_run(reference).id, target)
    return f"{_cases(n_cases)}   elsewhere: agentunit import {target}"


def _cases(n_cases: int) -> str:
    return "1 case" if n_cases == 1 else f"{n_cases:,} cases"

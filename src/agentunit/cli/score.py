"""``agentunit score``: recorded traces in, scores out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console

import agentunit
from agentunit.cli.main import EXIT_ERRORS
from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import InputError, MetricUse, RunRecord, RunSummary, encode_json
from agentunit.engine.scoring import Run
from agentunit.engine.scoring import score as score_records
from agentunit.metrics.base import describe
from agentunit.metrics.registry import parameters, resolve_metrics
from agentunit.reports.console import error_line, print_run
from agentunit.reports.progress import Progress
from agentunit.traces.native import STDIN, RecordFile


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "-m",
    "--metrics",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Metrics, separated by commas (also module:attribute for your own). Default: the standard set. "
    "'agentunit metrics' lists them.",
)
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="Write every case's scores here, one JSON a line.")
@click.option("--errors", "errors_file", type=click.Path(dir_okay=False), help="Write what could not be read here.")
@click.option("--json", "as_json", is_flag=True, help="Print the run's summary as JSON instead of a table.")
@click.option("--strict", is_flag=True, help="Stop at the first record that cannot be read.")
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Unreadable records plus failed scores that are allowed before the exit code becomes 3.",
)
def score(
    files: tuple[str, ...],
    names: tuple[str, ...],
    out: str | None,
    errors_file: str | None,
    as_json: bool,
    strict: bool,
    max_errors: int,
) -> None:
    """Score recorded traces: JSONL records, plain, .gz or .zst; '-' reads standard input.

    \b
    agentunit score runs.jsonl
    agentunit score runs.jsonl.gz --metrics faithfulness,cost --out scores.jsonl
    """
    metrics = metrics_from(names)
    _refuse_missing(files)
    _refuse_overwriting_inputs(files, out, errors_file)
    sources = [RecordFile(path) for path in files]
    run = score_records(_records(sources), metrics, strict=strict)
    try:
        _write_scores(run, sources, out)
        summary = run.summary()
    except RecordError as error:
        raise InputFailure(f"{error} (--strict stops at the first)") from None
    if errors_file is not None:
        with _open_for_writing(errors_file) as stream:
            stream.writelines(encode_json(error) + b"\n" for error in summary.input_errors)
    if as_json:
        click.echo(encode_json(_run_record(files, metrics, summary)).decode())
    else:
        _print(summary, metrics, out)
    if _too_many_errors(summary, max_errors, as_json):
        raise click.exceptions.Exit(EXIT_ERRORS)


class InputFailure(click.ClickException):
    """Input that cannot be read, or output that cannot be written: one line, exit code 3."""

    exit_code = EXIT_ERRORS


def metrics_from(names: Sequence[str]) -> list[Any]:
    """The metrics named on a command line; a name that is wrong is a usage error."""
    # A user's own metric is usually a module beside the traces.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    wanted = [name.strip() for group in names for name in group.split(",") if name.strip()]
    if names and not wanted:
        raise click.BadParameter("name at least one metric", param_hint="--metrics")
    try:
        return list(resolve_metrics(wanted or None))
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        raise click.BadParameter(str(error), param_hint="--metrics") from None


def _records(sources: Sequence[RecordFile]) -> Iterator[Record | InputError]:
    for source in sources:
        yield from source


def _write_scores(run: Run, sources: Sequence[RecordFile], out: str | None) -> None:
    progress = Progress(
        "cases",
        fraction=lambda: _fraction_read(sources),
        failures=lambda: run.n_input_errors + run.n_score_errors,
    )
    with ExitStack() as stack:
        stream = stack.enter_context(_open_for_writing(out)) if out else None
        for case in progress.watch(run):
            if stream is not None:
                stream.write(encode_json(case) + b"\n")


def _fraction_read(sources: Sequence[RecordFile]) -> float | None:
    size = sum(Path(source.path).stat().st_size for source in sources if Path(source.path).is_file())
    return sum(source.position for source in sources) / size if size else None


def _open_for_writing(path: str) -> IO[bytes]:
    try:
        return open(path, "wb")
    except OSError as error:
        raise InputFailure(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def _refuse_missing(files: Sequence[str]) -> None:
    for path in files:
        if path != STDIN and not os.path.exists(path):
            raise InputFailure(f"{path}: no such file")
        if os.path.isdir(path):
            raise InputFailure(f"{path}: is a folder, not a file")


def _refuse_overwriting_inputs(files: Sequence[str], *outputs: str | None) -> None:
    for output in outputs:
        for path in files:
            if output and os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
                raise click.UsageError(f"{output} is an input: writing there would destroy it")


def _run_record(files: Sequence[str], metrics: Sequence[Any], summary: RunSummary) -> RunRecord:
    return RunRecord(
        agentunit_version=agentunit.__version__,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        sources=list(files),
        metrics=[MetricUse(metric.name, describe(metric).version, parameters(metric)) for metric in metrics],
        summary=summary,
    )


def _print(summary: RunSummary, metrics: Sequence[Any], out: str | None) -> None:
    if summary.n_cases == 0 and not summary.n_input_errors:
        click.echo("nothing to score: the input holds no records", err=True)
        return
    steps = []
    if out:
        steps.append(f"every case's scores are in {out}")
    elif summary.n_cases:
        steps.append("agentunit score … --out scores.jsonl keeps every case's scores")
    if any(row.status == "informational" for row in summary.metrics):
        steps.append("agentunit metrics faithfulness tells why some scores are informational only")
    infos = {metric.name: describe(metric) for metric in metrics}
    print_run(summary, infos, Console(), next_steps=steps)


def _too_many_errors(summary: RunSummary, allowed: int, as_json: bool) -> bool:
    n_errors = summary.n_input_errors + summary.n_score_errors
    if summary.n_cases == 0 and not n_errors:
        if as_json:
            click.echo("nothing to score: the input holds no records", err=True)
        return True
    if n_errors > allowed:
        read = f"{summary.n_input_errors} unreadable, {summary.n_score_errors} failed scores"
        first = f"; first: {error_line(summary.input_errors[0])}" if summary.input_errors and as_json else ""
        click.echo(f"errors: {n_errors} ({read}), allowed: {allowed}{first}", err=True)
        return True
    return False

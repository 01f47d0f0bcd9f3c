"""``agentunit import``: a run from a file into the store, or another tool's tests into a suite."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentunit.cli.import_cases import import_cases
from agentunit.cli.options import InputFailure, open_store, store_option
from agentunit.cli.references import unreadable_runs_fail
from agentunit.reports.printable import printable_line
from agentunit.store.portable import import_run as take_in
from agentunit.store.portable import is_portable
from agentunit.store.table_reading import is_table


@click.command(name="import")
@click.argument("file", metavar="FILE")
@click.option("--as", "run_id", metavar="ID", help="The id a run gets (default: the one it had).")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where a suite is written (default: a folder named after FILE).",
)
@store_option
def import_run(file: str, run_id: str | None, out: Path | None, store_path: str) -> None:
    """Take in a run that 'agentunit export' wrote, or the tests of another tool.

    A run (.json, .jsonl, .json.gz) goes into the store. Tests of promptfoo, DeepEval, RAGAS, LangSmith, Langfuse,
    Inspect or OpenAI evals (YAML, JSON, JSONL, CSV) become a suite: dataset.jsonl and suite.yaml. What does not map is
    listed, and the exit code is 3 then. Nothing in the file is run, and nothing is overwritten.

    \b
    agentunit import main.json.gz --as main
    agentunit import promptfooconfig.yaml --out evals
    """
    if run_id is not None and not run_id.strip():
        raise click.BadParameter("an id must not be blank", param_hint="--as")
    if not os.path.isfile(file):
        raise InputFailure(f"{file}: no such file")
    if is_table(file):
        raise InputFailure(
            f"{file} is a score table, without records to take in: gate, compare and show read it as it is"
        )
    if not is_portable(file):
        if run_id is not None:
            raise click.UsageError(f"--as goes with an exported run, and {file} is none")
        import_cases(file, out)
        return
    if out is not None:
        raise click.UsageError(f"--out goes with the tests of another tool; {file} is an exported run")
    with unreadable_runs_fail(), open_store(store_path, must_exist=False) as store:
        header = take_in(store, file, run_id=run_id)
    name = printable_line(header.name)
    click.echo(f"{header.n_done:,} cases of {name!r} are run {header.id}   next: agentunit show {header.id}")

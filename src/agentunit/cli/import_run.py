"""``agentunit import``: a run from a file into the store."""

from __future__ import annotations

import os

import click

from agentunit.cli.options import InputFailure, open_store, store_option
from agentunit.cli.references import unreadable_runs_fail
from agentunit.reports.printable import printable_line
from agentunit.store.portable import import_run as take_in


@click.command(name="import")
@click.argument("file", metavar="FILE")
@click.option("--as", "run_id", metavar="ID", help="The id it gets (default: the one it had).")
@store_option
def import_run(file: str, run_id: str | None, store_path: str) -> None:
    """Take a run that 'agentunit export' wrote to a .json, .jsonl or .json.gz file into the store.

    \b
    agentunit import main.json
    agentunit import main.json.gz --as main
    """
    if run_id is not None and not run_id.strip():
        raise click.BadParameter("an id must not be blank", param_hint="--as")
    if not os.path.isfile(file):
        raise InputFailure(f"{file}: no such file")
    with unreadable_runs_fail(), open_store(store_path, must_exist=False) as store:
        header = take_in(store, file, run_id=run_id)
    name = printable_line(header.name)
    click.echo(f"{header.n_done:,} cases of {name!r} are run {header.id}   next: agentunit show {header.id}")

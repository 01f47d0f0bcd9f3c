"""``agentunit runs``: what the store holds, the newest first."""

from __future__ import annotations

import click

from agentunit.cli.options import InputFailure, open_store, store_option
from agentunit.core.results import MetricSummary, encode_json
from agentunit.reports.console import Terminal, print_next
from agentunit.reports.json_report import headline_rows, run_line_as_data
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import how_to_resume, open_run
from agentunit.reports.run_console import print_runs
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import RunHeader


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@click.option("--delete", "doomed", metavar="RUN", help="Remove a run with its records and scores.")
@store_option
def runs(as_json: bool, limit: int, doomed: str | None, store_path: str) -> None:
    """List the runs of the store, the newest first.

    \b
    agentunit runs
    agentunit runs --json --limit 100
    agentunit runs --delete 20261115-100338-3288
    """
    if doomed is not None:
        _delete(doomed, store_path)
        return
    infos = {}
    listed: list[tuple[RunHeader, list[MetricSummary]]] = []
    try:
        with open_store(store_path, read_only=True) as store:
            headers = store.runs()
            for header in headers[:limit]:
                reported = open_run(header.id, store, show_personal_data=True)  # only means are shown
                infos.update(reported.infos)
                listed.append((header, headline_rows(reported.summary, reported.infos)))
    except StoreError as error:
        raise InputFailure(printable_line(str(error))) from None
    if as_json:
        click.echo(encode_json([run_line_as_data(header, rows) for header, rows in listed]).decode())
        return
    if not listed:
        click.echo(f"{store_path} holds no runs yet   next: agentunit run SUITE")
        return
    console = Terminal()
    print_runs(listed, infos, console)
    if len(headers) > limit:
        console.print(f"… and {len(headers) - limit:,} older (--limit shows more)", style="dim", highlight=False)
    resume = next((how for header, _ in listed if (how := how_to_resume(header, store_path))), None)
    print_next(filter(None, (resume, "agentunit show last")), console)


def _delete(reference: str, store_path: str) -> None:
    try:
        with open_store(store_path) as store:
            header = store.find_run(reference)
            store.delete_run(header.id)
    except StoreError as error:
        raise InputFailure(printable_line(str(error))) from None
    click.echo(f"removed run {printable_line(header.id)} with its {header.n_done:,} cases")

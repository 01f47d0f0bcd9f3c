"""``agentunit runs``: what the store holds, the newest first."""

from __future__ import annotations

import click

from agentunit.cli import erasing
from agentunit.cli.options import json_option, open_store, store_option, tags_from
from agentunit.cli.references import unreadable_runs_fail
from agentunit.core.results import MetricSummary, encode_json
from agentunit.reports.console import Terminal, print_next
from agentunit.reports.figures import counted
from agentunit.reports.json_report import run_line_as_data
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import how_to_resume, open_run
from agentunit.reports.run_console import headline_rows, print_runs
from agentunit.store.opening import shown_address
from agentunit.store.runs import RunHeader


@click.command()
@click.argument("files", nargs=-1, metavar="[FILES]...")
@json_option("Print them as JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="At most this many.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Only runs with this tag: --tag model=x.")
@click.option("--name", metavar="NAME", help="Only runs of this name.")
@click.option("--delete", "doomed", metavar="RUN", help="Remove a run with its records and scores.")
@click.option(
    "--erase",
    metavar="WHAT",
    help="Erase user=ID, session=ID, case=ID or older=30d from the store, its labels, the judge's cache and FILES.",
)
@click.option("--erasures", is_flag=True, help="Show when data was erased, and how much.")
@click.option("--keep", type=click.Choice(["masked"]), help="Keep only masked text in this store, from now on.")
@store_option
def runs(
    files: tuple[str, ...],
    as_json: bool,
    limit: int,
    tags: tuple[str, ...],
    name: str | None,
    doomed: str | None,
    erase: str | None,
    erasures: bool,
    keep: str | None,
    store_path: str,
) -> None:
    """List the runs of the store, the newest first.

    \b
    agentunit runs
    agentunit runs --tag model=x
    agentunit runs --json --limit 100
    agentunit runs --delete 20261115-100338-3288
    agentunit runs --erase user=u-4711 shared/traces.jsonl
    agentunit runs --erase older=90d
    """
    if files and erase is None:
        raise click.UsageError(f"files belong to --erase; received {files[0]!r} without it")
    if erase is not None:
        erasing.erase(erase, files, store_path, as_json=as_json)
        return
    if erasures:
        erasing.print_erasures(store_path, as_json=as_json)
        return
    if keep is not None:
        erasing.keep_masked(store_path)
        return
    if doomed is not None:
        _delete(doomed, store_path)
        return
    infos = {}
    listed: list[tuple[RunHeader, list[MetricSummary]]] = []
    with unreadable_runs_fail(), open_store(store_path, read_only=True) as store:
        wanted = tags_from(tags).items()
        headers = [header for header in store.runs() if wanted <= header.tags.items()]
        headers = [header for header in headers if name is None or header.name == name]
        for header in headers[:limit]:
            # Only means are shown.
            reported = open_run(header.id, store, show_personal_data=True, labels=False)
            infos.update(reported.infos)
            listed.append((header, headline_rows(reported.summary, reported.infos)))
    if as_json:
        click.echo(encode_json([run_line_as_data(header, rows) for header, rows in listed]).decode())
        return
    if not listed and (tags or name is not None):
        click.echo(f"no run of {shown_address(store_path)} has that tag or name   next: agentunit runs")
        return
    if not listed:
        click.echo(f"{shown_address(store_path)} holds no runs yet   next: agentunit run SUITE")
        return
    console = Terminal()
    print_runs(listed, infos, console)
    if len(headers) > limit:
        console.print(f"… and {len(headers) - limit:,} older (--limit shows more)", style="dim", highlight=False)
    resume = next((how for header, _ in listed if (how := how_to_resume(header, store_path))), None)
    print_next([resume or "agentunit show last"], console)


def _delete(reference: str, store_path: str) -> None:
    with unreadable_runs_fail(), open_store(store_path) as store:
        header = store.find_run(reference)
        store.delete_run(header.id)
    click.echo(f"removed run {printable_line(header.id)} with its {counted(header.n_done, 'case')}")

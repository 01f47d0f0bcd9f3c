"""``agentunit demo``: the main job on a bundled recording."""

from __future__ import annotations

from pathlib import Path

import click

from agentunit.cli.options import InputFailure, all_rows_option, json_option
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.core.results import encode_json
from agentunit.datasets.demo import DEMO, DEMO_METRICS, demo_records
from agentunit.engine.scoring.records import score
from agentunit.metrics.base import describe
from agentunit.metrics.parameters import kept_here
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.console import print_block, print_run
from agentunit.reports.finding_text import with_commands
from agentunit.reports.printable import printable
from agentunit.reports.reported_run import Mask
from agentunit.reports.terminal import Terminal


@click.command()
@json_option("Print the summary as JSON instead of a table.")
@click.option(
    "--save",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the recording to this file, to try things on.",
)
@all_rows_option
def demo(as_json: bool, save: str | None, all_rows: bool) -> None:
    """Score a bundled recording of a small agent system: offline, no keys, in seconds.

    The recording is of a rule-based customer desk (triage, orders, returns, advice, supervisor) at an invented shop.
    We wrote and ran it; its clock, tokens and prices are simulated. Some answers are wrong on purpose.
    """
    if save is not None:
        _save(save)
        return
    # A judge that is configured is for the user's own data: the demo stays offline.
    metrics = [metric for each in resolve_metrics(DEMO_METRICS) if (metric := kept_here(each)) is not None]
    run = score(demo_records(), metrics)
    summary = Mask().view(run.summary())
    if as_json:
        click.echo(encode_json(summary).decode())
        return
    console = Terminal()
    print_block([str(summary.counts)], with_commands(summary.findings, DEMO), console, all_rows=all_rows)
    print_run(
        summary,
        {metric.name: describe(metric) for metric in metrics},
        console,
        next_steps=("agentunit init     a suite to start from, to put your own agent in",),
        all_rows=all_rows,
    )


def _save(path: str) -> None:
    target = Path(path)
    if target.exists():
        raise click.UsageError(f"{path} exists already: name a file that does not")
    lines = [encode_record(record) for record in demo_records() if isinstance(record, Record)]
    try:
        target.write_bytes(b"\n".join(lines) + b"\n")
    except OSError as error:
        raise InputFailure(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
    click.echo(printable(f"{len(lines)} records in {path}   next: agentunit score {path}"))

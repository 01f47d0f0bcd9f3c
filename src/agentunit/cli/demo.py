"""``agentunit show demo``: the main job on a bundled recording."""

from __future__ import annotations

import click

from agentunit.cli.show import ShowOptions
from agentunit.core.results import encode_json
from agentunit.datasets.demo import DEMO, DEMO_METRICS, demo_records
from agentunit.engine.scoring.records import score
from agentunit.metrics.base import describe
from agentunit.metrics.parameters import kept_here
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.console import print_block, print_run
from agentunit.reports.finding_text import with_commands
from agentunit.reports.reported_run import Mask
from agentunit.reports.terminal import Terminal


def show_demo(options: ShowOptions) -> None:
    """Score a bundled recording of a small agent system and print what it shows: offline, no keys, in seconds.

    The recording is of a rule-based customer desk (triage, orders, returns, advice, supervisor) at an invented shop.
    We wrote and ran it; its clock, tokens and prices are simulated. Some answers are wrong on purpose.
    """
    # A judge that is configured is for the user's own data: the demo stays offline.
    metrics = [metric for each in resolve_metrics(DEMO_METRICS) if (metric := kept_here(each)) is not None]
    run = score(demo_records(), metrics)
    summary = Mask(show_all=options.show_personal_data).view(run.summary())
    if options.as_json:
        click.echo(encode_json(summary).decode())
        return
    console = Terminal()
    print_block([str(summary.counts)], with_commands(summary.findings, DEMO), console, all_rows=options.all_rows)
    print_run(
        summary,
        {metric.name: describe(metric) for metric in metrics},
        console,
        next_steps=("agentunit init     a suite to start from, to put your own agent in",),
        all_rows=options.all_rows,
    )

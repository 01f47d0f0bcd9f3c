"""``agentunit run``: record an agent on a dataset, score what it did, decide."""

from __future__ import annotations

from typing import Any

import click

from agentunit.cli.judge_options import judge_options
from agentunit.cli.options import (
    Verb,
    jobs_option,
    margin_option,
    media_root_option,
    show_personal_data_option,
    store_option,
    tries_option,
    unsure_option,
    why_option,
)

ARGUMENTS = "agentunit.arguments"
"""Under this name the context of a command holds what it was called with."""
_MAX_COST = "Start no further case once the traces add up to this cost. Finished cases are kept."


class KeepsArguments(Verb):
    """A command that remembers what it was called with, to call itself again."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, after taking note."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


@click.command(
    cls=KeepsArguments,
    first="--resume --set --repeats --limit --metrics --gate --baseline --judge --why --json",
)
@click.argument("suite_path", metavar="SUITE")
@click.option(
    "--resume", metavar="RUN", help="Continue a run that was stopped: its id, the beginning of its id, or 'last'."
)
@click.option("--retry-failed", is_flag=True, help="With --resume: run the cases again in which the agent failed.")
@click.option(
    "--changed-agent", is_flag=True, help="With --resume: continue even though the agent's source has changed."
)
@click.option("--name", metavar="NAME", help="A name for the run instead of the suite's; other commands accept it.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A note kept with the run: --tag model=x.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE,…",
    help="One run for each value, tagged with it: --set model=a,b. The agent gets it as its parameter of that name, "
    "and in AGENTUNIT_SET_MODEL.",
)
@click.option(
    "--repeats",
    metavar="N|auto",
    help="Run each case N times; auto: run cases, then repeats, until gates and --margin are decided.",
)
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Cases at once.")
@click.option("--timeout", "timeout_s", type=float, metavar="SECONDS", help="The most a case may take.")
@click.option(
    "--retries", type=click.IntRange(min=0), metavar="N", help="Call an agent that fails again, with a fresh trace."
)
@click.option("--seed", type=int, help="Gives each case a seed of its own, the same in every run.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N cases.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help=_MAX_COST)
@click.option(
    "--max-time", metavar="SECONDS", help="Stop recording after this time: 90, 30m or 2h. Finished cases are kept."
)
@click.option("-m", "--metrics", "names", multiple=True, metavar="NAMES", help="Metrics instead of the suite's.")
@click.option("-g", "--gate", "gates", multiple=True, metavar="EXPR", help="Gates instead of the suite's.")
@click.option(
    "--baseline",
    metavar="RUN|FILE",
    help="Hold every case against this run. What passed there and fails now is tried again; broken cases fail the run.",
)
@margin_option
@tries_option
@jobs_option
@why_option
@unsure_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@show_personal_data_option
@media_root_option
@judge_options
@store_option
@click.pass_context
def run(context: click.Context, /, **received: Any) -> None:
    """Record an agent on a dataset, score what it did, and decide.

    SUITE is a Python file with 'suite = Suite(…)' or a YAML file; 'agentunit init' writes one to start from. The run
    fails when a case is wrong (with --baseline: broken) or a gate is missed.

    \b
    agentunit run suite.py
    agentunit run suite.py --repeats 3 --gate "task_success pass^3 >= 0.7"
    agentunit run suite.py --baseline main.json
    agentunit run suite.py --set model=small,large
    agentunit run suite.py --resume last
    """
    # What runs is loaded by who runs: the help needs none of it.
    from agentunit.cli._run_work import RunOptions, run_as_asked

    run_as_asked(context, RunOptions(**received))

"""``agentunit compare``: is a run worse than an earlier one?"""

from __future__ import annotations

import click

from agentunit.cli.gate import compared, load_run, next_command
from agentunit.cli.options import store_option
from agentunit.cli.streams import remember_exit_code
from agentunit.engine.compare import DEFAULT_ALPHA
from agentunit.engine.decision import decide_comparison
from agentunit.reports.console import Terminal
from agentunit.reports.decision_console import print_comparison, print_decision
from agentunit.reports.json_report import decision_as_data
from agentunit.reports.printable import printable_json


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("baseline", metavar="BASE")
@click.argument("candidate", metavar="NEW")
@click.option(
    "-m",
    "--metrics",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Only these, separated by commas (NAME or NAME[backend]); all of them count. "
    "Default: all, of which informational ones and clock time do not count.",
)
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="METRIC=LOSS",
    help="What a metric may lose: 0.02, or 10% of its mean in BASE. Without METRIC= for all. "
    "Default: 0.05 for scores, 10% for quantities.",
)
@click.option("--alpha", type=float, default=DEFAULT_ALPHA, show_default=True, help="Chance of a false alarm allowed.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@store_option
def compare(
    baseline: str,
    candidate: str,
    names: tuple[str, ...],
    margins: tuple[str, ...],
    alpha: float,
    as_json: bool,
    store_path: str,
) -> None:
    """Compare a run with an earlier one, over the cases that both have: the old run first, then the new one.

    BASE and NEW are ids, beginnings of one, names, 'last', 'last~1' or exported files. Differences are NEW − BASE,
    and each metric is tested in the direction that is worse for it.

    \b
    agentunit compare last~1 last
    agentunit compare main.json last --metrics task_success,cost --margin cost=5%

    Exit codes: 0 nothing got worse, 1 a metric got worse, 4 the data cannot tell; then it says how many cases would
    settle it.
    """
    old, new = load_run(baseline, store_path), load_run(candidate, store_path)
    comparison = compared(new, old, names, margins, alpha)
    decision = decide_comparison(comparison)
    remember_exit_code(decision.exit_code)
    if as_json:
        click.echo(printable_json(decision_as_data(decision)))
    else:
        console = Terminal()
        print_comparison(comparison, console)
        print_decision(decision, console, next_command(candidate, new, decision))
    if decision.exit_code:
        raise click.exceptions.Exit(decision.exit_code)

"""``agentunit show``: a run, everything about one of its cases, or with gates a decision about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from agentunit.cli.options import (
    Option,
    Verb,
    by_option,
    json_option,
    margin_option,
    show_personal_data_option,
    store_option,
    unsure_option,
)

_DECIDES = ("gates", "baseline", "names", "on", "margins", "alpha", "min_coverage", "max_errors")
STORED_GATES = "stored"
"""What stands for the gates that are kept with a run."""


@dataclass(frozen=True)
class ShowOptions:
    """What the command line of ``agentunit show`` says, by the names that the command's decorators give it."""

    run_reference: str
    case_id: str | None
    repeat: int | None
    by: str | None
    all_rows: bool
    as_json: bool
    show_personal_data: bool
    store_path: str
    gates: tuple[str, ...]
    baseline: str | None
    names: tuple[str, ...]
    on: tuple[str, ...]
    margins: tuple[str, ...]
    alpha: float | None
    min_coverage: float | None
    max_errors: int | None

    @property
    def decides(self) -> bool:
        """Whether the run is to be decided on, not only shown."""
        return any(getattr(self, name) not in (None, ()) for name in _DECIDES)

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.repeat is not None and self.case_id is None:
            raise click.UsageError("--repeat needs a CASE")
        if self.by is not None and self.case_id is not None:
            raise click.UsageError("--by goes with a whole run, not with a CASE")
        if self.decides and (self.by is not None or self.case_id is not None):
            raise click.UsageError(
                "--gate, --baseline and what goes with them decide on a whole run: leave out --by or CASE"
            )


@click.command(cls=Verb)
@click.argument("run_reference", metavar="[RUN]", default="last")
@click.argument("case_id", required=False, metavar="[CASE]")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Which repeat of the case, counted from 1.")
@by_option
@click.option(
    "--why",
    "all_rows",
    cls=Option,
    former=("--all", "--full"),
    is_flag=True,
    help="Show everything: every row, why scores are missing, how far to trust them; of a case all details.",
)
@click.option(
    "-g",
    "--gate",
    "gates",
    multiple=True,
    metavar="EXPR",
    help="Decide on the run: 'faithfulness >= 0.8' or 'cost p95 <= 0.02'; 'stored': the gates kept with it.",
)
@click.option("--baseline", metavar="RUN|FILE", help="Decide, and hold every case against this run.")
@click.option(
    "--on",
    "on",
    multiple=True,
    metavar="METRIC",
    help="With --baseline: a metric to test against it; repeatable. The others are shown, not tested.",
)
@margin_option
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    metavar="N",
    help="Count cases that the agent failed as errors, and allow N of them and of failed scores. Default: the run's "
    "own; without one such a case is wrong, and no score may fail.",
)
# Said in other places, too: by 'agentunit compare', and by a gate itself ("coverage SHARE").
@click.option("-m", "--metrics", "names", multiple=True, hidden=True)
@click.option("--alpha", type=float, hidden=True)
@click.option("--min-coverage", type=click.FloatRange(0.0, 1.0), hidden=True)
@unsure_option
@json_option("Print it as JSON.")
@show_personal_data_option
@store_option
def show(**received: Any) -> None:
    """Show a run, or everything about one of its cases; with --gate or --baseline, decide on it.

    RUN is an id, the beginning of one, a name, 'last' (the default), 'last~1', an exported file, a score table
    (.parquet), or 'demo', a bundled recording. Of a case that was repeated, the worst repeat is shown. With a CASE it
    may be a file or folder of records or traces, too: that case is scored on this machine. CASE is an id, or the
    beginning of one.

    \b
    agentunit show demo
    agentunit show last
    agentunit show last --by metadata.category
    agentunit show last desk-016
    agentunit show last desk-016 --repeat 2 --why
    agentunit show traces.jsonl desk-016
    agentunit show last --gate "task_success pass^3 >= 0.7" --gate "pii_leakage all == 1"
    agentunit show last --baseline main.json --margin faithfulness=0.02

    To decide, nothing is run or scored again. A file or folder of traces becomes a run first, scored by the standard
    set and the metrics of the gates. A gate reads METRIC [AGGREGATE] OPERATOR NUMBER [coverage SHARE]; aggregates are
    mean (the default), median, min, max, sum, p95, all, any, pass^3, pass@3, and labeled: the rate that people would
    give, from the labels of some cases ('agentunit label'). METRIC[backend] picks one of several backends.

    Where some scores of a metric are informational (agentunit score marks them with i), the others decide, and
    coverage counts the others only. METRIC[backend] counts all scores of that backend.

    Exit codes of a decision, the first that applies: 2 a gate names what the run does not have, 1 a case is broken
    (without --baseline: wrong, and no gate says how many may be), a gate is missed or a metric got worse, 3 errors
    beyond the allowance, or a gate the run cannot answer, 4 nothing can decide: a gate has only informational scores or
    those of several backends, a labeled rate has too few labels, cases newly fail and were not tried to the end
    ('agentunit rerun' does), a --margin is not ruled out, or too much is missing.
    """
    options = ShowOptions(**received)
    options.check()
    # What is shown is read by who looks: the help needs none of it.
    if options.decides:
        from agentunit.cli.gate import decide_as_asked

        decide_as_asked(options)
        return
    from agentunit.cli._show_work import show_run

    show_run(options)

"""``--judge pairwise``: ask a judge which of two answers is better, before runs are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from agentunit.backends.quality import BackendUnavailable, Verdict
from agentunit.cli.consent import ask_before_sending
from agentunit.cli.judge_options import OPTION_OF, JudgeChoice
from agentunit.cli.options import end_signals_interrupt, say_stopped
from agentunit.engine.comparison import Comparison
from agentunit.engine.pairwise import Pairs, judge_all_pairs, pairs_of, plan_pairwise, with_pairwise, with_win_rate
from agentunit.engine.scored_run import ScoredRun
from agentunit.reports.progress import Progress

_INTERRUPTED = 130

pairwise_option = click.option(
    "--judge",
    "judge",
    type=click.Choice(["pairwise"]),
    help="Also ask a judge which answer of each case is better, in both orders. The win rate is shown; it counts with "
    "'--on win_rate'.",
)


@dataclass(frozen=True)
class JudgedPairs:
    """The pairs of a run and its baseline, with what the judge chose."""

    pairs: Pairs
    verdicts: Sequence[Verdict | None]

    def put_into(self, candidate: ScoredRun, baseline: ScoredRun) -> tuple[ScoredRun, ScoredRun]:
        """Both runs with their win rates."""
        return with_win_rate(candidate, baseline, self.pairs, self.verdicts)

    def add_to(self, comparison: Comparison) -> Comparison:
        """The comparison with the judge's choices."""
        return with_pairwise(comparison, self.pairs, self.verdicts)


def ask_about_pairs(
    judge: str | None, choice: JudgeChoice, baseline: ScoredRun, runs: Sequence[ScoredRun]
) -> list[JudgedPairs | None]:
    """What a judge chooses between each run and the baseline, after the user agreed; nothing without ``--judge``."""
    if judge is None:
        if choice.settings:
            options = ", ".join(dict.fromkeys(OPTION_OF[name] for name in choice.settings))
            raise click.UsageError(f"{options}: nothing is asked of a judge without --judge pairwise")
        return [None] * len(runs)
    choice.configure()
    pairs = [pairs_of(run, baseline) for run in runs]
    ask_before_sending(plan_pairwise(pairs), yes=choice.yes)
    progress = Progress("pairs")
    tick = progress.ticker()
    try:
        with end_signals_interrupt():
            verdicts = judge_all_pairs(pairs, tick)
            return [JudgedPairs(each, of_run) for each, of_run in zip(pairs, verdicts, strict=True)]
    except BackendUnavailable as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        say_stopped("what the judge has answered is in the cache; the same command continues")
        raise click.exceptions.Exit(_INTERRUPTED) from None
    finally:
        progress.clear()

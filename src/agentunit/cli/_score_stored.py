"""``agentunit score RUN``: metrics put over the records of a stored run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

import click

from agentunit.backends.quality import SERVICES
from agentunit.backends.services import why_not_configured
from agentunit.cli.options import InputFailure, end_signals_interrupt, open_store, say_stopped
from agentunit.cli.references import sliced_as_asked
from agentunit.cli.score_options import ScoreOptions
from agentunit.cli.score_output import leave, run_as_data
from agentunit.cli.sending_notice import ask_before_sending
from agentunit.cli.streams import remember_exit_code
from agentunit.engine.deciding.decision import decide_scoring
from agentunit.engine.deciding.stored import SCORED_LATER
from agentunit.engine.scoring.rescoring import score_run, sending_of_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.engine.scoring.slices import slices_of_run
from agentunit.reports.console import print_block, print_next, print_run
from agentunit.reports.printable import printable_json
from agentunit.reports.progress import Progress
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.reports.slice_table import print_slices
from agentunit.reports.terminal import Terminal
from agentunit.store.run_store import RunStore
from agentunit.store.schema import StoreError

_INTERRUPTED = 130


def score_stored_run(options: ScoreOptions, metrics: Sequence[Any]) -> None:
    """Put metrics over the records of a stored run, and print the run with all its scores."""
    reference, again, as_json = options.files[0], options.again, options.as_json
    if options.engine is not None:
        raise click.UsageError("--engine goes with files: the records of a run are read from its store")
    with open_store(options.store_path) as store:
        try:
            header = store.find_run(reference)
        except StoreError as error:
            raise InputFailure(f"{reference}: no such file, and no such run ({error})") from None
        if options.out is not None:
            raise click.UsageError(f"--out goes with files; 'agentunit export {reference} --to FILE' writes its scores")
        if again:
            _refuse_to_replace_judged(store, header.id, metrics)
        ask_before_sending(sending_of_run(store, header.id, metrics, again=again), yes=options.choice.yes)
        progress = Progress("cases", fraction=lambda: None)
        try:
            with redirect_stdout(sys.stderr), end_signals_interrupt():
                store.update_run(header.id, {**header.settings, SCORED_LATER: True}, n_planned=header.n_planned)
                score_run(store, header.id, metrics, again=again, on_case=progress.ticker(), jobs=options.jobs)
        except KeyboardInterrupt:
            progress.clear()
            say_stopped("the scores so far are kept with the run; the same command continues")
            raise click.exceptions.Exit(_INTERRUPTED) from None
        except StoreError as error:
            raise InputFailure(f"{error}; the scores so far are kept, and the same command continues") from None
        finally:
            progress.clear()
        scored = run_from_store(store, header.id)
        mask = Mask(show_all=options.show_personal_data)
        summary = mask.view(scored.summary())
        table = None if options.by is None else mask.view(sliced_as_asked(slices_of_run, scored, options.by))
        reported = ReportedRun(scored, store=store, show_personal_data=options.show_personal_data)
        findings = [] if as_json else reported.findings
        counts = reported.decision.counts
    decision = decide_scoring(summary, options.max_errors)
    remember_exit_code(decision.exit_code)
    if as_json:
        click.echo(printable_json(run_as_data([header.id], metrics, summary, table)))
    else:
        infos = {row.metric: scored.info(row.metric) for row in summary.metrics}
        console = Terminal()
        print_block([str(counts)] if counts else [], findings, console, all_rows=options.all_rows)
        print_run(summary, infos, console, all_rows=options.all_rows)
        if table is not None:
            print_slices(table, infos, console, all_rows=options.all_rows)
        print_next([f"agentunit show {header.id}"], console)
    leave(decision, summary, as_json)


def _refuse_to_replace_judged(store: RunStore, run_id: str, metrics: Sequence[Any]) -> None:
    """What a judge was paid for gives way to another backend only where one is named: the judge may be the suite's."""
    chosen_here = {
        metric.name
        for metric in metrics
        if getattr(metric, "backend", None) == "auto" and not getattr(metric, "asks_service", False)
    }
    for name, row in store.score_rows(run_id) if chosen_here else ():
        if name in chosen_here and row.backend in SERVICES:
            raise click.UsageError(
                f"{name} of run {run_id} was scored by {row.backend}, and {why_not_configured()}; "
                "--backend NAME replaces its scores by another's"
            )

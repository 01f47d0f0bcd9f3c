"""``agentunit validity RUN``: the scores of a run against the labels that people gave its answers."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from agentunit.cli.main import EXIT_CANNOT_TELL, EXIT_OK
from agentunit.cli.options import InputFailure, open_store
from agentunit.cli.references import load_run, unreadable_runs_fail
from agentunit.engine.gate_expressions import nearest_name
from agentunit.engine.label_validity import ScorerValidity, scorer_validity
from agentunit.engine.scored_run import ScoredRun, run_from_store
from agentunit.engine.second_look import second_look
from agentunit.reports.console import Terminal
from agentunit.reports.label_validity_console import RunValidity, print_run_validity
from agentunit.reports.printable import printable_json

_MOST_RUNS = 30


def report_run(
    context: click.Context,
    reference: str,
    names: Sequence[str],
    store_path: str,
    *,
    precision: float | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Print how far a run's scorers agree with its labels; the exit code says whether the labels can tell."""
    run = load_run(reference, store_path)
    wanted = [name.strip() for group in names for name in group.split(",") if name.strip()]
    for name in wanted:
        if name not in run.metrics:
            raise InputFailure(f"run {run.header.label} has no scores of {name!r}; {nearest_name(name, run.metrics)}")
    scorers: list[ScorerValidity] = []
    for metric in wanted or run.metrics:
        for backend in dict.fromkeys(row.backend for row in run.metrics[metric] if row.value is not None):
            found = scorer_validity(run, metric, backend, precision=precision, by=by)
            if found is not None:
                scorers.append(found)
    others = [] if os.path.isfile(reference) else _other_runs(run, store_path)
    report = RunValidity(run.header.id, len(run.labels), scorers, second_look(run, others), by)
    if as_json:
        click.echo(printable_json(report))
    else:
        print_run_validity(report, {name: run.info(name) for name in run.metrics}, Terminal())
    context.exit(EXIT_OK if report.is_conclusive else EXIT_CANNOT_TELL)


def _other_runs(run: ScoredRun, store_path: str) -> list[ScoredRun]:
    """The newest other runs of the same suite or dataset: those that share its name."""
    with unreadable_runs_fail(), open_store(store_path, read_only=True) as store:
        alike = [each for each in store.runs() if each.name == run.header.name and each.id != run.header.id]
        return [run_from_store(store, each.id, labels=False) for each in alike[:_MOST_RUNS] if each.n_done]

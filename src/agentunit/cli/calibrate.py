"""``agentunit validity RUN --calibrate FILE``: fit a judge to the labels of a run, and say what that is worth."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from agentunit.backends.quality import LEXICAL, SERVICES
from agentunit.cli.consent import ask_before_sending
from agentunit.cli.judge_options import JudgeChoice
from agentunit.cli.options import InputFailure, open_store
from agentunit.core.results import encode_json
from agentunit.engine.calibrating import (
    FEW_LABELS,
    CalibrationError,
    LabeledAnswer,
    calibrate,
    labeled_answers,
    provisional,
)
from agentunit.engine.judge_plan import Sending, plan_sending
from agentunit.engine.judge_runs import judge_run
from agentunit.metrics.calibration import Calibration, Figure
from agentunit.metrics.registry import registry
from agentunit.reports.console import Terminal, plain_table, print_line, print_next
from agentunit.reports.figures import counted
from agentunit.store.labels import labels_of_run, places_of

calibrate_option = click.option(
    "--calibrate",
    "calibrate_to",
    metavar="FILE",
    help="Fit the metric to the labels of a stored RUN ('agentunit label'): a third of them become examples and a "
    "mapping of scores, the others say what that is worth. '--param METRIC.calibration=FILE' uses it.",
)


def calibrate_run(
    reference: str, metric: Any, target: str, choice: JudgeChoice, store_path: str, *, as_json: bool
) -> None:
    """Learn from the labels of a run, write the file, and print how well it agrees with labels not shown."""
    if "calibration" not in ([each.name for each in fields(metric)] if is_dataclass(metric) else ()):
        raise click.UsageError(f"{metric.name} cannot be calibrated: it is exact, or not a score from 0 to 1")
    if getattr(metric, "current_backend", "") == LEXICAL:
        raise click.UsageError(f"{metric.name} is scored without a model here: name a judge, or --backend local")
    if os.path.isdir(target):
        raise click.UsageError(f"{target} is a folder: name a file")
    answers = _answers(reference, metric.name, store_path)
    if getattr(metric, "current_backend", "") in SERVICES:
        ask_before_sending(_sending(metric, answers), yes=choice.yes)
    try:
        # One run to the judge: what it may spend holds for all passes together.
        with judge_run([metric]):
            found = calibrate(metric, answers, on_pass=lambda words: _say(f"{metric.name} {words} …"))
    except CalibrationError as error:
        raise InputFailure(str(error)) from None
    Path(target).write_bytes(msgspec.json.format(encode_json(found), indent=2) + b"\n")
    if as_json:
        click.echo(encode_json(found).decode())
        return
    _print(found, target, reference)


def _answers(reference: str, metric: str, store_path: str) -> list[LabeledAnswer]:
    with open_store(store_path, read_only=True) as store:
        run_id = store.find_run(reference).id
        labels = places_of(labels_of_run(store, run_id, metric))
        stored = [each for each in store.records(run_id) if (each.position, each.repeat) in labels]
        return labeled_answers([(each.record, labels[each.position, each.repeat]) for each in stored])


def _sending(metric: Any, answers: list[LabeledAnswer]) -> Sending | None:
    """All passes: as it is, with examples, and with those of the other part where labels are few."""
    records = [each.record for each in answers]
    plain = plan_sending([metric], records, n_cases=len(records), exact=True)
    taught = replace(metric, calibration=provisional(metric, answers))
    again = plan_sending([taught], records, n_cases=len(records), exact=True)
    if plain is None or again is None:
        return plain or again
    times = 2 if len(answers) < FEW_LABELS else 1

    def added(one: Any, other: Any) -> Any:
        return None if one is None or other is None else one + times * other

    return replace(
        plain,
        n_calls=added(plain.n_calls, again.n_calls),
        n_tokens=added(plain.n_tokens, again.n_tokens),
        cost_usd=added(plain.cost_usd, again.cost_usd),
    )


def _say(words: str) -> None:
    click.echo(words, err=True)


def _print(found: Calibration, target: str, reference: str) -> None:
    console = Terminal()
    table = plain_table(found.metric, "agreement, 95 %", "AUROC", "mean off by", "labels", fixed=("labels",))
    rows = [("as it is", found.before)]
    if found.examples:
        rows.append((f"with {counted(len(found.examples), 'example')}", found.with_examples))
    rows.append(("and scores mapped" if found.knots else "without a mapping", found.measured))
    for name, figure in rows:
        table.add_row(name, *_cells(figure))
    console.print(table)
    way = "each part with what the other part taught" if found.crossed else "those that nothing was learned from"
    print_line(f"measured on {counted(found.measured.n, 'label')} that the judge was not shown: {way}", console, "dim")
    if found.threshold is not None:
        print_line(f"people call an answer good from a score of about {found.threshold:.2f} on", console)
    elif not found.knots:
        print_line("too few labels on both sides to map scores; they stay as they are", console, "yellow")
    print_line(
        f"{target}: {counted(len(found.examples), 'example')} with their texts, {counted(len(found.knots), 'point')}",
        console,
    )
    if found.metric in registry.names():
        use = f"agentunit score {reference} -m {found.metric} --param {found.metric}.calibration={target} --again"
        print_next([use], console)
    else:
        print_line(f"use it as a parameter of the metric: calibration: {target}", console)


def _cells(figure: Figure) -> tuple[str, str, str, str]:
    if figure.agreement is None or figure.low is None or figure.high is None:
        return "–", "–", "–", str(figure.n)
    ranked = "–" if figure.auroc is None else f"{figure.auroc:.2f}"
    off = "–" if figure.bias is None else f"{figure.bias:+.2f}"
    return f"{figure.agreement:.2f} [{figure.low:.2f}, {figure.high:.2f}]", ranked, off, str(figure.n)

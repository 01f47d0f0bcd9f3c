"""People's labels from a file into the store: CSV or JSONL, another tool's annotations, recorded outcomes."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Literal

import click

from agentunit.addons.review.label_command import LabelOptions, default_metric
from agentunit.addons.review.labeling.label_files import (
    LabelFile,
    LabelRow,
    LabelsError,
    orient_labels,
    read_label_file,
)
from agentunit.addons.review.labeling.rating import labeled_info
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure, open_store
from agentunit.cli.references import unreadable_runs_fail
from agentunit.core.records import outcome_text
from agentunit.core.results import InputError
from agentunit.engine.deciding.gate_expressions import nearest_name
from agentunit.engine.scoring.labeled_rates import labeled_summary
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import error_line, print_line, print_next
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.raters import describe_labeled
from agentunit.reports.reported_run import printing_mask
from agentunit.reports.terminal import Terminal
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.run_store import RunStore
from agentunit.store.runs import StoredRecord, is_again

_SHOWN = 10


def import_labels(file: str, options: LabelOptions) -> None:
    """Keep the labels of a file with the answers of a run, and say what they show."""
    console = Terminal()
    with unreadable_runs_fail(), open_store(options.store_path) as store:
        run = run_from_store(store, options.run_reference)
        metric = options.metric or default_metric(run)
        if metric not in run.metrics:
            raise InputFailure(
                f"run {run.header.label} has no scores of {metric!r}; {nearest_name(metric, run.metrics)}"
            )
        try:
            labels = read_label_file(file, options.label_column, annotation=options.annotation or metric)
        except LabelsError as error:
            raise InputFailure(printing_mask().name(str(error))) from None
        found, left_out = _joined(
            store, run.header.id, labels, labeled_info(run, metric), options.rater, options.label_means
        )
        n_new = store.add_labels(found)
        run = run_from_store(store, run.header.id)
        backends = Counter(row.backend for row in run.metrics[metric] if row.value is not None)
    named = printing_mask().name
    click.echo(f"{counted(n_new, 'label')} of {metric} by {named(_raters(found))}")
    for reason, n in left_out.items():
        click.echo(f"{n:,} left out: {printable_line(named(reason))}")
    for fault in labels.errors[:_SHOWN]:
        print_line(f"  {error_line(fault)}", console)
    for backend, _ in backends.most_common():
        summary = labeled_summary(run, metric, backend)
        if summary is not None:
            print_line(f"{metric}[{backend}]: {describe_labeled(summary)}", console, "bold")
    print_next([f"agentunit show {run.header.id}", f"agentunit label {run.header.id} --measure"], console)
    if labels.errors or not found:
        raise click.exceptions.Exit(EXIT_ERRORS)


def _raters(labels: list[StoredLabel]) -> str:
    return ", ".join(sorted({printable_line(label.rater) for label in labels})) or "nobody"


def _joined(
    store: RunStore,
    run_id: str,
    labels: LabelFile,
    info: MetricInfo,
    rater: str | None,
    label_means: Literal["good", "bad"],
) -> tuple[list[StoredLabel], Counter[str]]:
    """The labels that speak of the run's answers, and why the others do not."""
    left_out: Counter[str] = Counter()
    if labels.n_unlabeled:
        left_out["without a label"] = labels.n_unlabeled
    if labels.n_not_by_people:
        left_out["said by a model or program, not by a person"] = labels.n_not_by_people
    if labels.n_other_names:
        left_out[f"annotations of another name ({', '.join(sorted(labels.other_names)[:5])}): --name picks one"] = (
            labels.n_other_names
        )
    found: dict[tuple[str, str], StoredLabel] = {}
    oriented = orient_labels(labels, label_means)
    for row in labels.rows:
        value = oriented[row.line]
        if not 0.0 <= value <= 1.0:
            labels.errors.append(InputError(labels.path, row.line, f"a grade must be from 0 to 1; received {value:g}"))
            continue
        repeats = [each for each in store.case(run_id, _case_id(row)) if not is_again(each.repeat)]
        stored = _meant(repeats, row)
        if isinstance(stored, str):
            left_out[stored] += 1
            continue
        label = StoredLabel(
            subject_of(stored.record),
            info.name,
            stored.case_id,
            1.0 - value if info.direction == "lower" else value,
            str(row.fields.get("rater") or rater or os.path.basename(labels.path)),
            question=info.asked,
            note=str(row.fields.get("note") or ""),
            source=labels.tool or f"file {os.path.basename(labels.path)}",
            run_id=run_id,
            position=stored.position,
            repeat=stored.repeat,
        )
        if (label.subject, label.rater) in found:
            left_out["labeled twice by one rater: the last counts"] += 1
        found[label.subject, label.rater] = label
    return list(found.values()), left_out


def _case_id(row: LabelRow) -> str:
    return str(row.fields.get("id") or row.fields.get("case_id") or "").strip()


def _meant(repeats: list[StoredRecord], row: LabelRow) -> StoredRecord | str:
    """The record that a row speaks of, or why none is."""
    if not repeats:
        return "the run has no such case"
    answer: Any = next((row.fields[each] for each in ("answer", "output", "response") if row.fields.get(each)), None)
    if answer is not None:
        text = outcome_text(answer)
        same = [stored for stored in repeats if outcome_text(stored.record.outcome) == text]
        return same[0] if same else "about another answer than the run's"
    wanted = str(row.fields.get("repeat") or "1")
    numbered = [stored for stored in repeats if str(stored.repeat + 1) == wanted]
    return numbered[0] if numbered else f"the run has no repeat {wanted} of the case"

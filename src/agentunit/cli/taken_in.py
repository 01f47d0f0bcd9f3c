"""A file of recorded traces as a run of the store, so that its cases can be labeled, gated and compared."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any

import click

import agentunit
from agentunit.cli.options import InputFailure, open_store
from agentunit.cli.references import names_traces, refuse_other_files
from agentunit.cli.trace_inputs import trace_files_from
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.engine.deciding.gate_expressions import GateError, parse_gate
from agentunit.engine.recording.suite import gated_metric
from agentunit.engine.scoring.rescoring import score_run
from agentunit.metrics.parameters import kept_here
from agentunit.metrics.registry import DEFAULT_METRICS, resolve_metrics
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.progress import Progress
from agentunit.reports.terminal import Terminal
from agentunit.reports.trace_console import print_reading
from agentunit.store.portable import is_portable
from agentunit.store.run_store import RunStore

_FINGERPRINT = "traces_fingerprint"


def run_of_traces(path: str, store_path: str, metric: str | None, *, keep: bool = True) -> str:
    """The id of the run that holds the records of a file; the same records are taken in once.

    They are scored by the standard set, or by the metric that is asked for, on this machine: nobody was asked whether
    a judge may see them. Without ``keep`` the store is one for a look, and its run cannot be named later.
    """
    refuse_other_files(path, store_path)
    if os.path.isfile(path) and is_portable(path):
        raise InputFailure(f"{path} is an exported run: 'agentunit runs --import {path}' takes it into the store first")
    source = trace_files_from([path], None, "trace")
    records = [each for each in source if isinstance(each, Record)]
    if not records:
        raise InputFailure(
            f"{path} is not an exported run, and no record could be read from it "
            f"('agentunit doctor {path}' says what it holds)"
        )
    _tell_apart(records)
    lines = [encode_record(record) for record in records]
    fingerprint = hashlib.sha256(b"\n".join(lines)).hexdigest()[:32]
    metrics = list(_kept_metrics(metric))
    with open_store(store_path, must_exist=False) as store:
        run_id = next((run.id for run in store.runs() if run.settings.get(_FINGERPRINT) == fingerprint), None)
        if run_id is None:
            run_id = _take_in(store, path, records, lines, fingerprint, metrics)
            how = (
                f"imported as run {run_id}" if keep else "scored for this look ('agentunit label' keeps them as a run)"
            )
            click.echo(f"{counted(len(records), 'record')} of {printable_line(path)} {how}", err=True)
            print_reading(source, Terminal(stderr=True))
        progress = Progress("cases", fraction=lambda: None)
        try:
            with redirect_stdout(sys.stderr):
                score_run(store, run_id, metrics, on_case=progress.ticker())
        finally:
            progress.clear()
    return run_id


def run_or_traces(reference: str, store_path: str, gates: Sequence[str] = ()) -> str:
    """A reference to a run as it is; a file of traces becomes a run, scored by the standard set and what gates name."""
    if not names_traces(reference, store_path):
        return reference
    named = _gated_metrics(gates)
    run_id = run_of_traces(reference, store_path, None)
    for metric in named:
        run_of_traces(reference, store_path, metric)
    return run_id


def _gated_metrics(gates: Sequence[str]) -> dict[str, None]:
    """The metrics of gates that are not in the standard set. A slip is told before anything is read or scored."""
    try:
        found = [parse_gate(expression) for expression in gates]
        for gate in found:
            gated_metric(gate)
    except GateError as error:
        raise click.BadParameter(str(error), param_hint="--gate") from None
    return dict.fromkeys(gate.metric for gate in found if gate.metric not in DEFAULT_METRICS)


def _tell_apart(records: list[Record]) -> None:
    """Give cases that ask different things different ids: files of several tasks often number their samples from 1.

    One without an id is called by its position, as scoring calls it.
    """
    asked: dict[str, str | None] = {}
    for position, record in enumerate(records, 1):
        record.case.id = record.case.id or f"case-{position}"
        case, wanted, number = record.case, record.case.id, 2
        while asked.setdefault(case.id, case.query) != case.query:
            case.id = f"{wanted} ({number})"
            number += 1


def _take_in(
    store: RunStore, path: str, records: list[Record], lines: list[bytes], fingerprint: str, metrics: list[Any]
) -> str:
    name = os.path.basename(os.path.normpath(path))
    settings = {_FINGERPRINT: fingerprint, "metrics": [metric.name for metric in metrics]}
    repeats: dict[str, int] = {}
    positions: dict[str, int] = {}
    with store.transaction():
        run_id = store.create_run(
            name, agentunit_version=agentunit.__version__, settings=settings, n_planned=len(records)
        ).id
        for record, line in zip(records, lines, strict=True):
            # Records of one case are its repeats.
            position = positions.setdefault(record.case.id, len(positions))
            repeat = repeats.get(record.case.id, 0)
            repeats[record.case.id] = repeat + 1
            store.add_lines([(run_id, position, repeat, record.case.id, 0, 0.0, line)])
        store.set_status(run_id, "finished")
    return run_id


def _kept_metrics(metric: str | None) -> Iterator[Any]:
    try:
        wanted = resolve_metrics([metric] if metric else DEFAULT_METRICS)
    except (ValueError, TypeError, RuntimeError) as error:
        raise click.BadParameter(str(error), param_hint="--metric") from None
    for each in wanted:
        kept = kept_here(each)
        if kept is not None:
            yield kept
        elif metric:
            raise InputFailure(f"{metric} asks a judge: score the run by it first (agentunit score RUN -m {metric})")

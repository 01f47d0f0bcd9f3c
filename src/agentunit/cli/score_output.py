"""Where ``agentunit score --out`` puts scores, and how the command ends: its run as data, its errors, its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import IO, Any, Protocol

import click
from msgspec import structs

import agentunit
from agentunit.cli.outputs import Output, unfinished_path
from agentunit.core.results import (
    CaseScores,
    InputError,
    MetricUse,
    RunRecord,
    RunSummary,
    append_scores,
    encode_json,
)
from agentunit.doors import part
from agentunit.engine.deciding.decision import Decision
from agentunit.engine.scoring.records import RunTotals
from agentunit.engine.scoring.score_rows import is_table_name
from agentunit.engine.scoring.slices import SliceTable
from agentunit.metrics.base import describe
from agentunit.metrics.registry import parameters
from agentunit.reports.console import error_line
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import masked_error
from agentunit.urls import shown_source


class ScoreSink(Protocol):
    """What takes the scores of cases in order. Without ``finish`` nothing takes the place of the output."""

    def add(self, case: CaseScores) -> None:
        """Take the scores of one more case."""
        ...

    def write(self, lines: Sequence[bytes]) -> None:
        """Take the scores of cases as lines, each without its end."""
        ...

    def append(self, lines: IO[bytes], n_bytes: int) -> None:
        """Take the scores of cases as so many bytes of a file of lines, from where it stands."""
        ...

    def finish(self, totals: RunTotals) -> None:
        """All cases were scored: put the whole in its place; nothing is kept of an input without a case."""
        ...

    def remove_unfinished(self) -> None:
        """Nothing will be scored: leave nothing beside the place of the output."""
        ...

    def __enter__(self) -> ScoreSink: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None: ...


def open_sink(out: str, metrics: Sequence[Any], files: Sequence[str], max_errors: int) -> ScoreSink:
    """The sink for an output by its name."""
    if not is_table_name(out):
        return LineSink(out)
    sink: ScoreSink = part("score_table_sink")(out, metrics, files, max_errors)
    return sink


def check_output(out: str | None) -> None:
    """Refuse a table that cannot be written before anything is scored."""
    if out is not None and is_table_name(out):
        part("check_table_output")(out)


def kept_unfinished(out: str | None) -> str | None:
    """Where the scores of a run that was stopped are; a table without its end cannot be read, and is taken away."""
    unfinished = unfinished_path(out) if out and not is_table_name(out) else out
    return None if unfinished == out else unfinished


class LineSink:
    """One JSON object a case and line."""

    def __init__(self, out: str) -> None:
        self._output = Output(out)

    def __enter__(self) -> LineSink:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._output.__exit__(kind, error, trace)

    def add(self, case: CaseScores) -> None:
        """Write a line."""
        line = bytearray()
        append_scores(case, line)
        self._output.stream.write(line)

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines."""
        self._output.stream.write(b"\n".join(lines))
        self._output.stream.write(b"\n")

    def append(self, lines: IO[bytes], n_bytes: int) -> None:
        """Write lines as they are."""
        self._output.append(lines, n_bytes)

    def finish(self, totals: RunTotals) -> None:
        """Put the file in its place."""
        self._output.finish(keep=totals.n_cases > 0)

    def remove_unfinished(self) -> None:
        """Remove the file that was begun."""
        self._output.remove_unfinished()


def run_as_data(
    files: Sequence[str],
    metrics: Sequence[Any],
    summary: RunSummary,
    slices: SliceTable | None,
) -> dict[str, Any]:
    """What ``--json`` prints of a run."""
    record = RunRecord(
        agentunit_version=agentunit.__version__,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        sources=[shown_source(each) for each in files],
        metrics=[MetricUse(metric.name, describe(metric).version, parameters(metric)) for metric in metrics],
        summary=summary,
    )
    return {**structs.asdict(record), **({} if slices is None else {"slices": slices})}


def list_error(error: InputError, errors_stream: IO[bytes] | None) -> None:
    """Write what could not be read to the file of ``--errors``, where there is one."""
    if errors_stream is not None:
        errors_stream.write(encode_json(masked_error(error)) + b"\n")


def leave(decision: Decision, summary: RunSummary, as_json: bool) -> None:
    """Leave with the exit code of the decision, and say on standard error why it is not 0."""
    if not decision.exit_code:
        return
    # That nothing was there to score is said already, with the names of the files.
    if decision.reasons[0].kind == "no records" and not as_json:
        raise click.exceptions.Exit(decision.exit_code)
    # Without a table on the screen, this line is all there is to see.
    first = f"; first: {error_line(summary.input_errors[0])}" if summary.input_errors and as_json else ""
    click.echo(printable_line(decision.headline) + first, err=True)
    raise click.exceptions.Exit(decision.exit_code)

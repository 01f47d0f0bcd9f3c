"""Where ``agentunit score --out`` puts scores, lines of JSON or a score table (.parquet), and a run as data."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import IO, Any, Protocol

from msgspec import structs

import agentunit
from agentunit.cli.options import InputFailure
from agentunit.cli.outputs import Output, unfinished_path
from agentunit.core.results import (
    CaseScores,
    InputError,
    MetricUse,
    RunRecord,
    RunSummary,
    append_scores,
    decode_case_scores,
    decode_json,
    encode_json,
)
from agentunit.engine.judge_plan import judge_described
from agentunit.engine.judging import judged_metrics
from agentunit.engine.scored_run import infos_as_data
from agentunit.engine.scoring import RunTotals
from agentunit.engine.slices import SliceTable
from agentunit.engine.table_run import ScoreTableWriter
from agentunit.metrics.base import describe
from agentunit.metrics.registry import parameters
from agentunit.store.parquet_table import TableUnavailable, is_table_name, load_parquet, new_header
from agentunit.traces.native import STDIN
from agentunit.traces.remote import shown_source


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
    return TableSink(out, metrics, files, max_errors) if is_table_name(out) else LineSink(out)


def check_output(out: str | None) -> None:
    """Refuse a table that cannot be written before anything is scored."""
    if out is None or not is_table_name(out):
        return
    try:
        load_parquet()
    except TableUnavailable as error:
        raise InputFailure(f"--out {out}: {error}") from None


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


class TableSink:
    """A score table: the run is its metadata."""

    def __init__(self, out: str, metrics: Sequence[Any], files: Sequence[str], max_errors: int) -> None:
        name = os.path.basename(out.rstrip("/"))[: -len(".parquet")] or "scores"
        settings: dict[str, Any] = {
            "metrics": [metric.name for metric in metrics],
            "metric_infos": infos_as_data(metrics),
            "metric_uses": [MetricUse(each.name, describe(each).version, parameters(each)) for each in metrics],
            "sources": ["standard input" if each == STDIN else shown_source(each) for each in files],
            "max_errors": max_errors,
        }
        if judged_metrics(metrics):
            settings["judge"] = judge_described()
        self._output = Output(out, keeps_unfinished=False)
        # As plain data at once: what cannot be written must not come to light at the end.
        self._writer = ScoreTableWriter(self._output.stream, new_header(name, decode_json(encode_json(settings))))

    def __enter__(self) -> TableSink:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._writer.__exit__(kind, error, trace)
        self._output.__exit__(kind, error, trace)

    def add(self, case: CaseScores) -> None:
        """Keep the rows of a case until there is a row group of them."""
        self._writer.add_case(case)

    def write(self, lines: Sequence[bytes]) -> None:
        """Keep the rows of cases that another process scored."""
        for line in lines:
            self._writer.add_case(decode_case_scores(line))

    def append(self, lines: IO[bytes], n_bytes: int) -> None:
        """Keep the rows of cases that another process scored."""
        self.write(lines.read(n_bytes).splitlines())

    def finish(self, totals: RunTotals) -> None:
        """Write the metadata, and put the file in its place."""
        header = self._writer.header
        header.status, header.finished_at, header.n_done = "finished", time.time(), totals.n_cases
        if totals.judge_problems:
            header.settings["judge_problems"] = list(totals.judge_problems)
        errors = [InputError(shown_source(each.source), each.line, each.reason) for each in totals.input_errors]
        self._writer.finish(n_input_errors=totals.n_input_errors, input_errors=errors)
        self._output.finish(keep=totals.n_cases > 0)

    def remove_unfinished(self) -> None:
        """Remove the file that was begun."""
        self._writer.__exit__(None, None, None)
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

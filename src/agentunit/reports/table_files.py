"""A run as a table: CSV for people, and the score table that can be read again. One row a case, repeat and metric."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from typing import Any

from agentunit.engine.score_rows import record_rows
from agentunit.engine.table_run import ScoreTableWriter
from agentunit.reports.case_view import reason_of
from agentunit.reports.printable import disarmed
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.reporters import ReportError, whole_file
from agentunit.store.parquet_table import TableUnavailable, load_parquet

COLUMNS = (
    "case_id",
    "repeat",
    "metric",
    "value",
    "status",
    "backend",
    "version",
    "elapsed_s",
    "reason",
    "agent_failed",
    "agent_elapsed_s",
)
"""``repeat`` counts from 1; ``elapsed_s`` is the metric's time, ``agent_elapsed_s`` the agent's."""

# A spreadsheet takes a cell that begins like this for a formula, and runs it.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def score_rows(reported: ReportedRun) -> Iterator[tuple[Any, ...]]:
    """The rows of the table, as the ``COLUMNS`` name them."""
    for case in reported.cases():
        for metric, score in case.scores.items():
            yield (
                case.case_id,
                case.repeat + 1,
                metric,
                score.result.value,
                score.status,
                score.backend,
                score.version,
                score.elapsed,
                reason_of(score),
                case.failed,
                case.elapsed_s,
            )


def write_csv(reported: ReportedRun, path: str | os.PathLike[str]) -> int:
    """Write the table as CSV in UTF-8; returns the number of rows."""
    n_rows = 0
    with whole_file(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="", write_through=True)
        # With the line end of the standard, a lone carriage return inside a text is quoted too.
        writer = csv.writer(text, lineterminator="\r\n")
        try:
            writer.writerow(COLUMNS)
            for row in score_rows(reported):
                writer.writerow([_cell(value) for value in row])
                n_rows += 1
        finally:
            # The stream belongs to whoever opened it.
            text.detach()
    return n_rows


def write_parquet(reported: ReportedRun, path: str | os.PathLike[str]) -> int:
    """Write the run as a score table (extra ``parquet``), which can be read again; returns the number of rows."""
    run = reported.run
    try:
        load_parquet()
    except TableUnavailable as error:
        raise ReportError(str(error)) from None
    with whole_file(path) as stream, ScoreTableWriter(stream, run.header) as writer:
        for case in reported.cases():
            place = (run.header.id, case.position, case.repeat, case.case_id)
            rows = record_rows(
                *place, case.scores, writer.infos, failed=case.agent_failed, elapsed_s=case.agent_elapsed_s
            )
            writer.add_rows(rows)
        summary = reported.summary
        writer.finish(n_input_errors=summary.n_input_errors, input_errors=summary.input_errors)
    return writer.n_rows


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Not even readers of CSV agree on what a zero byte means.
        text = disarmed(value.replace("\x00", "\ufffd"))
        return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text
    return value

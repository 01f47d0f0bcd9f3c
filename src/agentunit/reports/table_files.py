"""A run as a table, CSV or Parquet: one row for each case, repeat and metric."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from agentunit.installation import install_command
from agentunit.reports.case_view import reason_of
from agentunit.reports.printable import disarmed
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.reporters import ReportError, whole_file

INSTALL_HINT = install_command("parquet")
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

_ROWS_AT_ONCE = 10_000
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
    """Write the table as Parquet (extra ``parquet``); returns the number of rows."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise ReportError(f"Parquet needs pyarrow: {INSTALL_HINT}") from None
    kinds = {"repeat": arrow.int64(), "value": arrow.float64(), "agent_failed": arrow.bool_()}
    kinds |= {"elapsed_s": arrow.float64(), "agent_elapsed_s": arrow.float64()}
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in COLUMNS])
    rows = score_rows(reported)
    n_rows = 0
    with whole_file(path) as stream, parquet.ParquetWriter(stream, schema) as writer:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            columns = [[_writable(row[index]) for row in batch] for index in range(len(COLUMNS))]
            writer.write_table(arrow.table(dict(zip(COLUMNS, columns, strict=True)), schema=schema))
            n_rows += len(batch)
    return n_rows


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Not even readers of CSV agree on what a zero byte means.
        text = disarmed(value.replace("\x00", "\ufffd"))
        return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text
    return value


def _writable(value: Any) -> Any:
    """Text without half surrogates, which UTF-8 cannot hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value

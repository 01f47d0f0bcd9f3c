"""Scores as rows of the score table: of a case, of a run, and as data frames.

Columns are documented in docs/records.md, and stable: a later version may add some, which readers leave alone. The
file itself is read and written by an add-on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from agentunit.core.results import CaseScores, MetricResult, Score, decode_json, written_detail
from agentunit.core.score_block import reason_in
from agentunit.engine.scoring.aggregate import amount_of
from agentunit.metrics.base import MetricInfo
from agentunit.store.run_store import RunStore
from agentunit.store.runs import scored_records
from agentunit.urls import open_binary

_POLARS_TYPES = {"string": "String", "int64": "Int64", "float64": "Float64", "bool": "Boolean"}
_PANDAS_TYPES = {"string": "object", "int64": "int64", "float64": "float64", "bool": "boolean"}
# How a Parquet file begins, and how its name ends.
_PARQUET_MAGIC = b"PAR1"
_PARQUET_ENDING = ".parquet"


class TableRow(NamedTuple):
    """One score. A record without any score has one row, whose ``metric`` and what follows it are ``None``.

    ``run`` is the run's id, ``position`` the case's place in the input, counted from 0; ``repeat`` counts from 1.
    ``reason`` says why there is no value, or why it is informational; ``why`` is the proof of a value, which tables of
    earlier versions lack. ``amount`` is the quantity that tables show in place of the score. ``elapsed_s`` is the
    metric's time, ``agent_elapsed_s`` the agent's. What is not known of the agent, as in a file of traces, is ``None``.
    ``detail`` is JSON.
    """

    run: str | None
    position: int
    repeat: int
    case_id: str
    metric: str | None
    value: float | None
    status: str | None
    backend: str | None
    version: str | None
    reason: str | None
    amount: float | None
    elapsed_s: float | None
    agent_failed: bool | None
    agent_elapsed_s: float | None
    detail: str | None
    why: str | None = None


COLUMNS = TableRow._fields
LATER_COLUMNS = frozenset(("why",))
"""Columns that a table of an earlier version does not have."""
KINDS: Mapping[str, str] = dict.fromkeys(COLUMNS, "string") | {
    "position": "int64",
    "repeat": "int64",
    "value": "float64",
    "amount": "float64",
    "elapsed_s": "float64",
    "agent_failed": "bool",
    "agent_elapsed_s": "float64",
}
"""The type of each column, as Arrow names it."""


def is_table_name(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name is a score table."""
    return os.fspath(path).lower().endswith(_PARQUET_ENDING)


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by how it begins; reading it says what is wrong with it."""
    try:
        with open_binary(path) as raw:
            return raw.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError:
        return False


def rows_by_place(rows: Iterable[TableRow]) -> Iterator[list[TableRow]]:
    """The rows of each record together, as they stand one after the other."""
    held: list[TableRow] = []
    for row in rows:
        if held and (row.position, row.repeat) != (held[0].position, held[0].repeat):
            yield held
            held = []
        held.append(row)
    if held:
        yield held


def detail_of(row: TableRow) -> dict[str, Any]:
    """The detail of a score in a table; anybody may have written it, and what is not a JSON object holds nothing."""
    with suppress(msgspec.DecodeError, RecursionError, UnicodeError):
        detail = decode_json(row.detail or "{}")
        return detail if isinstance(detail, dict) else {}
    return {}


def scores_of(rows: Iterable[TableRow]) -> dict[str, Score]:
    """The scores of one record, with their details."""
    scores: dict[str, Score] = {}
    for row in rows:
        if row.metric is None:
            continue
        scores[row.metric] = Score(
            MetricResult(row.metric, row.value, detail_of(row)),
            row.status,  # type: ignore[arg-type]  # the reader has checked them
            row.backend or "",
            row.version or "",
            row.elapsed_s or 0.0,
            row.why,
        )
    return scores


def record_rows(
    run_id: str | None,
    position: int,
    repeat: int,
    case_id: str,
    scores: Mapping[str, Score],
    infos: Mapping[str, MetricInfo],
    *,
    failed: bool | None = None,
    elapsed_s: float | None = None,
) -> Iterator[TableRow]:
    """The rows of one record, one a score; a record without any has one row that says that it is there.

    ``repeat`` counts from 0, as in the store.
    """
    if not scores:
        place = (run_id, position, repeat + 1, case_id)
        yield TableRow(*place, None, None, None, None, None, None, None, None, failed, elapsed_s, None)
    for metric, score in scores.items():
        detail = score.result.detail
        info = infos.get(metric)
        yield TableRow(
            run_id,
            position,
            repeat + 1,
            case_id,
            metric,
            score.result.value,
            score.status,
            score.backend,
            score.version,
            reason_in(score.value, detail),
            None if info is None else amount_of(info, detail),
            score.elapsed,
            failed,
            elapsed_s,
            written_detail(detail).decode(),
            score.why,
        )


def case_rows(case: CaseScores, run_id: str | None, infos: Mapping[str, MetricInfo]) -> Iterator[TableRow]:
    """The rows of one case of ``agentunit.score``."""
    return record_rows(run_id, case.index, 0, case.case_id, case.scores, infos)


def rows_in_store(store: RunStore, run_id: str, infos: Mapping[str, MetricInfo]) -> Iterator[TableRow]:
    """The rows of a run of a store."""
    # The store itself may be closed by the time that the rows are wanted.
    with store.reopened() as reader:
        for stored, scores in scored_records(reader.records(run_id), reader.scores(run_id)):
            yield from record_rows(
                run_id,
                stored.position,
                stored.repeat,
                stored.case_id,
                scores,
                infos,
                failed=stored.failed,
                elapsed_s=stored.elapsed_s,
            )


class ScoreRows:
    """What can give its scores as rows: plain dicts, a data frame of pandas, or one of Polars.

    All have the columns of the score table (docs/records.md), ``detail`` being JSON.
    """

    def _rows(self) -> Iterable[TableRow]:
        raise NotImplementedError

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict a score."""
        return [row._asdict() for row in self._rows()]

    def to_pandas(self) -> Any:
        """One row a score, as a data frame of pandas, which must be installed."""
        try:
            import pandas
        except ImportError:
            raise ModuleNotFoundError(f"{type(self).__name__}.to_pandas: {_missing('pandas')}") from None
        columns = self._columns()
        return pandas.DataFrame(
            {name: pandas.Series(columns[name], dtype=_PANDAS_TYPES[KINDS[name]]) for name in COLUMNS}
        )

    def to_polars(self) -> Any:
        """One row a score, as a data frame of Polars, which must be installed."""
        try:
            import polars
        except ImportError:
            raise ModuleNotFoundError(f"{type(self).__name__}.to_polars: {_missing('polars')}") from None
        types = {name: getattr(polars, _POLARS_TYPES[KINDS[name]]) for name in COLUMNS}
        return polars.DataFrame(self._columns(), schema=types)

    def _columns(self) -> dict[str, list[Any]]:
        rows = list(self._rows())
        columns = zip(*rows, strict=True) if rows else ([] for _ in COLUMNS)
        return {name: list(values) for name, values in zip(COLUMNS, columns, strict=True)}


def _missing(package: str) -> str:
    return f"{package} is not installed here: pip install {package} (to_rows() needs nothing)"

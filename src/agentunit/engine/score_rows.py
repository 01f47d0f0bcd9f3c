"""Scores as rows of the score table: of a case, of a run, and as data frames."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from agentunit.core.results import EVIDENCE_NOTE, INFORMATIONAL_NOTE, CaseScores, Score, written_detail
from agentunit.engine.aggregate import amount_of, reason_of
from agentunit.metrics.base import MetricInfo
from agentunit.store.parquet_table import COLUMNS, KINDS, TableRow
from agentunit.store.portable import read_portable
from agentunit.store.protocol import RunStore
from agentunit.store.runs import StoredRecord, StoredScore

_EXPLANATIONS = (INFORMATIONAL_NOTE, "reason", "why", "explanation", EVIDENCE_NOTE)
_POLARS_TYPES = {"string": "String", "int64": "Int64", "float64": "Float64", "bool": "Boolean"}
_PANDAS_TYPES = {"string": "object", "int64": "int64", "float64": "float64", "bool": "boolean"}


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
            _reason(score),
            None if info is None else amount_of(info, detail),
            score.elapsed,
            failed,
            elapsed_s,
            written_detail(detail).decode(),
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


def scored_records(
    records: Iterable[StoredRecord], scores: Iterable[StoredScore]
) -> Iterator[tuple[StoredRecord, dict[str, Score]]]:
    """The records of a run, each with its scores. Both come by position and repeat, so one pass over each is enough."""
    grouped = groupby(scores, key=lambda each: (each.position, each.repeat))
    place, of_place = next(grouped, (None, iter(())))
    for stored in records:
        found: dict[str, Score] = {}
        # A run that is still being written may show a score whose record this reading does not see.
        while place is not None and place < (stored.position, stored.repeat):
            place, of_place = next(grouped, (None, iter(())))
        if place == (stored.position, stored.repeat):
            found = {each.metric: each.score for each in of_place}
            place, of_place = next(grouped, (None, iter(())))
        yield stored, found


def rows_in_file(path: str | os.PathLike[str], run_id: str, infos: Mapping[str, MetricInfo]) -> Iterator[TableRow]:
    """The rows of a run of a portable file."""
    for case in read_portable(path)[1]:
        yield from record_rows(
            run_id,
            case.position,
            case.repeat,
            case.case_id,
            case.scores,
            infos,
            failed=case.failed,
            elapsed_s=case.elapsed_s,
        )


def _reason(score: Score) -> str | None:
    """Why a score has no value; of one that has, what its metric says about it."""
    detail = score.result.detail
    if score.result.value is None:
        return reason_of(detail)
    for key in _EXPLANATIONS:
        if key in detail and isinstance(detail[key], str) and detail[key]:
            return str(detail[key])
    return None


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

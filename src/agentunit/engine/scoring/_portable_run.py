"""A portable file as a run: ``show``, ``gate``, ``compare`` and ``export`` read it as they read a run of a store."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import partial

import msgspec

from agentunit.core.results import Score
from agentunit.core.score_block import RowsByMetric
from agentunit.engine.deciding.cut_offs import number_key
from agentunit.engine.scoring.score_rows import TableRow, record_rows
from agentunit.engine.scoring.scored_run import ScoredRun, in_suite_order, info_of, recorded_infos
from agentunit.metrics.base import MetricInfo
from agentunit.store.portable import portable_extras, read_portable, stored_in
from agentunit.store.runs import RecordRow, StoredRecord
from agentunit.urls import is_remote


def run_from_portable(path: str | os.PathLike[str]) -> ScoredRun:
    """A run of a portable file."""
    header, cases = read_portable(path)
    run = ScoredRun(header, 0, 0, 0)
    records: list[RecordRow] = []
    infos = recorded_infos(header.settings)
    rows = RowsByMetric(lambda metric: number_key(infos[metric]))
    for case in cases:
        records.append(RecordRow(case.position, case.repeat, case.case_id, case.failed))
        for metric in case.scores:
            if metric not in infos:
                infos[metric] = info_of(metric)
        rows.add(case.position, case.repeat, case.case_id, case.scores)
        run.labels += [
            msgspec.structs.replace(label, position=case.position, repeat=case.repeat) for label in case.labels
        ]
        for metric, frame in case.frames.items():
            run.frames.setdefault(metric, {})[case.place] = frame
    run.records, run.metrics = records, {**rows.rows()}
    run.decisions, run.history = portable_extras(path)
    path = path if is_remote(path) else os.path.abspath(path)
    run.read_records = partial(_records_in_file, path)
    run.read_cases = partial(_cases_in_file, path)
    run.read_rows = partial(_rows_in_file, path, header.id, infos)
    return in_suite_order(run)


def _records_in_file(path: str | os.PathLike[str]) -> Iterator[StoredRecord]:
    for case in read_portable(path)[1]:
        yield stored_in(path, case)


def _cases_in_file(
    path: str | os.PathLike[str], case_ids: Collection[str]
) -> Iterator[tuple[StoredRecord, Mapping[str, Score]]]:
    for case in read_portable(path)[1]:
        if case.case_id in case_ids:
            yield stored_in(path, case), case.scores


def _rows_in_file(path: str | os.PathLike[str], run_id: str, infos: Mapping[str, MetricInfo]) -> Iterator[TableRow]:
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

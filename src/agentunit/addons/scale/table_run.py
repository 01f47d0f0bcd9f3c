"""A score table as a run: ``show``, ``gate``, ``compare`` and ``export`` read it as they read a run of a store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any

from agentunit.addons.scale._parquet_table import TABLE_VERSION, TableFacts, TableWriter
from agentunit.addons.scale.table_reading import ScoreTableFile
from agentunit.core.judged import judged_of
from agentunit.core.results import CaseScores, InputError
from agentunit.core.score_block import ScoreRow, number_in
from agentunit.engine.deciding.cut_offs import THRESHOLD, number_key
from agentunit.engine.scoring.score_rows import TableRow, case_rows, detail_of, rows_by_place
from agentunit.engine.scoring.scored_run import ScoredRun, in_suite_order, info_of, recorded_infos
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.store.runs import RecordRow, RunHeader, StoredDecision


def run_from_table(path: str | os.PathLike[str]) -> ScoredRun:
    """A run of a score table; what is wrong with the file is a ``StoreError``."""
    table = ScoreTableFile(path)
    facts = table.facts
    run = ScoredRun(facts.header, 0, 0, 0, n_input_errors=facts.n_input_errors, input_errors=facts.input_errors)
    judged = frozenset(facts.judged)
    infos = recorded_infos(facts.header.settings)
    records: list[RecordRow] = []
    metrics: dict[str, list[ScoreRow]] = {}
    # A table of an earlier version does not say which details name a threshold: those of degrees may.
    degrees = [name for name, info in infos.items() if info.mean_of]
    with_threshold = frozenset(degrees if facts.with_threshold is None else facts.with_threshold)
    for of_record in rows_by_place(table.rows(details=bool(judged or with_threshold))):
        first = of_record[0]
        records.append(RecordRow(first.position, first.repeat - 1, first.case_id, bool(first.agent_failed)))
        for row in of_record:
            if row.metric is not None:
                made = _score_row_of(row, judged=row.metric in judged)
                if row.metric in with_threshold and f'"{THRESHOLD}"' in (row.detail or ""):
                    key = number_key(infos.get(row.metric) or info_of(row.metric))
                    made.amount = None if key is None else number_in(detail_of(row), key)
                metrics.setdefault(row.metric, []).append(made)
    run.records, run.metrics = records, {**metrics}
    run.read_rows = table.rows
    run.decisions = facts.decisions
    run = in_suite_order(run)
    run.header.n_done, run.header.n_failed = run.n_records, run.n_failed
    return run


def _score_row_of(row: TableRow, *, judged: bool) -> ScoreRow:
    """A score of a table without its detail, as a store gives it."""
    return ScoreRow(
        row.position,
        row.repeat - 1,
        row.case_id,
        row.value,
        row.status,  # type: ignore[arg-type]  # the reader has checked them
        row.backend,  # type: ignore[arg-type]
        row.version,  # type: ignore[arg-type]
        row.reason if row.value is None or row.status == "informational" or row.reason == NOT_MEASURED else None,
        row.amount,
        judged_of(detail_of(row), nested=True) if judged else None,
    )


class ScoreTableWriter:
    """Writes scores to a stream as a score table. Cases come in order; the table is one only after ``finish``.

    ``header`` is the run that it becomes; ``input_errors`` are the first of ``n_input_errors``.
    """

    def __init__(self, stream: IO[bytes], header: RunHeader) -> None:
        self.header = header
        self.infos = recorded_infos(header.settings)
        self._writer = TableWriter(stream)
        self._judged: dict[str, None] = {}
        self._with_threshold: dict[str, None] = {}

    def __enter__(self) -> ScoreTableWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._writer.__exit__(kind, error, trace)

    @property
    def n_rows(self) -> int:
        """How many rows were written; right after ``finish``."""
        return self._writer.n_rows

    def add_case(self, case: CaseScores) -> None:
        """Take the scores of a case that was read from a file; how long they took is not in score lines either."""
        self.add_rows(row._replace(elapsed_s=None) for row in case_rows(case, self.header.id, self.infos))

    def add_rows(self, rows: Iterable[TableRow]) -> None:
        """Take the rows of a record."""
        taken = list(rows)
        for row in taken:
            if row.metric is not None and row.metric not in self._judged and '"judge"' in (row.detail or ""):
                self._note_judge(row.metric, row)
            if row.metric is not None and f'"{THRESHOLD}"' in (row.detail or ""):
                self._with_threshold[row.metric] = None
        self._writer.add(taken)

    def _note_judge(self, metric: str, row: TableRow) -> None:
        if judged_of(detail_of(row), nested=True) is not None:
            self._judged[metric] = None

    def finish(
        self,
        *,
        n_input_errors: int = 0,
        input_errors: Iterable[InputError] = (),
        decision: StoredDecision | None = None,
    ) -> None:
        """Write the rest, and what is known about the run now, with the decision that it keeps."""
        about = (list(self._judged), list(self._with_threshold), [] if decision is None else [decision])
        self._writer.finish(TableFacts(TABLE_VERSION, self.header, n_input_errors, list(input_errors), *about))

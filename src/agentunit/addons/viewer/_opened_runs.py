"""An exported run or a score table as a run of a store, made for one look at it."""

from __future__ import annotations

from itertools import islice

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.doors import part
from agentunit.engine.scoring.score_rows import is_table, rows_by_place, scores_of
from agentunit.store.opening import open_store
from agentunit.store.portable import import_run
from agentunit.store.run_store import RunStore
from agentunit.store.score_blocks import ScoreBuffer

_AT_ONCE = 2_048
SCORE_TABLE = "score_table"
"""The setting that says of a run that it has scores and no records."""


def take_in_file(address: str, path: str) -> str:
    """Take a file into a store; returns the id of its run."""
    with open_store(address) as store:
        return _take_in_table(store, path) if is_table(path) else import_run(store, path).id


def _take_in_table(store: RunStore, path: str) -> str:
    table = part("open_score_table")(path)
    header = table.facts.header
    run_id = store.create_run(
        header.name,
        agentunit_version=header.agentunit_version,
        settings={**header.settings, SCORE_TABLE: True},
        n_planned=header.n_planned,
        run_id=header.id,
        created_at=header.created_at,
    ).id
    records = rows_by_place(table.rows(details=True))
    while some := list(islice(records, _AT_ONCE)):
        lines, scores = [], ScoreBuffer()
        for rows in some:
            first = rows[0]
            place = (first.position, first.repeat - 1)
            line = encode_record(Record(DatasetCase(first.case_id)))
            elapsed_s = first.agent_elapsed_s or 0.0
            lines.append((run_id, *place, first.case_id, int(bool(first.agent_failed)), elapsed_s, line))
            scores.add(*place, scores_of(rows))
        with store.transaction():
            store.add_lines(lines)
            store.add_blocks(run_id, scores.take())
    store.set_status(run_id, header.status, finished_at=header.finished_at)
    return run_id

"""Records put into a store, one by one."""

from __future__ import annotations

from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.store.run_store import RunStore


def add_record(
    store: RunStore, run_id: str, position: int, repeat: int, record: Record, *, failed: bool, elapsed_s: float
) -> None:
    """Keep a finished case. One that is there already is replaced, and its scores with it."""
    line = encode_record(record)
    store.add_lines([(run_id, position, repeat, record.case.id, int(failed), elapsed_s, line)])

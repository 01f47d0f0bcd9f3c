"""The table of labels."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from msgspec import structs

from agentunit.core.results import encode_json
from agentunit.store.database import Database
from agentunit.store.labels import StoredLabel

_TABLE = "labels"
_decode = msgspec.json.Decoder(StoredLabel).decode


class LabelTable:
    """What a store does with labels (``protocol.RunStore``)."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add_labels(self, labels: Sequence[StoredLabel]) -> int:
        """Keep labels, all of them or none; each takes the place of what its rater said of the same answer before.

        One that is there already is left alone. Returns how many were not.
        """
        n_new = 0
        with self.database.transaction():
            for label in labels:
                if self.database.execute("SELECT 1 FROM labels WHERE id = ?", (label.id,)):
                    continue
                if label.withdrawn_at is None:
                    self.database.change(
                        "UPDATE labels SET withdrawn_at = ?"
                        " WHERE subject = ? AND metric = ? AND rater = ? AND withdrawn_at IS NULL",
                        (label.made_at, label.subject, label.metric, label.rater),
                    )
                self.database.change(
                    "INSERT INTO labels (id, subject, metric, case_id, rater, made_at, withdrawn_at, label)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(label.id, label.subject, label.metric, label.case_id, label.rater),
                        *(label.made_at, label.withdrawn_at, encode_json(label).decode()),
                    ),
                )
                n_new += 1
        return n_new

    def withdraw_label(self, label_id: str) -> None:
        """Take back a label. It stays in the store, and stands no more."""
        self.database.change(
            "UPDATE labels SET withdrawn_at = ? WHERE id = ? AND withdrawn_at IS NULL", (time.time(), label_id)
        )

    def labels(self, metric: str | None = None, *, withdrawn: bool = False) -> list[StoredLabel]:
        """The labels that stand, of one metric or of all, oldest first; with ``withdrawn`` also those taken back."""
        if not self.database.has_table(_TABLE):
            # A store of an earlier version that is only read.
            return []
        conditions = ([] if metric is None else ["metric = ?"]) + ([] if withdrawn else ["withdrawn_at IS NULL"])
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = self.database.execute(
            f"SELECT label, withdrawn_at FROM labels{where} ORDER BY made_at, id", () if metric is None else (metric,)
        )
        return [structs.replace(_decode(label), withdrawn_at=ended) for label, ended in rows]

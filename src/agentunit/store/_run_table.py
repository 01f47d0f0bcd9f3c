"""What a store does with its runs, and with what was decided and said about them: the statements themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec
from msgspec import structs

from agentunit.core.results import encode_json, without_lone_surrogates
from agentunit.store._record_table import RecordTable
from agentunit.store.database import Database
from agentunit.store.labels import StoredLabel
from agentunit.store.runs import (
    FIRST_AGAIN,
    OWN_DECISIONS,
    RunHeader,
    RunStatus,
    StoredDecision,
    find_run_id,
    new_run_id,
)
from agentunit.store.schema import DAMAGE, names_damage, raise_damaged
from agentunit.store.score_blocks import packed, unpacked

MOST_DECISIONS = 20
"""So many of a run are kept, the newest, and the newest of its own."""

_OWN = f"made_by IN ({', '.join(map(repr, OWN_DECISIONS))})"
_COMPRESSED_FROM_BYTES = 4096
_decode_label = msgspec.json.Decoder(StoredLabel).decode


class RunTable(RecordTable):
    """What a store does with its runs (``RunStore``)."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.address = database.address
        """Where the runs are: a path, or a URL without its password."""
        # Tables of the first version do not tell the order in which runs were begun.
        self._newest_first = f"{'sequence DESC, ' if database.version >= 2 else ''}created_at DESC, id DESC"

    # Runs

    def create_run(
        self,
        name: str,
        *,
        agentunit_version: str,
        settings: Mapping[str, Any],
        n_planned: int | None = None,
        run_id: str | None = None,
        created_at: float | None = None,
        by_date: bool = False,
    ) -> RunHeader:
        """Begin a run. It is the newest, whatever the clock says; ``by_date`` puts it among the others by its date."""
        created_at = time.time() if created_at is None else created_at
        run_id = run_id or new_run_id(created_at)
        header = RunHeader(run_id, name, created_at, None, "running", n_planned, agentunit_version, dict(settings))
        place = "SELECT coalesce(max(sequence), 0) + 1 FROM runs"
        if by_date:
            place = "SELECT coalesce(max(sequence), 0) FROM runs WHERE created_at <= ?"
        self.database.change(
            "INSERT INTO runs (id, name, created_at, status, n_planned, agentunit_version, settings, sequence)"
            f" VALUES (?, ?, ?, 'running', ?, ?, ?, ({place}))",
            (
                *(header.id, name, created_at, n_planned, agentunit_version, encode_json(header.settings).decode()),
                *([created_at] if by_date else ()),
            ),
        )
        return header

    def set_status(self, run_id: str, status: RunStatus, *, finished_at: float | None = None) -> None:
        """Say how a run stands."""
        if status == "finished" and finished_at is None:
            finished_at = time.time()
        self.database.change("UPDATE runs SET status = ?, finished_at = ? WHERE id = ?", (status, finished_at, run_id))

    def update_run(self, run_id: str, settings: Mapping[str, Any], *, n_planned: int | None) -> None:
        """Replace what a run says about how it is made."""
        self.database.change(
            "UPDATE runs SET settings = ?, n_planned = ? WHERE id = ?",
            (encode_json(dict(settings)).decode(), n_planned, run_id),
        )

    def runs(self) -> list[RunHeader]:
        """All runs, the one begun last first, with how many of their planned cases are done and failed."""
        return [self._header_of(run_id) for run_id, _ in self._listed()]

    def find_run(self, reference: str) -> RunHeader:
        """The run of an id, its beginning or last part, a name (the newest of it), ``last`` or ``last~N``."""
        return self._header_of(self.run_id(reference))

    def run_id(self, reference: str) -> str:
        """The id of the run that ``find_run`` gives, without reading what describes it."""
        return find_run_id(reference, self._listed(), self.address)

    def delete_run(self, run_id: str) -> None:
        """Remove a run with its records and scores."""
        self.database.change("DELETE FROM runs WHERE id = ?", (run_id,))

    def _listed(self) -> list[tuple[str, str]]:
        rows = self.database.execute(f"SELECT id, name FROM runs ORDER BY {self._newest_first}")
        return [(str(run_id), str(name)) for run_id, name in rows]

    def _header_of(self, run_id: str) -> RunHeader:
        ((*facts, settings, n_done, n_failed),) = self.database.execute(
            "SELECT name, created_at, finished_at, status, n_planned, agentunit_version, settings, n_done, n_failed"
            # The index of cases holds all that is counted, so the records themselves are not read.
            " FROM runs, (SELECT count(*) AS n_done, coalesce(sum(failed), 0) AS n_failed FROM records"
            f" WHERE run_id = ? AND repeat < {FIRST_AGAIN}) AS counted WHERE id = ?",
            (run_id, run_id),
        )
        try:
            fields = (run_id, *facts, msgspec.json.decode(settings), int(n_done), int(n_failed))
            named = dict(zip(RunHeader.__struct_fields__, fields, strict=True))
            header = msgspec.convert(named, RunHeader, strict=False)
            for moment in (header.created_at, header.finished_at or 0.0):
                datetime.fromtimestamp(moment, timezone.utc)
        except DAMAGE as error:
            raise_damaged(self.address, f"what describes run {run_id}", error, run_id)
        if header.status == "running" and not self.database.is_being_recorded(run_id):
            header.status = "interrupted"
        return header

    # Decisions

    def add_decision(self, run_id: str, decision: StoredDecision) -> None:
        """Keep a decision about a run beside earlier ones; of many, the newest and the run's own newest are kept."""
        headline = without_lone_surrogates(decision.headline)
        with self.database.transaction():
            # Another process may be numbering a decision of the same run.
            self.database.lock_scores(run_id)
            ((number,),) = self.database.execute(
                "SELECT coalesce(max(number), 0) + 1 FROM decisions WHERE run_id = ?", (run_id,)
            )
            self.database.change(
                "INSERT INTO decisions (run_id, number, made_at, made_by, verdict, headline, decision)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    *(run_id, number, decision.made_at, decision.made_by, decision.verdict, headline),
                    packed(bytes(decision.decision), _COMPRESSED_FROM_BYTES),
                ),
            )
            self.database.change(
                f"DELETE FROM decisions WHERE run_id = ? AND number <= ?"
                f" AND number <> (SELECT coalesce(max(number), 0) FROM decisions WHERE run_id = ? AND {_OWN})",
                (run_id, number - MOST_DECISIONS, run_id),
            )

    @names_damage("a decision")
    def decisions(self, run_id: str) -> list[StoredDecision]:
        """The decisions about a run, oldest first; none in a store of an earlier version that is only read."""
        if not self.database.has_table("decisions"):
            return []
        rows = self.database.execute(
            "SELECT made_at, made_by, verdict, headline, decision FROM decisions WHERE run_id = ? ORDER BY number",
            (run_id,),
        )
        return [
            StoredDecision(made_at, made_by, verdict, headline, msgspec.Raw(unpacked(decision)))
            for made_at, made_by, verdict, headline, decision in rows
        ]

    def n_decisions(self, run_id: str) -> int:
        """How many decisions were made about a run so far, those that are no longer kept among them."""
        if not self.database.has_table("decisions"):
            return 0
        rows = self.database.execute("SELECT coalesce(max(number), 0) FROM decisions WHERE run_id = ?", (run_id,))
        ((number,),) = rows
        return int(number)

    def own_decisions(self) -> dict[str, tuple[str | None, str]]:
        """Verdict and headline of the newest own decision of every run that has one."""
        if not self.database.has_table("decisions"):
            return {}
        rows = self.database.execute(
            f"SELECT run_id, verdict, headline FROM decisions WHERE (run_id, number) IN"
            f" (SELECT run_id, max(number) FROM decisions WHERE {_OWN} GROUP BY run_id)"
        )
        return {run_id: (verdict, headline) for run_id, verdict, headline in rows}

    # Labels

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
        if not self.database.has_table("labels"):
            # A store of an earlier version that is only read.
            return []
        conditions = ([] if metric is None else ["metric = ?"]) + ([] if withdrawn else ["withdrawn_at IS NULL"])
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        query = f"SELECT id, label, withdrawn_at FROM labels{where} ORDER BY made_at, id"
        rows = self.database.execute(query, () if metric is None else (metric,))
        labels = []
        for label_id, label, ended in rows:
            try:
                labels.append(structs.replace(_decode_label(label), withdrawn_at=ended))
            except DAMAGE as error:
                raise_damaged(self.database.address, f"the label {label_id!r:.80}", error)
        return labels

"""The table of runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from agentunit.core.results import encode_json
from agentunit.store.database import Database
from agentunit.store.runs import RunHeader, RunStatus, find_run_id, new_run_id


class RunTable:
    """What a store does with its runs (``protocol.RunStore``)."""

    def __init__(self, database: Database) -> None:
        self.database = database
        # Tables of the first version do not tell the order in which runs were begun.
        self._newest_first = f"{'sequence DESC, ' if database.version >= 2 else ''}created_at DESC, id DESC"

    @property
    def address(self) -> str:
        """Where the runs are: a path, or a URL without its password."""
        return self.database.address

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
        """All runs, the one begun last first, with how many of their cases are done and failed."""
        return [self._header_of(run_id) for run_id, _ in self._listed()]

    def find_run(self, reference: str) -> RunHeader:
        """The run of an id, its beginning or last part, a name (the newest of it), ``last`` or ``last~N``."""
        return self._header_of(find_run_id(reference, self._listed(), self.address))

    def delete_run(self, run_id: str) -> None:
        """Remove a run with its records and scores."""
        self.database.change("DELETE FROM runs WHERE id = ?", (run_id,))

    def _listed(self) -> list[tuple[str, str]]:
        rows = self.database.execute(f"SELECT id, name FROM runs ORDER BY {self._newest_first}")
        return [(str(run_id), str(name)) for run_id, name in rows]

    def _header_of(self, run_id: str) -> RunHeader:
        ((*facts, settings, n_done, n_failed),) = self.database.execute(
            "SELECT name, created_at, finished_at, status, n_planned, agentunit_version, settings,"
            # The index of cases holds all that is counted, so the records themselves are not read.
            " (SELECT count(*) FROM records WHERE run_id = r.id),"
            " (SELECT coalesce(sum(failed), 0) FROM records WHERE run_id = r.id) FROM runs r WHERE id = ?",
            (run_id,),
        )
        name, created_at, finished_at, status, n_planned, version = facts
        header = RunHeader(
            *(run_id, name, created_at, finished_at, status, n_planned, version, msgspec.json.decode(settings)),
            n_done=int(n_done),
            n_failed=int(n_failed),
        )
        if header.status == "running" and not self.database.is_being_recorded(run_id):
            header.status = "interrupted"
        return header

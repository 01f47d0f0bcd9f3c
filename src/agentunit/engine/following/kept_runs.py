"""What is kept of scored traces, if asked for: a run a day, for a set time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

import agentunit
from agentunit.core.codec import encode_record
from agentunit.core.results import Score, encode_json
from agentunit.engine.cut_offs import number_keys
from agentunit.engine.following.arrivals import Arrived
from agentunit.engine.following.state import FollowState, Kept
from agentunit.engine.scored_run import infos_as_data
from agentunit.metrics.base import describe
from agentunit.store.protocol import RunStore
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import written_scores

_DAY_S = 86_400


class KeptRuns:
    """The runs of one followed source in a store; without ``keep`` nothing is kept."""

    def __init__(
        self,
        store: RunStore,
        follow_id: str,
        source: str,
        metrics: Sequence[Any],
        keep: Kept | None,
        state: FollowState,
    ) -> None:
        self._store, self._id, self._source, self._metrics = store, follow_id, source, metrics
        self._keep, self._state = keep, state
        self._infos = {metric.name: describe(metric) for metric in metrics}
        self._must_compact = False

    def keep(self, scored: Sequence[Arrived], now: float) -> None:
        """Keep scored traces, in the transaction of the caller."""
        if not scored or self._keep is None:
            return
        day = time.strftime("%Y-%m-%d", time.gmtime(now))
        run_id = f"{self._id}-{day}"
        if self._state.kept_run != run_id:
            self._state.kept_run, self._state.n_kept = run_id, 0
            settings = {"metric_infos": infos_as_data(self._metrics), "tags": {"followed": self._source}}
            version = agentunit.__version__
            self._store.create_run(
                f"followed {day}", agentunit_version=version, settings=settings, run_id=run_id, created_at=now
            )
            self._store.set_status(run_id, "finished", finished_at=now)
        numbers = number_keys(self._infos)
        lines, rows = [], []
        for each in scored:
            position = self._state.n_kept
            self._state.n_kept += 1
            record = each.record
            lines.append((run_id, position, 0, record.case.id, int(each.failed), 0.0, encode_record(record)))
            scores = each.scores or {}
            if self._store.keeps_masked:
                # Details quote what was scored.
                scores = {name: self._masked(score) for name, score in scores.items()}
            rows.extend(written_scores(run_id, position, 0, scores, numbers))
        self._store.add_lines(lines)
        self._store.add_written_scores(rows)

    def _masked(self, score: Score) -> Score:
        detail = self._store.masked_data(msgspec.json.decode(encode_json(score.result.detail)))
        return structs.replace(score, result=type(score.result)(score.result.name, score.result.value, detail))

    def delete_old(self, now: float) -> str | None:
        """Delete the runs whose time is over; why they are not out of the file yet, if they are not."""
        seconds = None if self._keep is None else self._keep.seconds
        if seconds is None:
            return None
        # A day's run is over a day after it began, and its last trace is as old as was asked for that much later.
        old = [
            run
            for run in self._store.runs()
            if run.id.startswith(f"{self._id}-") and run.created_at < now - seconds - _DAY_S
        ]
        for run in old:
            self._store.delete_run(run.id)
        self._must_compact = self._must_compact or bool(old)
        if self._must_compact:
            try:
                self._store.compact()
                self._must_compact = False
            except StoreError as error:
                # Somebody reads the store: what was deleted leaves the file an hour later.
                return str(error)
        return None

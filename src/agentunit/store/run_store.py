"""Runs with their records, scores, decisions and labels, in the tables of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import msgspec
from msgspec import structs

from agentunit.core.results import encode_json
from agentunit.store._masking import Masking
from agentunit.store._run_table import RunTable
from agentunit.store._score_table import ScoreTable
from agentunit.store.database import Database
from agentunit.store.labels import StoredLabel
from agentunit.store.runs import RunHeader, StoredDecision, WrittenRecord
from agentunit.store.schema import names_damage

_scores_named = names_damage("a score")


class RunStore(RunTable):
    """Runs with their records, scores, decisions and labels, in a database of any kind.

    Every ``add_*`` is durable when it returns: a kill -9 after it loses nothing. Scores and records come in dataset
    order: by position, then by repeat. What is masked before it is kept is the business of ``masking``; who erases,
    follows a source or counts what a judge costs works on the ``database`` itself.
    """

    add_scores = _scores_named(ScoreTable.add_scores)
    blocks = _scores_named(ScoreTable.blocks)
    score_rows = _scores_named(ScoreTable.score_rows)
    metric_rows = _scores_named(ScoreTable.metric_rows)
    scores = _scores_named(ScoreTable.scores)
    scores_at = _scores_named(ScoreTable.scores_at)

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.masking = Masking(database)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file or the connection."""
        self.database.close()

    def reopened(self) -> RunStore:
        """The same store once more, to read; it outlives this one."""
        return RunStore(self.database.reopened())

    def transaction(self) -> AbstractContextManager[None]:
        """All that is written within it, or nothing; one within another is part of it."""
        return self.database.transaction()

    def recording(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run for this process: two that record it at once would run every open case twice.

        It is a ``RunTaken`` where another one does. A process that ends lets go.
        """
        return self.database.recording(run_id)

    # What a store that keeps masked text only takes in: everything that people, agents and graders wrote.

    def create_run(self, name: str, *, settings: Mapping[str, Any], **facts: Any) -> RunHeader:
        """Begin a run (``RunTable.create_run``); its name and its tags are masked."""
        return super().create_run(self.masking.masked_text(name), settings=self._masked_tags(settings), **facts)

    def update_run(self, run_id: str, settings: Mapping[str, Any], *, n_planned: int | None) -> None:
        """Replace what a run says about how it is made; its tags are masked."""
        super().update_run(run_id, self._masked_tags(settings), n_planned=n_planned)

    def add_lines(self, rows: Sequence[WrittenRecord]) -> None:
        """Keep finished cases that are written already (``RecordTable.add_lines``), masked."""
        super().add_lines(self.masking.masked(rows))

    def add_decision(self, run_id: str, decision: StoredDecision) -> None:
        """Keep a decision (``RunTable.add_decision``); it quotes answers, which are masked."""
        if self.masking.is_on:
            plain = self.masking.masked_data(msgspec.json.decode(decision.decision))
            headline = self.masking.masked_text(decision.headline)
            decision = structs.replace(decision, headline=headline, decision=msgspec.Raw(encode_json(plain)))
        super().add_decision(run_id, decision)

    def add_labels(self, labels: Sequence[StoredLabel]) -> int:
        """Keep labels (``RunTable.add_labels``); their notes are masked."""
        return super().add_labels([structs.replace(each, note=self.masking.masked_text(each.note)) for each in labels])

    def _masked_tags(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        written = {key: settings[key] for key in ("tags", "set") if settings.get(key)}
        if not (self.masking.is_on and written):
            return settings
        return {**settings, **self.masking.masked_data(msgspec.json.decode(encode_json(written)))}

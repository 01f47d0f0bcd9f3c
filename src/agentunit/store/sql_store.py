"""A store whose runs are in a database: its tables together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import msgspec
from msgspec import structs

from agentunit.core.results import encode_json
from agentunit.store.database import Database
from agentunit.store.erasure import Erasure, ErasureTable, Whom
from agentunit.store.followed import Followed
from agentunit.store.label_table import LabelTable
from agentunit.store.labels import StoredLabel
from agentunit.store.masking import Masking
from agentunit.store.record_table import RecordTable
from agentunit.store.run_table import RunTable
from agentunit.store.runs import RunHeader, WrittenRecord
from agentunit.store.score_table import ScoreTable


class SqlStore(RunTable, RecordTable, LabelTable, ErasureTable):
    """Runs in a database (``protocol.RunStore``). Every ``add_*`` is durable when it returns."""

    def __init__(self, database: Database) -> None:
        RunTable.__init__(self, database)
        ScoreTable.__init__(self, database)
        LabelTable.__init__(self, database)
        self.masking = Masking(database)

    def __enter__(self) -> SqlStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file or the connection."""
        self.database.close()

    def reopened(self) -> SqlStore:
        """The same store once more, to read; it outlives this one."""
        return SqlStore(self.database.reopened())

    @property
    def keeps_masked(self) -> bool:
        """Whether every record is masked before it is kept."""
        return self.masking.is_on

    def keep_masked(self) -> None:
        """Keep masked text only, from now on and for good; a store with runs of plain text is refused."""
        self.masking.turn_on()

    def masked_data(self, data: Any) -> Any:
        """Plain data (which is changed) as this store keeps it."""
        return self.masking.masked_data(data)

    def followed(self, follow_id: str) -> Followed:
        """What following a source has come to."""
        return Followed(self.database, follow_id)

    def compact(self) -> None:
        """Leave nothing of deleted rows in the files."""
        self.database.compact()

    def add_lines(self, rows: Sequence[WrittenRecord]) -> None:
        """Keep finished cases that are written already, masked where the store keeps masked text only."""
        super().add_lines(self.masking.masked(rows))

    def create_run(self, name: str, *, settings: Mapping[str, Any], **others: Any) -> RunHeader:
        """Begin a run; its name and its tags are what people wrote, so a masked store masks them."""
        return super().create_run(self.masking.masked_text(name), settings=self._masked_tags(settings), **others)

    def update_run(self, run_id: str, settings: Mapping[str, Any], *, n_planned: int | None) -> None:
        """Replace what a run says about how it is made."""
        super().update_run(run_id, self._masked_tags(settings), n_planned=n_planned)

    def add_labels(self, labels: Sequence[StoredLabel]) -> int:
        """Keep labels, all of them or none, with their notes masked where the store keeps masked text only."""
        if self.masking.is_on:
            labels = [structs.replace(each, note=self.masking.masked_text(each.note)) for each in labels]
        return super().add_labels(labels)

    def _masked_tags(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        written = {key: settings[key] for key in ("tags", "set") if settings.get(key)}
        if not (self.masking.is_on and written):
            return settings
        return {**settings, **self.masking.masked_data(msgspec.json.decode(encode_json(written)))}

    def erase(self, which: Whom) -> Erasure:
        """Erase records with their scores and labels, so that nothing of them is left in the files; and log it."""
        return super().erase(which._replace(masked_as=self.masking.pseudonyms_of(which.value)))

    def transaction(self) -> AbstractContextManager[None]:
        """All that is written within it, or nothing; one within another is part of it."""
        return self.database.transaction()

    def recording(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run for this process: two that record it at once would run every open case twice."""
        return self.database.recording(run_id)

"""What every store of runs can do, wherever it keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

from agentunit.core.records import Record
from agentunit.core.results import Score
from agentunit.store.erasure import Erasure, Whom
from agentunit.store.followed import Followed
from agentunit.store.labels import StoredLabel
from agentunit.store.runs import (
    RecordRow,
    RunHeader,
    RunSize,
    RunStatus,
    ScoreRow,
    StoredRecord,
    StoredScore,
    WrittenRecord,
)
from agentunit.store.score_blocks import Place, ScoreColumns, WrittenScore


class RunStore(Protocol):
    """Runs with their records and scores. Every ``add_*`` is durable when it returns: a kill -9 after it loses nothing.

    Scores and records come in dataset order: by position, then by repeat.
    """

    @property
    def address(self) -> str:
        """Where the runs are: a path, or a URL without its password."""

    def __enter__(self) -> RunStore: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def close(self) -> None:
        """Let go of the file or the connection."""

    def reopened(self) -> RunStore:
        """The same store once more, to read; it outlives this one."""

    def transaction(self) -> AbstractContextManager[None]:
        """All that is written within it, or nothing; one within another is part of it."""

    def recording(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run for this process, which is a ``RunTaken`` where another one does. A process that ends lets go."""

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

    def set_status(self, run_id: str, status: RunStatus, *, finished_at: float | None = None) -> None:
        """Say how a run stands."""

    def update_run(self, run_id: str, settings: Mapping[str, Any], *, n_planned: int | None) -> None:
        """Replace what a run says about how it is made."""

    def runs(self) -> list[RunHeader]:
        """All runs, the one begun last first, with how many of their cases are done and failed."""

    def find_run(self, reference: str) -> RunHeader:
        """The run of an id, its beginning or last part, a name (the newest of it), ``last`` or ``last~N``."""

    def delete_run(self, run_id: str) -> None:
        """Remove a run with its records and scores."""

    # Forgetting

    @property
    def keeps_masked(self) -> bool:
        """Whether every record is masked before it is kept."""

    def keep_masked(self) -> None:
        """Keep masked text only, from now on and for good; a store with runs of plain text is refused."""

    def masked_data(self, data: Any) -> Any:
        """Plain data (which is changed) as this store keeps it."""

    def compact(self) -> None:
        """Leave nothing of deleted rows in the files."""

    # Following

    def followed(self, follow_id: str) -> Followed:
        """What following a source has come to."""

    def erase(self, which: Whom) -> Erasure:
        """Erase records with their scores and labels, so that nothing of them is left in the files; and log it."""

    def erasures(self) -> list[Erasure]:
        """What was erased so far, the last first; nobody is named."""

    # Records

    def add_record(
        self, run_id: str, position: int, repeat: int, record: Record, *, failed: bool, elapsed_s: float
    ) -> None:
        """Keep a finished case. One that is there already is replaced, and its scores with it."""

    def add_lines(self, rows: Sequence[WrittenRecord]) -> None:
        """Keep finished cases that are written already (``core.codec.encode_record``), all that ended together."""

    def finished(self, run_id: str, *, failed: bool | None = None) -> set[tuple[int, int]]:
        """Position and repeat of every case that is done; with ``failed`` only those that did or did not fail."""

    def records(
        self,
        run_id: str,
        *,
        unscored_by: Sequence[str] | None = None,
        failed: bool | None = None,
        known: Mapping[tuple[int, int], Record] | None = None,
    ) -> Iterator[StoredRecord]:
        """The finished cases in dataset order, as they were when reading began.

        With ``unscored_by`` only those lacking one of these metrics' scores, with ``failed`` only those in which the
        agent did or did not fail. Records that are ``known``, by position and repeat, are not read again.
        """

    def n_records(self, run_id: str, *, unscored_by: Sequence[str] | None = None) -> int:
        """How many ``records`` would give."""

    def size(self, run_id: str) -> RunSize:
        """How many cases, records and repeats of a case are done, and how many of them failed."""

    def record_rows(self, run_id: str) -> Iterator[RecordRow]:
        """Every finished case in dataset order, without its record."""

    def bounds(self, run_id: str) -> Place | None:
        """The first and the last position of a run; ``None`` where nothing is done yet."""

    def lines(self, run_id: str, places: Iterable[Place] | None = None) -> Iterator[WrittenRecord]:
        """The finished cases as they were written, in dataset order, or those of these places."""

    def case(self, run_id: str, case_id: str) -> list[StoredRecord]:
        """All repeats of one case."""

    def case_ids(self, run_id: str) -> list[str]:
        """The ids of the finished cases, in dataset order."""

    # Scores

    def add_scores(self, run_id: str, position: int, repeat: int, scores: Mapping[str, Score]) -> None:
        """Keep the scores of one case, in place of earlier ones of the same metrics."""

    def add_written_scores(self, rows: Sequence[WrittenScore]) -> None:
        """Keep scores of any number of cases at once (``written_scores`` writes them), all of them or none."""

    def metrics_scored(self, run_id: str) -> list[str]:
        """The metrics of which a run has scores, by name."""

    def n_blocks(self, run_id: str) -> int:
        """In how many pieces the scores of a run are kept: another number where scores were added."""

    def is_pass_fail(self, run_id: str, metric: str) -> bool:
        """Whether all values of a metric are 0 or 1."""

    def score_columns(
        self, run_id: str, metric: str, amount_key: str | None = None, within: Place | None = None
    ) -> Iterator[ScoreColumns]:
        """The scores of a metric in dataset order, column by column, without their details.

        ``amount_key`` names the number in the details that is wanted too; ``within`` a first and a last position, and
        only the blocks that hold some between them.
        """

    def metric_rows(self, run_id: str, metric: str, amount_key: str | None = None) -> Iterator[ScoreRow]:
        """The same, one by one."""

    def case_id(self, run_id: str, position: int, repeat: int) -> str:
        """The id of the case at a place of a run."""

    def score_rows(self, run_id: str, amounts: Mapping[str, str] | None = None) -> Iterator[tuple[str, ScoreRow]]:
        """Every score of a run with its metric's name, metric by metric in dataset order, without the details.

        ``amounts`` names, for some metrics, the key of the detail whose number is wanted too.
        """

    def scores(self, run_id: str, *, case_id: str | None = None) -> Iterator[StoredScore]:
        """The scores of a run (or of one of its cases), in dataset order."""

    def scores_at(self, run_id: str, position: int, repeat: int) -> list[StoredScore]:
        """The scores of one record."""

    # Labels

    def add_labels(self, labels: Sequence[StoredLabel]) -> int:
        """Keep labels, all of them or none; each takes the place of what its rater said of the same answer before.

        One that is there already is left alone. Returns how many were not.
        """

    def withdraw_label(self, label_id: str) -> None:
        """Take back a label. It stays in the store, and stands no more."""

    def labels(self, metric: str | None = None, *, withdrawn: bool = False) -> list[StoredLabel]:
        """The labels that stand, of one metric or of all, oldest first; with ``withdrawn`` also those taken back."""

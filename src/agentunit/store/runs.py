"""What a store keeps of a run: its header, its records, its scores."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from agentunit.core.records import Record
from agentunit.core.results import Score
from agentunit.core.score_block import Place
from agentunit.store.schema import StoreError

WrittenRecord = tuple[str, int, int, str, int, float, bytes]
"""A finished case as it is written: run, position, repeat, case id, whether it failed, seconds, the line itself."""

RunStatus = Literal["running", "finished", "stopped", "interrupted"]
"""``interrupted``: the run is not finished, and the process that recorded it ended without saying so."""

FIRST_AGAIN = 1_000_000
"""The first repeat number of tries again. They confirm failing checks and are part of no figure of their run."""

HISTORY = "history"
"""Under this name the settings of an imported run hold what its file said about earlier tries of its checks."""

KNOWN_FAILURES = "known_failures"
"""Under this name the settings of a run hold the marks of the cases that are known to fail, by case id."""
DATASET_CASES = "dataset_cases"
"""The setting of a run that says how many cases its dataset has, of which it may be to run some."""
RETRIED_FAILED = "retried_failed"
"""The setting of a run in which records were made once more because the agent had failed."""

_OWN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-([0-9a-f]{4})")


class RunTaken(StoreError):
    """A run that another process is recording."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} is being recorded by another process: wait for it, or stop it")


def is_again(repeat: int) -> bool:
    """Whether a repeat number marks a try again.

    >>> is_again(2), is_again(FIRST_AGAIN)
    (False, True)
    """
    return repeat >= FIRST_AGAIN


def without_tries_again(places: Iterable[Place]) -> set[Place]:
    """Of places, each a position and a repeat, the planned ones."""
    return {place for place in places if not is_again(place[1])}


class RunHeader(Struct):
    """What is known about a run as a whole. ``n_planned`` counts cases times repeats.

    ``n_done`` and ``n_failed`` count planned records, without tries again.
    """

    id: str
    name: str
    created_at: float
    finished_at: float | None
    status: RunStatus
    n_planned: int | None
    agentunit_version: str
    settings: dict[str, Any]
    n_done: int = 0
    n_failed: int = 0

    def __repr__(self) -> str:
        of_planned = "" if self.n_planned is None else f" of {self.n_planned:,}"
        return f"RunHeader({self.id!r}, {self.name!r}, {self.status}: {self.n_done:,}{of_planned} records)"

    @property
    def label(self) -> str:
        """What a run is called for a person: its name and, as runs of one suite share it, the end of its id."""
        made_here = _OWN_ID.fullmatch(self.id)
        short = made_here[1] if made_here else self.id
        return short if self.name in ("", self.id) else f"{self.name} ({short})"

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a run. It may come from a file: what is no tag is left out."""
        tags = self.settings.get("tags")
        return {str(key): str(value) for key, value in tags.items()} if isinstance(tags, Mapping) else {}

    @property
    def is_foreign(self) -> bool:
        """Whether the run came from a file. Paths in its settings were written by somebody else: open none of them."""
        return bool(self.settings.get("foreign"))


def new_run_id(created_at: float) -> str:
    """An id for a run that began then: its time, and a few digits that tell it from others of the same second."""
    stamp = datetime.fromtimestamp(created_at, timezone.utc).strftime("%Y%m%d-%H%M%S")
    return f"{stamp}-{secrets.token_hex(2)}"


def find_run_id(reference: str, listed: Sequence[tuple[str, str]], address: str) -> str:
    """The run that a reference means among ``listed`` ids and names, the newest first.

    An id, its beginning or last part, a name (the newest of it), ``last`` or ``last~N``.
    """
    if not listed:
        raise StoreError(f"{address} holds no runs yet")
    if reference == "last" or (reference.startswith("last~") and reference[5:].isdigit()):
        back = int(reference[5:] or 0)
        if back >= len(listed):
            raise StoreError(f"{address} holds {len(listed)} runs; received {reference!r}")
        return listed[back][0]
    ids = [run_id for run_id, _ in listed]
    if reference in ids:
        return reference
    found = [run_id for run_id, name in listed if name == reference][:1]
    found = found or [run_id for run_id in ids if run_id.startswith(reference)]
    found = found or [run_id for run_id in ids if run_id.endswith(f"-{reference}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise StoreError(f"{reference!r} is a part of the ids of {len(found)} runs: {', '.join(found[:5])}")
    raise StoreError(f"no run is called {reference!r}; the newest is {ids[0]} ('agentunit runs' lists them)")


class RunSize(NamedTuple):
    """How much of a run is done. ``n_records`` counts every repeat of a case, ``n_repeats`` those of a case at most.

    Tries again are not counted.
    """

    n_cases: int
    n_records: int
    n_failed: int
    n_repeats: int


class StoredRecord(Struct):
    """One finished case of a run. ``failed`` says that the agent raised, hung or returned nonsense."""

    position: int
    repeat: int
    case_id: str
    failed: bool
    elapsed_s: float
    record: Record

    @property
    def place(self) -> Place:
        """Position and repeat."""
        return self.position, self.repeat


def scored_records(
    records: Iterable[StoredRecord], scores: Iterable[tuple[Place, dict[str, Score]]]
) -> Iterator[tuple[StoredRecord, dict[str, Score]]]:
    """The records of a run, each with its scores. Both come by position and repeat, so one pass over each is enough."""
    waiting = iter(scores)
    place, of_place = next(waiting, (None, {}))
    for stored in records:
        # A run that is still being written may show a score whose record this reading does not see.
        while place is not None and place < stored.place:
            place, of_place = next(waiting, (None, {}))
        yield stored, of_place if place == stored.place else {}


class RecordRow(Struct):
    """A finished case without its record: what deciding needs."""

    position: int
    repeat: int
    case_id: str
    failed: bool

    @property
    def place(self) -> Place:
        """Position and repeat."""
        return self.position, self.repeat


class StoredDecision(Struct):
    """What was decided about a run once. ``decision`` is a JSON object that the store does not look into.

    ``made_by`` is what decided: "run", "rerun", "gate" (show --gate), "compare" or "pytest".
    """

    made_at: float
    made_by: str
    verdict: str | None
    headline: str
    decision: msgspec.Raw

    @property
    def is_own(self) -> bool:
        """Whether it is the run's own: made at the end of its recording, not by a later question about it."""
        return self.made_by in OWN_DECISIONS


OWN_DECISIONS = ("run", "rerun")
"""The makers of a run's own decisions."""

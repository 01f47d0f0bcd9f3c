"""A piece of work that can be struck at any moment and taken up again."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agentunit.store.sqlite import Store
from benchmarks.torture.children import Child, agentunit
from benchmarks.torture.ledger import Lost

STORE = Path(".agentunit", "runs.db")


class Scenario:
    """Work of one verb in a folder: how it starts, how it goes on, and what must come out in the end.

    ``start`` begins the work or takes it up where it was struck. A verb that waits for others (``collect``, ``label``)
    is fed by a thread that ``start`` begins.
    """

    name = ""
    # Where a process leaves children that nothing ends when it alone is killed, its group is.
    always_group = False
    # The signals at which it says what is kept, and how it may end then.
    hears_signals = True
    stopped_codes: tuple[int, ...] = (130,)
    python: str | None = None
    environment: Mapping[str, str] = MappingProxyType({})

    def begin(self) -> None:
        """Get ready for the whole row: data that every folder gets a copy of, a server."""

    def end(self) -> None:
        """Undo ``begin``."""

    def prepare(self, folder: Path) -> None:
        """Put what the work needs into an empty folder."""
        raise NotImplementedError

    def start(self, folder: Path) -> Child:
        raise NotImplementedError

    def has_begun(self, folder: Path) -> bool:
        """Whether the work itself has begun, not only the process."""
        return (folder / STORE).exists()

    def check(self, folder: Path) -> None:
        """After a strike: what the process had acknowledged is there, and all that is there can be read."""
        check_store(folder / STORE)

    def must_hear(self, folder: Path) -> bool:
        """Whether a signal must not simply end the process that was started last: what it started would go on."""
        return False

    def is_whole(self, folder: Path) -> bool:
        """After a start that nobody struck: whether all of the work is done."""
        return True

    def result(self, folder: Path) -> object:
        """All that must not depend on strikes."""
        raise NotImplementedError

    def run(self, folder: Path, *arguments: str, stdin: int = subprocess.DEVNULL) -> Child:
        return Child(agentunit(*arguments, python=self.python), folder, environment=self.environment, stdin=stdin)


def check_store(file: Path) -> None:
    """A store that SQLite finds whole; one that was not made yet is no loss."""
    if not file.exists():
        return
    with closing(sqlite3.connect(file, timeout=60)) as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
    if found != [("ok",)]:
        raise Lost(f"the store is damaged: {found[:3]}")


def run_ids(folder: Path) -> list[str]:
    """The runs of a folder's store, the one begun first in front."""
    if not has_tables(folder / STORE):
        return []
    with Store(folder / STORE, read_only=True) as store:
        return [header.id for header in reversed(store.runs())]


def has_tables(file: Path) -> bool:
    """Whether a process got as far as making the tables of a store."""
    if not file.exists():
        return False
    with closing(sqlite3.connect(file, timeout=60)) as connection:
        return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def kept_cases(folder: Path, run_id: str) -> set[str]:
    """The ids of the cases that a store holds."""
    with Store(folder / STORE, read_only=True) as store:
        return {each.case_id for each in store.records(run_id)}


def run_result(folder: Path, run_id: str) -> dict[str, Any]:
    """A stored run without its times and its id."""
    with Store(folder / STORE, read_only=True) as store:
        header = store.find_run(run_id)
        records = {
            (each.position, each.repeat): (
                each.case_id,
                each.failed,
                getattr(each.record.outcome, "output", each.record.outcome),
                [(event.type, event.payload) for event in each.record.trace.events],
                each.record.trace.metadata.get("seed"),
            )
            for each in store.records(header.id)
        }
        scores = {
            (*place, metric): (score.value, score.status, score.backend)
            for place, of_place in store.scores(header.id)
            for metric, score in of_place.items()
        }
    return {"status": header.status, "records": records, "scores": scores}

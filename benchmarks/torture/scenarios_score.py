"""``score``, ``import`` and the migration of an older store: work on what lies there."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentunit.store.sqlite import Store
from benchmarks.torture.children import Child, agentunit, done
from benchmarks.torture.ledger import Lost
from benchmarks.torture.made_up import METRICS, add_run, write_first_store, write_records
from benchmarks.torture.scenarios import STORE, Scenario, check_store, run_ids, run_result

_BEFORE = b"what was there before\n"


class _WithData(Scenario):
    """Work on files that are made once and copied into every folder."""

    def begin(self) -> None:
        self._made = TemporaryDirectory(prefix="agentunit-torture-data-")
        self.make(Path(self._made.name))

    def end(self) -> None:
        self._made.cleanup()

    def prepare(self, folder: Path) -> None:
        shutil.copytree(self._made.name, folder, dirs_exist_ok=True)

    def make(self, folder: Path) -> None:
        raise NotImplementedError


class ScoreRun(_WithData):
    """``score RUN``: new metrics over a stored run."""

    name = "score RUN"
    arguments: tuple[str, ...] = ()

    def make(self, folder: Path) -> None:
        add_run(folder / STORE, 600)

    def start(self, folder: Path) -> Child:
        return self.run(folder, "score", "last", "--metrics", METRICS, "--max-errors", "9999", *self.arguments)

    def has_begun(self, folder: Path) -> bool:
        return Path(f"{folder / STORE}-wal").exists()

    def result(self, folder: Path) -> object:
        return run_result(folder, "last")


class ScoreRunInProcesses(ScoreRun):
    """``score RUN --jobs 2``."""

    name = "score RUN --jobs 2"
    arguments = ("--jobs", "2")


class ScoreFile(_WithData):
    """``score FILE --out``: whole or not at all, and what was there before stays until then."""

    name = "score FILE --out"
    _n_records = 1200

    def make(self, folder: Path) -> None:
        write_records(folder / "records.jsonl", self._n_records)
        (folder / "scores.jsonl").write_bytes(_BEFORE)

    def start(self, folder: Path) -> Child:
        return self.run(folder, *self.command())

    def command(self) -> list[str]:
        return ["score", "records.jsonl", "--metrics", METRICS, "--out", "scores.jsonl", "--max-errors", "9999"]

    def has_begun(self, folder: Path) -> bool:
        return (folder / "scores.jsonl.part").exists()

    def check(self, folder: Path) -> None:
        found = (folder / "scores.jsonl").read_bytes()
        n_lines = found.count(b"\n")
        if found != _BEFORE and n_lines != self._n_records:
            raise Lost(f"half an output stands in its place: {n_lines} lines of {self._n_records}")

    def result(self, folder: Path) -> object:
        return {
            number: timeless(line) for number, line in enumerate((folder / "scores.jsonl").read_text().splitlines())
        }


class ScoreFileInProcesses(ScoreFile):
    """``score FILE --jobs 2 --out``, then ``--resume``: blocks that were done are not done again."""

    name = "score FILE --jobs 2 --out, --resume"

    def start(self, folder: Path) -> Child:
        job = [each for each in folder.iterdir() if each.is_dir() and each.name.startswith("scores.jsonl")]
        return self.run(folder, *self.command(), "--jobs", "2", *(["--resume"] if job else []))

    def has_begun(self, folder: Path) -> bool:
        return any(each.is_dir() and each.name.startswith("scores.jsonl") for each in folder.iterdir())

    def result(self, folder: Path) -> object:
        left = [each.name for each in folder.iterdir() if each.name.startswith("scores.jsonl.")]
        return {"left behind": left, "lines": super().result(folder)}


class Convert(ScoreFile):
    """``convert --out``: the records of another file."""

    name = "convert FILE --out"

    def command(self) -> list[str]:
        return ["convert", "records.jsonl", "--out", "scores.jsonl"]


class Import(_WithData):
    """``import``: a run is there whole or not at all."""

    name = "import"
    _n_records = 1500

    def make(self, folder: Path) -> None:
        add_run(folder / STORE, self._n_records)
        done(agentunit("export", "last", "--to", "run.json.gz"), folder)
        shutil.rmtree(folder / STORE.parent)

    def start(self, folder: Path) -> Child:
        return self.run(folder, "import", "run.json.gz", "--as", f"taken{len(run_ids(folder))}")

    def check(self, folder: Path) -> None:
        check_store(folder / STORE)
        if not run_ids(folder):
            return
        with Store(folder / STORE, read_only=True) as store:
            for header in store.runs():
                if store.n_records(header.id) != self._n_records:
                    raise Lost(f"half a run was taken in: {store.n_records(header.id)} records of {self._n_records}")

    def result(self, folder: Path) -> object:
        return run_result(folder, run_ids(folder)[0])


class Migration(_WithData):
    """The first command that writes to a store of the first version."""

    name = "store of the first version, migrated"
    hears_signals = False
    _n_records = 3000

    def make(self, folder: Path) -> None:
        write_first_store(folder / STORE, self._n_records)

    def start(self, folder: Path) -> Child:
        return self.run(folder, "score", "old", "--metrics", "exact_match", "--max-errors", "9999")

    def has_begun(self, folder: Path) -> bool:
        return Path(f"{folder / STORE}-wal").exists() or Path(f"{folder / STORE}-journal").exists()

    def check(self, folder: Path) -> None:
        check_store(folder / STORE)
        with closing(sqlite3.connect(folder / STORE, timeout=60)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if (version == 1) != ("scores" in tables) or "records_anew" in tables:
            raise Lost(f"a store of version {version} with the tables {sorted(tables)}")
        with Store(folder / STORE, read_only=True) as store:
            n_scores = sum(name in ("first", "second", "third") for _, scores in store.scores("old") for name in scores)
        if n_scores != 3 * self._n_records:
            raise Lost(f"{n_scores} scores are left of {3 * self._n_records}")

    def result(self, folder: Path) -> object:
        return run_result(folder, "old")


def score_scenarios() -> list[Scenario]:
    """All of them."""
    return [ScoreRun(), ScoreRunInProcesses(), ScoreFile(), ScoreFileInProcesses(), Convert(), Import(), Migration()]


def timeless(line: str) -> Any:
    """A line of JSON without the times in it."""

    def without(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: without(value) for key, value in data.items() if key not in ("elapsed", "elapsed_s")}
        return [without(each) for each in data] if isinstance(data, list) else data

    return without(json.loads(line))

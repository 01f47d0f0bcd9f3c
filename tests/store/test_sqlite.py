"""What only a SQLite file does: migrations, files that are no stores, what a killed process leaves behind."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from kept_records import add_record

from agentunit.cli.main import cli
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store import open_store
from agentunit.store.opening import shown_address, sqlite_file
from agentunit.store.schema import MIGRATIONS, SCHEMA_VERSION, StoreError
from agentunit.store.sqlite import Store, lock_path

OLD_STORE = Path(__file__).parents[1] / "data" / "first_edition" / "runs.db"


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "deep" / "runs.db") as opened:
        yield opened


def new_run(store: Store, name: str = "desk", **settings: object) -> str:
    return store.create_run(name, agentunit_version="1", settings=settings).id


def record(case_id: str) -> Record:
    return Record(DatasetCase(case_id, "?"), TraceLog(), Outcome(output="ok"))


def tables_version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match="written by a newer AgentUnit"):
        Store(path)


def test_an_older_store_is_migrated_and_keeps_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as store:
        run = new_run(store)
        add_record(store, run, 0, 0, record("q0"), failed=False, elapsed_s=0.0)
    # A store of the next version: one more column, as a later release may add.
    later = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT",))
    monkeypatch.setattr("agentunit.store.schema.MIGRATIONS", later)
    monkeypatch.setattr("agentunit.store.schema.SCHEMA_VERSION", len(later))
    with Store(path) as store:
        assert [each.case_id for each in store.records(run)] == ["q0"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
        assert connection.execute("SELECT note FROM runs").fetchall() == [(None,)]


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.db"
    Store(path).close()
    broken = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT", "ALTER TABLE nowhere ADD COLUMN x TEXT"))
    monkeypatch.setattr("agentunit.store.schema.MIGRATIONS", broken)
    monkeypatch.setattr("agentunit.store.schema.SCHEMA_VERSION", len(broken))
    with pytest.raises(StoreError, match="no such table: nowhere"):
        Store(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
    assert "note" not in columns


KILLED_MIGRATION = """
import os, signal, sys
from agentunit.store import schema, _score_table as score_table
from agentunit.store.sqlite import Store
move = score_table.move_scores
def move_and_die(connection):
    move(connection)
    os.kill(os.getpid(), signal.SIGKILL)
score_table.move_scores = move_and_die
Store(sys.argv[1])
"""


def test_a_migration_that_is_killed_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    shutil.copyfile(OLD_STORE, path)
    with Store(path, read_only=True) as store:
        before = {run.name: (list(store.scores(run.id)), list(store.records(run.id))) for run in store.runs()}
        summed_up = run_from_store(store, "before")
    # The scores are in blocks by then, and the old tables of records gone.
    killed = subprocess.run([sys.executable, "-c", KILLED_MIGRATION, str(path)])
    assert (killed.returncode, tables_version(path)) == (-signal.SIGKILL, 1)
    for read_only, version in ((True, 1), (False, SCHEMA_VERSION), (True, SCHEMA_VERSION)):
        with Store(path, read_only=read_only) as store:
            assert before == {
                run.name: (list(store.scores(run.id)), list(store.records(run.id))) for run in store.runs()
            }
            assert run_from_store(store, "before") == summed_up
        assert tables_version(path) == version
    assert sum(len(scores) for _, scores in before["before"][0]) > 100


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"this is no database, " * 100)
    with pytest.raises(StoreError, match="cannot be used as a store"):
        Store(path)


def test_a_lock_that_a_killed_process_left_behind_holds_nobody(store: Store) -> None:
    run = new_run(store)
    Path(lock_path(store.file, run)).touch()
    assert store.find_run(run).status == "interrupted"
    with store.recording(run):
        assert store.find_run(run).status == "running"
    assert not Path(lock_path(store.file, run)).exists()


def test_a_sqlite_store_is_opened_by_path_or_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("a b.db", "sqlite:///a%20b.db", f"sqlite:///{tmp_path}/a b.db", tmp_path / "a b.db"):
        with open_store(address) as store:
            new_run(store)
    with open_store("a b.db", read_only=True) as store:
        assert len(store.runs()) == 4
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in tmp_path.iterdir()} == {"a b.db"}


@pytest.mark.parametrize(
    "address",
    [
        "mysql://ada:hunter2@host/db",
        "sqlite://ada:hunter2@host/runs.db",
        "sqlite://",
        "sqlite:///a.db?password=hunter2",
    ],
)
def test_other_addresses_are_refused_without_their_password(address: str) -> None:
    with pytest.raises(StoreError, match="received") as refused:
        sqlite_file(address)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("runs.db", "runs.db"),
        ("postgresql://ada@host/db", "postgresql://ada@host/db"),
        ("postgresql://ada:p%40ss@host:5/db?sslmode=require", "postgresql://ada@host:5/db?sslmode=require"),
        ("postgresql://ada:p@ss/w?rd@host/db", "postgresql://ada@host/db"),
        ("postgresql://ada:my pass@host/db", "postgresql://ada@host/db"),
        ("postgresql://:secret@host/db", "postgresql://@host/db"),
        ("postgresql:///db?host=/run&password=secret", "postgresql:///db?host=/run"),
        ("postgresql:///db?PASSWORD=secret&sslpassword=secret&a=b", "postgresql:///db?a=b"),
        ('cannot parse "postgresql://a:b@c": odd', 'cannot parse "postgresql://a@c": odd'),
    ],
)
def test_addresses_are_shown_without_passwords(address: str, shown: str) -> None:
    assert shown_address(address) == shown


def test_postgresql_without_its_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    done = CliRunner().invoke(cli, ["runs", "--store", "postgresql://ada:hunter2@127.0.0.1:1/evals"])
    assert (done.exit_code, "hunter2" in done.output) == (3, False)
    assert "needs the package psycopg" in done.output
    assert "pip install" in done.output
    assert "[postgres]" in done.output


def test_an_address_that_nothing_knows_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_STORE", "mysql://ada:hunter2@host/evals")
    done = CliRunner().invoke(cli, ["runs"])
    assert (done.exit_code, "hunter2" in done.output) == (2, False)
    assert "a store is a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE" in " ".join(done.output.split())

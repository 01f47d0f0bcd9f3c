"""A store that lies where nothing can be written is read all the same, and reading changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kept_records import add_record

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.store import schema
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import Store

# Root may write everywhere: the rights that make it so are given up before the program starts.
WITHOUT_RIGHTS = """
import ctypes, os, sys
for capability in (1, 2, 3):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
READ = """
import os, sys
from agentunit.store.sqlite import Store
folder = os.path.dirname(sys.argv[1])
assert not os.access(folder, os.W_OK), "writable"
with Store(sys.argv[1], read_only=True) as store:
    run = store.find_run("last")
    print(run.status, [each.case_id for each in store.records(run.id)])
"""


def record(case_id: str) -> Record:
    return Record(DatasetCase(case_id, "?"), TraceLog(), Outcome(output="ok"))


def fill(store: Store) -> str:
    run = store.create_run("desk", agentunit_version="1", settings={}).id
    for position in range(2):
        add_record(store, run, position, 0, record(f"q{position}"), failed=False, elapsed_s=0.0)
    return run


def read_where_nothing_can_be_written(folder: Path) -> subprocess.CompletedProcess[str]:
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    command = [sys.executable, "-c", WITHOUT_RIGHTS, "-c", READ, str(folder / "runs.db")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        folder.chmod(0o755)
    if "AssertionError: writable" in done.stderr:
        pytest.skip("this user may write everywhere")
    return done


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="gives up rights as Linux has them")
@pytest.mark.parametrize("left_behind", [(), ("-wal",), ("-wal", "-shm")], ids=["closed", "log only", "log and index"])
def test_a_folder_that_cannot_be_written_can_be_read(left_behind: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    with Store(tmp_path / "runs.db") as store:
        run = fill(store)
        if not left_behind:
            store.set_status(run, "finished")
        else:
            # As a killed process leaves it: what it wrote is still in the log.
            assert os.path.getsize(tmp_path / "runs.db-wal") > 0
            for ending in ("", *left_behind):
                shutil.copy(tmp_path / f"runs.db{ending}", folder / f"runs.db{ending}")
    if not left_behind:
        shutil.copy(tmp_path / "runs.db", folder / "runs.db")
    done = read_where_nothing_can_be_written(folder)
    status = "interrupted" if left_behind else "finished"
    assert (done.stdout, done.stderr) == (f"{status} ['q0', 'q1']\n", "")


def test_reading_changes_nothing_and_sees_what_is_written_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as writer:
        run = fill(writer)
        with Store(path, read_only=True) as reader:
            add_record(writer, run, 2, 0, record("q2"), failed=False, elapsed_s=0.0)
            assert reader.find_run("last").n_done == 3
            with pytest.raises(StoreError, match=r"runs\.db cannot be written: attempt to write a readonly database"):
                add_record(reader, run, 3, 0, record("q3"), failed=False, elapsed_s=0.0)
    before = path.read_bytes()
    with Store(path, read_only=True) as reader:
        assert reader.find_run("last").n_done == 3
    assert path.read_bytes() == before


def test_reading_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used as a store: unable to open database file"):
        Store(tmp_path / "deep" / "runs.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_holds_no_runs(tmp_path: Path) -> None:
    (tmp_path / "runs.db").touch()
    with pytest.raises(StoreError, match=r"runs\.db holds no runs yet"):
        Store(tmp_path / "runs.db", read_only=True)
    assert (tmp_path / "runs.db").stat().st_size == 0


def test_a_store_of_the_first_version_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.db"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        patch.setattr(schema, "SCHEMA_VERSION", 1)
        with Store(path) as store:
            for name, created_at in (("new", 2.0), ("old", 1.0)):
                store.database.execute(
                    "INSERT INTO runs VALUES (?, ?, ?, NULL, 'finished', 1, '1', '{}')", (name, name, created_at)
                )
    with Store(path, read_only=True) as store:
        assert [run.id for run in store.runs()] == ["new", "old"]
        assert (store.decisions("new"), store.n_decisions("new"), store.own_decisions()) == ([], 0, {})
    # Once it is written to, what comes later is newer than all that was there.
    with Store(path) as store:
        store.create_run("today", agentunit_version="1", settings={}, run_id="today", created_at=0.5)
        assert [run.id for run in store.runs()] == ["today", "new", "old"]


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "what?.db", "a#b.db"])
def test_any_file_name_will_do(name: str, tmp_path: Path) -> None:
    with Store(tmp_path / name) as store:
        fill(store)
    with Store(tmp_path / name, read_only=True) as store:
        assert store.find_run("last").n_done == 2
    assert (tmp_path / name).exists()

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import MetricResult, Score
from agentunit.core.trace import TraceLog
from agentunit.engine.runner import only_writer
from agentunit.store.run_lock import lock_path
from agentunit.store.runs import WrittenRecord
from agentunit.store.schema import MIGRATIONS, SCHEMA_VERSION, StoreError
from agentunit.store.sqlite import Store


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "deep" / "runs.db") as opened:
        yield opened


def new_run(store: Store, name: str = "desk", **settings: object) -> str:
    return store.create_run(name, agentunit_version="1", settings=settings).id


def record(case_id: str, answer: str = "ok") -> Record:
    return Record(DatasetCase(case_id, "?"), TraceLog(), Outcome(output=answer))


def score(value: float | None, **detail: object) -> Score:
    return Score(MetricResult("m", value, dict(detail)), "ok" if value is not None else "not_applicable", "b", "1", 0.1)


def test_what_goes_in_comes_out_in_dataset_order(store: Store) -> None:
    run = new_run(store)
    for position in (2, 0, 1):
        store.add_record(run, position, 0, record(f"q{position}"), failed=position == 1, elapsed_s=position / 10)
    store.add_record(run, 0, 1, record("q0", "again"), failed=False, elapsed_s=0.0)
    found = list(store.records(run))
    assert [(each.position, each.repeat, each.case_id, each.failed) for each in found] == [
        (0, 0, "q0", False), (0, 1, "q0", False), (1, 0, "q1", True), (2, 0, "q2", False),
    ]  # fmt: skip
    assert found[1].record == record("q0", "again")
    assert store.finished(run) == {(0, 0), (0, 1), (1, 0), (2, 0)}
    assert store.finished(run, failed=False) == {(0, 0), (0, 1), (2, 0)}
    assert store.case_ids(run) == ["q0", "q1", "q2"]
    assert [each.repeat for each in store.case(run, "q0")] == [0, 1]
    assert (store.find_run(run).n_done, store.find_run(run).n_failed) == (4, 1)


def test_scores_come_back_with_their_detail_or_as_rows_without(store: Store) -> None:
    run = new_run(store)
    for position in range(2):
        store.add_record(run, position, 0, record(f"q{position}"), failed=False, elapsed_s=0.0)
    store.add_scores(run, 0, 0, {"a": score(0.5, words=3), "b": score(None, reason="no context")})
    [(first), (second)] = store.scores(run, case_id="q0")
    assert (first.metric, first.score.value, first.score.result.detail) == ("a", 0.5, {"words": 3})
    rows = dict(store.score_rows(run))
    assert (rows["a"].value, rows["a"].reason) == (0.5, None)
    assert (rows["b"].value, rows["b"].reason, rows["b"].status) == (None, "no context", "not_applicable")
    assert second.metric == "b"


def test_only_what_lacks_a_score_is_asked_for(store: Store) -> None:
    run = new_run(store)
    for position in range(3):
        store.add_record(run, position, 0, record(f"q{position}"), failed=False, elapsed_s=0.0)
    store.add_scores(run, 0, 0, {"a": score(1.0), "b": score(1.0)})
    store.add_scores(run, 1, 0, {"a": score(1.0)})
    assert [each.case_id for each in store.records(run, unscored_by=["a", "b"])] == ["q1", "q2"]
    assert [each.case_id for each in store.records(run, unscored_by=["a"])] == ["q2"]


def test_a_case_that_is_recorded_anew_loses_its_old_scores(store: Store) -> None:
    run = new_run(store)
    store.add_record(run, 0, 0, record("q0"), failed=False, elapsed_s=0.0)
    store.add_scores(run, 0, 0, {"a": score(0.0)})
    store.add_record(run, 0, 0, record("q0", "better"), failed=False, elapsed_s=0.0)
    assert list(store.scores(run)) == []


def test_reading_on_while_writing_sees_the_store_as_it_was(store: Store) -> None:
    run = new_run(store)
    for position in range(100):
        store.add_record(run, position, 0, record(f"q{position}"), failed=False, elapsed_s=0.0)
    seen = 0
    for each in store.records(run, unscored_by=["a"]):
        store.add_scores(run, each.position, each.repeat, {"a": score(1.0)})
        seen += 1
    assert seen == 100


def test_runs_are_found_by_id_beginning_name_and_last(store: Store) -> None:
    first = store.create_run("desk", agentunit_version="1", settings={}, run_id="2026-aa", created_at=1.0)
    second = store.create_run("desk", agentunit_version="1", settings={}, run_id="2026-ab", created_at=2.0)
    assert store.find_run("2026-aa").id == first.id
    assert store.find_run("2026-ab").id == store.find_run("last").id == store.find_run("desk").id == second.id
    assert store.find_run("last~1").id == first.id
    with pytest.raises(StoreError, match="'2026' is a part of the ids of 2 runs"):
        store.find_run("2026")
    with pytest.raises(StoreError, match="no run is called 'nightly'; the newest is 2026-ab"):
        store.find_run("nightly")
    with pytest.raises(StoreError, match="holds 2 runs"):
        store.find_run("last~2")
    store.delete_run("2026-ab")
    assert store.find_run("last").id == "2026-aa"


def test_deleting_a_run_takes_its_records_and_scores_along(store: Store) -> None:
    run = new_run(store)
    store.add_record(run, 0, 0, record("q0"), failed=False, elapsed_s=0.0)
    store.add_scores(run, 0, 0, {"a": score(1.0)})
    store.delete_run(run)
    assert list(store.records(run)) == []
    assert list(store.scores(run)) == []


def test_an_empty_store_says_so(store: Store) -> None:
    with pytest.raises(StoreError, match="holds no runs yet"):
        store.find_run("last")


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
        store.add_record(run, 0, 0, record("q0"), failed=False, elapsed_s=0.0)
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


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"this is no database, " * 100)
    with pytest.raises(StoreError, match="cannot be used as a store"):
        Store(path)


WRITER = """
import sys
from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.store.runs import WrittenRecord
from agentunit.store.sqlite import Store
store = Store(sys.argv[1])
start, count = int(sys.argv[3]), int(sys.argv[4])
for position in range(start, start + count):
    record = Record(DatasetCase(f"q{position}"), TraceLog(), Outcome(output="x"))
    store.add_record(sys.argv[2], position, 0, record, failed=False, elapsed_s=0.0)
    print(position, flush=True)
"""


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as store:
        run = new_run(store)
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(path), run, str(start), "300"], stdout=subprocess.DEVNULL
            )
            for start in (0, 300)
        ]
        assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
        assert len(store.finished(run)) == 600


def test_what_was_reported_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as store:
        run = new_run(store)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), run, "0", "100000"], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    reported = [int(writer.stdout.readline()) for _ in range(200)]
    os.kill(writer.pid, signal.SIGKILL)
    reported += [int(line) for line in writer.stdout.read().split()]
    writer.wait()
    writer.stdout.close()
    with Store(path) as store:
        kept = {position for position, _ in store.finished(run)}
    assert set(reported) <= kept
    assert len(kept) < 100_000


def test_the_last_run_is_the_one_begun_last_whatever_the_clock_says(store: Store) -> None:
    for run_id, created_at in (("first", 2000.0), ("second", 1000.0), ("third", 1500.0)):
        store.create_run("desk", agentunit_version="1", settings={}, run_id=run_id, created_at=created_at)
    assert [run.id for run in store.runs()] == ["third", "second", "first"]
    assert store.find_run("last").id == store.find_run("desk").id == "third"
    assert store.find_run("last~2").id == "first"


def test_a_running_run_that_nobody_records_was_interrupted(store: Store) -> None:
    run = new_run(store)
    assert store.find_run(run).status == store.runs()[0].status == "interrupted"
    with only_writer(store, run):
        assert store.find_run(run).status == "running"
        with Store(store.address, read_only=True) as reader:
            assert reader.find_run(run).status == "running"
    assert store.find_run(run).status == "interrupted"
    # A killed process leaves the file of its lock behind, but nobody holds it.
    Path(lock_path(store.file, run)).touch()
    assert store.find_run(run).status == "interrupted"
    store.set_status(run, "finished")
    assert store.find_run(run).status == "finished"


def test_of_cases_kept_together_those_that_were_there_are_replaced_without_their_scores(store: Store) -> None:
    run_id = new_run(store)

    def row(n: int, answer: str) -> WrittenRecord:
        return (run_id, n, 0, f"q{n}", 0, 0.1, encode_record(record(f"q{n}", answer)))

    rows = [row(n, "first") for n in range(70)]
    store.add_lines(rows[:2])
    for n in range(2):
        store.add_scores(run_id, n, 0, {"m": score(1.0)})
    store.add_lines([row(1, "second"), *rows[2:]])
    answers = [each.record.outcome.output for each in store.records(run_id)]  # type: ignore[union-attr]
    assert answers == ["first", "second", *["first"] * 68]
    assert [each.position for each in store.scores(run_id)] == [0]

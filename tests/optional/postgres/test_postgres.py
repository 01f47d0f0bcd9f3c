"""What only PostgreSQL does: a server that is killed, migrations by two at once, passwords that are never shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytestmark = pytest.mark.optional
psycopg = pytest.importorskip("psycopg")

from postgres_server import PASSWORD, Server  # noqa: E402
from store_contract import add_cases, new_run, score, writer  # noqa: E402

from agentunit.addons.scale import postgres  # noqa: E402
from agentunit.addons.scale.postgres import _lock_key  # noqa: E402
from agentunit.cli.main import cli  # noqa: E402
from agentunit.store import open_store, schema  # noqa: E402
from agentunit.store.runs import RunTaken  # noqa: E402
from agentunit.store.schema import MIGRATIONS, StoreError  # noqa: E402


def tables(address: str) -> set[str]:
    with psycopg.connect(address) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'agentunit'"
        return {name for (name,) in connection.execute(query).fetchall()}


def test_a_killed_server_loses_nothing_that_was_acknowledged(
    server: Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_RECONNECT_FOR_S", 0.5)
    with open_store(address) as store:
        run = new_run(store)
        with store.recording(run):
            add_cases(store, run, 5)
            store.add_scores(run, 0, 0, {"a": score(1.0)})
            server.kill()
            with pytest.raises(StoreError, match="cannot be reached") as lost:
                add_cases(store, run, 6)
    assert PASSWORD not in str(lost.value)
    server.start()
    with open_store(address) as store:
        assert store.find_run(run).status == "interrupted"
        assert store.finished(run) == {(position, 0) for position in range(5)}
        assert [row.value for row in store.metric_rows(run, "a")] == [1.0]
        with store.recording(run):
            add_cases(store, run, 6)
        assert store.find_run(run).n_done == 6


def test_a_server_that_was_restarted_is_connected_to_again_and_the_run_is_held_again(
    server: Server, address: str
) -> None:
    with open_store(address) as store:
        run = new_run(store)
        with store.recording(run):
            add_cases(store, run, 2)
            with store.database.reading() as reader:
                reader.execute("SELECT 1")
            server.kill()
            restarting = threading.Timer(1.0, server.start)
            restarting.start()
            add_cases(store, run, 4)
            restarting.join()
            with store.transaction():
                store.add_scores(run, 0, 0, {"a": score(1.0)})
            assert len(list(store.records(run))) == 4
            with open_store(address) as other, pytest.raises(RunTaken), other.recording(run):
                pass
        with open_store(address) as other, other.recording(run):
            pass


def test_a_transaction_that_was_broken_off_is_an_error_and_nothing_of_it_is_kept(server: Server, address: str) -> None:
    with open_store(address) as store:
        run = new_run(store)
        with pytest.raises(StoreError), store.transaction():  # noqa: PT012
            store.add_scores(run, 0, 0, {"a": score(1.0)})
            server.kill()
            server.start()
            store.add_scores(run, 1, 0, {"a": score(1.0)})
        assert store.metrics_scored(run) == []
        store.add_scores(run, 1, 0, {"a": score(1.0)})
        assert store.metrics_scored(run) == ["a"]


def test_a_server_that_gives_no_answer_is_not_waited_for_for_ever(
    server: Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_RECONNECT_FOR_S", 0.5)
    with open_store(f"{address}?connect_timeout=2") as store:
        store.database._patience.seconds = 0.5
        run = new_run(store)
        with server.stalled(), pytest.raises(StoreError, match="cannot be reached"):
            add_cases(store, run, 1)
        add_cases(store, run, 1)
        assert store.find_run(run).n_done == 1


SLOW_SUITE = """
import time
from agentunit import DatasetCase, Suite

def answer(question: str) -> str:
    time.sleep(0.05)
    return question

suite = Suite([DatasetCase(f"q{n}", "?") for n in range(2000)], agent=answer, metrics=["contains"])
"""


@pytest.mark.parametrize("after_s", [0.5, 4.0])
def test_the_first_ctrl_c_ends_a_run_whose_server_gives_no_answer(
    server: Server, address: str, tmp_path: Path, after_s: float
) -> None:
    (tmp_path / "slow_suite.py").write_text(SLOW_SUITE)
    command = [sys.executable, "-m", "agentunit", "run", "slow_suite.py", "--store", address]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with open_store(address) as store:
        ends_at = time.monotonic() + 60
        while not any(run.n_done for run in store.runs()) and time.monotonic() < ends_at:
            time.sleep(0.1)
    with server.stalled():
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=15)
        finally:
            process.kill()
    assert process.returncode not in (0, -signal.SIGKILL), output
    assert "Traceback" not in output, output
    assert "--resume" in output
    assert PASSWORD not in output
    if after_s > postgres._TOLD_AFTER_S:
        assert re.search(r"127.0.0.1.* does not answer; trying for another 2\d s \(Ctrl-C ends that\)", output)


def test_a_run_is_free_once_the_process_that_recorded_it_was_killed(address: str) -> None:
    with open_store(address) as store:
        run = new_run(store)
        with writer(address, run, start=0, step=1, count=1) as killed:
            assert killed.stdout is not None
            assert [killed.stdout.readline() for _ in range(2)] == ["0\n", "waiting\n"]
            assert store.database.is_being_recorded(f"{run}0")
            os.kill(killed.pid, signal.SIGKILL)
            killed.wait()
        # The server frees the lock when it sees that nobody is there; this waits for it.
        with psycopg.connect(address) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (_lock_key(f"{run}0"),))
            connection.execute("SELECT pg_advisory_unlock(%s)", (_lock_key(f"{run}0"),))
        assert not store.database.is_being_recorded(f"{run}0")


def test_two_that_open_an_empty_database_at_once_both_can(address: str) -> None:
    found: list[Any] = []

    def open_and_count() -> None:
        with open_store(address) as store:
            found.append(len(store.runs()))

    with psycopg.connect(address) as first:
        # Both wait here until the tables may be made.
        first.execute("SELECT pg_advisory_lock(%s)", (0x6167656E74756E69,))
        threads = [threading.Thread(target=open_and_count) for _ in range(3)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert found == [0, 0, 0]


def test_a_migration_that_fails_or_is_killed_leaves_everything_as_it_was(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(address) as store:
        run = new_run(store)
        add_cases(store, run, 2)
    broken = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT", "ALTER TABLE nowhere ADD COLUMN x TEXT"))
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", broken)
        with pytest.raises(StoreError, match=r'cannot be .*relation "nowhere" does not exist'):
            open_store(address)
    script = """
import os, signal, sys
from agentunit.store import open_store, schema
stop = lambda connection: os.kill(os.getpid(), signal.SIGKILL)
schema.MIGRATIONS = (*schema.MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT", stop))
open_store(sys.argv[1])
"""
    assert subprocess.run([sys.executable, "-c", script, address]).returncode == -signal.SIGKILL
    with open_store(address) as store:
        assert store.find_run(run).n_done == 2
    with psycopg.connect(address) as connection, pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT note FROM agentunit.runs")
    later = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note BLOB",))
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    open_store(address).close()
    monkeypatch.undo()
    with pytest.raises(StoreError, match=f"written by a newer AgentUnit: its tables are of version {len(later)}"):
        open_store(address)


def test_scores_of_the_first_tables_move_to_blocks(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", MIGRATIONS[:2])
        with open_store(address) as store:
            run = new_run(store)
            for position in range(3):
                store.database.execute(
                    "INSERT INTO scores VALUES (?, ?, 0, 'a', ?, 'ok', 'b', '1', 0.5, '{\"n\":1}')",
                    (run, position, position / 2),
                )
            add_cases(store, run, 3)
    with open_store(address, read_only=True) as store:
        before = list(store.scores(run))
    assert "scores" in tables(address)
    with open_store(address) as store:
        assert list(store.scores(run)) == before
        assert [scores["a"].value for _, scores in before] == [0.0, 0.5, 1.0]
    assert tables(address) >= {"runs", "records", "score_blocks"}
    assert "scores" not in tables(address)


def test_reading_makes_no_tables(address: str) -> None:
    with pytest.raises(StoreError, match="holds no runs yet"):
        open_store(address, read_only=True)
    assert tables(address) == set()


SUITE = """
import agentunit
suite = agentunit.Suite(
    dataset=[agentunit.DatasetCase(f"q{n}", str(n), expected_output=str(n)) for n in range(3)],
    agent=lambda query: query,
    metrics=["exact_match"],
    gates=["exact_match >= 0.9"],
)
"""


def test_commands_take_the_address_and_never_show_its_password(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("desk.py").write_text(SUITE)
    said = ""

    def invoke(*arguments: str, exit_code: int = 0) -> str:
        nonlocal said
        result = CliRunner().invoke(cli, [*arguments])
        assert result.exit_code == exit_code, result.output
        said += result.output
        return result.output

    invoke("run", "desk.py", "--store", address)
    monkeypatch.setenv("AGENTUNIT_STORE", address)
    assert "3/3" in invoke("runs")
    for verb in ("show", "gate"):
        assert "exact_match" in invoke(verb, "last")
    invoke("show", "last", "q1")
    invoke("score", "last", "--metrics", "response_time")
    invoke("export", "last", "--to", "page.html")
    invoke("export", "last", "--to", "run.json")
    invoke("compare", "last", "last")
    invoke("runs", "--import", "run.json", "--as", "copy")
    invoke("runs", "--delete", "copy")
    wrong = address.replace("@127.0.0.1", "@127.0.0.1:1,127.0.0.1")
    assert "cannot be reached" in invoke("runs", "--store", wrong.replace("ada:", "bob:"), exit_code=3)
    assert "a store is a path" in invoke("runs", "--store", address.replace("postgresql", "mysql"), exit_code=2)
    with open_store(address) as store:
        said += str(store.runs()) + repr(store)
    said += Path("page.html").read_text() + Path("run.json").read_text()
    assert "correct" not in said
    assert PASSWORD not in said

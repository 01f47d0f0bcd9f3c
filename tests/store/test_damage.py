"""Stores in which bits have changed: every error names the store, the run and record if known, and a way out."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from kept_records import add_record

from agentunit.cli.main import _damaged_store, cli
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.results import MetricResult, Score
from agentunit.engine.deciding.decision import Decision
from agentunit.engine.deciding.stored import keep_decision
from agentunit.store import open_store
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import why_damaged

LONG = " ".join(str(number) for number in range(2_000))


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of short and long records with scores, a label and a decision, in ``runs.db``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)
    with open_store("runs.db") as store:
        run = store.create_run("desk", agentunit_version="1", settings={"tags": {"model": "m"}}).id
        for number in range(8):
            answer = LONG if number % 4 == 0 else f"answer {number}"
            record = Record(DatasetCase(f"q{number}", "Why?", expected_output="So."), outcome=Outcome(output=answer))
            add_record(store, run, number, 0, record, failed=False, elapsed_s=0.1)
            detail = {"expected": "So.", "answer": answer[:40], "backend": "text"}
            store.add_scores(
                run, number, 0, {"exact_match": Score(MetricResult("exact_match", 0.0, detail), "ok", "text", "1")}
            )
        store.add_labels(
            [StoredLabel(subject_of(record), "exact_match", "q7", 1.0, "ann", id="l1", run_id=run, position=7)]
        )
        keep_decision(store, run, Decision(1, "fail", "FAIL: 8 wrong"), "run")
        store.set_status(run, "finished")
    return run


def changed(sql: str, *values: object) -> None:
    with sqlite3.connect("runs.db") as connection:
        assert connection.execute(sql, values).rowcount > 0
    connection.close()


def said_by(*arguments: str) -> str:
    """What a command says as it fails. Anything but an error of the store would be shown as a fault of AgentUnit."""
    result = CliRunner().invoke(cli, [*arguments, "--store", "runs.db"])
    if isinstance(result.exception, StoreError):
        return str(result.exception)
    assert result.exit_code == 3, (result.output, result.exception)
    return result.output


@pytest.mark.parametrize("case_id", ["q3", "q4"])
def test_a_damaged_record_is_named(run_id: str, case_id: str) -> None:
    broken = "CAST(substr(record, 1, 20) || x'ff' || substr(record, 22) AS BLOB)"
    changed(f"UPDATE records SET record = {broken} WHERE case_id = ?", case_id)
    exports = [["export", "last", "--to", target] for target in ("run.html", "run.json", "run.csv")]
    for command in (["show", "last", case_id], *exports, ["runs", "--erase", "user=ada"]):
        said = said_by(*command)
        assert f"runs.db: the record of case '{case_id}' (position {case_id[1]}) of run {run_id} is damaged" in said
        assert f"put a copy of the store in its place, or remove the run ('agentunit runs --delete {run_id}')" in said


@pytest.mark.parametrize(
    ("column", "value"),
    [("details", b"x\x9c!"), ("score_values", "[0.0,"), ("producers", '[["ok","text"]]'), ("reasons", '{"a":["b"]}')],
)
def test_damaged_scores_are_named(run_id: str, column: str, value: object) -> None:
    changed(f"UPDATE score_blocks SET {column} = ?", value)
    said = said_by("export", "last", "--to", "a.csv")
    assert f"runs.db: a score of run {run_id} is damaged" in said


@pytest.mark.parametrize(
    ("column", "value"),
    [("settings", '{"tags"'), ("settings", "7"), ("status", "finishee"), ("created_at", 1e300), ("n_planned", "x")],
)
def test_a_run_whose_description_is_damaged_is_named_and_can_be_removed(
    run_id: str, column: str, value: object
) -> None:
    changed(f"UPDATE runs SET {column} = ?", value)
    for command in (["runs"], ["show", "last"], ["show", run_id, "--gate", "stored"]):
        assert f"runs.db: what describes run {run_id} is damaged" in said_by(*command)
    removed = CliRunner().invoke(cli, ["runs", "--delete", "last", "--store", "runs.db"])
    assert removed.output == f"removed run {run_id} with its 8 cases\n"


def test_a_damaged_label_and_a_damaged_decision_are_named(run_id: str) -> None:
    changed("UPDATE decisions SET decision = ?", b"x\x9cnothing")
    assert f"runs.db: a decision of run {run_id} is damaged" in said_by("show", "last")
    changed("UPDATE labels SET label = '{'")
    assert "runs.db: the label 'l1' is damaged" in said_by("show", "last")


def test_wherever_a_bit_has_changed_an_error_names_the_store(run_id: str) -> None:
    whole = Path("runs.db").read_bytes()
    written = [place for place, byte in enumerate(whole) if byte and place >= 100]
    rng = random.Random(36)
    n_named = 0
    for _ in range(60):
        content = bytearray(whole)
        content[rng.choice(written)] ^= 1 << rng.randrange(8)
        for rest in Path().glob("runs.db*"):
            rest.unlink()
        Path("runs.db").write_bytes(content)
        for command in (["show", "last"], ["export", "last", "--to", "a.csv"]):
            result = CliRunner().invoke(cli, [*command, "--store", "runs.db"])
            error = result.exception
            if result.exit_code in (0, 1, 4):
                continue
            said = str(error) if isinstance(error, StoreError) else result.output
            # What nothing else explains is explained by a look at the whole file.
            assert "runs.db" in (said if isinstance(error, (StoreError, SystemExit)) else _damaged_store() or ""), error
            n_named += 1
    assert n_named > 5


def test_a_text_that_cannot_be_decoded_is_not_quoted(run_id: str) -> None:
    changed("UPDATE records SET case_id = CAST(x'73656372657420ff' AS TEXT) WHERE position = 3")
    said = said_by("export", "last", "--to", "a.csv")
    assert "runs.db cannot be read: Could not decode to UTF-8 column 'case_id': put a copy of it in its place" in said
    assert "secret" not in said


def test_sqlite_itself_says_what_is_wrong_with_a_file(run_id: str) -> None:
    assert why_damaged("runs.db") is None
    with sqlite3.connect("runs.db") as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'records_by_case'").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(Path("runs.db").read_bytes())
    content[(root - 1) * page_bytes + 3] ^= 4  # how many cells the index has
    Path("runs.db").write_bytes(content)
    assert why_damaged("runs.db")
    Path("other.db").write_bytes(b"no database at all, but long enough to be looked at" * 20)
    assert why_damaged("other.db") == "file is not a database"

"""``agentunit runs --erase``: nothing of what was erased is left, and the log names nobody."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from kept_records import add_record

from agentunit.addons.judge.cache import KeptReply, ReplyCache, cache_contents, cache_folder
from agentunit.cli.main import cli
from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.store import open_store
from agentunit.store.erasure import erase_from, whom
from agentunit.store.portable import export_run, portable_extras
from agentunit.store.runs import StoredDecision
from agentunit.store.schema import StoreError


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def record(case_id: str, user: str) -> Record:
    return Record(DatasetCase(case_id, f"the secret of {user}", metadata={"user_id": user}), outcome="done")


def runs(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["runs", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def made_store() -> str:
    with open_store("runs.db") as store:
        run = store.create_run("desk", agentunit_version="1", settings={}).id
        for position, user in enumerate(("jane-4711", "omar-4712")):
            add_record(store, run, position, 0, record(f"q{position}", user), failed=False, elapsed_s=0.1)
        export_run(store, run, "run.json")
    return run


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_nothing_of_a_user_is_left_in_any_file(tmp_path: Path) -> None:
    made_store()
    Path("traces.jsonl").write_bytes(
        b"".join(encode_record(record("t", user)) + b"\n" for user in ("jane-4711", "eve"))
    )
    Path("page").mkdir()
    Path("page/index.html").write_text('<meta name="agentunit-source" content="bundle"> jane-4711')
    assert b"jane-4711" in bytes_of(tmp_path)
    said = runs("--erase", "user=jane-4711", "run.json", "traces.jsonl", "page", "--store", "runs.db")
    assert "erased 1 record of 1 run" in said
    assert "removed page" in said
    left = bytes_of(tmp_path)
    assert b"jane-4711" not in left
    assert b"omar-4712" in left
    assert b"eve" in left
    assert json.loads(Path("run.json").read_text().splitlines()[1])["case_id"] == "q1"
    (logged,) = json.loads(runs("--erasures", "--json", "--store", "runs.db"))
    assert (logged["kind"], logged["n_records"]) == ("user", 1)


def kept_reply() -> Path:
    folder = cache_folder("default")
    cache = ReplyCache(folder)
    cache.keep(b"1", KeptReply("a reply about jane-4711", None, None, None))
    cache.close()
    return folder


def test_the_replies_to_other_stores_stay_in_the_judges_cache() -> None:
    """One cache serves all stores of a user, and a reply does not say of which it is."""
    made_store()
    folder = kept_reply()
    said = runs("--erase", "user=jane-4711", "--store", "runs.db")
    assert "1 reply in the judge's cache, of all your stores, may quote it and is left" in said
    assert f"'agentunit doctor --cache clear' clears {folder}" in said
    assert cache_contents(folder).n_replies == 1
    told = json.loads(runs("--erase", "user=omar-4712", "--json", "--store", "runs.db"))
    assert (told["n_judge_replies"], told["n_judge_replies_left"]) == (0, 1)
    assert "judge" not in runs("--erase", "user=nobody", "--store", "runs.db")


def test_a_judges_cache_that_is_named_is_cleared() -> None:
    made_store()
    folder = kept_reply()
    said = runs("--erase", "user=jane-4711", str(folder), "--store", "runs.db")
    assert "cleared the judge's cache (1 reply)" in said
    assert b"jane-4711" not in bytes_of(folder)


def test_what_a_file_decided_goes_with_a_record_that_it_may_quote() -> None:
    with open_store("runs.db") as store:
        run = store.create_run("desk", agentunit_version="1", settings={}).id
        add_record(store, run, 0, 0, record("q0", "jane-4711"), failed=False, elapsed_s=0.1)
        quoting = msgspec.Raw(b'{"why":"the secret of jane-4711"}')
        store.add_decision(run, StoredDecision(1.0, "run", "fail", "FAIL: q0", quoting))
        export_run(store, run, "run.json", history={"q0": 3})
    assert "erased 0 records of run.json" in runs("--erase", "user=nobody", "run.json", "--store", "runs.db")
    assert portable_extras("run.json")[1] == {"q0": 3}
    runs("--erase", "user=jane-4711", "run.json", "--store", "runs.db")
    assert portable_extras("run.json") == ([], {})
    assert b"jane-4711" not in Path("run.json").read_bytes()


def test_what_cannot_be_erased_is_refused() -> None:
    made_store()
    for arguments, said in (
        (["--erase", "somebody"], "user=ID, session=ID, case=ID or older=30d"),
        (["--erase", "older=soon"], "such as 30d"),
        (["--erase", "older=1d", "run.json"], "takes no files"),
        (["run.json"], "files belong to --erase"),
        (["--erase", "user=x", "scores.parquet"], "make other files again"),
    ):
        result = CliRunner().invoke(cli, ["runs", *arguments, "--store", "runs.db"])
        assert (result.exit_code, said in result.output) == (2, True), result.output


def test_a_suite_may_ask_for_a_masked_store() -> None:
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "suite = Suite(dataset=[{'id': 'q', 'query': 'Write to mia.lindqvist@example.org'}],\n"
        "              agent=lambda case: f'Sent: {case.query}', metrics=['pii_leakage'], store='masked')\n"
    )
    result = CliRunner().invoke(cli, ["run", "suite.py", "--store", "masked.db"])
    assert result.exit_code == 0, result.output
    assert b"lindqvist" not in b"".join(path.read_bytes() for path in Path().glob("masked.db*"))
    with open_store("masked.db", read_only=True) as store:
        assert store.masking.is_on


def test_files_are_looked_at_before_anything_is_erased() -> None:
    made_store()
    Path("scores.jsonl").write_text('{"case_id": "q0", "scores": {}}\n')
    Path("half.jsonl.gz").write_bytes(gzip.compress(encode_record(record("t", "jane-4711")))[:-9])
    for file, said in (("scores.parquet", "make other files again"), ("scores.jsonl", "line 1"), ("half.jsonl.gz", "")):
        asked = ["runs", "--erase", "user=jane-4711", "run.json", file, "--store", "runs.db"]
        result = CliRunner().invoke(cli, asked)
        assert (result.exit_code, said in result.output) == (2, True), result.output
    assert b"jane-4711" in Path("run.json").read_bytes()
    assert "1 record of 1 run" in runs("--erase", "user=jane-4711", "--store", "runs.db")


def test_what_lies_behind_a_link_is_erased(tmp_path: Path) -> None:
    made_store()
    Path("far").mkdir()
    Path("run.json").rename("far/run.json")
    Path("run.json").symlink_to("far/run.json")
    runs("--erase", "user=jane-4711", "run.json", "--store", "runs.db")
    assert Path("run.json").is_symlink()
    assert b"jane-4711" not in bytes_of(tmp_path)


def test_a_page_is_removed_and_nothing_behind_a_link_in_it() -> None:
    made_store()
    for folder in ("page", "others"):
        Path(folder).mkdir()
    Path("page/index.html").write_text('<meta name="agentunit-source" content="bundle">')
    Path("page/data").symlink_to("../others")
    asked = ["runs", "--erase", "user=jane-4711", "page", "--store", "runs.db"]
    result = CliRunner().invoke(cli, asked)
    assert (result.exit_code, "is a link" in result.output) == (2, True), result.output
    assert Path("page/index.html").exists()


def test_a_store_that_is_being_read_is_not_called_erased() -> None:
    made_store()
    with contextlib.closing(sqlite3.connect("runs.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        with open_store("runs.db") as store:
            store.database.execute("PRAGMA busy_timeout = 0")  # it would wait for a minute
            with pytest.raises(StoreError, match="another process reads it"):
                erase_from(store, whom("user=jane-4711"))
    runs("--erase", "user=jane-4711", "--store", "runs.db")
    assert b"jane-4711" not in b"".join(path.read_bytes() for path in Path().glob("runs.db*"))


def test_a_masked_store_knows_whom_to_erase() -> None:
    with open_store("runs.db") as store:
        store.masking.turn_on()
        run = store.create_run("desk", agentunit_version="1", settings={}).id
        for position, user in enumerate(("jane@example.org", "omar@example.org")):
            add_record(store, run, position, 0, record(f"q{position}", user), failed=False, elapsed_s=0.1)
        add_record(store, run, 2, 0, record("eve@example.org", "u-1"), failed=False, elapsed_s=0.1)
    assert "erased 1 record" in runs("--erase", "user=jane@example.org", "--store", "runs.db")
    assert "erased 1 record" in runs("--erase", "case=eve@example.org", "--store", "runs.db")
    assert "erased 0 records" in runs("--erase", "user=jane@example.org", "--store", "runs.db")

from __future__ import annotations

import json
import sys

import pytest
from pyarrow import parquet

from agentunit.engine.scoring.scored_run import run_from_file
from agentunit.installation import install_command
from agentunit.store.sqlite import Store

METRICS = "task_success,tool_success"


def record(number, *, success=True):
    outcome = {"output": f"answer {number}", "success": success}
    return json.dumps({"case": {"id": f"q{number}", "query": "Where?"}, "trace": {"events": []}, "outcome": outcome})


def lines(n_cases, n_failed=0):
    return "".join(record(number, success=number >= n_failed) + "\n" for number in range(n_cases))


@pytest.fixture
def scored(invoke, tmp_path):
    """Two files of traces and their tables; of the second, six cases fail and two lines cannot be read."""
    (tmp_path / "old.jsonl").write_text(lines(40))
    (tmp_path / "new.jsonl").write_text(lines(40, n_failed=6) + "{no\n{no\n")
    assert invoke("score", "old.jsonl", "-m", METRICS, "--out", "old.parquet").exit_code == 0
    assert invoke("score", "new.jsonl", "-m", METRICS, "--out", "new.parquet").exit_code == 3
    return tmp_path


def test_a_table_is_shown_gated_compared_and_exported(scored, invoke):
    shown = invoke("show", "new.parquet", "--json")
    assert shown.exit_code == 0
    summary = json.loads(shown.stdout)["summary"]
    scored_again = json.loads(invoke("score", "new.jsonl", "-m", METRICS, "--json").stdout)["summary"]
    for each in (*summary["metrics"], *scored_again["metrics"], summary, scored_again):
        each["elapsed_s"] = None
    # How its cases stand is in the decision about a run, and in the summary of files.
    assert scored_again.pop("counts")["wrong"] == 6
    assert scored_again.pop("findings")
    assert (summary.pop("counts"), summary.pop("findings")) == (None, [])
    assert summary == scored_again
    assert invoke("show", "old.parquet", "-g", "task_success >= 0.9").exit_code == 0
    failed = invoke("show", "new.parquet", "-g", "task_success >= 0.9", "--baseline", "old.parquet", "--max-errors", 2)
    assert failed.exit_code == 1
    assert "FAIL: task_success >= 0.9: mean 0.85 misses >= 0.9" in " ".join(failed.stdout.split())
    compared = invoke("compare", "old.parquet", "new.parquet", "--on", "task_success")
    assert compared.exit_code == 4
    assert "CANNOT TELL: 6 newly failing, not tried to the end (q0, q1, q2, q3 and 2 more" in compared.stdout
    for name in ("run.html", "run.md", "run.xml", "run.csv", "run.parquet"):
        assert invoke("export", "new.parquet", "--to", name).exit_code == 0, name
    assert "(none)" not in (scored / "run.md").read_text()
    assert invoke("show", "run.parquet", "-g", "task_success >= 0.9").exit_code == 1


def test_one_case_of_a_table(scored, invoke):
    shown = invoke("show", "new.parquet", "q3")
    assert shown.exit_code == 0
    assert "a score table has the scores only" in shown.stdout
    assert "task_success  0.00" in shown.stdout
    assert "Answer" not in shown.stdout
    assert invoke("show", "new.parquet", "q99").exit_code == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_table_knows_that_a_function_returned_bools(invoke, tmp_path, jobs):
    # A module is loaded once in a process, whatever its folder.
    module = f"table_functions_{jobs}.py"
    (tmp_path / "new.jsonl").write_text(lines(40))
    (tmp_path / module).write_text("def polite(answer):\n    return 'answer' in answer\n")
    done = invoke("score", "new.jsonl", "-m", f"{module}:polite", "--out", "new.parquet", "--jobs", jobs)
    assert done.exit_code == 0, done.output
    info = run_from_file(tmp_path / "new.parquet").info("polite")
    assert (info.check, info.direction) == (True, "higher")


def test_errors_count_when_it_is_decided_later(scored, invoke):
    decided = invoke("show", "new.parquet", "-g", "task_success >= 0.5")
    assert decided.exit_code == 3
    assert "unreadable records, failed cases and scores: 2, allowed: 0" in decided.stdout
    invoke("score", "new.jsonl", "-m", METRICS, "--out", "new.parquet", "--max-errors", 2)
    assert invoke("show", "new.parquet", "-g", "task_success >= 0.5").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("runs", "--import", "old.parquet"), "is a score table, without records to import"),
        (("export", "old.parquet", "--to", "run.json"), "without the records that a .json file holds"),
        (("show", "old.parquet", "--by", "metadata.category"), "was kept without its records"),
    ],
)
def test_what_needs_records_says_so(scored, invoke, arguments, message):
    refused = invoke(*arguments)
    assert refused.exit_code in (2, 3)
    assert message in refused.stderr


def test_a_parquet_file_that_is_no_table(scored, invoke):
    table = parquet.read_table("old.parquet")
    parquet.write_table(table, "other.parquet")
    for verb in (("show",), ("show", "-g", "cost <= 1"), ("compare", "old.parquet")):
        refused = invoke(*verb, "other.parquet")
        assert refused.exit_code == 3
        assert refused.stderr == (
            "Error: other.parquet is a Parquet file, but no score table of AgentUnit; "
            "'agentunit score FILES --out scores.parquet' writes a score table\n"
        )


def test_a_table_is_whole_or_not_there(scored, invoke):
    before = (scored / "old.parquet").read_bytes()
    stopped = invoke("score", "new.jsonl", "-m", METRICS, "--strict", "--out", "old.parquet")
    assert stopped.exit_code == 3
    assert "holds the" not in stopped.stderr
    (scored / "empty.jsonl").write_text("")
    assert invoke("score", "empty.jsonl", "-m", METRICS, "--out", "old.parquet").exit_code == 3
    assert (scored / "old.parquet").read_bytes() == before
    assert not list(scored.glob("*.part"))


def test_without_pyarrow_nothing_is_scored(invoke, tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_text(lines(2))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = invoke("score", "a.jsonl", "-m", METRICS, "--out", "a.parquet")
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert refused.stderr == f"Error: --out a.parquet: Parquet needs pyarrow: {install_command('parquet')}\n"


def test_the_scores_of_a_stored_run_are_exported(invoke):
    with Store("runs.db") as store:
        store.create_run("desk", agentunit_version="1", settings={})
    options = ("-m", METRICS, "--store", "runs.db", "--out", "a.parquet")
    refused = invoke("score", "last", *options)
    assert refused.exit_code == 2
    assert "'agentunit export last --to FILE' writes its scores" in refused.stderr
    assert "no such file, and no such run" in invoke("score", "tarces.jsonl", *options).stderr

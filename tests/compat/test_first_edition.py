"""What the first edition stored opens, migrates and compares in this one. These files are never made again."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agentunit.cli.main import cli
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.comparison import Comparison, MetricComparison
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import info_of, run_from_file, run_from_store
from agentunit.metrics.assertions import ContainsMetric
from agentunit.privacy.budget import PrivacyBudgetMetric
from agentunit.store.schema import SCHEMA_VERSION
from agentunit.store.sqlite import Store

STORED = Path(__file__).parents[1] / "data" / "first_edition"
METRICS = [
    "contains", "task_success", "answer_correctness", "faithfulness", "tool_success", "cost", "token_usage",
    "pii_leakage", "privacy_budget", "response_time", "brevity",
]  # fmt: skip
Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """The command line in a folder with copies of what was stored."""
    for name in ("runs.db", "baseline.json.gz"):
        shutil.copyfile(STORED / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("AGENTUNIT_STORE", "runs.db")
    monkeypatch.setenv("AGENTUNIT_BACKEND", "lexical")
    return lambda *arguments: CliRunner().invoke(cli, list(arguments))


def tables_version(path: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def compared(comparison: Comparison, name: str) -> MetricComparison:
    (found,) = [each for each in comparison.metrics if each.metric == name]
    return found


def test_the_files_are_those_of_the_first_edition() -> None:
    assert tables_version(str(STORED / "runs.db")) == 1


def test_runs_are_listed_and_reading_changes_nothing(invoke: Invoke) -> None:
    before = Path("runs.db").read_bytes()
    listed = invoke("runs")
    assert listed.exit_code == 0, listed.output
    for words in ("before", "after", "18/18", "killed", "3/18", "interrupted"):
        assert words in listed.output
    assert Path("runs.db").read_bytes() == before


def test_a_run_and_a_failed_case_are_shown(invoke: Invoke) -> None:
    shown = invoke("show", "before")
    assert shown.exit_code == 0, shown.output
    every = invoke("show", "before", "--all").output
    assert all(name in every for name in METRICS)
    case = invoke("show", "before", "atlantis")
    assert case.exit_code == 0, case.output
    assert "LookupError" in case.output
    assert invoke("show", "baseline.json.gz", "peru").exit_code == 0


@pytest.mark.parametrize("run", ["before", "baseline.json.gz"])
def test_the_gates_of_a_run_still_decide(invoke: Invoke, run: str) -> None:
    decided = invoke("show", run, "--json", "--gate", "stored")
    assert decided.exit_code == 0, decided.output
    assert [each["verdict"] for each in json.loads(decided.output)["gates"]] == ["pass", "pass"]
    assert invoke("show", "after", "--gate", "contains all == 1").exit_code == 1


@pytest.mark.parametrize("baseline", ["before", "baseline.json.gz"])
def test_runs_compare(invoke: Invoke, baseline: str) -> None:
    result = invoke("compare", baseline, "after", "--metrics", "contains,cost", "--json")
    assert result.exit_code == 1, result.output
    data = json.loads(result.output)
    # All other answers are the same to the byte: what fails now did not fail by chance.
    assert data["decision"]["failing_cases"] == ["peru", "chad"]
    metrics = {each["metric"]: each for each in data["comparison"]["metrics"]}
    assert (metrics["contains"]["baseline_mean"], metrics["contains"]["candidate_mean"]) == (1.0, 0.75)
    assert metrics["cost"]["difference"] == 0.0


def test_the_first_write_migrates_and_keeps_every_score(invoke: Invoke) -> None:
    with Store("runs.db", read_only=True) as store:
        before = run_from_store(store, "before")
    scored = invoke("score", "killed", "--metrics", "contains,cost")
    assert scored.exit_code == 0, scored.output
    assert tables_version("runs.db") == SCHEMA_VERSION
    with Store("runs.db") as store:
        assert run_from_store(store, "before") == before
        killed = run_from_store(store, "killed")
        assert [header.name for header in store.runs()] == ["killed", "after", "before"]
    assert [row.value for row in killed.metrics["contains"]] == [1.0] * 3


def test_an_export_is_imported_and_written_again_without_loss(invoke: Invoke) -> None:
    imported = invoke("runs", "--import", "baseline.json.gz", "--as", "main")
    assert imported.exit_code == 0, imported.output
    exported = invoke("export", "main", "--to", "again.json.gz")
    assert exported.exit_code == 0, exported.output

    def cases(path: str) -> list[Any]:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            return [json.loads(line) for line in stream][1:]

    assert cases("again.json.gz") == cases("baseline.json.gz")
    assert invoke("export", "after", "--to", "report.html", "--baseline", "main").exit_code == 0


def test_a_baseline_of_an_older_metric_version_is_scored_again(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContainsMetric, "info", replace(ContainsMetric.info, version="2"))
    with Store("runs.db") as store:
        score_run(store, store.find_run("after").id, ["contains", "privacy_budget"], again=True)
    kept = Path("baseline.json.gz").read_bytes()
    for baseline in ("before", "baseline.json.gz"):
        result = invoke("compare", baseline, "after")
        assert "the baseline was scored again from its records with newer metrics: contains (version 1 → 2), " in (
            result.output
        ), result.output
        assert "privacy_budget (version 1 → 2)" in result.output
        assert "may not mean the same" not in result.output
        data = json.loads(invoke("compare", baseline, "after", "--metrics", "contains", "--json").output)["comparison"]
        only = data["metrics"][0]
        assert (only["verdict"], only["baseline_mean"], only["candidate_mean"]) == ("no loss shown", 1.0, 0.75)
        assert "contains (version 1 → 2)" in data["note"]
        assert "privacy_budget" not in data["note"], "what is not compared is not scored"
    assert Path("baseline.json.gz").read_bytes() == kept
    with Store("runs.db", read_only=True) as store:
        assert {row.version for row in run_from_store(store, "before").metrics["contains"]} == {"1"}


def test_a_version_that_loses_most_values_of_the_baseline_is_not_used(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ContainsMetric, "info", replace(ContainsMetric.info, version="2"))
    with Store("runs.db") as store:
        score_run(store, store.find_run("after").id, ["contains"], again=True)
        candidate, baseline = run_from_store(store, "after"), run_from_store(store, "before")
    assert baseline.read_records is not None
    some = list(baseline.read_records())[:1]
    comparison = compare_runs(candidate, replace(baseline, read_records=lambda: iter(some)))
    found = compared(comparison, "contains")
    assert found.verdict == "not compared"
    assert "this version has a value for" in found.reason


def test_a_metric_with_other_parameters_is_not_scored_again(invoke: Invoke) -> None:
    with Store("runs.db") as store:
        score_run(store, store.find_run("after").id, [PrivacyBudgetMetric(total_budget=1.0)], again=True)
        comparison = compare_runs(run_from_store(store, "after"), run_from_store(store, "before"))
    budget = compared(comparison, "privacy_budget")
    assert (budget.verdict, comparison.note) == ("not compared", None)
    assert "versions 1 and 2 of the metric may not mean the same" in budget.reason
    assert "does not give the candidate's scores" in budget.reason


def test_without_records_it_says_which_metric_does_not_compare(invoke: Invoke) -> None:
    with gzip.open("baseline.json.gz", "rt", encoding="utf-8") as stream:
        header, *cases = [json.loads(line) for line in stream]
    stripped = [header, *({**case, "record": None} for case in cases)]
    Path("stripped.json").write_text("".join(json.dumps(each) + "\n" for each in stripped), encoding="utf-8")
    with Store("runs.db") as store:
        score_run(store, store.find_run("after").id, ["privacy_budget"], again=True)
        candidate = run_from_store(store, "after")
    for baseline, why in (
        (run_from_file("stripped.json"), "cannot be read"),
        (replace(run_from_file("baseline.json.gz"), read_records=None), "are not at hand"),
    ):
        comparison = compare_runs(candidate, baseline)
        assert why in compared(comparison, "privacy_budget").reason
        assert compared(comparison, "contains").baseline_mean == 1.0


def test_a_name_in_a_file_imports_nothing(invoke: Invoke) -> None:
    Path("theirs.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    assert info_of("theirs.py:Metric").family == "custom"

"""What stands in the place of a run on a command line: files that are not there, score lines, traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RECORDS = "".join(
    f'{{"case": {{"id": "q{at}"}}, "trace": {{"metadata": {{"cost": 0.5}}}}, "outcome": "x"}}\n' for at in range(30)
)
VERBS = {
    "gate": ("show", "{}", "-g", "cost <= 1"),
    "compare": ("compare", "{}", "{}"),
    "show": ("show", "{}"),
    "export": ("export", "{}", "--to", "report.md"),
    "label": ("label", "{}"),
    "view": ("view", "{}", "--bundle", "site"),
    "validity": ("label", "--measure", "{}"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("path", ["nothing.jsonl", "some/folder"])
@pytest.mark.parametrize("with_store", [False, True])
def test_a_path_where_nothing_is_says_that_no_file_is_there(invoke, verb, path, with_store):
    if with_store:
        Path("traces.jsonl").write_text(RECORDS)
        invoke("show", "traces.jsonl", "-g", "cost <= 1")
    result = invoke(*(part.format(path) for part in VERBS[verb]))
    assert result.exit_code == 3
    assert f"{path}: no such file, and no run is called so" in result.stderr


@pytest.mark.parametrize("verb", [*VERBS, "doctor", "score", "convert"])
def test_a_file_of_score_lines_is_told_for_what_it_is(invoke, verb):
    Path("traces.jsonl").write_text(RECORDS)
    assert invoke("score", "traces.jsonl", "-m", "cost", "--out", "scores.jsonl").exit_code == 0
    command = VERBS.get(verb, (verb, "{}", *(["--out", "x.jsonl"] if verb == "convert" else [])))
    result = invoke(*(part.format("scores.jsonl") for part in command))
    assert result.exit_code in (3, 4)
    said = " ".join(result.output.split())
    assert "holds scores ('agentunit score --out' wrote it) and no records" in said
    assert "--out scores.parquet" in said


@pytest.mark.parametrize("verb", ["score", "mask", "convert", "gate"])
def test_an_exported_run_among_traces_says_what_reads_it(invoke, verb):
    Path("traces.jsonl").write_text(RECORDS)
    invoke("show", "traces.jsonl", "-g", "cost <= 1")
    invoke("compare", "last", "last")
    assert invoke("export", "last", "--to", "my run.json").exit_code == 0
    if verb != "gate":
        command = ("convert", "--mask") if verb == "mask" else (verb,)
        result = invoke(*command, "my run.json", "--out", "x.jsonl")
        assert result.exit_code in (3, 4)
        assert "no trace format" not in result.output
        said = "an exported run: 'agentunit show 'my run.json'' shows it, 'agentunit runs --import 'my run.json''"
        assert said in " ".join(result.output.split())
    # What reads exported runs reads this one, though what was decided about it also speaks of scores and cases.
    assert invoke("show", "my run.json", "-g", "cost <= 1").exit_code == 0
    assert invoke("show", "my run.json").exit_code == 0
    assert invoke("runs", "--import", "my run.json", "--store", "other.db").exit_code == 0


@pytest.mark.parametrize("command", [("show", "{}"), ("show", "{}", "q1"), ("score", "{}")])
def test_the_report_of_pytest_is_told_for_what_it_is(invoke, command):
    report = {"v": 1, "agentunit_version": "0.1.0", "created_at": "", "n_evaluations": 1, "tests": []}
    Path("evaluation.json").write_text(json.dumps(report))
    result = invoke(*(part.format("evaluation.json") for part in command))
    assert result.exit_code in (3, 4)
    said = " ".join(result.output.split())
    assert "evaluation.json: a report of pytest for programs, which no command reads" in said
    assert "scores it" not in said


def test_records_with_scores_in_fields_of_their_own_are_records(invoke):
    own = '{"index": 0, "case_id": "q", "scores": {}, '
    Path("traces.jsonl").write_text("".join(own + line[1:] + "\n" for line in RECORDS.splitlines()))
    assert invoke("show", "traces.jsonl", "-g", "cost <= 1").exit_code == 0


def test_a_run_may_be_called_like_a_file(invoke):
    Path("traces.jsonl").write_text(RECORDS)
    invoke("show", "traces.jsonl", "-g", "cost <= 1")
    Path("traces.jsonl").unlink()
    assert invoke("show", "traces.jsonl", "-g", "cost <= 1").exit_code == 0


def test_files_of_traces_are_compared(invoke):
    Path("old.jsonl").write_text(RECORDS)
    Path("new.jsonl").write_text(RECORDS.replace("0.5", "0.9"))
    result = invoke("compare", "old.jsonl", "new.jsonl", "--on", "cost")
    assert result.exit_code == 1, result.output
    assert "FAIL: cost 0.9, was 0.5 (p < 0.001)" in result.output


def test_a_look_at_a_file_names_no_run_that_nobody_can_find(invoke):
    Path("traces.jsonl").write_text(RECORDS)
    result = invoke("view", "traces.jsonl", "--bundle", "site")
    assert result.exit_code == 0, result.output
    assert "30 records of traces.jsonl scored for this look" in result.stderr
    assert "imported as run" not in result.output
    assert not Path(".agentunit").exists()

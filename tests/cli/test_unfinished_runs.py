"""Runs that were stopped or not scored are no ground for a verdict, and every command says how to go on."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from kept_records import add_record

from agentunit.cli.compare import compare
from agentunit.cli.export import export
from agentunit.cli.runs import runs
from agentunit.cli.show import show
from agentunit.core.codec import decode_record
from agentunit.core.results import MetricResult, Score
from agentunit.store.opening import DEFAULT_PATH
from agentunit.store.sqlite import Store


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)


def invoke(command, *arguments):
    return CliRunner().invoke(command, [str(each) for each in arguments])


def make_run(
    name, *, n_done=6, n_scored=0, n_planned=20, status="stopped", value=1.0, gates=(), metrics=(), failing=()
):
    """A run of which ``n_done`` cases are recorded and ``n_scored`` scored."""
    settings = {"suite": "suite.py", "repeats": 1, "gates": list(gates), "metrics": list(metrics)}
    with Store(DEFAULT_PATH) as store:
        run_id = store.create_run(name, agentunit_version="0", settings=settings, n_planned=n_planned).id
        for position in range(n_done):
            record = decode_record(b'{"case": {"id": "q%d"}, "outcome": "x"}' % position)
            add_record(store, run_id, position, 0, record, failed=False, elapsed_s=0.1)
        for position in range(n_scored):
            score = Score(MetricResult("contains", 0.0 if position in failing else value, {}), "ok", "trace", "1", 0.0)
            store.add_scores(run_id, position, 0, {"contains": score})
        store.set_status(run_id, status)
    return run_id


def whole(name, **how):
    return make_run(name, n_done=20, n_scored=20, status="finished", **how)


@pytest.mark.parametrize("ways", [("stopped", "stopped"), ("stopped", "whole"), ("whole", "stopped")])
@pytest.mark.parametrize("n_scored", [0, 6])
def test_a_stopped_run_passes_no_comparison(ways, n_scored):
    for name, way in zip(("p1", "p2"), ways, strict=True):
        if way == "whole":
            whole(name)
        else:
            make_run(name, n_scored=n_scored)
    result = invoke(compare, "p1", "p2")
    assert result.exit_code == 4, result.output
    assert "CANNOT TELL" in result.output
    assert "no change from" not in result.output
    assert "was stopped at 6 of 20 cases" in result.output
    assert "next: agentunit run suite.py --resume" in result.output
    data = json.loads(invoke(compare, "p1", "p2", "--json").output)
    assert data["exit_code"] == 4
    assert "6 of 20 cases" in data["decision"]["headline"]
    assert len(data["comparison"]["incomplete"]) == ways.count("stopped")
    assert invoke(show, "p2", "--baseline", "p1").exit_code == 4
    exported = invoke(export, "p2", "--baseline", "p1", "--to", "r.md")
    assert "CANNOT TELL" in exported.output
    assert "6 of 20 cases" in exported.output


@pytest.mark.parametrize("status", ["stopped", "interrupted"])
def test_a_run_stopped_before_anything_was_scored_has_one_word(status):
    whole("p1")
    make_run("p2", status=status, gates=["contains >= 0.9", "answered >= 0.9"], metrics=["contains"])
    said = f"CANNOT TELL: the run was {status} at 6 of 20 cases, none scored; --resume goes on"
    shown, gated = invoke(show, "p2"), invoke(show, "p2", "--gate", "stored")
    assert said in shown.output
    assert said in gated.output
    assert gated.exit_code == 4
    assert invoke(compare, "p1", "p2").exit_code == 4
    listed = json.loads(invoke(runs, "--json").output)[0]
    assert (listed["verdict"], listed["headline"]) == ("cannot tell", said)
    assert "CANNOT TELL" in invoke(runs).output


def test_a_stopped_run_goes_on_before_anything_is_tried_again():
    whole("p1")
    make_run("p2", n_done=19, n_scored=19, failing=[3])
    result = invoke(compare, "p1", "p2")
    assert "CANNOT TELL: 1 newly failing, not tried to the end" in result.output
    assert "next: agentunit run suite.py --resume" in result.output
    assert "agentunit rerun" not in result.output


def test_a_run_that_is_nearly_whole_is_compared_and_its_end_is_told():
    whole("p1")
    make_run("p2", n_done=19, n_scored=19)
    result = invoke(compare, "p1", "p2")
    assert result.exit_code == 0, result.output
    assert "p2 was stopped at 19 of 20 cases" in result.output


@pytest.mark.parametrize(("n_scored", "said"), [(0, "has no scores"), (5, "has scores of 5 of 20 records")])
def test_recorded_runs_whose_scoring_was_stopped(n_scored, said):
    make_run("p1", n_done=20, n_scored=n_scored, status="finished")
    run_id = make_run("p2", n_done=20, n_scored=n_scored, status="finished")
    result = invoke(compare, "p1", "p2")
    assert result.exit_code == 4, result.output
    assert f"p2 {said}" in result.output
    assert f"next: agentunit score {run_id}" in result.output


def test_no_value_in_either_run_is_no_change_where_the_answers_are_the_same():
    whole("p1", value=None)
    whole("p2", value=None)
    result = invoke(compare, "p1", "p2")
    assert result.exit_code == 0, result.output
    assert "PASS: no change from p1" in result.output
    assert "contains: no value in either run" in result.output


@pytest.mark.parametrize("expressions", [("--gate", "stored"), ("--gate", "contains == 1")])
def test_a_gate_on_a_stopped_run_says_so(expressions):
    run_id = make_run("p1", gates=["contains >= 0.5"])
    result = invoke(show, "last", *expressions)
    assert result.exit_code == 3, result.output
    assert "was stopped at 6 of 20 cases, none scored" in result.output
    assert f"next: agentunit run suite.py --resume {run_id}" in result.output


def test_a_gate_on_a_run_without_scores_names_the_command_that_scores_it():
    run_id = make_run("p1", n_done=20, status="finished")
    result = invoke(show, "last", "--gate", "contains == 1")
    assert result.exit_code == 2
    assert f"'agentunit score {run_id} --metrics contains'" in result.output

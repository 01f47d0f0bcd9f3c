"""The agent of examples/trial and the benchmark that counts how often the verdict on it is right."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest
from benchmarks import gate_calibration, peer_verdicts, verdicts
from click.testing import CliRunner

from agentunit.cli.run import run

SUITE = verdicts.TRIAL.parent / "suite.py"
NINE = {f"order-{number:03}" for number in range(11, 20)}


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "agent", raising=False)
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)
    monkeypatch.delenv("TRIAL_VERSION", raising=False)

    def call(*options: str) -> tuple[int, dict]:
        result = CliRunner().invoke(run, [str(SUITE), "--json", *options])
        return result.exit_code, json.loads(result.stdout)

    yield call
    for name in ("agent", "agentunit_suite_suite"):
        sys.modules.pop(name, None)


def test_the_three_candidates_of_the_example_get_their_verdicts(trial, monkeypatch):
    assert trial("--name", "main")[0] == 0
    code, again = trial("--baseline", "main")
    assert (code, again["decision"]["headline"].split(" from ")[0]) == (0, "PASS: 1 gate met, no change")
    assert trial("--baseline", "main", "--seed", "2")[0] == 4
    monkeypatch.setenv("TRIAL_VERSION", "2")
    code, broken = trial("--baseline", "main", "--seed", "3")
    assert code == 1
    assert {reason["kind"] for reason in broken["decision"]["reasons"]} == {"newly failing", "regression"}
    listed = {each["case_id"]: each["kind"] for each in broken["comparison"]["differences"]}
    assert {listed[case] for case in NINE} <= {"newly failing", "worse"}
    assert sum(listed[case] == "newly failing" for case in NINE) >= 8


def test_the_example_has_ten_bugs_and_version_2_nine_more():
    agent = verdicts.trial_agent()
    agent.TOOL_FAILURES = 0.0
    cases = agent.cases()
    first, second = (verdicts.passes(agent, cases, version, "any", 1) for version in ("1", "2"))
    assert (len(cases), first.count([0.0]), second.count([0.0])) == (66, 10, 19)
    assert [new for old, new in zip(first, second, strict=True) if old == [0.0]] == [[0.0]] * 10


def test_the_benchmark_counts_what_is_right():
    found = verdicts.measure(66, 3, runs=5, resamples=200)
    assert list(found) == ["the same run again", "only noise", "9 more broken"]
    (same, _), (noise, _), (broken, n_broken) = found.values()
    assert same["exit 0"] == 5
    assert same["mean dropped"] == 0
    assert noise["exit 1"] == 0
    assert (broken["exit 1"], broken["mean dropped"], n_broken) == (5, 5, 9)
    assert broken["listed"] == 45
    # The rule of "any test fails" says the same about every one of them.
    assert [each["any fails"] for each in (same, noise, broken)] == [5, 5, 5]


def test_it_prints_a_table(capsys):
    assert verdicts.main(["--runs", "1", "--cases", "66", "--repeats", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[2] == "| 66 | 1 | the same run again | 100.0% | 0.0% | 0.0% | 0.0% |  |  | 0.0% | 100.0% |"


def test_other_tools_get_the_same_answers_and_are_skipped_by_name(capsys, monkeypatch, tmp_path):
    made = {name: (new, old) for name, new, old in peer_verdicts.rows_of(66, 1, seed=0)}
    for name, (new, old) in made.items():
        assert peer_verdicts.n_passed(old) == 56 - sum("could not" in answer for _, answer, _ in old[10:]), name
        assert peer_verdicts.any_fails(new, old), name
    assert peer_verdicts.mean_dropped(*made["9 more broken"])
    assert not peer_verdicts.mean_dropped(*made["the same run again"])
    monkeypatch.setattr(peer_verdicts, "PROMPTFOO", tmp_path / "promptfoo")
    monkeypatch.setattr(peer_verdicts, "installed_peer", lambda peer: None)
    assert peer_verdicts.main([]) == 0
    said = capsys.readouterr()
    assert (said.out, [line.split(":")[0] for line in said.err.splitlines()]) == (
        "",
        ["skipped promptfoo", "skipped deepeval"],
    )


@pytest.mark.parametrize("name", gate_calibration.WHOLE_RUNS)
def test_whole_runs_of_an_unchanged_agent_are_rarely_called_worse(name):
    source = random.Random(name)
    answers = [gate_calibration.whole_run(name, source)[0] for _ in range(20)]
    assert answers.count("no") <= 2

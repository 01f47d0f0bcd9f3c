"""The agent of examples/trial and the benchmark that counts how often a verdict is right."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import gate_calibration, peer_verdicts, verdicts
from benchmarks.verdicts import Setting
from click.testing import CliRunner

from agentunit.cli.run import run
from agentunit.engine.deciding.decision import EXIT_FAILED

SUITE = peer_verdicts.TRIAL.parent / "suite.py"
NINE = {f"order-{number:03}" for number in range(11, 20)}
SEEDS = range(5)


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
    assert (code, again["decision"]["headline"].split(";")[0]) == (0, "PASS: nothing broken against main")
    assert trial("--baseline", "main", "--seed", "2")[0] == 0
    monkeypatch.setenv("TRIAL_VERSION", "2")
    code, broken = trial("--baseline", "main", "--seed", "3")
    assert code == 1
    kinds = {case_id: case["kind"] for case_id, case in broken["comparison"]["cases"].items()}
    # One of the nine had failed twice by chance in the baseline.
    assert Counter(kinds[case] for case in NINE)["still failing"] == 1
    assert {kinds[case] for case in NINE} <= {"broken", "newly failing", "still failing"}
    assert {case for case, kind in kinds.items() if kind == "broken"} <= NINE


def test_the_example_has_ten_bugs_and_version_2_nine_more():
    agent = peer_verdicts.trial_agent()
    agent.TOOL_FAILURES = 0.0
    cases = agent.cases()

    def passes(version: str) -> list[bool]:
        said = peer_verdicts.answers(agent, cases, version, "any", 1)
        return [case["metadata"]["contains"] in answer for case, (answer,) in zip(cases, said, strict=True)]

    first, second = passes("1"), passes("2")
    assert (len(cases), first.count(False), second.count(False)) == (66, 10, 19)
    assert [now for before, now in zip(first, second, strict=True) if not before] == [False] * 10


@pytest.mark.parametrize("noise", verdicts.NOISES)
def test_an_agent_that_did_not_change_passes_with_ten_tries_before(noise):
    row = verdicts.measure(Setting(noise, n_cases=40, n_before=10), SEEDS)
    assert (row.seen["FAIL"], row.seen["CANNOT TELL"], row.seen["wrongly named"]) == (0, 0, 0)
    # On the same answers, "any test fails" says nothing at all: an agent with three such cases may be lucky.
    assert row.seen["any fails"] == len(SEEDS) or (
        noise == "few coin tosses" and row.seen["any fails"] > len(SEEDS) / 2
    )


@pytest.mark.parametrize("noise", verdicts.NOISES)
def test_broken_cases_are_found_and_named(noise):
    row = verdicts.measure(Setting(noise, n_cases=40, n_before=5, n_broken=9), SEEDS)
    assert (row.seen["found"], row.seen["wrongly named"]) == (len(SEEDS), 0)


@pytest.mark.parametrize("answers", ["yes/no", "one failure text", "own failure texts"])
@pytest.mark.parametrize("noise", ["8 %", "coin tosses"])
def test_answers_that_come_again_break_nothing_that_fails_by_chance(answers, noise):
    setting = Setting(noise, n_cases=40, n_before=3, answers=answers)
    assert verdicts.measure(setting, SEEDS).seen["FAIL"] == 0
    assert verdicts.measure(replace(setting, n_broken=3), SEEDS).seen["found"] == len(SEEDS)


@pytest.mark.parametrize("noise", ["2/10/50 %", "outage"])
def test_texts_that_never_come_again_need_not_be_read(noise, monkeypatch):
    setting = Setting(noise, n_cases=40, n_broken=2)
    unread = [verdicts.in_memory(setting, seed) for seed in SEEDS]
    monkeypatch.setattr(verdicts, "UNREAD", "nothing")
    assert [verdicts.in_memory(setting, seed) for seed in SEEDS] == unread
    assert any(verdict.broken for verdict in unread)


@pytest.mark.parametrize("answers", ["own texts", "one failure text"])
def test_the_command_line_decides_as_the_trial_in_memory(answers):
    setting = Setting("8 %", n_cases=12, n_broken=2, answers=answers)
    verdict = verdicts.by_command_line(setting, seed=0)
    assert verdict == verdicts.in_memory(setting, seed=0)
    assert verdict.exit_code == EXIT_FAILED


def test_an_agent_answers_the_same_in_every_process_and_breaks_what_worked():
    setting = Setting("U-shaped", n_cases=66, n_broken=9)
    agent, again = verdicts.Agent(setting, 3), verdicts.Agent(setting, 3)
    assert agent.broken == again.broken
    assert [agent.answer("now", place, 0) for place in range(66)] == [
        again.answer("now", place, 0) for place in range(66)
    ]
    assert not any(agent.passes("now", place, nth) for place in agent.broken for nth in range(20))
    worked = [sum(agent.passes("before", place, nth) for nth in range(50)) for place in agent.broken]
    assert min(worked) > 15


@pytest.mark.parametrize(
    ("better", "worse", "p_value"),
    # R: binom.test(2, 10)$p.value, mcnemar.test(matrix(c(0, 10, 25, 0), 2))$p.value
    [(2, 8, 0.109375), (0, 0, 1.0), (10, 25, 0.01796)],
)
def test_the_paired_test_is_exact_for_few_and_chi_square_for_many(better, worse, p_value):
    assert verdicts.mcnemar(better, worse) == pytest.approx(p_value, abs=1e-5)


def test_it_prints_tables(capsys):
    few = ["--cases", "20", "--noises", "8 %", "--before", "3", "--broken", "2", "--seeds", "1"]
    assert verdicts.main(few) == 0
    assert verdicts.main([*few, "--command-line"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[2].startswith("| 8 % | 20 | 3 | 1 | 2 |  | 100.0% | 0.0% | 0.0% |")
    assert lines[5] == "| 8 % | 20 | 3 | 1 | 2 | 1 | 1 | 1 |"


def test_other_tools_get_the_same_answers_and_are_skipped_by_name(capsys, monkeypatch, tmp_path):
    made = {name: (new, old) for name, new, old in peer_verdicts.rows_of(66, 1, seed=0)}
    assert list(made) == ["the same run again", "only noise", "9 more broken"]
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

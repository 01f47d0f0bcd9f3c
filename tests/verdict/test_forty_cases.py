"""Forty cases of which a change breaks four: the run fails, names them, and every report says the same."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from viewer_client import page_verdicts

from agentunit.cli.main import cli

SUITE = """
from agentunit import Suite

BROKEN, WORDS, OTHERWISE = (), ["It is"], 0
calls = {}

def agent(query, case):
    n = int(case.id[1:])
    calls[n] = calls.get(n, OTHERWISE) + 1
    text = WORDS[calls[n] % len(WORDS)]
    if n in BROKEN:
        return f"{text} somewhere on floor {n % 5} of house {n}"
    return f"Room {n}" if n < 20 else f"{text} Room {n}"

def case_of(n):
    room = f"Room {n}"
    return {"id": f"c{n}", "query": f"Where is desk {n}?", "expected_output": room, "metadata": {"contains": room}}

cases = [case_of(n) for n in range(40)]
suite = Suite(cases, agent, metrics=["contains", "exact_match"], gates=["contains >= 0.7", "exact_match >= 0.4"],
              repeats=3, name="rooms")
"""
NAMED = ("c36", "c37", "c38", "c39")
NOISE = '["It is", "That would be", "You find it in", "Please go to", "The place:"]'


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    return lambda *arguments: CliRunner().invoke(cli, [str(each) for each in arguments])


def write_suite(*, broken="()", words='["It is"]', otherwise=0):
    changed = f"BROKEN, WORDS, OTHERWISE = {broken}, {words}, {otherwise}"
    Path("suite.py").write_text(SUITE.replace('BROKEN, WORDS, OTHERWISE = (), ["It is"], 0', changed))


@pytest.mark.parametrize("words", ['["It is"]', NOISE], ids=["deterministic", "noisy"])
def test_four_broken_cases_fail_the_run_and_are_named_by_every_report(invoke, words):
    write_suite(words=words)
    before = invoke("run", "suite.py", "--name", "before")
    assert before.exit_code == 0, before.output
    write_suite(broken="range(36, 40)", words=words, otherwise=3)
    result = invoke("run", "suite.py", "--name", "after", "--baseline", "before", "--json")
    assert result.exit_code == 1, result.output
    decision = json.loads(result.stdout)["decision"]
    assert decision["verdict"] == "fail"
    assert decision["failing_cases"] == list(NAMED)
    sentence = decision["headline"]
    assert sentence == ('FAIL: 4 broken (c36, c37, c38, c39: missing: "Room 36"); contains 0.90, was 1.00')
    assert ("trying 4 newly failing checks again" in result.stderr) == (words == NOISE)

    newest = json.loads(invoke("runs", "--json").stdout)[0]
    assert (newest["verdict"], newest["headline"]) == ("fail", sentence)
    assert re.search(r"after .*FAIL", invoke("runs").stdout)
    shown = invoke("show", "after").stdout
    assert sentence in " ".join(shown.split())
    assert json.loads(invoke("show", "after", "--json").stdout)["decision"]["headline"] == sentence
    for name in ("report.md", "report.xml", "report.html", "run.json.gz"):
        exported = invoke("export", "after", "--to", name)
        assert exported.exit_code == 0, exported.output
    markdown = Path("report.md").read_text(encoding="utf-8").replace("\\", "")
    assert sentence.split(";")[0].split(": missing")[0] in markdown
    tests = ElementTree.parse("report.xml").iter("testcase")
    failed = {test.get("name", "").split()[0] for test in tests if test.find("failure") is not None}
    assert set(NAMED) <= failed <= {*NAMED, "rooms", "broken", "verdict", "comparison"}
    assert sentence in page_verdicts(Path("report.html"))
    from_file = invoke("show", "run.json.gz", "--json")
    assert json.loads(from_file.stdout)["decision"]["headline"] == sentence
    gated = invoke("show", "after", "--baseline", "before", "--gate", "stored")
    assert (gated.exit_code, "FAIL: 4 broken (c36, c37, c38, c39" in gated.output) == (1, True)
    # What other commands decide later stands beside it.
    assert invoke("show", "after", "--gate", "stored").exit_code in (0, 1)
    assert json.loads(invoke("runs", "--json").stdout)[0]["headline"] == sentence


def test_an_unchanged_agent_passes_whatever_words_it_uses(invoke):
    write_suite(words=NOISE)
    assert invoke("run", "suite.py", "--name", "before").exit_code == 0
    write_suite(words=NOISE, otherwise=3)
    result = invoke("run", "suite.py", "--baseline", "before")
    assert result.exit_code == 0, result.output
    assert "PASS: nothing broken against before" in result.stdout
    assert "again" not in result.stderr

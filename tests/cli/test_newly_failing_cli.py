"""Cases that a change broke, as somebody who waits for a verdict sees them."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from viewer_client import page_parts

SUITE = """
from agentunit import Suite

BROKEN, FLAKY = BROKEN_CASES, FLAKY_CASES
calls = {}

def agent(query):
    calls[query] = calls.get(query, 0) + 1
    fails = query in BROKEN or (query in FLAKY and calls[query] > 1)
    return "no" if fails else "yes"

cases = [{"id": f"c{n:02}", "query": f"c{n:02}", "expected_output": "yes"} for n in range(24)]
suite = Suite(cases, agent, metrics=["exact_match"], gates=["exact_match >= 0.6"])
"""
OLD = ("c00", "c01")
NEW = ("c20", "c21", "c22")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@pytest.fixture(autouse=True)
def outside_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def write_suite(broken: tuple[str, ...] = OLD, flaky: tuple[str, ...] = ()) -> None:
    Path("suite.py").write_text(SUITE.replace("BROKEN_CASES", repr(broken)).replace("FLAKY_CASES", repr(flaky)))


@pytest.fixture
def three_broken(invoke):
    write_suite()
    assert invoke("run", "suite.py", "--name", "main", "--repeats", "3").exit_code == 0
    write_suite(OLD + NEW)
    return invoke


@pytest.mark.parametrize(
    ("unsure", "exit_code", "level"), [("pass", 0, "warning"), ("by-case", 1, "error"), (None, 4, "warning")]
)
def test_annotations_name_what_newly_fails_at_the_level_of_the_exit_code(
    three_broken, monkeypatch, unsure, exit_code, level
):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    options = () if unsure is None else ("--unsure", unsure)
    result = three_broken("run", "suite.py", "--repeats", "3", "--baseline", "main", *options)
    assert result.exit_code == exit_code
    annotations = [line for line in result.stderr.splitlines() if line.startswith("::")]
    assert annotations[0] == f"::{level} title=AgentUnit%3A newly failing::3 newly failing: c20, c21, c22"
    assert exit_code == 1 or all(line.startswith("::warning") for line in annotations)
    headline, next_step = result.stdout.splitlines()[-2:]
    assert "3 newly failing: c20, c21, c22" in headline
    assert next_step.endswith(" c20")


def test_a_pull_request_that_breaks_cases_fails_in_every_report(three_broken):
    options = ("--repeats", "3", "--baseline", "main", "--unsure", "by-case", "--name", "new")
    result = three_broken("run", "suite.py", *options, "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == data["exit_code"] == 1
    assert data["decision"]["headline"] == "FAIL: 3 newly failing: c20, c21, c22; otherwise the data cannot tell"
    assert data["decision"]["failing_cases"] == list(NEW)
    three_broken("export", "new", "--baseline", "main", "--unsure", "by-case", "--to", "new.xml")
    failed = {
        case.get("name") for case in ElementTree.parse("new.xml").iter("testcase") if case.find("failure") is not None
    }
    assert {f"{case} (repeat {n})" for case in NEW for n in (1, 2, 3)} == {each for each in failed if "repeat" in each}


def test_one_repeat_does_not_tell_a_broken_case_from_an_unlucky_one(invoke):
    write_suite()
    assert invoke("run", "suite.py", "--name", "main").exit_code == 0
    write_suite(OLD + NEW)
    result = invoke("run", "suite.py", "--baseline", "main", "--unsure", "by-case")
    assert result.exit_code == 0
    said = "as chance alone may make 3 fail in every repeat (p = 0.1"
    assert said in result.stdout.splitlines()[-2]


def test_without_a_broken_case_an_undecided_run_passes_by_case(invoke):
    write_suite(flaky=NEW)
    assert invoke("run", "suite.py", "--name", "main", "--repeats", "3").exit_code == 0
    # Another order of chance: c19 fails now and then, c20 to c22 no longer do.
    write_suite(flaky=("c19",))
    result = invoke("run", "suite.py", "--baseline", "main", "--repeats", "3", "--unsure", "by-case")
    assert result.exit_code == 0
    write_suite(flaky=("c18", "c19"), broken=(*OLD, "c17"))
    result = invoke("run", "suite.py", "--baseline", "main", "--repeats", "3", "--unsure", "by-case", "--json")
    data = json.loads(result.stdout)
    assert data["exit_code"] == 1
    assert data["decision"]["headline"].startswith("FAIL: 3 newly failing, 1 of them in every repeat: c17, ")
    assert data["decision"]["failing_cases"] == ["c17"]


def test_a_loss_within_the_margin_fails_by_case_and_is_named_otherwise(invoke):
    suite = SUITE.replace("range(24)", "range(300)").replace("FLAKY_CASES", "()")
    Path("suite.py").write_text(suite.replace("BROKEN_CASES", "('c07',)"))
    invoke("run", "suite.py", "--name", "main", "--repeats", "3")
    Path("suite.py").write_text(suite.replace("BROKEN_CASES", "('c07', 'c09')"))
    passed = invoke("run", "suite.py", "--baseline", "main", "--name", "new", "--repeats", "3")
    assert passed.exit_code == 0
    assert "no worse than main" in passed.stdout.splitlines()[-2]
    assert passed.stdout.splitlines()[-2].endswith("; 1 newly failing: c09")
    failed = invoke("compare", "main", "new", "--unsure", "by-case")
    assert failed.exit_code == 1
    assert re.search(r"^FAIL: 1 newly failing: c09; otherwise no worse than main$", failed.stdout, re.M)
    # What is known and accepted is marked, and no longer counts.
    mark = '"metadata": {"known_failure": {"reason": "r", "until": "2999-01-01"}} if n == 9 else {}}'
    marked_suite = suite.replace('"expected_output": "yes"}', f'"expected_output": "yes", {mark}')
    Path("suite.py").write_text(marked_suite.replace("BROKEN_CASES", "('c07', 'c09')"))
    marked = invoke("run", "suite.py", "--baseline", "main", "--unsure", "by-case")
    assert (marked.exit_code, "newly failing" in marked.stdout) == (0, False)


def test_a_comparison_says_what_was_seen_and_shows_the_first_newly_failing_case(three_broken):
    three_broken("run", "suite.py", "--name", "new", "--repeats", "3")
    result = three_broken("compare", "main", "new")
    assert result.exit_code == 4
    sentence = "24 cases: exact_match fell by 12 points, which may be chance (p = 0.12"
    assert sentence in result.stdout
    assert "none was" not in result.stdout
    assert "--repeats auto" not in result.stdout
    last = result.stdout.splitlines()[-1]
    assert re.fullmatch(r"next: agentunit show \S+ c20", last)


def test_the_page_leads_from_a_changed_case_to_the_case(three_broken):
    three_broken("run", "suite.py", "--name", "new")
    three_broken("export", "new", "--baseline", "main", "--to", "new.html")
    parts = page_parts("new.html")
    failing = [case for case in parts["data/compare--1-0.json.gz"]["cases"] if case["kind"] == "newly failing"]
    assert sorted(case["case_id"] for case in failing) == sorted(NEW)
    columns = parts["data/runs/0/columns-0.json.gz"]
    for case in failing:
        position, repeat = map(int, case["candidate_key"].split("-"))
        assert (columns["case_id"][position], repeat) == (case["case_id"], 0)
    three_broken("export", "new", "--to", "alone.html")
    assert page_parts("alone.html")["data/index.json.gz"]["comparisons"] == []


RAISES = """
from agentunit import Suite

def agent(query):
    if int(query) < RAISING:
        raise KeyError(query)
    return query

cases = [{"id": f"q{n}", "query": str(n), "expected_output": str(n)} for n in range(4)]
suite = Suite(cases, agent, metrics=["exact_match"])
"""


@pytest.mark.parametrize(("raising", "is_named"), [(2, True), (4, False)])
def test_the_printed_repair_command_works_after_the_repair(invoke, raising, is_named):
    Path("suite.py").write_text(RAISES.replace("RAISING", str(raising)))
    result = invoke("run", "suite.py", "--store", "runs.sqlite")
    assert result.exit_code == 3
    (hint,) = [line for line in result.stdout.splitlines() if "run them again" in line]
    assert ("with --changed-agent if you change the agent first" in hint) == is_named
    arguments = hint.partition(": agentunit ")[2].split()
    assert arguments[-1] == "--retry-failed"
    Path("suite.py").write_text(RAISES.replace("RAISING", "0"))
    assert invoke(*arguments).exit_code == (3 if is_named else 0)
    again = invoke(*arguments, *(["--changed-agent"] if is_named else []))
    assert again.exit_code == 0
    if is_named:
        assert "2 records kept, 2 to run (2 that failed are run again)" in again.stderr

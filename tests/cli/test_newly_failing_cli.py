"""Cases that a change broke, as somebody who waits for a verdict sees them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
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


def test_annotations_name_the_broken_cases_as_errors(three_broken, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = three_broken("run", "suite.py", "--repeats", "3", "--baseline", "main")
    assert result.exit_code == 1
    annotations = [line for line in result.stderr.splitlines() if line.startswith("::")]
    assert all(line.startswith("::error ") for line in annotations)
    assert "3 broken (c20, c21, c22" in annotations[0]
    assert result.stdout.splitlines()[-1].endswith(" c20")


def test_a_pull_request_that_breaks_cases_fails_in_every_report(three_broken):
    options = ("--repeats", "3", "--baseline", "main", "--name", "new")
    result = three_broken("run", "suite.py", *options, "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == data["exit_code"] == 1
    sentence = 'FAIL: 3 broken (c20, c21, c22: "no", expected "yes"); exact_match 0.79, was 0.92'
    assert data["decision"]["headline"] == sentence
    assert data["decision"]["failing_cases"] == list(NEW)
    assert "trying 3 newly failing checks again" in result.stderr
    # What was decided once is what every later look says, though none of them names the baseline.
    assert sentence in three_broken("show", "new").stdout
    three_broken("export", "new", "--to", "new.md")
    assert sentence in Path("new.md").read_text(encoding="utf-8").replace("\\", "")
    three_broken("export", "new", "--to", "new.xml")
    failed = {
        case.get("name") for case in ElementTree.parse("new.xml").iter("testcase") if case.find("failure") is not None
    }
    assert failed == {*NEW, "verdict"}


def test_the_sentence_says_where_few_tries_before_tell_little(invoke):
    write_suite()
    invoke("run", "suite.py", "--name", "once")
    invoke("run", "suite.py", "--name", "twice", "--repeats", "2", "--store", "other.db")
    write_suite(OLD + NEW)
    once = invoke("run", "suite.py", "--baseline", "once")
    assert once.exit_code == 1
    said = 'FAIL: 3 broken (c20, c21, c22: "no", expected "yes"), passed {} before; exact_match 0.79, was 0.92'
    assert said.format("once") in once.stdout
    assert said.format("twice") in invoke("run", "suite.py", "--baseline", "twice", "--store", "other.db").stdout


def test_what_fails_now_and_then_is_flaky_and_fails_no_run(invoke):
    write_suite(flaky=NEW)
    assert invoke("run", "suite.py", "--name", "main", "--repeats", "3").exit_code == 0
    # Another order of chance: c19 fails now and then, c20 to c22 no longer do.
    write_suite(flaky=("c19",))
    result = invoke("run", "suite.py", "--baseline", "main", "--repeats", "3", "--json")
    assert result.exit_code == 0
    states = {each["case_id"]: each["state"] for each in json.loads(result.stdout)["decision"]["findings"]}
    assert states == {"c00": "wrong", "c01": "wrong", "c19": "flaky"}
    write_suite(flaky=("c18", "c19"), broken=(*OLD, "c17"))
    result = invoke("run", "suite.py", "--baseline", "main", "--repeats", "3", "--json")
    data = json.loads(result.stdout)
    assert data["exit_code"] == 1
    assert data["decision"]["headline"].startswith("FAIL: 1 broken (c17: ")
    assert data["decision"]["failing_cases"] == ["c17"]


def test_an_exported_baseline_says_what_was_seen_in_the_runs_before_it(invoke):
    write_suite(flaky=("c19",))
    assert invoke("run", "suite.py", "--repeats", "2").exit_code == 0
    write_suite()
    assert invoke("run", "suite.py").exit_code == 0
    invoke("export", "last", "--to", "main.json")
    write_suite((*OLD, "c19"))
    options = ("--baseline", "main.json", "--store", "elsewhere.db", "--json")
    data = json.loads(invoke("run", "suite.py", *options).stdout)
    standing = data["comparison"]["cases"]["c19"]
    # It failed once in the run before: so many more tries are needed.
    assert (standing["kind"], standing["passed_before"], standing["n_failed"]) == ("broken", [2, 3], 14)


def test_one_broken_case_of_many_fails_until_it_is_marked(invoke):
    suite = SUITE.replace("range(24)", "range(300)").replace("FLAKY_CASES", "()")
    Path("suite.py").write_text(suite.replace("BROKEN_CASES", "('c07',)"))
    invoke("run", "suite.py", "--name", "main", "--repeats", "3")
    Path("suite.py").write_text(suite.replace("BROKEN_CASES", "('c07', 'c09')"))
    failed = invoke("run", "suite.py", "--baseline", "main", "--margin", "0.1")
    assert failed.exit_code == 1, "a margin for the mean excuses no case"
    assert "FAIL: 1 broken (c09: " in failed.stdout
    # What is known and accepted is marked, and no longer counts.
    mark = '"metadata": {"known_failure": {"reason": "r", "until": "2999-01-01"}} if n == 9 else {}}'
    marked_suite = suite.replace('"expected_output": "yes"}', f'"expected_output": "yes", {mark}')
    Path("suite.py").write_text(marked_suite.replace("BROKEN_CASES", "('c07', 'c09')"))
    marked = invoke("run", "suite.py", "--baseline", "main")
    assert (marked.exit_code, "newly failing" in marked.stdout + marked.stderr) == (0, False)


@pytest.mark.parametrize("baseline", ["main", "main.json"])
def test_the_printed_command_confirms_what_was_not_tried_to_the_end(three_broken, baseline):
    if baseline == "main.json":
        three_broken("export", "main", "--to", baseline)
    result = three_broken("run", "suite.py", "--baseline", baseline, "--tries", "1", "--name", "new")
    assert result.exit_code == 4
    # The run knows what it was held against.
    assert re.search(r"^next: agentunit rerun \S+ --newly-failing$", result.stdout, re.M)
    assert "CANNOT TELL: 3 newly failing, not tried to the end (c20, c21, c22: " in result.stdout
    assert "trying" not in result.stderr
    compared = three_broken("compare", baseline, "new")
    assert compared.exit_code == 4
    command = re.search(r"agentunit (rerun \S+ --newly-failing --baseline \S+)", compared.stdout)
    assert command is not None
    confirmed = three_broken(*command[1].split())
    assert confirmed.exit_code == 1
    assert "FAIL: 3 broken (c20, c21, c22: " in confirmed.stdout
    # Tries that confirm are added to the run, and its own decision is the newest.
    runs = json.loads(three_broken("runs", "--json").stdout)
    assert [(run["name"], run["verdict"]) for run in runs] == [("new", "fail"), ("main", "pass")]
    assert three_broken("compare", baseline, "new").exit_code == 1
    three_broken("export", "new", "--to", "new.json")
    assert "rerun" not in three_broken("compare", "main", "new.json").stdout, "a file cannot be tried again"


def test_the_printed_command_asks_for_a_suite_where_the_run_has_none_that_may_be_run(three_broken):
    result = three_broken("run", "suite.py", "--baseline", "main", "--tries", "1", "--name", "new")
    assert result.exit_code == 4
    three_broken("export", "new", "--to", "new.json")
    run_id = json.loads(three_broken("runs", "--json").stdout)[0]["id"]
    assert three_broken("runs", "--delete", run_id).exit_code == 0
    assert three_broken("runs", "--import", "new.json").exit_code == 0
    compared = three_broken("compare", "main", "new")
    command = re.search(r"agentunit (rerun \S+ --newly-failing --suite SUITE --baseline \S+)", compared.stdout)
    assert command is not None, compared.stdout
    confirmed = three_broken(*command[1].replace("SUITE", "suite.py").split())
    assert confirmed.exit_code == 1, confirmed.output
    assert "FAIL: 3 broken (c20, c21, c22: " in confirmed.stdout


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
suite = Suite(cases, agent, metrics=["exact_match"], max_errors=0)
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


def mend(**changes: str) -> None:
    """Change the suite file, and nothing that its agent states: what it comes from may have changed in the same way."""
    text = Path("suite.py").read_text().replace("agent, metrics", 'agent, agent_version="1", metrics')
    for old, new in changes.items():
        text = text.replace(old, new)
    Path("suite.py").write_text(text)


def test_a_failure_is_not_tried_again_until_it_passes(three_broken):
    mend()
    assert three_broken("run", "suite.py", "--baseline", "main", "--name", "new").exit_code == 1
    mend(c20="none", c21="none", c22="none")
    result = three_broken("rerun", "new", *NEW)
    assert (result.exit_code, "3 broken (c20, c21, c22" in result.stdout) == (1, True)
    assert "FAIL" in three_broken("runs").stdout
    assert three_broken("rerun", "new", *NEW, "--replace").exit_code == 0


def test_what_retry_failed_repaired_is_flaky(invoke):
    Path("suite.py").write_text(RAISES.replace("RAISING", "2").replace(", max_errors=0", ""))
    mend()
    assert invoke("run", "suite.py").exit_code == 1
    mend(**{"< 2": "< 0"})
    result = invoke("run", "suite.py", "--resume", "last", "--retry-failed", "--json")
    data = json.loads(result.stdout)["decision"]
    assert (data["verdict"], data["counts"]["fine"], data["counts"]["flaky"]) == ("pass", 2, 2)


def test_notes_about_the_dataset_are_printed_once_and_not_for_each_try(three_broken):
    suite = Path("suite.py").read_text()
    Path("suite.py").write_text(suite.replace('"expected_output": "yes"}', '"expected_output": "yes", "trns": ["a"]}'))
    result = three_broken("run", "suite.py", "--baseline", "main")
    assert "trying 3 newly failing checks again" in result.stderr
    assert result.stderr.count("did you mean 'turns'") == 1


NAMED = """
from agentunit import Suite

cases = [{"id": f"c{n}", "query": f"c{n}", "expected_output": "yes"} for n in range(12)]
suite = Suite(cases, "desk_agent:answer", metrics=["exact_match"], gates=["exact_match >= 0.5"])
"""


def test_tries_of_two_versions_of_an_agent_that_the_suite_names_never_mix(tmp_path):
    def agentunit(*arguments: str) -> subprocess.CompletedProcess[str]:
        # Each in a process of its own: what one command has imported hides what the next one forgot to.
        command = [sys.executable, "-m", "agentunit", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    agent = tmp_path / "desk_agent.py"
    (tmp_path / "suite.py").write_text(NAMED)
    agent.write_text("def answer(query): return 'yes'\n")
    assert agentunit("run", "suite.py", "--name", "main").returncode == 0
    agent.write_text("def answer(query): return 'no' if query in ('c3', 'c7') else 'yes'\n")
    assert agentunit("run", "suite.py", "--name", "broken", "--baseline", "main", "--tries", "1").returncode == 4
    agent.write_text("def answer(query): return 'yes'  # mended\n")
    again = agentunit("rerun", "broken", "c3", "c7")
    assert "its tries become a new run" in again.stderr
    runs = json.loads(agentunit("runs", "--json").stdout)
    assert [(run["name"], run["n_done"], run["verdict"]) for run in runs] == [
        ("broken-rerun", 2, "pass"),
        ("broken", 12, "cannot tell"),
        ("main", 12, "pass"),
    ]


def test_tries_of_another_agent_are_a_run_with_a_name_of_its_own(three_broken):
    assert three_broken("run", "suite.py", "--baseline", "main", "--name", "new", "--tries", "1").exit_code == 4
    write_suite(OLD)
    result = three_broken("rerun", "new", "--newly-failing")
    assert (result.exit_code, "; 3 of 24 cases run" in result.stdout) == (0, True)
    assert "its tries become a new run, new-rerun (" in result.stderr
    assert "3 newly failing" in three_broken("show", "new").stdout
    assert "PASS: no change from main; 1 gate met; 3 of 24 cases run" in three_broken("show", "new-rerun").stdout


def test_what_trying_again_may_cost_is_said_by_the_traces_alone(three_broken):
    text = Path("suite.py").read_text()
    text = text.replace(
        "def agent(query):", "def agent(query, trace):\n    trace.record('llm_call', model='m', cost=0.01)"
    )
    Path("suite.py").write_text(text)
    result = three_broken("run", "suite.py", "--baseline", "main")
    said = "trying 3 newly failing checks again, each until it passes: at most 24 calls, about $0.2400"
    assert said in result.stderr, result.stderr


def test_nothing_left_to_try_is_said(three_broken):
    three_broken("run", "suite.py", "--repeats", "3", "--baseline", "main")
    result = three_broken("rerun", "last", "--newly-failing")
    assert result.exit_code == 1
    assert "nothing newly fails that is not decided: nothing was tried\n" in result.stderr


def test_what_was_found_against_a_run_and_its_file_is_told_once(three_broken):
    three_broken("export", "main", "--to", "main.json")
    three_broken("run", "suite.py", "--name", "new")
    three_broken("compare", "main.json", "new")
    three_broken("compare", "main", "new")
    three_broken("export", "new", "--to", "new.md")
    assert Path("new.md").read_text(encoding="utf-8").count("- compare against main") == 1

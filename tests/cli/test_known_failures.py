from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from viewer_client import report_text

SUITE = """
from agentunit import Suite

def agent(case):
    assert "known_failure" not in case.metadata
    if case.query == "boom":
        raise RuntimeError("broken")
    return case.query

def case(name, query, until=None, expected="good"):
    mark = {"known_failure": {"reason": f"ada@example.org knows about {name}", "until": until}} if until else {}
    return {"id": name, "query": query, "expected_output": expected, "metadata": {"topic": "x", **mark}}

suite = Suite(CASES, agent, metrics=["exact_match"], gates=["exact_match >= 1"])
"""
LATER, EARLIER = "2999-01-31", "2001-01-31"


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def write_suite(*cases: tuple[str, ...]) -> None:
    calls = ", ".join(f"case(*{each!r})" for each in cases)
    Path("suite.py").write_text(SUITE.replace("CASES", f"[{calls}]"))


def states(invoke, *arguments: str) -> tuple[int, dict[str, str]]:
    result = invoke(*arguments, "--json")
    data = json.loads(result.stdout)
    return result.exit_code, {each["case_id"]: each["state"] for each in data["known_failures"]}


def test_a_known_failure_fails_no_gate_until_its_date(invoke):
    write_suite(("a", "good"), ("b", "bad", LATER), ("c", "boom", LATER))
    code, known = states(invoke, "run", "suite.py")
    assert (code, known) == (0, {"b": "still fails", "c": "still fails"})
    write_suite(("a", "good"), ("b", "bad", EARLIER))
    assert states(invoke, "run", "suite.py") == (1, {"b": "expired"})
    write_suite(("a", "good"), ("b", "boom", EARLIER))
    assert states(invoke, "run", "suite.py")[0] in (1, 3)


def test_marks_hold_for_a_run_until_decided_as_for_any_other(invoke):
    command = ("run", "suite.py", "--repeats", "auto", "--gate", "exact_match >= 0.8", "--seed", "1", "--json")
    write_suite(*[(f"a{n}", "good") for n in range(10)], *[(f"b{n}", "bad", LATER) for n in range(10)])
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    (gate,) = json.loads(result.stdout)["gates"]
    assert gate["n_scored"] == gate["n_expected"] > 10, "runs of cases that are set aside are missed"
    write_suite(*[(f"b{n}", "bad", EARLIER) for n in range(40)])
    result = invoke(*command)
    data = json.loads(result.stdout)
    assert (result.exit_code, data["gates"][0]["verdict"]) == (1, "fail")
    assert "for the population of such cases" in data["gates"][0]["reason"], "a mark that has ended is no evidence"


def test_a_known_failure_that_passes_is_reported(invoke, monkeypatch):
    write_suite(("a", "good"), ("b", "good", LATER))
    result = invoke("run", "suite.py")
    assert result.exit_code == 0
    assert "b: fixed: remove the mark" in result.stdout
    assert "fixed, remove the mark: b" in result.stdout.splitlines()[0]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert "::warning title=AgentUnit%3A known failure::b: fixed" in invoke("run", "suite.py").stderr


def test_without_a_check_nobody_knows_whether_it_passes(invoke):
    write_suite(("a", "good"), ("b", "bad", LATER))
    slow = ("-m", "response_time", "--gate", "response_time <= 60")
    assert states(invoke, "run", "suite.py", *slow) == (0, {"b": "unknown"})
    # A check needs no gate to say that it fails.
    assert states(invoke, "run", "suite.py", *slow[2:]) == (0, {"b": "still fails"})


def test_other_cases_still_fail_the_gate(invoke):
    write_suite(("a", "bad"), ("b", "bad", LATER))
    result = invoke("run", "suite.py")
    assert result.exit_code == 1
    assert "0/1" in result.stdout or "1/1" in result.stdout  # of the two cases, one counts


def test_every_report_lists_them_and_masks_what_they_say(invoke):
    write_suite(("a", "good"), ("b", "bad", LATER), ("c", "good", LATER), ("d", "good", EARLIER))
    assert invoke("run", "suite.py").exit_code == 0
    texts = [invoke("show", "last").stdout, invoke("show", "last", "--gate", "stored").stdout]
    for name in ("run.md", "run.html", "junit.xml"):
        assert invoke("export", "last", "--to", name).exit_code == 0
        texts.append(report_text(name))
    for text in texts:
        plain = html.unescape(re.sub("<[a-z/!][^>]*>", "", text))
        assert f"b: still fails, set aside until {LATER} (<EMAIL_1> knows about b)" in plain, text
        assert "c: fixed: remove the mark" in plain
        assert f"d: counts again: the mark ended on {EARLIER}" in plain
    cases = {case.get("name"): case for case in ElementTree.parse("junit.xml").iter("testcase")}
    skipped = cases["b"].find("skipped")
    assert skipped is not None
    assert skipped.get("message", "").startswith(f"known failure until {LATER}")
    assert cases["c"].find("skipped") is None


def test_marking_a_case_is_not_another_dataset(invoke):
    write_suite(("a", "good"), ("b", "bad"))
    assert invoke("run", "suite.py").exit_code == 1
    write_suite(("a", "good"), ("b", "bad", LATER))
    result = invoke("run", "suite.py", "--resume", "last")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("until", ["soon", "2027-13-01", 7])
def test_a_mark_without_a_date_is_refused(invoke, until):
    write_suite(("a", "good"), ("b", "bad", until))
    result = invoke("run", "suite.py")
    assert result.exit_code == 3
    assert "case 'b': known_failure must have a reason and a date" in result.stderr


def test_a_known_failure_makes_no_regression(invoke):
    write_suite(("a", "good"), ("b", "good"), ("c", "good"))
    assert invoke("run", "suite.py", "--name", "before").exit_code == 0
    write_suite(("a", "good"), ("b", "bad", LATER), ("c", "boom", LATER))
    result = invoke("run", "suite.py", "--baseline", "before", "--json")
    comparison = json.loads(result.stdout)["comparison"]
    assert (comparison["n_paired"], comparison["differences"]) == (1, [])


def test_a_comparison_lists_them_and_says_why_it_has_fewer_cases(invoke):
    write_suite(("a", "good"), ("b", "bad", LATER), ("c", "good", LATER))
    for name in ("one", "two", "three"):
        assert invoke("run", "suite.py", "--name", name).exit_code == 0
    for more in ((), ("three",)):
        result = invoke("compare", "one", "two", *more)
        assert result.exit_code == 0, result.output
        assert "Known failures\n" in result.stdout
        assert f"b: still fails, set aside until {LATER}" in result.stdout
        assert "c: fixed: remove the mark" in result.stdout
    assert "1 case in both, 2 known failures set aside" in invoke("compare", "one", "two").stdout
    assert states(invoke, "compare", "one", "two") == (0, {"b": "still fails", "c": "fixed"})


def test_gates_say_that_they_count_fewer_and_the_worst_cases_are_others(invoke):
    write_suite(
        *((f"known{n}", "bad", LATER) for n in range(6)), *((f"new{n}", "bad") for n in range(7)), ("a", "good")
    )
    printed = invoke("run", "suite.py").stdout
    assert "0/14" in printed or "14/14" in printed
    assert "6 known failures set aside: gates do not count them" in printed
    assert "7 of 14 cases wrong: exact_match" in printed

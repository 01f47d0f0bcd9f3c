"""Several runs against one baseline in files, and scores by slice in files."""

from __future__ import annotations

import re
import shutil
import sys
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from viewer_client import page_parts

SUITE = """
from agentunit import Suite

KINDS = ["billing", "refund", "login"]
cases = [
    {"id": f"c{n:03d}", "query": f"{KINDS[n % 3]} {n}", "expected_output": "yes", "metadata": {"kind": KINDS[n % 3]}}
    for n in range(60)
]
suite = Suite(cases, lambda query: "no" if WRONG(query) else "yes", metrics=["exact_match"])
"""
VARIANTS = {"main": "False", "worse": "'refund' in query", "mixed": "query in ('billing 0', 'refund 1')"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@pytest.fixture
def three_runs(invoke, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, wrong in VARIANTS.items():
        Path("suite.py").write_text(SUITE.replace("WRONG(query)", wrong))
        assert invoke("run", "suite.py", "--name", name).exit_code == (name != "main")
    return invoke


def exported(invoke, *arguments: str) -> str:
    target = arguments[-1]
    result = invoke("export", *arguments[:-1], "--to", target)
    assert result.exit_code == 0, result.output
    return Path(target).read_text(encoding="utf-8")


def test_markdown_has_cases_by_runs(three_runs):
    text = unescape(exported(three_runs, "worse", "mixed", "--baseline", "main", "report.md"))
    heading = "### worse, mixed against main: ❌ FAIL\n\n"
    assert text.startswith(f"{heading}**FAIL: worse: 20 newly failing, more than chance makes (c001, c004, ")
    code = "`{}`".format
    assert f"| case | {code('main')} | {code('worse')} | {code('mixed')} |\n|---|---|---|---|\n" in text
    assert f"| {code('c001')} | ok | newly failing | newly failing |\n" in text
    assert f"| {code('c000')} | ok | ok | newly failing |\n" in text
    assert "**Cases that changed (21)**" in text
    # Each run says its own.
    assert "\n**CANNOT TELL: 2 newly failing, not tried to the end (c000, c001: " in text
    assert re.search(r"\nnext: `agentunit rerun \S+ --newly-failing --baseline \S+`\n", text)
    assert "… and 39 that changed in no run" in text
    # Each run as 'export --baseline' has it, folded.
    assert "<details><summary><code>mixed</code>: " in text
    assert text.count("<details") == text.count("</details>")


def test_the_terminal_and_the_files_have_the_same_table(three_runs):
    printed = three_runs("compare", "main", "worse", "mixed", "--why").output
    rows = re.findall(r"^(c\d+) +(ok|fails) +([a-z ]+?)  +([a-z ]+?) *$", printed, re.MULTILINE)
    assert len(rows) == 21
    text = unescape(exported(three_runs, "worse", "mixed", "--baseline", "main", "report.md"))
    assert re.findall(r"^\| `(c\d+)` \| (\w+) \| ([a-z ]+) \| ([a-z ]+) \|$", text, re.MULTILINE) == rows
    command = printed.splitlines()[-1].removeprefix("next: agentunit ")
    assert three_runs(*command.split()).exit_code == 0


def test_a_run_has_one_label_everywhere_its_name_first(invoke, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("suite.py").write_text(SUITE.replace("WRONG(query)", "False"))
    for name, version in (("first", "1"), ("second", "2"), ("second", "3")):
        assert invoke("run", "suite.py", "--name", name, "--tag", f"version={version}", "--tag", "x=y").exit_code == 0
    lines = invoke("compare", "first", "last~1", "last").output.splitlines()
    assert "Each against first" in lines
    assert any(re.match("metric +first +second version=2 +second version=3", line) for line in lines), lines
    assert "second version=2: PASS: no change from first" in lines
    pair = invoke("compare", "last~1", "last").output
    assert "Against the baseline version=2 → version=3: 60 cases" in pair
    assert "PASS: no change from version=2" in pair
    text = exported(invoke, "last~1", "last", "--baseline", "first", "report.md")
    assert "no change from first" in text


def test_a_baseline_is_shown_over_the_cases_that_a_run_is_compared_on(invoke, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, wrong in (("main", "query.endswith('0')"), ("same", "query.endswith('0')")):
        Path("suite.py").write_text(SUITE.replace("WRONG(query)", wrong))
        invoke("run", "suite.py", "--name", name)
    failing = SUITE.replace("WRONG(query)", "query.endswith('0') or (query.endswith('9') and 1 // 0)")
    Path("suite.py").write_text(failing)
    invoke("run", "suite.py", "--name", "raises")
    row = next(
        each for each in invoke("compare", "main", "same", "raises").output.splitlines() if "exact_match" in each
    )
    assert re.match(r"exact_match +0\.90 +0\.90 no change +0\.89 no change \(from 0\.89, 54", row), row


def test_junit_has_the_suites_of_every_run(three_runs):
    root = ElementTree.fromstring(exported(three_runs, "worse", "mixed", "--baseline", "main", "report.xml"))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["worse: worse", "worse: verdict", "mixed: mixed", "mixed: verdict"]
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(names) == len(set(names)) == 122
    changes = {
        (suite, case.get("name")): each.get("value")
        for suite in ("worse: worse", "mixed: mixed")
        for case in suites[suite].iter("testcase")
        for each in case.iter("property")
        if each.get("name") == "baseline.change"
    }
    why = 'newly failing: "no", expected "yes" (exact_match failed 1 of 1, passed 1 of 1 before; broken after 10)'
    assert changes[("worse: worse", "c001")] == why
    failed = {name: len(suite.findall("testcase/failure")) for name, suite in suites.items()}
    # What may be chance is no failure.
    assert failed == {"worse: worse": 20, "worse: verdict": 1, "mixed: mixed": 0, "mixed: verdict": 0}
    assert len(suites["mixed: verdict"].findall("testcase/error")) == 1
    assert len(changes) == 22


def test_every_changed_case_is_in_the_files_however_many_there_are(invoke, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, wrong in (("main", "False"), ("all-wrong", "True")):
        Path("suite.py").write_text(SUITE.replace("WRONG(query)", wrong).replace("range(60)", "range(260)"))
        invoke("run", "suite.py", "--name", name)
    exported(invoke, "all-wrong", "--baseline", "main", "one.html")
    page = page_parts("one.html")["data/compare--1-0.json.gz"]
    assert page["n_by_kind"]["newly failing"] == 260
    assert len(page["cases"]) == 200
    root = ElementTree.fromstring(exported(invoke, "all-wrong", "--baseline", "main", "one.xml"))
    listed = next(each for each in root.iter("property") if each.get("name") == "baseline.newly failing")
    assert len(listed.get("value", "").split(", ")) == 260


def test_a_doubt_about_a_comparison_stands_everywhere(three_runs):
    assert three_runs("run", "suite.py", "--name", "thrice", "--repeats", "3").exit_code == 1
    doubt = "60 cases have more repeats in one of the runs"
    assert doubt in " ".join(three_runs("compare", "main", "mixed", "thrice").output.split())
    for target in ("report.md", "report.xml", "report.html"):
        assert doubt in unescape(exported(three_runs, "thrice", "mixed", "--baseline", "main", target)), target


@pytest.mark.parametrize("target", ["run.json", "run.csv"])
def test_files_without_a_verdict_take_no_baseline(three_runs, target):
    refused = three_runs("export", "worse", "--baseline", "main", "--to", target)
    assert refused.exit_code == 2
    assert "holds scores and no verdict ('agentunit compare BASE RUN --json'" in " ".join(refused.stderr.split())
    assert not Path(target).exists()


def test_what_cannot_be_one_report_is_refused(three_runs):
    for arguments, words in (
        (("worse", "mixed", "--to", "x.html"), "several runs need --baseline"),
        (("worse", "mixed", "--baseline", "main", "--to", "x.csv"), "--format csv writes one run"),
        (("worse", "mixed", "--baseline", "main", "--to", "x.json"), "a .json file holds one run"),
        (("worse", "worse", "--baseline", "main", "--to", "x.html"), "a run is named twice"),
        (("worse", "--by", "metadata.kind", "--to", "x.json"), "--by is for reports"),
    ):
        result = three_runs("export", *arguments)
        assert (result.exit_code, words in result.output) == (2, True), result.output


def test_slices_are_in_every_report(three_runs):
    arguments = ("worse", "--baseline", "main", "--by", "metadata.kind")
    row = ("refund", "-1.000", "20/20")
    text = unescape(exported(three_runs, *arguments, "one.md"))
    assert "**By metadata.kind, new run − baseline**" in text
    assert "**By metadata.kind**" in text
    assert f"| `exact_match` | {' | '.join(row)} | " in text
    assert text.index("| refund |") < text.index("| billing |")
    exported(three_runs, *arguments, "one.html")
    changed, plain = page_parts("one.html")["data/runs/0/run.json.gz"]["slices"]
    assert changed["note"].startswith("new run − baseline")
    first = changed["rows"][0]
    assert (first["metric"], first["slice"], first["mean"], first["n_scored"]) == ("exact_match", "refund", -1.0, 20)
    assert plain["by"] == changed["by"] == "metadata.kind"
    root = ElementTree.fromstring(exported(three_runs, *arguments, "one.xml"))
    values = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert values["By metadata.kind, new run − baseline: refund: exact_match"].startswith(f"{row[1]}, scored {row[2]}")
    assert values["By metadata.kind: refund: exact_match"].startswith(
        "0.00 [0.00, 0.16], scored 20/20, from the rest -"
    )
    assert "no scored case has a value of metadata.knd" in exported(three_runs, "worse", "--by", "metadata.knd", "x.md")


def test_a_page_holds_the_cases_of_every_run(three_runs):
    exported(three_runs, "worse", "mixed", "--baseline", "main", "report.html")
    parts = page_parts("report.html")
    index = parts["data/index.json.gz"]
    assert [run["n_records"] for run in index["layout"]["runs"]] == [60, 60]
    assert [line["name"] for line in parts["data/runs.json.gz"]["runs"]] == ["worse", "mixed"]
    assert len(index["comparisons"]) == 2
    assert {f"data/compare--1-{n}.json.gz" for n in (0, 1)} <= parts.keys()


def test_all_shows_every_case_of_a_comparison(three_runs):
    short = three_runs("compare", "main", "worse").output
    assert "… and 10 more (--why shows them)" in short
    whole = three_runs("compare", "main", "worse", "--why").output
    assert " more (" not in whole
    assert all(f"\n  c{n:03d} " in whole for n in range(1, 60, 3))


def test_an_option_is_called_by_its_name_in_an_error(three_runs):
    result = three_runs("compare", "main", "worse", "--on", "exact_mach")
    assert result.exit_code == 2
    assert "Error: --on must name metrics of the runs (exact_match" in result.output
    assert "did you mean 'exact_match'?" in result.output


def test_a_name_that_several_runs_have_means_the_newest_and_says_so(three_runs):
    assert three_runs("run", "suite.py", "--name", "main").exit_code == 1
    result = three_runs("compare", "main", "worse")
    assert "note: 2 runs are called 'main': taking the newest (" in result.stderr
    assert "note: 2 runs" in three_runs("show", "main").stderr
    assert "note:" not in three_runs("compare", "mixed", "worse").stderr

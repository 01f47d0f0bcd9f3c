"""Every report renders the one decision on a run: the same word, the same sentence, and the same cases that fail it."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from decided_runs import NOT_APPLICABLE, RAISED, Case, Shown, Try, keep_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from viewer_client import page_parts, page_verdicts, report_text

from agentunit.addons.scale.table_output import write_parquet
from agentunit.addons.viewer.html_file import write_html
from agentunit.cli.runs import runs as runs_command
from agentunit.core.results import encode_json
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import Decision, decide_run, strictest
from agentunit.engine.deciding.stored import keep_decision
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.reports._junit import write_junit
from agentunit.reports.decision_console import print_verdict
from agentunit.reports.github_annotations import workflow_commands
from agentunit.reports.json_report import run_as_data
from agentunit.reports.markdown import run_markdown
from agentunit.reports.notebook import run_html
from agentunit.reports.otel_events import decision_attributes
from agentunit.reports.reported_run import ReportedRun, open_run, open_run_file
from agentunit.reports.run_console import print_stored_run
from agentunit.reports.run_facts import failed_cases
from agentunit.reports.terminal import Terminal
from agentunit.store.portable import export_run
from agentunit.store.sqlite import Store

VERDICTS = ("PASS", "FAIL", "ERRORS", "CANNOT TELL")
GATES = (
    "contains >= 0.5",
    "contains all == 1",
    "contains pass^2 >= 0.5",
    "support >= 0.5",
    "support all >= 0.2",
    "support p95 <= 0.9",
    "contains >= 0.5 coverage 0",
)


def printed(show: Callable[[Terminal], None]) -> str:
    out = io.StringIO()
    show(Terminal(file=out, width=200))
    return out.getvalue()


def markdown_text(reported: ReportedRun) -> str:
    """Markdown as GitHub shows it: without what escapes signs."""
    return re.sub(r"\\(\W)", r"\1", html.unescape(run_markdown(reported)))


def reports_of(reported: ReportedRun, folder: Path) -> dict[str, str]:
    """Every report of a run as text, by name."""
    decision = reported.decision
    made = {
        "run": printed(lambda console: print_verdict(decision, reported.findings, console, "next", all_rows=True)),
        "show": printed(lambda console: print_stored_run(reported, console)),
        "markdown": markdown_text(reported),
        "notebook": html.unescape(run_html(reported.run)),
        "otel": json.dumps(decision_attributes(reported), ensure_ascii=False),
    }
    for name, write in (("html", write_html), ("junit", write_junit)):
        write(reported, folder / name)
        text = page_verdicts(folder / name) if name == "html" else report_text(folder / name)
        made[name] = html.unescape(text)
    data = json.loads(encode_json(run_as_data(reported)))
    made["json"] = json.dumps(data["decision"], ensure_ascii=False)
    if decision.exit_code:
        commands = workflow_commands(reported, {"GITHUB_ACTIONS": "true"})
        made["annotations"] = unquote("\n".join(each.replace("%0A", "\t") for each in commands))
    return made


SECTIONS = {
    "run": (r"^(?:{}) \(\d+\)\n((?:  [^\n]*\n)*)", r"^  (case-\d)  "),
    "show": (r"^(?:{}) \(\d+\)\n((?:  [^\n]*\n)*)", r"^  (case-\d)  "),
    "markdown": (r"<summary>(?:{}) \(\d+\)</summary>(.*?)</details>", r"^- `(case-\d)` "),
    "annotations": (r"title=AgentUnit: (?:{}) \(\d+\)::([^\n]*)", r"(?:^|\t)(case-\d): "),
}
"""How reports list cases: what is under a heading, and which of that is the id of a case."""


def cases_under(heading: str, report: str, text: str) -> set[str]:
    section, line = SECTIONS[report]
    parts = re.findall(section.format(heading), text, re.MULTILINE | re.DOTALL)
    return {case_id for part in parts for case_id in re.findall(line, part, re.MULTILINE)}


def failed_in(made: dict[str, str], folder: Path) -> dict[str, set[str]]:
    """Which cases each report says that the run fails for."""
    data = json.loads(made["json"])
    behind = {each for reason in data["reasons"] if reason["exit_code"] == 1 for each in reason["cases"]}
    wrong = {each["case_id"] for each in data["findings"] if each["state"] == "wrong"}
    root = ElementTree.fromstring((folder / "junit").read_text(encoding="utf-8"))
    found = {
        "json": wrong & behind,
        "junit": {each.get("name") or "" for each in root[0] if each.find("failure") is not None},
    }
    for report in SECTIONS.keys() & made.keys():
        # What was not tried to the end fails a run only where a reason says so.
        newly_failing = cases_under("Newly failing, not tried to the end", report, made[report])
        listed = cases_under("Wrong", report, made[report])
        if report != "annotations":
            # What is wrong and may be is listed as well.
            listed &= behind
        found[report] = cases_under("Broken", report, made[report]) | listed | (newly_failing & behind)
    # A page also lists what is wrong and may be, and calls a case by the check that says most.
    groups = page_parts(folder / "html")["data/runs/0/run.json.gz"]["decision"]["groups"]
    by_word = {group["word"]: {case["case_id"] for case in group["cases"]} for group in groups}
    assert wrong <= set().union(*by_word.values())
    assert set().union(*(by_word.get(word, set()) for word in ("broken", "wrong", "still failing"))) <= wrong
    return found


values = st.sampled_from([0.0, 1.0, 1.0])
degrees = st.floats(0.0, 1.0).map(lambda value: round(value, 3)) | st.sampled_from([NOT_APPLICABLE, RAISED, Shown(0.1)])


@st.composite
def some_cases(draw: st.DrawFn, n_repeats: int) -> list[Case]:
    cases = []
    for number in range(draw(st.integers(1, 6))):
        tries = []
        # Most cases are the same in every try.
        is_steady = draw(st.booleans())
        steady = draw(values)
        for _ in range(n_repeats):
            answer = None if draw(st.integers(0, 9)) == 0 else f"here {draw(st.integers(0, 9))}"
            value = steady if is_steady else draw(values)
            tries.append(Try({"contains": value, "support": draw(degrees)}, answer))
        again = [Try({"contains": 0.0}, f"there {n}") for n in range(draw(st.sampled_from([0, 0, 8])))]
        cases.append(Case(f"case-{number}", tries, again if is_steady and steady == 0.0 else []))
    return cases


runs_of_cases = st.integers(1, 3).flatmap(some_cases)


def has_failing_check(case: Case) -> bool:
    """Whether a check of a case fails in every try: that it answers, ``contains``, or every value by a gate."""
    tries = [*case.tries, *case.again]
    if all(one.failed for one in tries):
        return True
    answered = [one for one in tries if not one.failed]
    return any(
        all(one.values.get(metric) not in passing for one in answered if metric in one.values)
        for metric, passing in (("contains", (1.0,)), ("support", ()))
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cases=runs_of_cases,
    gates=st.lists(st.sampled_from(GATES), unique=True, max_size=3),
    max_errors=st.none() | st.integers(0, 3),
    before=st.none() | runs_of_cases,
)
def test_every_report_says_the_same_word_and_names_the_same_cases(cases, gates, max_errors, before, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with Store(folder / "runs.db") as store:
        run = keep_run(store, cases, gates=gates, max_errors=max_errors, min_coverage=0.5)
        comparison = None
        if before is not None:
            comparison = compare_runs(run, keep_run(store, before, name="old"), resamples=99)
        decision = keep_decision(store, run.header.id, decide_run(run, comparison=comparison), "run")
        # What was asked later changes no report of what was decided.
        keep_decision(store, run.header.id, Decision(1, "fail", "FAIL: asked later"), "gate")
        with open_run(run.header.id, store) as reported:
            made = reports_of(reported, folder)
        named = failed_in(made, folder)
    # Cases that did not change are not kept.
    assert replace(reported.decision, comparison=None) == replace(decision, comparison=None)
    code = decision.exit_code
    for name, text in made.items():
        text = text.replace("FAIL: asked later", "")
        assert decision.headline in (json.loads(text)["headline"] if name == "json" else text), name
        assert [word for word in VERDICTS if f"{word}: " in text and word not in (decision.word, "FAIL")] == [], name
        if decision.line and name != "otel":
            assert decision.line in text, name
    behind = {case_id for reason in decision.reasons if reason.exit_code == 1 for case_id in reason.cases}
    wrong = {finding.case_id for finding in decision.findings if finding.state == "wrong"}
    assert {name: found for name, found in named.items() if found != behind & wrong} == {}
    if before is None:
        listed = {name: cases_under("Wrong", name, made[name]) for name in ("run", "show", "markdown")}
        assert listed == dict.fromkeys(listed, wrong)
    by_id = {case.id: case for case in cases}
    if "support all >= 0.2" not in gates:
        assert [case_id for case_id in behind & wrong if not has_failing_check(by_id[case_id])] == []
    root = ElementTree.fromstring((folder / "junit").read_text(encoding="utf-8"))
    assert any(True for tag in ("failure", "error") for _ in root.iter(tag)) == (code != 0)
    assert [each.get("name") for each in root[0].iter("testcase")] == [case.id for case in cases]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=some_cases(2),
    runs=st.lists(runs_of_cases, min_size=2, max_size=3),
    gates=st.lists(st.sampled_from(GATES), unique=True, max_size=2),
)
def test_a_report_of_several_runs_has_the_decision_of_each(before, runs, gates, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    with Store(folder / "runs.db") as store:
        old, reported = keep_run(store, before, name="old"), []
        for number, cases in enumerate(runs):
            run = keep_run(store, cases, name=f"new-{number}", gates=gates)
            reported.append(open_run(run.header.id, store))
            reported[-1].decision = decide_run(run, comparison=compare_runs(run, old, resamples=99))
        first = reported[0]
        first.others, first.baseline_label = tuple(reported[1:]), "old"
        made = {"markdown": markdown_text(first)}
        for name, write in (("html", write_html), ("junit", write_junit)):
            write(first, folder / name)
            made[name] = html.unescape((page_verdicts if name == "html" else report_text)(folder / name))
    decisions = [each.decision for each in reported]
    assert first.verdict.exit_code == strictest(each.exit_code for each in decisions)
    for name, text in made.items():
        assert [each.headline for each in decisions if each.headline not in text] == [], name
        words = {each.word for each in decisions}
        assert [word for word in ("PASS", "CANNOT TELL") if f"{word}: " in text and word not in words] == [], name
    root = ElementTree.fromstring((folder / "junit").read_text(encoding="utf-8"))
    assert any(True for tag in ("failure", "error") for _ in root.iter(tag)) == (first.verdict.exit_code != 0)
    for each in reported:
        suite = next(suite for suite in root if suite.get("name") == f"{each.label}: {each.label}")
        failed = {case.get("name") for case in suite if case.find("failure") is not None}
        assert failed == set(failed_cases(each.decision))


WRONG = Case("q1", [Try({"contains": 0.0}, "there")])
FLAKY = Case("q2", [Try({"contains": 1.0}), Try({"contains": 0.0}, "there")])
FINE = Case("q3", [Try({"contains": 1.0})])


@pytest.fixture
def decided(store: Store) -> ReportedRun:
    """A run whose decision was kept and is not the one that would be made now."""
    run = keep_run(store, [WRONG, FLAKY, FINE], gates=["contains >= 0.1"])
    decision = decide_run(run, ["contains >= 0.9"])
    keep_decision(store, run.header.id, decision, "run", gates=["contains >= 0.9"])
    keep_decision(store, run.header.id, decide_run(run), "gate")
    return open_run(run.header.id, store)


def test_what_was_decided_once_is_said_for_good(decided, store, tmp_path, monkeypatch):
    headline = "FAIL: contains >= 0.9: mean 0.5 misses >= 0.9"
    assert (decided.decision.headline, decided.decision.exit_code) == (headline, 1)
    assert decided.decision.made_with["gates"] == ["contains >= 0.9"]
    export_run(store, "new", tmp_path / "run.json")
    write_parquet(decided, tmp_path / "run.parquet")
    for name in ("run.json", "run.parquet"):
        assert open_run_file(tmp_path / name).decision.headline == headline, name
    monkeypatch.setenv("COLUMNS", "70")
    for arguments, said in (((), r"finished  FAIL *$"), (("--json",), f'"verdict":"fail","headline":"{headline}"')):
        done = CliRunner().invoke(runs_command, [*arguments, "--store", str(tmp_path / "runs.db")])
        assert re.search(said, done.stdout, re.MULTILINE), done.output


def test_decisions_of_other_commands_are_beside_it(decided):
    beside = r"gate, \d{4}-\d\d-\d\d \d\d:\d\d( UTC)?: PASS: 1 gate met; 3 cases: 1 fine, 1 wrong, 1 flaky"
    assert re.search(beside, printed(lambda console: print_stored_run(decided, console)))
    assert re.search(beside, html.unescape(run_markdown(decided)))


def test_a_run_without_a_decision_says_that_it_was_decided_now(store, tmp_path):
    keep_run(store, [FINE], gates=["contains >= 0.1"])
    made = reports_of(open_run("new", store), tmp_path)
    said = "decided now: no decision was kept with this run"
    assert [name for name in ("run", "show", "markdown", "notebook", "junit") if made[name].count(said) != 1] == []
    keep_decision(store, "new", decide_run(run_from_store(store, "new")), "run")
    made = reports_of(open_run("new", store), tmp_path)
    assert [name for name, text in made.items() if "decided now:" in text] == []


def test_only_what_fails_the_run_is_a_failure(decided, tmp_path):
    write_junit(decided, tmp_path / "junit.xml")
    wrong, flaky, fine = ElementTree.parse(tmp_path / "junit.xml").getroot()[0].iter("testcase")
    assert wrong.find("failure").get("message") == "wrong: 0, needs 1 (contains failed 1 of 1)"
    assert flaky.find("system-out").text == "flaky: 0, needs 1 (contains failed 1 of 2)"
    assert {each.tag for case in (flaky, fine) for each in case} == {"properties", "system-out"}
    decided.decision = decide_run(decided.run)
    write_junit(decided, tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "1")
    said = "does not fail the run: 0, needs 1 (contains failed 1 of 1) (allowed by contains >= 0.1)"
    assert root.find(".//skipped").get("message") == said


def test_a_gate_on_a_mean_of_degrees_fails_no_case(store, tmp_path):
    cases = [Case(f"q{n}", [Try({"support": value})]) for n, value in enumerate([0.1, 0.2, 0.9])]
    keep_run(store, cases, gates=["support >= 0.8", "length max <= 3"])
    write_junit(open_run("new", store), tmp_path / "junit")
    root = ElementTree.parse(tmp_path / "junit").getroot()
    tags = {each.tag for case in root[0].iter("testcase") for each in case}
    assert tags == {"properties", "system-out"}
    assert len(root[1].findall("testcase/failure")) == 1


def test_errors_that_are_allowed_do_not_turn_a_junit_file_red(store, tmp_path):
    cases = [Case("q1", [Try({"contains": 1.0}, None)]), FINE]
    keep_run(store, cases, gates=["contains >= 0.5 coverage 0"], max_errors=1)
    write_junit(open_run("new", store), tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "1")
    assert root[0].find("testcase/skipped").get("message") == "ValueError: boom"
    keep_run(store, cases, name="strict", gates=["contains >= 0.5 coverage 0"], max_errors=0)
    write_junit(open_run("strict", store), tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert root[0].find("testcase/error").get("message") == "ValueError: boom"


def test_every_report_counts_cases_and_repeats_alike(store, tmp_path):
    tries = [Try({"contains": 1.0})] * 3
    failing = Case("q0", [Try({"contains": 1.0}, None)] * 3)
    keep_run(store, [failing, *(Case(f"q{n}", tries) for n in range(1, 6))], gates=["contains >= 0.5"])
    made = reports_of(open_run("new", store), tmp_path)
    for name in ("show", "markdown", "html"):
        assert "6 cases × 3 repeats" in made[name], name
        assert "18 cases" not in made[name], name
    assert "1 of 6 cases wrong: ValueError: boom" in made["show"]


def test_beside_a_baseline_flaky_cases_are_listed_with_why(store, tmp_path):
    tries = [Try({"contains": 1.0}, f"here {n}") for n in range(3)]
    old = [Case("q1", tries), Case("q2", tries), Case("q3", tries)]
    failing = Try({"contains": 0.0}, "there")
    new = [Case("q1", [failing] * 3), Case("q2", [failing, *tries[1:]]), Case("q3", tries)]
    baseline, run = keep_run(store, old, name="old"), keep_run(store, new)
    decision = decide_run(run, comparison=compare_runs(run, baseline, resamples=99))
    keep_decision(store, run.header.id, decision, "run")
    made = reports_of(open_run(run.header.id, store), tmp_path)
    why = "0, needs 1 (contains failed 1 of 3, passed 3 of 3 before)"
    for name in ("run", "show"):
        assert f"\nFlaky (1)\n  q2  {why}\n" in made[name], name
        assert made[name].index("\nNewly failing") < made[name].index("\nFlaky"), name
    assert f"<summary>Flaky (1)</summary>\n\n- `q2` {why}" in made["markdown"]
    root = ElementTree.parse(tmp_path / "junit").getroot()
    said = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert (said["baseline.flaky"], said["baseline.change"]) == ("q2", f"flaky: {why}")

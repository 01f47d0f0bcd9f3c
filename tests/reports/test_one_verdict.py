"""Every report renders the one decision on a run: none says pass unless the exit code is 0, all name the same cases."""

from __future__ import annotations

import html
import io
import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from viewer_client import page_verdicts, report_text

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.core.results import MetricResult, Score, encode_json
from agentunit.engine.compare import compare_runs
from agentunit.engine.decision import decide_run, strictest
from agentunit.engine.scored_run import run_from_store
from agentunit.reports.decision_console import print_decision
from agentunit.reports.json_report import run_as_data
from agentunit.reports.junit import write_junit
from agentunit.reports.markdown import run_markdown
from agentunit.reports.otel_events import decision_attributes, score_attributes
from agentunit.reports.reported_run import open_run
from agentunit.reports.run_console import print_stored_run
from agentunit.store.sqlite import Store
from agentunit.viewer.html_file import write_html

# "pass^3" is a way to aggregate, and "pass" a value of one gate in JSON; neither says that the run passes.
SAYS_PASS = re.compile(r"\bpass(?:ed|es)?\b(?![\^@])", re.IGNORECASE)
GATES = ("m >= 0.5", "m all == 1", "m p95 <= 0.9", "m pass^2 >= 0.5", "m sum <= 3", "m >= 0.5 coverage 0")


def keep(store, run_id, cases, *, n_repeats=1, gates=(), max_errors=0):
    """A run of made-up cases: "failed" (the agent), "broken" (the metric), or a value."""
    header = store.create_run(
        "desk",
        agentunit_version="0",
        settings={"gates": list(gates), "max_errors": max_errors, "min_coverage": 0.5},
        n_planned=len(cases) * n_repeats,
        run_id=run_id,
    )
    for position, kind in enumerate(cases):
        for repeat in range(n_repeats):
            failed = kind == "failed"
            outcome = Outcome(error="boom") if failed else Outcome(output="an answer")
            record = Record(DatasetCase(f"case-{position}", "?"), TraceLog(), outcome)
            store.add_record(header.id, position, repeat, record, failed=failed, elapsed_s=0.1)
            if not failed:
                broken = kind == "broken"
                result = MetricResult("m", None if broken else kind, {"reason": "broke"} if broken else {})
                score = Score(result, "error" if broken else "ok", "b", "1", 0.0)
                store.add_scores(header.id, position, repeat, {"m": score})
    store.set_status(header.id, "finished", finished_at=header.created_at + 1)
    return header.id


def reports_of(reported, folder):
    """Every report of a run as text, by name."""
    made = {}
    for name, show in (
        ("terminal", lambda console: print_decision(reported.decision, console, "next")),
        ("show", lambda console: print_stored_run(reported, console)),
    ):
        out = io.StringIO()
        show(Console(file=out, width=200))
        made[name] = out.getvalue()
    made["markdown"] = html.unescape(run_markdown(reported))
    for name, write in (("html", write_html), ("junit", write_junit)):
        write(reported, folder / name)
        made[name] = (page_verdicts if name == "html" else report_text)(folder / name)
    events = [decision_attributes(reported)]
    events += [score_attributes(reported, case, "m", case.scores["m"]) for case in reported.cases() if case.scores]
    made["otel"] = json.dumps(events)
    data = json.loads(encode_json(run_as_data(reported)))
    made["json"] = json.dumps({**data, "gates": [{**gate, "verdict": ""} for gate in data["gates"]]})
    return made


kinds = st.one_of(st.sampled_from(["failed", "broken", 0.0, 1.0]), st.floats(0.0, 1.0))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cases=st.lists(kinds, min_size=1, max_size=6),
    n_repeats=st.integers(1, 2),
    gates=st.lists(st.sampled_from(GATES), unique=True, max_size=3),
    max_errors=st.integers(0, 3),
    before=st.none() | st.lists(kinds, min_size=6, max_size=6),
)
def test_no_report_passes_a_run_that_did_not(cases, n_repeats, gates, max_errors, before, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with Store(folder / "runs.db") as store:
        keep(store, "new", cases, n_repeats=n_repeats, gates=gates, max_errors=max_errors)
        reported = open_run("new", store)
        comparison = None
        if before is not None:
            keep(store, "old", before)
            comparison = compare_runs(reported.run, run_from_store(store, "old"), resamples=99)
        decision = reported.decision = decide_run(reported.run, comparison=comparison)
        made = reports_of(reported, folder)
    code = decision.exit_code
    for name, text in made.items():
        if code != 0:
            assert not SAYS_PASS.search(text), name
        elif decision.verdict == "pass":
            assert SAYS_PASS.search(text), name
        named = decision.failing_cases[:3]
        assert all(case_id in text for case_id in named), name
    root = ElementTree.fromstring(made["junit"])
    bad = {each.get("name") for each in root[0] if each.find("failure") is not None or each.find("error") is not None}
    assert {name.split()[0] for name in bad} == set(decision.failing_cases)
    assert any(True for tag in ("failure", "error") for _ in root.iter(tag)) == (code != 0)
    assert json.loads(made["json"])["decision"]["failing_cases"] == list(decision.failing_cases)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=6),
    runs=st.lists(st.lists(kinds, min_size=1, max_size=6), min_size=2, max_size=3),
    gates=st.lists(st.sampled_from(GATES), unique=True, max_size=2),
)
def test_no_report_of_several_runs_passes_one_that_did_not(before, runs, gates, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    with Store(folder / "runs.db") as store:
        keep(store, "old", before)
        old, reported = run_from_store(store, "old"), []
        for number, cases in enumerate(runs):
            keep(store, f"new-{number}", cases, n_repeats=2, gates=gates)
            reported.append(open_run(f"new-{number}", store))
            comparison = compare_runs(reported[-1].run, old, resamples=99)
            reported[-1].decision = decide_run(reported[-1].run, comparison=comparison)
        first = reported[0]
        first.others, first.baseline_label = tuple(reported[1:]), "old"
        made = {"markdown": html.unescape(run_markdown(first))}
        for name, write in (("html", write_html), ("junit", write_junit)):
            write(first, folder / name)
            made[name] = (page_verdicts if name == "html" else report_text)(folder / name)
    decisions = [each.decision for each in reported]
    assert first.verdict.exit_code == strictest(each.exit_code for each in decisions)
    for name, text in made.items():
        text = html.unescape(text)
        assert all(each.headline[:300] in text for each in decisions), name
        assert all(case_id in text for each in decisions for case_id in each.failing_cases[:3]), name
        if not any(each.verdict == "pass" for each in decisions):
            assert not SAYS_PASS.search(text), name
    root = ElementTree.fromstring((folder / "junit").read_text(encoding="utf-8"))
    assert any(True for tag in ("failure", "error") for _ in root.iter(tag)) == (first.verdict.exit_code != 0)
    for each in reported:
        cases = next(suite for suite in root if suite.get("name") == f"{each.label}: desk")
        bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
        assert {case.get("name").split()[0] for case in bad} == set(each.decision.failing_cases)


@pytest.fixture
def one_raises(store):
    """Ten cases, one of which raises; the gate is met."""
    keep(store, "new", ["failed", *[1.0] * 9], gates=["m >= 0.9"])
    return open_run("new", store)


def test_a_met_gate_does_not_hide_a_failed_case(one_raises, tmp_path):
    headline = "ERRORS: failed cases and scores: 1, allowed: 0 (case-0)"
    assert (one_raises.decision.exit_code, one_raises.decision.headline) == (3, headline)
    made = reports_of(one_raises, tmp_path)
    assert made["markdown"].startswith("### `desk`: ❌ ERRORS\n")
    assert '"verdict": "errors", "headline": "ERRORS' in made["html"]
    for name in ("terminal", "show", "html", "junit", "otel", "json"):
        assert headline in made[name], name


def test_errors_that_are_allowed_do_not_turn_a_junit_file_red(store, tmp_path):
    keep(store, "new", ["failed", *[1.0] * 9], gates=["m >= 0.9"], max_errors=1)
    reported = open_run("new", store)
    write_junit(reported, tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "1")
    assert root[0].find("testcase/skipped").get("message") == "boom"


def test_a_score_that_no_gate_asks_for_fails_nothing(store, tmp_path):
    keep(store, "new", [0.0, 1.0], gates=["m >= 0.5"])
    reported = open_run("new", store)
    assert reported.decision.exit_code == 0
    write_junit(reported, tmp_path / "junit.xml")
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("failures") == "0"


def test_every_report_counts_cases_and_repeats_alike(store, tmp_path):
    keep(store, "new", ["failed", *[1.0] * 5], n_repeats=3, gates=["m >= 0.5"])
    made = reports_of(open_run("new", store), tmp_path)
    for name in ("show", "markdown", "html"):
        assert "6 cases × 3 repeats" in made[name], name
        assert "18 cases" not in made[name], name
    assert "The agent failed in 3 of 18 records, on 1 of 6 cases" in made["show"]

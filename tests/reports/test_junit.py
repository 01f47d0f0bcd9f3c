from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kept_records import add_record

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.engine.deciding.decision import decide_run
from agentunit.reports._junit import write_junit
from agentunit.reports.reported_run import open_run
from agentunit.store.sqlite import Store


def junit(reported, tmp_path, **options):
    path = tmp_path / "junit.xml"
    n_cases = write_junit(reported, path, **options)
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    for suite in [root, *root]:
        below = list(suite.iter("testcase"))
        assert int(suite.get("tests")) == len(below)
        assert int(suite.get("failures")) == sum(each.find("failure") is not None for each in below)
        assert int(suite.get("errors")) == sum(each.find("error") is not None for each in below)
    return root, n_cases


def test_one_test_case_a_case(demo_run, tmp_path):
    root, n_cases = junit(demo_run, tmp_path)
    suite = root[0]
    assert n_cases == int(suite.get("tests")) == 66
    assert suite.get("name") == "desk"
    assert suite.get("timestamp") == "2023-11-14T22:13:20"
    first = suite.find("testcase")
    assert (first.get("classname"), first.get("name"), first.get("time")) == ("desk", "desk-001", "1.500")
    values = {each.get("name"): each.get("value") for each in first.find("properties")}
    assert values["tool_success"] == "0.33"
    assert values["faithfulness"] == "0.00 (informational)"
    about = {each.get("name"): each.get("value") for each in suite.find("properties")}
    assert about["run"] == "run-1"
    row = next(row for row in demo_run.summary.metrics if row.metric == "tool_success")
    scored = f"scored {row.n_scored}/{row.n_cases}"
    assert about["tool_success[trace].mean"] == f"{row.mean:.6g} [{row.low:.6g}, {row.high:.6g}], {scored}"


def test_an_agent_that_failed_is_an_error_where_errors_are_counted(demo_run, tmp_path):
    demo_run.decision = decide_run(demo_run.run, ["cost p95 <= 0.05", "task_success >= 0"], max_errors=0)
    root, _ = junit(demo_run, tmp_path)
    hung = next(case for case in root.iter("testcase") if case.get("name") == "hung")
    assert (hung.find("error").get("type"), hung.find("error").get("message")) == ("timeout", "no answer within 5 s")
    assert hung.find("failure") is None
    assert hung.find("system-out").text == "asking\nthe carrier"


def test_an_agent_that_never_answers_a_case_is_a_failure(demo_run, tmp_path):
    root, _ = junit(demo_run, tmp_path)
    hung = next(case for case in root.iter("testcase") if case.get("name") == "hung")
    assert hung.find("failure").get("message") == "wrong: no answer within 5 s (answered failed 1 of 1)"
    assert hung.find("error") is None


def test_gates_are_test_cases_and_say_which_cases_break_them(demo_run, faulty_tools, tmp_path):
    demo_run.decision = decide_run(demo_run.run, max_errors=1)
    root, _ = junit(demo_run, tmp_path)
    cases, gates, verdict = root
    failed, passed = gates.iter("testcase")
    assert failed.get("name") == "tool_success[trace] all == 1 coverage 0"
    assert passed.get("name") == "cost p95 <= 0.05"
    assert failed.find("failure").get("message").startswith(f"FAIL: {len(faulty_tools)} of ")
    assert passed.find("failure") is None
    failures = {case.get("name"): case.find("failure") for case in cases.iter("testcase")}
    why = "2 of 3 tool calls failed: track_parcel (carrier timeout after 8 s) (0.333, needs == 1)"
    assert failures["desk-001"].get("message") == f"wrong: {why} (tool_success failed 1 of 1)"
    assert "question: " in failures["desk-001"].text
    # A task that the agent itself calls failed is a check that fails, and no gate says how many may.
    gave_up = {row.case_id for row in demo_run.run.metrics["task_success"] if row.value == 0.0} - {"hung"}
    # The one that hung has no value, and every case must have one.
    failed = {name for name, failure in failures.items() if failure is not None}
    assert failed == {*faulty_tools, *gave_up, "hung"}
    assert verdict.find("testcase/failure").get("message") == demo_run.decision.headline


def test_a_gate_that_has_no_answer_is_an_error(demo_run, tmp_path):
    demo_run.decision = decide_run(demo_run.run, ["task_success[outcome] pass^3 >= 0.5"])
    root, _ = junit(demo_run, tmp_path)
    assert root[1].find("testcase").find("error").get("type") == "error"


def test_a_gate_on_a_mean_of_degrees_blames_no_case(demo_run, tmp_path):
    gates = ["tool_success[trace] >= 0.99", "task_success >= 0"]
    demo_run.decision = decide_run(demo_run.run, gates, min_coverage=0.0, max_errors=9)
    root, _ = junit(demo_run, tmp_path)
    assert [case.get("name") for case in root[0].iter("testcase") if case.find("failure") is not None] == []
    assert [case.get("name") for case in root[1].iter("testcase") if case.find("failure") is not None] == gates[:1]


def test_the_repeats_of_a_case_are_one_test_case_which_shows_the_worst(store, keep, tmp_path):
    right, wrong = (Record(DatasetCase("q1", "?", "a"), TraceLog(), answer) for answer in "ab")
    keep(store, [[right], [wrong], [right]], metrics=["exact_match"])
    root, n_cases = junit(open_run("run-1", store), tmp_path)
    assert n_cases == 1
    (case,) = root[0].iter("testcase")
    assert (case.get("name"), case.get("time")) == ("q1", "4.500")
    assert case.find("properties/property").get("value") == "0.00"
    assert case.find("system-out").text == 'flaky: "b", expected "a" (exact_match failed 1 of 3)'
    assert case.find("failure") is None


def test_a_metric_that_breaks_is_an_error(store, keep, tmp_path):
    class Broken:
        name = "broken"

        def evaluate(self, case, trace, outcome):
            raise ValueError("cannot & will <not>")

    keep(store, [[Record(DatasetCase("q1", "?"), TraceLog(), "a")]], metrics=[Broken()])
    root, _ = junit(open_run("run-1", store), tmp_path)
    error = next(root.iter("error"))
    assert error.get("type") == "metric"
    assert error.get("message").startswith("broken: ValueError: cannot & will <not>")


def test_hostile_text_comes_back_as_text(hostile_run, hostile_text, tmp_path):
    root, _ = junit(hostile_run, tmp_path)
    (case,) = root[0].iter("testcase")
    assert case.get("name").startswith("</script><script>alert(1)</script><!-- <b>x</b> & \"q\" 'a' | `tick`")
    assert "\ufffd[31m\ufffd\u202e\ufffd =1+1" in case.get("name")
    assert "</script>" in case.find("failure").text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_content_is_valid_xml(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    with Store(folder / "runs.db") as store:
        header = store.create_run(text, agentunit_version=text, settings={})
        record = Record(DatasetCase(text, text, text), TraceLog(metadata={"stdout": text}), Outcome(error=text))
        add_record(store, header.id, 0, 0, record, failed=True, elapsed_s=0.0)
        root, _ = junit(open_run(header.id, store), folder)
    assert len(list(root[0].iter("testcase"))) == 1

"""The plugin as its users meet it: real test files, run by real pytest sessions inside these tests."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_decisions import decide
from judge_server import JudgeServer
from viewer_client import report_text

# Sessions that run in this process forget what they imported; compiled modules cannot be imported twice.
import agentunit.addons.pytest_plugin.evaluation
import agentunit.addons.pytest_plugin.session_report
from agentunit.addons.pytest_plugin._gathering import Gathering, decode_payload
from agentunit.addons.pytest_plugin.marker import Attempts
from agentunit.core.records import Record
from agentunit.core.results import MetricResult, Score
from agentunit.formulas.running import RunningStatistics

pytest_plugins = ["pytester"]

CASES = [
    {"id": "capital", "query": "Capital of France?", "expected_output": "Paris"},
    {"id": "sum", "query": "2 + 2?", "expected_output": "4"},
    {"id": "colour", "query": "Colour of the sky?", "expected_output": "blue"},
]
AGENTS = """
import asyncio, sys, time
import pytest

ANSWERS = {"Capital of France?": "Paris", "2 + 2?": "5", "Colour of the sky?": "blue"}

def agent(query, trace):
    trace.metadata["cost"] = 0.25
    return ANSWERS[query]

async def async_agent(query):
    await asyncio.sleep(0)
    return ANSWERS[query]

def streaming_agent(query):
    yield ANSWERS[query][:2]
    yield ANSWERS[query][2:]

async def async_streaming_agent(query):
    yield ANSWERS[query]
"""


class Sandbox:
    """A folder with a dataset, in which pytest runs with our plugin and no other."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        # The plugin is named on the command line, so it must not also come by its entry point.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        monkeypatch.delenv("CI", raising=False)
        self.pytester = pytester
        self.path = pytester.path
        (self.path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES), encoding="utf-8")

    def run(self, *options: str, tests: str | None = None, own_process: bool = False) -> pytest.RunResult:
        if tests is not None:
            (self.path / "test_agents.py").write_text(AGENTS + tests, encoding="utf-8")
        plugins = ["-p", "agentunit.pytest_plugin", "-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        if own_process:
            return self.pytester.runpytest_subprocess(*plugins, *options)
        return self.pytester.runpytest_inprocess(*plugins, *options)

    def report(self, *options: str, **settings: Any) -> dict[str, Any]:
        self.run("--agentunit-report", "report.json", *options, **settings)
        return json.loads((self.path / "report.json").read_text(encoding="utf-8"))


@pytest.fixture
def sandbox(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    return Sandbox(pytester, monkeypatch)


# One test for each case


def test_every_case_of_a_dataset_is_a_test(sandbox: Sandbox) -> None:
    result = sandbox.run(
        "-v",
        tests="""
@pytest.mark.agentunit(dataset="cases.jsonl")
def test_answers(case, agentunit_eval):
    result = agentunit_eval(agent, case, metrics=["answer_correctness", "cost"])
    assert result["answer_correctness"].value == 1
    assert result["cost"].value == 0.25
    assert list(result) == ["answer_correctness", "cost"]
    assert result.answer == case.expected_output == result.record.outcome.output
""",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_agents.py::test_answers[[]capital[]] PASSED*",
            "test_agents.py::test_answers[[]sum[]] FAILED*",
            "test_agents.py::test_answers[[]colour[]] PASSED*",
        ]
    )


def test_a_dataset_is_looked_for_beside_the_test(sandbox: Sandbox) -> None:
    folder = sandbox.path / "deeper"
    folder.mkdir()
    (sandbox.path / "cases.jsonl").rename(folder / "cases.jsonl")
    (folder / "test_deeper.py").write_text(
        AGENTS + "@pytest.mark.agentunit(dataset='cases.jsonl')\ndef test_it(case): assert case.id", encoding="utf-8"
    )
    sandbox.run().assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        ("dataset='nowhere.jsonl'", "*nowhere.jsonl: no such file*"),
        ("dataset='broken.jsonl'", "*broken.jsonl, line 2: *"),
        ("dataset=[]", "*test_it: the dataset holds no cases*"),
        ("dataset='cases.jsonl', passes=3", "*of must be a whole number of at least 1*received None*"),
        ("dataset='cases.jsonl', passes=0, of=2", "*passes must be a whole number of at least 1*received 0*"),
        ("dataset='cases.jsonl', passes=3, of=2", "*passes must be at most of; received passes=3, of=2*"),
        ("dataset='cases.jsonl', gates=['cost =< 1']", "*gate 'cost =< 1', at '=<'*did you mean 'cost <= 1'?*"),
        ("dataset='cases.jsonl', gates='cost < 1'", "*gates must be a list of texts*received 'cost < 1'*"),
        ("dataset='cases.jsonl', gates=['cost p95 < 1']", "*one case, which has no p95; write 'cost < 1' here*"),
        ("'cases.jsonl'", "*takes settings by name; received 'cases.jsonl'*"),
        (
            "data='cases.jsonl'",
            "*a setting must be one of dataset, gates, *; received 'data'*",
        ),
    ],
)
def test_a_mistake_in_the_marker_is_a_collection_error(sandbox: Sandbox, marker: str, reason: str) -> None:
    (sandbox.path / "broken.jsonl").write_text('{"query": "a"}\n{"query": ', encoding="utf-8")
    result = sandbox.run(tests=f"@pytest.mark.agentunit({marker})\ndef test_it(case): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([reason])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*marker.py*")


def test_a_test_with_a_dataset_must_take_the_case(sandbox: Sandbox) -> None:
    result = sandbox.run(tests="@pytest.mark.agentunit(dataset='cases.jsonl')\ndef test_it(): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*must have an argument 'case'; test_it has none*"])


def test_a_class_and_its_tests_share_settings(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
@pytest.mark.agentunit(dataset="cases.jsonl", gates=["exact_match == 1"])
class TestAgent:
    def test_by_the_class(self, case, agentunit_eval):
        agentunit_eval(agent, case)

    @pytest.mark.agentunit(gates=["cost <= 0.25"])
    def test_with_other_gates(self, case, agentunit_eval):
        assert list(agentunit_eval(agent, case)) == ["cost"]

    def test_without_a_case(self):
        pass
"""
    )
    result.assert_outcomes(passed=2 + 3 + 1, failed=1)


# Thresholds


def test_a_missed_threshold_tells_what_a_reader_needs(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
def test_costs(agentunit_eval):
    case = {"id": "sum", "query": "2 + 2?", "expected_output": "4"}
    result = agentunit_eval(agent, case, metrics=["cost", "exact_match", "token_usage"])
    result.check("cost <= 1")
    result.check("cost <= 0.02", "cost > 0", "exact_match == 1", "token_usage < 100")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '>*result.check("cost <= 0.02"*',
            "E*AssertionError: cost is 0.25, not <= 0.02; exact_match is 0, not == 1; "
            "token_usage has no value and cannot be < 100 (case 'sum')",
            "E*cost (backend recorded), detail: *trace.metadata*",
            "E*token_usage (backend *): no token usage recorded*",
            "E*query: 2 + 2?",
            "E*answer: 5",
        ]
    )
    result.stdout.no_fnmatch_line("*evaluation.py*")


def test_the_markers_gates_hold_for_every_evaluation(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
@pytest.mark.agentunit(dataset="cases.jsonl", gates=["exact_match >= 1"])
def test_gated(case, agentunit_eval):
    assert set(agentunit_eval(agent, case, metrics=["cost"])) == {"cost", "exact_match"}
"""
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*exact_match is 0, not >= 1 (case 'sum')", "E*answer: 5"])


def test_a_check_that_fails_fails_the_test_unless_it_has_a_threshold_or_is_looked_at(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
import pytest

CASE = {"id": "q1", "query": "Where?", "metadata": {"contains": "Paris"}}
EVALUATED = {"metrics": ["contains", "cost"]}

def polite(answer) -> bool:
    return "please" in answer

def test_fails(agentunit_eval):
    agentunit_eval(lambda query: "Lyon", CASE, **EVALUATED)

def test_fails_by_a_function(agentunit_eval):
    agentunit_eval(lambda query: "Lyon", CASE, metrics=[polite])

def test_fails_recorded(agentunit_eval):
    agentunit_eval.score({"case": CASE, "outcome": "Lyon"}, **EVALUATED)

@pytest.mark.agentunit(passes=1, of=2)
def test_fails_in_both_attempts(agentunit_eval):
    agentunit_eval(lambda query: "Lyon", CASE, **EVALUATED)

def test_passes(agentunit_eval):
    agentunit_eval(lambda query: "Paris", CASE, **EVALUATED)

def test_does_not_apply(agentunit_eval):
    agentunit_eval(lambda query: "Lyon", {"id": "q2", "query": "Where?"}, **EVALUATED)

def test_has_a_threshold(agentunit_eval):
    agentunit_eval(lambda query: "Lyon", CASE, **EVALUATED).check("contains >= 0")

@pytest.mark.agentunit(gates=["contains >= 0"])
def test_has_a_threshold_in_its_marker(agentunit_eval):
    agentunit_eval(lambda query: "Lyon", CASE, **EVALUATED)

def test_looks_at_it(agentunit_eval):
    assert agentunit_eval(lambda query: "Lyon", CASE, **EVALUATED)["contains"].value == 0.0
"""
    )
    result.assert_outcomes(passed=5, failed=4)
    result.stdout.fnmatch_lines(
        ["E*contains is 0, not == 1 (case 'q1')", '*contains (backend check): missing: "Paris"']
    )


def test_a_gate_may_name_the_backend(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
def test_backend(agentunit_eval):
    result = agentunit_eval.score({"case": {"id": "a"}, "outcome": {"success": True}}, ["task_success"])
    result.check("task_success[outcome] == 1")
    result.check("task_success[state] == 1")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*task_success[[]state] has no value: it was scored by outcome (case 'a')"])


def test_informational_scores_decide_only_where_the_threshold_names_their_backend(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentunit.engine.deciding.gates.missing_local_model", lambda: "pip install the-local-model")
    result = sandbox.run(
        tests="""
@pytest.mark.agentunit(gates=["answer_correctness >= 0.5"])
def test_unnamed(agentunit_eval):
    agentunit_eval(agent, {"id": "a", "query": "Capital of France?", "expected_output": "Paris"})

@pytest.mark.agentunit(gates=["answer_correctness[lexical] >= 0.5"])
def test_named(agentunit_eval):
    result = agentunit_eval(agent, {"id": "a", "query": "Capital of France?", "expected_output": "Paris"})
    assert result["answer_correctness"].status == "informational"
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: cannot tell: answer_correctness is 1, but informational scores do not decide: "
            "pip install the-local-model (or name the backend: answer_correctness[[]lexical] >= 0.5) (case 'a')"
        ]
    )


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("agentunit_eval(agent, case, ['coast'])", "ValueError: no metric is called 'coast'; did you mean 'cost'?"),
        ("agentunit_eval(agent, case, ['cost'])['exact_match']", "KeyError: *exact_match was not asked for*cost*"),
        ("agentunit_eval(agent, case, ['cost']).check('exact_match > 0')", "KeyError: *exact_match was not asked for*"),
        ("agentunit_eval(agent, case, ['cost']).check('cost')", "ValueError: gate 'cost', at the end:*"),
        (
            "agentunit_eval(agent, case, ['cost']).check('cost sum < 1')",
            "ValueError: *which has no sum; write 'cost < 1'*",
        ),
        ("agentunit_eval(agent, 'a question')", "TypeError: agentunit_eval: case must be a DatasetCase or a dict*"),
        ("agentunit_eval(42, case)", "ValueError: as_agent: agent must be*received int"),
        ("agentunit_eval(lambda one, two: '', case)", "ValueError:*'one', 'two'*"),
    ],
)
def test_a_mistake_in_a_test_is_told_at_its_line(sandbox: Sandbox, line: str, error: str) -> None:
    result = sandbox.run(
        tests=f"""
def test_mistaken(agentunit_eval):
    case = {{"id": "capital", "query": "Capital of France?"}}
    {line}
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E*{error}"])
    # The only file that a traceback names is the user's own.
    assert set(re.findall(r"^(\S+\.py):\d+: ", result.stdout.str(), re.MULTILINE)) == {"test_agents.py"}


# Agents


@pytest.mark.parametrize("agent", ["agent", "async_agent", "streaming_agent", "async_streaming_agent"])
def test_any_kind_of_agent_is_run_from_a_sync_test(sandbox: Sandbox, agent: str) -> None:
    result = sandbox.run(
        tests=f"""
@pytest.mark.agentunit(dataset="cases.jsonl", gates=["exact_match == 1"])
def test_agent(case, agentunit_eval):
    agentunit_eval({agent}, case)
"""
    )
    result.assert_outcomes(passed=2, failed=1)


@pytest.mark.parametrize(
    ("agent", "timeout_s", "told"),
    [
        ("lambda query: {}['missing']", 60, "KeyError: 'missing' (test_agents.py:* in <lambda>)"),
        ("lambda query: object()", 60, "the agent returned an object of type object*"),
        ("lambda query: sys.exit(3)", 60, "the agent called sys.exit: *3*"),
        ("lambda query: time.sleep(60)", 0.2, "timeout: no answer within 0.2 s*"),
        ("lambda query: asyncio.sleep(60)", 0.2, "timeout: no answer within 0.2 s*"),
    ],
)
def test_an_agent_that_fails_fails_the_test(sandbox: Sandbox, agent: str, timeout_s: float, told: str) -> None:
    result = sandbox.run(
        tests=f"""
def test_failing(agentunit_eval):
    agentunit_eval({agent}, {{"id": "a", "query": "Why?"}}, ["cost"], timeout_s={timeout_s})
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [f"E*AssertionError: the agent failed on case 'a': {told}", "E*query: Why?", "E*answer: none"]
    )
    assert set(re.findall(r"^(\S+\.py):\d+: ", result.stdout.str(), re.MULTILINE)) == {"test_agents.py"}


def test_a_failed_agent_shows_its_traceback_and_its_prints(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
def clumsy(query):
    print("thinking about", query)
    print("in trouble", file=sys.stderr)
    raise LookupError("no such order")

def test_clumsy(agentunit_eval):
    agentunit_eval(clumsy, {"id": "a", "query": "A-1042"})
"""
    )
    result.stdout.fnmatch_lines(
        [
            'E*| *raise LookupError("no such order")',
            "E*| LookupError: no such order",
            "*Captured stdout call*",
            "thinking about A-1042",
            "*Captured stderr call*",
            "in trouble",
        ]
    )


def test_all_agents_of_a_session_share_one_event_loop(sandbox: Sandbox) -> None:
    # A client that lives in a module is bound to the loop of its first use.
    result = sandbox.run(
        tests="""
loops = []

async def keeps_its_loop(query):
    loops.append(asyncio.get_running_loop())
    return "fine"

@pytest.mark.parametrize("number", [1, 2])
def test_loop(agentunit_eval, number):
    agentunit_eval(keeps_its_loop, {"id": "a", "query": "?"})
    assert len(loops) == number
    assert len(set(loops)) == 1
    assert not loops[0].is_closed()
"""
    )
    result.assert_outcomes(passed=2)


def test_an_agent_with_a_timeout_sees_what_a_test_patches(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
WORLD = {"weather": "rain"}

@pytest.mark.parametrize("weather", ["sun", "snow"])
def test_patched(agentunit_eval, monkeypatch, weather):
    monkeypatch.setitem(WORLD, "weather", weather)
    asked = agentunit_eval(lambda query: WORLD["weather"], {"id": "a", "query": "?"}, ["cost"], timeout_s=20)
    assert asked.answer == weather
"""
    )
    result.assert_outcomes(passed=2)


def test_a_ready_made_agent_is_closed_when_the_session_ends(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
from agentunit.adapters.base import AgentResult
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceLog

class ReadyMade:
    concurrency_hint = None
    calls = []

    async def run(self, case, *, timeout_s=None, seed=None):
        self.calls.append((case.id, timeout_s, seed))
        return AgentResult(Outcome(output="fine"), TraceLog(), 0.0)

    async def close(self):
        with open("closed.txt", "a") as file:
            file.write(f"{self.calls}")

ready_made = ReadyMade()

@pytest.mark.parametrize("number", [1, 2])
def test_ready_made(agentunit_eval, number):
    agentunit_eval(ready_made, {"id": "a", "query": "?"}, timeout_s=9, seed=number)
"""
    )
    result.assert_outcomes(passed=2)
    assert (sandbox.path / "closed.txt").read_text() == "[('a', 9, 1), ('a', 9, 2)]"


def test_ctrl_c_ends_a_session_in_the_middle_of_a_call(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
import os, signal

async def interrupted(query):
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(60)

def test_interrupted(agentunit_eval):
    agentunit_eval(interrupted, {"id": "a", "query": "?"})

def test_never_run():
    raise NotImplementedError
""",
        own_process=True,
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*no tests ran*"])
    assert result.stderr.str() == ""


def test_an_agent_can_be_run_from_an_async_test(sandbox: Sandbox) -> None:
    pytest.importorskip("anyio")
    result = sandbox.run(
        "-p",
        "anyio.pytest_plugin",
        tests="""
tries = []

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.agentunit(passes=2, of=3)
async def test_async(agentunit_eval):
    tries.append(1)
    await asyncio.sleep(0)
    asked = agentunit_eval(async_agent, {"id": "a", "query": "2 + 2?"}, ["cost"])
    assert asked.answer == "5"
    assert len(tries) > 1

def test_it_was_awaited():
    assert len(tries) == 3
""",
    )
    result.assert_outcomes(passed=2)


# Recorded traces


def test_recorded_traces_are_scored(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
from agentunit import DatasetCase, TraceLog

RECORD = {"case": {"id": "a", "expected_output": "4"}, "trace": {"metadata": {"cost": 0.5}}, "outcome": "4"}

def test_a_dict(agentunit_eval):
    result = agentunit_eval.score(RECORD, ["answer_correctness", "cost"])
    assert [score.value for score in result.values()] == [1, 0.5]
    assert repr(result) == "<Evaluation of 'a': answer_correctness=1.0, cost=0.5>"

def test_a_tuple(agentunit_eval):
    case = DatasetCase("b", expected_output="4")
    assert agentunit_eval.score((case, TraceLog(), "5"), "answer_correctness")["answer_correctness"].value == 0

@pytest.mark.agentunit(gates=["cost <= 0.1"])
def test_a_gate(agentunit_eval):
    agentunit_eval.score(RECORD)

def test_nonsense(agentunit_eval):
    agentunit_eval.score({"trace": {}})
"""
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        ["E*cost is 0.5, not <= 0.1 (case 'a')", "E*AssertionError: the record cannot be read: a record needs 'case'*"]
    )


ECHO = """
import json

def echo(case, metadata, context, tools):
    return {"output": {"expected": case.expected_output, "extra": case.extra, "seen": case.metadata, "same": metadata}}

CASE = {
    "id": "a", "query": "?", "expected_output": "S3CRET", "ground_truth": "S3CRET",
    "metadata": {"contains": "S3CRET", "gold": "S3CRET", "level": 1, "image_path": "a.png"},
}
"""


def test_an_agent_in_a_test_does_not_receive_what_it_is_graded_by(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests=ECHO
        + """
@pytest.mark.agentunit(grader_fields=["gold"])
def test_hidden(agentunit_eval):
    result = agentunit_eval(echo, CASE, metrics=["contains"])
    seen = {"level": 1, "image_path": "a.png"}
    assert result.record.outcome.output == {"expected": None, "extra": None, "seen": seen, "same": seen}
    assert result.record.case.metadata == CASE["metadata"]
    result.check("contains == 0")

@pytest.mark.agentunit(agent_fields=["level"])
def test_listed(agentunit_eval):
    result = agentunit_eval(echo, CASE, metrics=["contains"])
    result.check("contains == 0")
    assert result.record.outcome.output["seen"] == {"level": 1}

@pytest.mark.agentunit(agent_fields=["contains"])
def test_refused(agentunit_eval):
    agentunit_eval(echo, CASE, metrics=["contains"])
"""
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*ValueError: agent_fields must not list an answer key; received 'contains'*"])


# k of n

K_OF_N = """
seen = {}

def sometimes(case):
    # Fails at the third try of every case, and at the fourth and fifth of "sum".
    seen[case.id] = seen.get(case.id, 0) + 1
    wrong = seen[case.id] == 3 or (case.id == "sum" and seen[case.id] > 3)
    right = {"capital": "Paris", "sum": "4", "colour": "blue"}[case.id]
    return {"output": "wrong" if wrong else right, "cost": 0.01}

@pytest.mark.agentunit(dataset="cases.jsonl", passes=3, of=5)
def test_mostly(case, agentunit_eval):
    result = agentunit_eval(sometimes, case, metrics=["exact_match", "cost"])
    result.check("exact_match == 1")
"""


def test_k_of_n_attempts_must_pass(sandbox: Sandbox) -> None:
    result = sandbox.run("-v", tests=K_OF_N)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*test_mostly[[]capital[]] PASSED 4/5*",
            "*test_mostly[[]sum[]] FAILED 2/5*",
            '>*result.check("exact_match == 1")',
            "E*AssertionError: 2 of 5 attempts passed, 3 must",
            "E*attempt 2: passed",
            "E*attempt 3: exact_match is 0, not == 1 (case 'sum')",
            "E*the first failure in full:",
            "E*answer: wrong",
            "4/5 attempts passed: test_agents.py::test_mostly[[]capital[]]",
            "2/5 attempts passed: test_agents.py::test_mostly[[]sum[]]",
        ]
    )


def test_attempts_count_as_repeats_of_one_case(sandbox: Sandbox) -> None:
    report = sandbox.report(tests=K_OF_N)
    assert [(test["passes"], len(test["evaluations"])) for test in report["tests"]] == [
        ("4/5", 5),
        ("2/5", 5),
        ("4/5", 5),
    ]
    assert [each["attempt"] for each in report["tests"][0]["evaluations"]] == [0, 1, 2, 3, 4]
    assert report["n_evaluations"] == 15
    assert report["spend_usd"] == pytest.approx(0.15)
    (exact_match, _) = report["summary"]["metrics"]
    # The mean over the cases' means 4/5, 2/5 and 4/5. Its interval is that of three values, not of fifteen.
    assert exact_match["mean"] == pytest.approx((0.8 + 0.4 + 0.8) / 3)
    of_three = RunningStatistics()
    for mean in (0.8, 0.4, 0.8):
        of_three.add(mean)
    expected = of_three.interval()
    assert expected is not None
    # A share cannot leave 0 to 1, whatever Student says.
    assert (exact_match["low"], exact_match["high"]) == pytest.approx((max(0.0, expected.low), min(1.0, expected.high)))
    assert (exact_match["n_scored"], exact_match["n_cases"]) == (15, 15)


def test_a_skip_or_an_expected_failure_counts_for_the_whole_test(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
@pytest.mark.agentunit(passes=1, of=3)
def test_skipped():
    pytest.skip("not today")

@pytest.mark.agentunit(passes=1, of=3)
def test_expected_to_fail():
    pytest.xfail("known")

@pytest.mark.xfail(strict=True)
@pytest.mark.agentunit(passes=1, of=2)
def test_marked_as_expected_to_fail():
    assert False

@pytest.mark.agentunit(passes=1, of=3)
def test_failing():
    pytest.fail("plainly")

@pytest.mark.agentunit(passes=1, of=2)
def test_broken():
    1 / 0
"""
    )
    result.assert_outcomes(skipped=1, xfailed=2, failed=2)
    result.stdout.fnmatch_lines(["E*attempt 3: plainly", "E*attempt 2: ZeroDivisionError: division by zero"])


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_the_verdict_over_attempts_is_a_count(outcomes: list[bool], data: st.DataObject) -> None:
    passes = data.draw(st.integers(1, len(outcomes)))
    attempts = Attempts(passes)
    for number, passed in enumerate(outcomes):
        with attempts:
            assert passed, f"attempt {number} fails"
    assert attempts.share == f"{sum(outcomes)}/{len(outcomes)}"
    assert (attempts.failure() is None) == (sum(outcomes) >= passes)


# The summary and the report

SESSION = """
@pytest.mark.agentunit(dataset="cases.jsonl", gates=["exact_match == 1", "cost <= 0.3"])
def test_gated(case, agentunit_eval):
    agentunit_eval(agent, case)

@pytest.mark.agentunit(dataset="cases.jsonl")
def test_failing(case, agentunit_eval):
    agentunit_eval(lambda query: ANSWERS["lost"], case, metrics=["exact_match"])

def test_twice(agentunit_eval):
    for answer in ("yes", "no"):
        case = {"id": answer, "query": "?", "expected_output": "yes"}
        agentunit_eval(lambda query: answer, case, ["exact_match"]).check("exact_match >= 0")

def test_of_another_kind():
    pass
"""


def test_the_summary_shows_means_counts_failures_and_spend(sandbox: Sandbox) -> None:
    result = sandbox.run(tests=SESSION)
    result.assert_outcomes(passed=2 + 1 + 1, failed=1 + 3)
    # Exact match: 1, 0, 1 of the gated, none of the failing, 1 and 0 of the last: 3 of 5. Cost: 3 times 0.25.
    result.stdout.re_match_lines(
        [
            r"=+ agentunit =+",
            r"metric +mean, 95 % +scored +failed checks",
            r"exact_match +0\.60 \[0\.\d\d, 0\.\d\d\] +5/8 +1",
            r"cost +\$0\.2500 .*3/3 +0",
            r"8 evaluations in 7 tests \(4 failed\), the agent failed in 3, spent \$0\.7500 \(known for 3\)",
            r"not scored: exact_match: 3 × no answer.*",
        ]
    )


def test_spend_is_what_running_cost_as_far_as_it_is_known(sandbox: Sandbox) -> None:
    report = sandbox.report(
        tests="""
CASE = {"id": "a", "query": "?"}

def by_parts(query, trace):
    trace.record("tool_call", name="search", cost=0.5)
    trace.record("llm_call", model="m", cost=0.25)
    return "fine"

def not_priced(query, trace):
    trace.record("tool_call", name="search", cost=0.5)
    trace.record("llm_call", model="a-model-that-no-list-has", usage={"input_tokens": 9, "output_tokens": 9})
    return "fine"

def odd(query, trace):
    trace.metadata["cost"] = "much"
    return "fine"

def test_spend(agentunit_eval):
    agentunit_eval(lambda query: {"output": "fine", "cost": 2}, CASE, "cost")
    agentunit_eval(by_parts, CASE, "cost")
    agentunit_eval(not_priced, CASE, "cost")
    agentunit_eval(odd, CASE, "token_usage")
    agentunit_eval.score({"case": CASE, "outcome": {"output": "fine", "cost": 100}}, "cost")
"""
    )
    assert [each["spend_usd"] for each in report["tests"][0]["evaluations"]] == [2, 0.75, None, None, None]
    assert report["spend_usd"] == 2.75


def test_nothing_is_printed_when_nothing_was_evaluated(sandbox: Sandbox) -> None:
    result = sandbox.run(tests="def test_plain(): pass")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*agentunit*")


def test_the_json_report_holds_every_evaluation(sandbox: Sandbox) -> None:
    report = sandbox.report(tests=SESSION)
    assert [(test["nodeid"].partition("::")[2], test["outcome"]) for test in report["tests"]] == [
        ("test_gated[capital]", "passed"),
        ("test_gated[sum]", "failed"),
        ("test_gated[colour]", "passed"),
        ("test_failing[capital]", "failed"),
        ("test_failing[sum]", "failed"),
        ("test_failing[colour]", "failed"),
        ("test_twice", "passed"),
    ]
    missed = report["tests"][1]
    assert missed["failed_checks"] == [
        {"call": 0, "attempt": 0, "metric": "exact_match", "expression": "exact_match == 1", "value": 0.0}
        | {"backend": "check"}
    ]
    (evaluation,) = missed["evaluations"]
    assert evaluation["case_id"] == "sum"
    assert evaluation["scores"]["exact_match"]["result"]["value"] == 0.0
    assert evaluation["record"]["outcome"]["output"] == "5"
    failed = report["tests"][3]["evaluations"][0]
    assert (failed["failure"], failed["error"][:8]) == ("raised", "KeyError")
    assert [each["call"] for each in report["tests"][6]["evaluations"]] == [0, 1]
    assert (report["n_evaluations"], report["n_agent_failures"], report["spend_usd"]) == (8, 3, 0.75)
    assert report["summary"]["n_cases"] == 8


def test_an_evaluation_in_a_fixture_counts_with_its_test(sandbox: Sandbox) -> None:
    report = sandbox.report(
        tests="""
@pytest.fixture
def asked(agentunit_eval):
    return agentunit_eval(agent, {"id": "sum", "query": "2 + 2?", "expected_output": "4"}, ["exact_match"])

def test_checked_later(asked, agentunit_eval):
    asked.check("exact_match == 1")
"""
    )
    (test,) = report["tests"]
    assert (test["outcome"], len(test["evaluations"]), len(test["failed_checks"])) == ("failed", 1, 1)


def test_failed_checks_are_counted_by_backend(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
def judged(outcome):
    metadata = {"expected_state": {"a": 1}} if "state" in outcome else {}
    return {"case": {"id": "a", "metadata": metadata}, "outcome": outcome}

@pytest.mark.parametrize("outcome", [{"success": True}, {"success": False}, {"state": {"a": 1}}, {"output": "?"}])
def test_task(outcome, agentunit_eval):
    agentunit_eval.score(judged(outcome), ["task_success"]).check("task_success == 1")
"""
    )
    result.stdout.re_match_lines(
        [
            r"task_success\[outcome\] +0\.50 .* 2/4 +1",
            r"task_success\[state\] +1\.00 .* 1/4 +0",
            r"task_success, no value +– +1",
            r"FAIL: 2 tests of 4 failed: .*",
        ]
    )


def test_a_failure_tells_reasons_and_no_numbers_that_a_model_computed_with(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
from agentunit import MetricResult

class Model:
    name = "model"
    def evaluate(self, case, trace, outcome):
        numbers = {"features": {"a": 0.123, "b": 7.0}, "logits": [0.25, 1]}
        return MetricResult("model", 0.0, {**numbers, "claim": "unsupported"})

def test_it(agentunit_eval):
    agentunit_eval.score({"case": {"id": "a"}, "outcome": "?"}, [Model()]).check("model == 1")
"""
    )
    result.stdout.fnmatch_lines(['E*detail: {"claim":"unsupported"}'])


def test_a_failure_begins_with_the_sentence_of_its_metric(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
def test_it(agentunit_eval):
    record = {"case": {"id": "a", "metadata": {"contains": "24 months"}}, "outcome": "12 months"}
    agentunit_eval.score(record, ["contains"]).check("contains >= 1")
"""
    )
    result.stdout.fnmatch_lines(['E*contains (backend check): missing: "24 months"'])


LEAKY = """
def test_leaky(agentunit_eval):
    case = {"id": "::error file=x::boo", "query": "Write to mia@example.com", "expected_output": "no"}
    agentunit_eval(lambda query: "I wrote to mia@example.com.", case, ["exact_match"]).check("exact_match == 1")
"""


@pytest.mark.parametrize("shown", [False, True])
def test_personal_data_is_masked_unless_asked_for(sandbox: Sandbox, shown: bool) -> None:
    option = ["--show-personal-data"] if shown else []
    result = sandbox.run("--agentunit-report", "report.json", "--tb=native", *option, tests=LEAKY)
    output = "\n".join(
        line for line in result.outlines if line.strip().startswith(("query:", "answer:", "exact_match"))
    )
    report = (sandbox.path / "report.json").read_text(encoding="utf-8")
    for text in (output, report):
        assert ("mia@example.com" in text, "<EMAIL_1>" in text) == (shown, not shown)
    assert not [line for line in result.outlines if line.lstrip().startswith("::error")]


def test_the_markdown_report(sandbox: Sandbox) -> None:
    sandbox.run("--agentunit-report", "report.md", tests=SESSION)
    text = (sandbox.path / "report.md").read_text(encoding="utf-8")
    assert text.startswith("### `pytest`: ❌ FAIL")
    assert "| metric | value, 95 % |" in text
    assert "**4 tests failed**" in text
    assert "exact_match == 1" in text
    # A session is kept in no store: no command finds it.
    assert "agentunit show" not in text


def test_the_html_report_is_escaped(sandbox: Sandbox) -> None:
    sandbox.run(
        "--agentunit-report",
        "report.html",
        tests="""
def test_hostile(agentunit_eval):
    agentunit_eval(lambda query: "<script>alert(1)</script>", {"id": "</script>", "query": "<b>"}, ["exact_match"])
""",
    )
    page = (sandbox.path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "test_hostile" in report_text(sandbox.path / "report.html")
    assert "<script>alert(1)" not in page


@pytest.mark.parametrize(
    ("file", "told"),
    [("report.txt", "*must end in .json, .md, .html; received 'report.txt'"), ("no/report.md", "*does not exist")],
)
def test_a_report_that_cannot_be_written_is_known_before_the_tests(sandbox: Sandbox, file: str, told: str) -> None:
    result = sandbox.run("--agentunit-report", file, tests=SESSION)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --agentunit-report: {told}"])


def test_a_report_that_cannot_be_written_in_the_end_leaves_the_summary(sandbox: Sandbox) -> None:
    (sandbox.path / "report.json").mkdir()
    tests = "def test_fine(agentunit_eval): agentunit_eval(agent, {'query': '2 + 2?'}, 'cost')"
    result = sandbox.run("--agentunit-report", "report.json", tests=tests)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["cost*", "no report: cannot write *report.json*"])


def test_an_old_report_does_not_outlive_a_session_without_evaluations(sandbox: Sandbox) -> None:
    assert sandbox.report(tests=SESSION)["n_evaluations"] == 8
    # Nor is it lost where no test was meant to run.
    assert sandbox.report("--collect-only")["n_evaluations"] == 8
    without = sandbox.report("-k", "other_kind")
    assert (without["n_evaluations"], without["n_agent_failures"], without["tests"]) == (0, 0, [])
    assert without["decision"]["headline"] == "no test evaluated anything"


def test_values_become_junit_properties(sandbox: Sandbox) -> None:
    sandbox.run("--junitxml", "junit.xml", tests=K_OF_N + SESSION)
    properties = {
        test.get("name"): [(each.get("name"), each.get("value")) for each in test.iter("property")]
        for test in ElementTree.parse(sandbox.path / "junit.xml").iter("testcase")
    }
    assert properties["test_gated[sum]"] == [("agentunit.exact_match", "0.0"), ("agentunit.cost", "0.25")]
    assert properties["test_failing[sum]"] == [("agentunit.failure", "raised")]
    assert properties["test_mostly[capital]"][-1] == ("agentunit.passes", "4/5")
    assert properties["test_of_another_kind"] == []


ANY_TEXT = st.text(st.characters())


@given(ANY_TEXT, st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), ANY_TEXT)
@example("\ud800", 0.5, "half a pair: \udfff")
def test_what_a_test_evaluated_survives_the_journey(case_id: str, value: float | None, word: str) -> None:
    # As JSON knows it: half a surrogate pair cannot be written, and arrives as a question mark.
    def as_written(text: str) -> str:
        return text.encode("utf-8", "replace").decode()

    properties: list[tuple[str, object]] = []
    gathering = Gathering(position=7, keep_records=True, properties=properties)
    score = Score(MetricResult("m", value, {"word": word, "own": object}), "ok", "b", "1", 0.0)
    record = Record(agentunit.DatasetCase(case_id), outcome=word)
    evaluated = gathering.add(record, case_id, {"m": score}, failure="raised", spend_usd=value)
    gathering.add_failed_check(evaluated, "m", "m > 0")

    text = gathering.take_payload()
    assert text is not None
    there = decode_payload(text)
    assert there.position == 7
    assert there.evaluated[0].case_id == as_written(case_id)
    assert there.evaluated[0].scores["m"].value == value
    assert there.evaluated[0].scores["m"].result.detail["word"] == as_written(word)
    assert json.loads(there.evaluated[0].record or "")["outcome"] == as_written(word)
    assert there.evaluated[0].spend_usd == value
    assert there.failed_checks[0].value == value
    assert properties == [*([("agentunit.m", value)] if value is not None else []), ("agentunit.failure", "raised")]
    assert gathering.take_payload() is None


def test_objects_that_cannot_be_written_do_not_stop_a_report(sandbox: Sandbox) -> None:
    report = sandbox.report(
        tests="""
class Case:
    id = "mine"

def test_own_objects(agentunit_eval):
    agentunit_eval.score((Case(), {"events": []}, "4"), ["cost"])
"""
    )
    (evaluation,) = report["tests"][0]["evaluations"]
    assert "cannot be written" in evaluation["record"]["outcome"]["error"]


# Beside other parts of pytest


def without_times(report: dict[str, Any]) -> Any:
    if isinstance(report, dict):
        return {name: without_times(each) for name, each in report.items() if name not in TIMES}
    return [without_times(each) for each in report] if isinstance(report, list) else report


TIMES = {"created_at", "elapsed", "elapsed_s", "timestamp", "traceback"}


def test_xdist_brings_one_report_with_the_same_totals(sandbox: Sandbox) -> None:
    alone = sandbox.report(
        tests=SESSION
        + K_OF_N
        + """
def test_reports_come_together_in_one_place(pytestconfig):
    is_worker = hasattr(pytestconfig, "workerinput")
    assert pytestconfig.pluginmanager.has_plugin("agentunit-session") is not is_worker
"""
    )
    (sandbox.path / "report.json").unlink()
    result = sandbox.run(
        "-p",
        "xdist.plugin",
        "-n",
        "2",
        "-v",
        "--agentunit-report",
        "report.json",
        "--junitxml",
        "junit.xml",
        own_process=True,
    )
    result.assert_outcomes(passed=7, failed=5)
    result.stdout.fnmatch_lines(["*PASSED 4/5*"])
    result.stdout.fnmatch_lines(["23 evaluations in 10 tests (5 failed), the agent failed in 3, spent $0.9000 (*"])
    assert result.stdout.str().count("= agentunit =") == 1
    together = json.loads((sandbox.path / "report.json").read_text(encoding="utf-8"))
    assert without_times(together) == without_times(alone)
    assert 'name="agentunit.passes" value="4/5"' in (sandbox.path / "junit.xml").read_text()


def test_no_pass_is_remembered_and_last_failed_works(sandbox: Sandbox) -> None:
    tests = """
import pathlib

def counting(case):
    with open("calls.txt", "a") as file:
        file.write(case.id + "\\n")
    return pathlib.Path("answer.txt").read_text() if case.id == "sum" else ANSWERS[case.query]

@pytest.mark.agentunit(dataset="cases.jsonl", gates=["exact_match == 1"])
def test_counted(case, agentunit_eval):
    agentunit_eval(counting, case)
"""
    calls, answer = sandbox.path / "calls.txt", sandbox.path / "answer.txt"

    def called() -> list[str]:
        names = calls.read_text().split()
        calls.unlink()
        return names

    answer.write_text("5")
    for _ in range(2):
        sandbox.run(tests=tests).assert_outcomes(passed=2, failed=1)
        assert called() == ["capital", "sum", "colour"]
    sandbox.run("--ff").assert_outcomes(passed=2, failed=1)
    assert called() == ["sum", "capital", "colour"]
    sandbox.run("--lf").assert_outcomes(failed=1)
    assert called() == ["sum"]
    answer.write_text("4")
    sandbox.run("--lf").assert_outcomes(passed=1)
    assert called() == ["sum"]
    sandbox.run().assert_outcomes(passed=3)
    assert called() == ["capital", "sum", "colour"]


def test_the_marker_is_known_and_selects(sandbox: Sandbox) -> None:
    sandbox.run("--strict-markers", "-m", "agentunit", tests=SESSION).assert_outcomes(passed=2, failed=4, deselected=2)
    sandbox.run("--markers").stdout.fnmatch_lines(["@pytest.mark.agentunit(dataset=FILE, *"])
    sandbox.run("--fixtures").stdout.fnmatch_lines(["agentunit_eval*", "*Run an agent on a case and score*"])


def test_a_session_that_does_not_use_it_pays_nothing(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
def test_imports():
    ours = [name for name in sys.modules if name.startswith("agentunit.")]
    heavy = [name for name in ("msgspec", "click", "sqlite3", "yaml") if name in sys.modules]
    assert (ours, heavy) == (["agentunit.moved", "agentunit.public", "agentunit.pytest_plugin"], [])
""",
        own_process=True,
    )
    result.assert_outcomes(passed=1)


def test_a_session_leaves_no_store_behind(sandbox: Sandbox) -> None:
    sandbox.run(tests=SESSION)
    assert not (sandbox.path / ".agentunit").exists()


def test_the_guide_shows_what_happens(sandbox: Sandbox) -> None:
    """The files of docs/pytest.md are written, its commands run, and what they print is compared."""
    guide = (Path(__file__).parents[3] / "docs" / "pytest.md").read_text(encoding="utf-8")
    n_commands = 0
    for block in re.findall(r"^```(?:python|text)\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL):
        named = re.match(r"# (\S+\.(?:py|yaml))\n", block)
        if named:
            (sandbox.path / named[1]).write_text(block, encoding="utf-8")
        elif block.startswith("$ pytest "):
            command, _, shown = block.partition("\n")
            printed = sandbox.run(*shlex.split(command)[2:], own_process=True).stdout.str()
            options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(shown, printed + "\n", options), f"{command}\n{printed}"
            n_commands += 1
    assert n_commands == 3


# A judge


def test_what_a_judge_took_stands_below_the_table_and_a_session_is_one_run_to_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTUNIT_BACKEND", raising=False)
    with JudgeServer(decide) as server:
        monkeypatch.setenv("AGENTUNIT_JUDGE_URL", server.url)
        monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "judge-1")
        monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", "none")
        result = sandbox.run(
            own_process=True,
            tests="""
@pytest.mark.parametrize("city", ["Paris", "Lyon"])
def test_grounded(city, agentunit_eval):
    case = {"id": city, "query": "Capital?", "context": [f"The capital is {city}."]}
    result = agentunit_eval(lambda query: "The capital is Paris.", case, metrics=["faithfulness"])
    assert result["faithfulness"].value == (1.0 if city == "Paris" else 0.0)

def test_it_is_one_run():
    from agentunit.backends.quality import load_backend

    assert load_backend("judge").client.usage.questions == 4
""",
        )
        assert server.n_calls == 4
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["judge: price unknown, * tokens in 4 calls of judge-1; quotes found 3 of 3"])


def test_a_backend_that_cannot_run_is_said_in_one_sentence(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENTUNIT_JUDGE_URL", "AGENTUNIT_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    result = sandbox.run(
        own_process=True,
        tests="""
def test_grounded(agentunit_eval):
    agentunit_eval(agent, {"id": "q1", "query": "2 + 2?"}, metrics=[{"faithfulness": {"backend": "judge"}}])
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *ValueError: FaithfulnessMetric: backend 'judge' cannot run: no judge is configured*"]
    )


def test_a_named_agent_runs_where_the_test_can_patch_and_count_it(sandbox: Sandbox) -> None:
    (sandbox.path / "a_named_desk.py").write_text(
        "calls = []\ndef answer(query):\n    calls.append(query)\n    return 'Paris'\n"
    )
    result = sandbox.run(
        tests="""
def test_it(agentunit_eval):
    import a_named_desk

    agentunit_eval("a_named_desk:answer", {"query": "Capital of France?"}, metrics=["cost"])
    assert a_named_desk.calls == ["Capital of France?"]
"""
    )
    result.assert_outcomes(passed=1)


def test_a_conversation_is_held_and_a_failed_user_is_not_the_agents_failure(sandbox: Sandbox) -> None:
    result = sandbox.run(
        tests="""
def echo(query, messages):
    return f"{query} {len(messages)}"

def asks(messages):
    return "And?" if len(messages) < 4 else None

def breaks(messages):
    raise KeyError("lost")

@pytest.mark.agentunit(gates=["exact_match == 1"])
def test_turns(agentunit_eval):
    case = {"id": "c", "turns": [{"query": "a", "expected_output": "a 1"}, {"query": "b", "expected_output": "b 3"}]}
    result = agentunit_eval(echo, case)
    assert [turn["value"] for turn in result["exact_match"].result.detail["turns"]] == [1.0, 1.0]

def test_function(agentunit_eval):
    result = agentunit_eval(echo, {"id": "c", "query": "Hi", "user": asks}, metrics=["cost"])
    assert result.answer == "And? 3"

def test_broken(agentunit_eval):
    agentunit_eval(echo, {"id": "c", "query": "Hi", "user": breaks}, metrics=["cost"])

def test_wrong(agentunit_eval):
    agentunit_eval(echo, {"id": "c", "turns": "Hi"}, metrics=["cost"])
"""
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: the simulated user failed: breaks raised KeyError: 'lost' (test_agents.py:* (case 'c'*",
            "*TypeError: agentunit_eval: case must be a DatasetCase or a dict of one; turns must be a list*",
        ]
    )
    assert "the agent failed" not in result.stdout.str()

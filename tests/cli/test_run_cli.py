from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from viewer_client import report_text

from agentunit.store.schema import StoreError
from agentunit.store.sqlite import Store

SUITE = """
from agentunit import Suite

def agent(query):
    if query == "boom":
        raise RuntimeError("the agent broke")
    return query.upper()

suite = Suite(
    dataset=[{"id": f"q{n}", "query": word, "expected_output": word.upper()} for n, word in enumerate(WORDS)],
    agent=agent,
    metrics=["exact_match", "response_time"],
    gates=["exact_match >= 0.9", "response_time p95 <= 5"],
)
"""


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


def write_suite(words: list[str], name: str = "suite.py") -> None:
    Path(name).write_text(SUITE.replace("WORDS", repr(words)))


def test_a_passing_run(invoke):
    write_suite(["a", "b", "c"])
    result = invoke("run", "suite.py")
    assert result.exit_code == 0, result.output
    assert "exact_match ↑" in result.stdout
    assert "PASS: 2 gates met" in result.stdout
    assert "next: agentunit show " in result.stdout
    assert Path(".agentunit/runs.db").exists()


def test_a_failing_gate_is_exit_1_and_names_the_case(invoke):
    write_suite(["a", "b", "c"])
    result = invoke("run", "suite.py", "--gate", "exact_match <= 0.5")
    assert result.exit_code == 1, result.output
    assert "FAIL" in result.stdout


def test_a_case_that_the_agent_fails_is_wrong_unless_an_allowance_makes_it_an_error(invoke):
    write_suite(["a"] * 30 + ["boom"])
    result = invoke("run", "suite.py")
    assert result.exit_code == 1, result.output
    assert "1 of 31 cases wrong: RuntimeError: the agent broke" in result.stdout
    assert "FAIL: 1 wrong (q30: RuntimeError: the agent broke" in result.stdout
    text = Path("suite.py").read_text()
    for allowed, exit_code in ((0, 3), (1, 0)):
        Path("suite.py").write_text(text.replace("agent=agent,", f"agent=agent, max_errors={allowed},"))
        assert invoke("run", "suite.py").exit_code == exit_code


def test_json_holds_the_verdict(invoke):
    write_suite(["a", "b"])
    result = invoke("run", "suite.py", "--json", "--repeats", "2")
    told = json.loads(result.stdout)
    assert told["exit_code"] == result.exit_code == 0
    assert [gate["verdict"] for gate in told["gates"]] == ["pass", "pass"]
    assert told["run"]["n_done"] == 4


def test_a_regression_against_a_baseline_is_exit_1(invoke):
    write_suite(["a"] * 80)
    assert invoke("run", "suite.py").exit_code == 0
    assert invoke("export", "last", "--to", "main.json").exit_code == 0
    Path("suite.py").write_text(Path("suite.py").read_text().replace("query.upper()", "query").replace("0.9", "0"))
    result = invoke("run", "suite.py", "--baseline", "main.json")
    assert result.exit_code == 1, result.output
    assert "regression" in result.stdout


def test_resume_says_what_is_wrong(invoke):
    write_suite(["a", "b"])
    assert invoke("run", "suite.py").exit_code == 0
    write_suite(["a", "b", "c"])
    result = invoke("run", "suite.py", "--resume", "last")
    assert result.exit_code == 3
    assert "recorded on another dataset" in result.stderr
    result = invoke("run", "suite.py", "--resume", "nightly")
    assert "no run is called 'nightly'" in result.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x = 1\n", "must define 'suite = Suite"),
        ("import nowhere_at_all\n", "No module named 'nowhere_at_all'"),
        ("def broken(:\n", "SyntaxError"),
        ("from agentunit import Suite\nsuite = Suite([{'id': 'a'}], print, metrics=['nope'])\n", "no metric is called"),
        ("from agentunit import Suite\nsuite = Suite([{'id': 'a'}], print, gates=['cost <'])\n", "cost <"),
        ("from agentunit import Suite\nsuite = Suite([{'id': 'a'}], lambda a, b: 1)\n", "agent: "),
    ],
)
def test_a_suite_that_cannot_run_is_a_usage_error_in_a_line(invoke, content, sentence):
    Path("suite.py").write_text(content)
    result = invoke("run", "suite.py")
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert "Traceback" not in result.output


def test_a_missing_suite_or_dataset_is_one_line(invoke):
    result = invoke("run", "nowhere.py")
    assert result.exit_code == 2
    assert "nowhere.py: no such file ('agentunit init'" in result.stderr
    Path("suite.yaml").write_text("dataset: nowhere.jsonl\nagent: os:getcwd\n")
    result = invoke("run", "suite.yaml")
    assert result.exit_code == 3
    assert "nowhere.jsonl" in result.stderr


def test_a_gate_brings_its_metric_and_an_impossible_one_is_told_before_anything_runs(invoke):
    write_suite(["a", "b", "c"])
    result = invoke("run", "suite.py", "--gate", "contains >= 0", "--gate", "exact_match >= 0.9", "--metrics", "cost")
    assert "exact_match" in result.stdout
    for gate, sentence in (
        ("exact_match pass^5 >= 1", "needs 5 repeats"),
        ("nope >= 1", "no metric is called 'nope'"),
        ("faithfulness[lexcal] >= 1", "faithfulness has no backend 'lexcal'; did you mean 'lexical'?"),
    ):
        result = invoke("run", "suite.py", "--gate", gate, "--store", "other.db")
        assert result.exit_code == 2, result.output
        assert sentence in result.stderr
    with Store("other.db") as store:
        assert store.runs() == []


def test_another_agent_is_not_mixed_into_a_run(invoke):
    write_suite(["a"])
    invoke("run", "suite.py")
    Path("suite.py").write_text(
        Path("suite.py").read_text().replace("agent(query)", "other(query)").replace("=agent,", "=other,")
    )
    result = invoke("run", "suite.py", "--resume", "last")
    assert result.exit_code == 3
    assert "recorded with the agent agent, this suite has other" in result.stderr


def test_an_agent_that_says_it_failed_has_failed(invoke):
    write_suite(["a", "boom"])
    text = Path("suite.py").read_text().replace('raise RuntimeError("the agent broke")', 'return {"error": "quota"}')
    Path("suite.py").write_text(text)
    result = invoke("run", "suite.py")
    assert "1 of 2 cases wrong: quota" in result.stdout


def test_a_process_that_an_agent_ends_is_no_passing_run(tmp_path):
    (tmp_path / "suite.py").write_text(
        "import os\nfrom agentunit import Suite\n"
        "suite = Suite([{'id': 'q', 'query': 'x'}], lambda query: os._exit(0), metrics=['cost'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "agentunit", "run", "suite.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "ended the whole process" in done.stderr


def test_a_usage_error_names_the_command_however_it_was_started(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "agentunit", "run", "suite.py", "--set", "foo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: agentunit run ")


def test_the_traceback_of_an_agent_begins_in_its_own_code(invoke):
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "async def answer(query):\n"
        "    raise ValueError('no such city')\n"
        "suite = Suite([{'id': 'q', 'query': 'x'}], answer, metrics=['response_time'])\n"
    )
    invoke("run", "suite.py")
    shown = invoke("show", "last", "q").stdout
    _, _, after = shown.partition("Traceback (most recent call last):\n")
    assert after.split("\n")[0].strip().startswith('File "')
    assert "asyncio" not in shown
    assert "no running event loop" not in shown
    assert "raise ValueError('no such city')" in after


def test_a_suite_that_exits_while_it_loads_is_a_usage_error(invoke):
    Path("suite.py").write_text("import sys\nsys.exit(0)\n")
    result = invoke("run", "suite.py")
    assert (result.exit_code, "SystemExit" in result.stderr) == (2, True)


def test_rerun_adds_a_try_and_another_agent_begins_a_run(invoke):
    write_suite(["a", "boom"])
    invoke("run", "suite.py", "--name", "old")
    result = invoke("rerun", "old", "q1", "--why")
    assert result.exit_code == 1, result.output
    assert "answered failed 2 of 2" in result.stdout
    Path("suite.py").write_text(Path("suite.py").read_text().replace('query == "boom"', "False"))
    result = invoke("rerun", "old", "q1")
    assert result.exit_code == 0, result.output
    assert "the agent has changed since run" in result.stderr
    with Store(".agentunit/runs.db") as store:
        new, old = store.runs()
        assert (old.n_failed, new.n_failed, new.name, new.n_done) == (1, 0, "old-rerun", 1)
        assert store.case_ids(new.id) == ["q1"]


def test_rerun_replaces_a_case_where_that_is_asked_for(invoke):
    write_suite(["a", "boom"])
    invoke("run", "suite.py")
    Path("suite.py").write_text(Path("suite.py").read_text().replace('query == "boom"', "False"))
    result = invoke("rerun", "last", "q1", "--replace")
    assert result.exit_code == 0, result.output
    with Store(".agentunit/runs.db") as store:
        assert len(store.runs()) == 1
        assert store.find_run("last").n_failed == 0
    result = invoke("rerun", "last", "q9")
    assert result.exit_code == 3
    assert "has no case 'q9'; did you mean 'q1'?" in result.stderr


def test_new_metrics_over_an_old_run(invoke):
    write_suite(["a", "b"])
    invoke("run", "suite.py")
    result = invoke("score", "last", "-m", "regex,cost", "--json")
    assert json.loads(result.stdout)["summary"]["n_cases"] == 2
    assert invoke("show", "last", "--gate", "exact_match >= 1").exit_code == 0


def test_the_step_summary_of_a_ci_run(invoke, monkeypatch):
    write_suite(["a", "b"])
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    invoke("run", "suite.py")
    assert "PASS" in Path("summary.md").read_text()


def test_ctrl_c_keeps_everything_and_names_the_way_on(tmp_path):
    slow = SUITE.replace("WORDS", repr(["a"] * 200)).replace("def agent", "import time\ndef agent")
    (tmp_path / "suite.py").write_text(slow.replace("    return query.upper()", "    time.sleep(0.02)\n    return 'A'"))
    process = subprocess.Popen(
        [sys.executable, "-m", "agentunit", "run", "suite.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    database = tmp_path / ".agentunit" / "runs.db"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (database.exists() and done_of(database) > 5):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped: " in errors
    assert "next: agentunit run suite.py --resume " in errors
    kept = done_of(database)
    assert 5 < kept < 200
    again = subprocess.run(
        [sys.executable, "-m", "agentunit", "run", "suite.py", "--resume", "last"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert again.returncode == 0, again.stdout + again.stderr
    assert done_of(database) == 200


@pytest.fixture
def no_thread_left():
    """What an agent's thread that was given up still does must not reach the next test."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(30)


SIGNALS_ITSELF = """
import os, signal, time
from agentunit import Suite

def agent(query):
    if query == "3":
        for number in NUMBERS:
            os.kill(os.getpid(), number)
            time.sleep(0.1)
        time.sleep(1)
    return query

cases = [{"id": f"q{n}", "query": str(n), "metadata": {"regex": "."}} for n in range(9)]
suite = Suite(cases, agent, metrics=["regex"], concurrency=1)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has other signals")
@pytest.mark.usefixtures("no_thread_left")
@pytest.mark.parametrize(
    "numbers",
    [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT] * 2, [signal.SIGHUP, signal.SIGTERM]],
    ids=lambda numbers: "+".join(each.name for each in numbers),
)
def test_every_way_to_stop_says_what_is_kept_and_how_to_go_on(invoke, monkeypatch, numbers):
    if len(numbers) > 1:
        # The first signal is not acted upon before the second comes.
        monkeypatch.setattr("agentunit.engine.recording.runner._TICK_S", 30.0)
    Path("suite.py").write_text(SIGNALS_ITSELF.replace("NUMBERS", repr([int(each) for each in numbers])))
    result = invoke("run", "suite.py", "--store", "kept here.db")
    assert result.exit_code == 130, result.output
    with Store("kept here.db", read_only=True) as store:
        header = store.find_run("last")
    assert (header.status, header.n_done) == ("stopped", 3)
    said = f"stopped: 3 records are kept, 6 are open\nnext: agentunit run suite.py --resume {header.id} "
    assert said + "--store 'kept here.db'\n" in result.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has other signals")
def test_a_run_that_ignores_hangups_goes_on_after_one(invoke):
    Path("suite.py").write_text(
        SIGNALS_ITSELF.replace("NUMBERS", repr([int(signal.SIGHUP)])).replace("sleep(1)", "sleep(0)")
    )
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = invoke("run", "suite.py")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert result.exit_code == 0, result.output


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has other signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_while_scoring_says_how_to_go_on(invoke, number):
    metric = f"""
from agentunit import MetricResult
class Ending:
    name = "ending"
    def evaluate(self, case, trace, outcome):
        os.kill(os.getpid(), {int(number)})
        return MetricResult(self.name, 1.0)
suite.metrics = [Ending()]
"""
    Path("suite.py").write_text(SIGNALS_ITSELF.replace("NUMBERS", "()").replace("sleep(1)", "sleep(0)") + metric)
    result = invoke("run", "suite.py")
    assert result.exit_code == 130, result.output
    assert (
        "stopped: every case is recorded, and the scores so far are kept\nnext: agentunit run suite.py" in result.stderr
    )


def test_a_killed_run_is_shown_as_interrupted_with_the_way_on(invoke):
    write_suite(["a", "b"])
    assert invoke("run", "suite.py").exit_code == 0
    with Store(".agentunit/runs.db") as store:
        run_id = store.find_run("last").id
        # As a process that was killed leaves it.
        store.set_status(run_id, "running")
    way_on = f"agentunit run suite.py --resume {run_id}"
    for command in (("runs",), ("show", "last")):
        for columns in ("100", "80", "60"):
            assert "interrupted" in invoke(*command, env={"COLUMNS": columns}).stdout
        result = invoke(*command)
        assert f"next: {way_on}" in result.stdout
    assert json.loads(invoke("runs", "--json").stdout)[0]["status"] == "interrupted"
    for name in ("run.md", "run.html", "run.xml"):
        assert invoke("export", "last", "--to", name).exit_code == 0
        assert "interrupted" in report_text(name)
    assert way_on in Path("run.md").read_text()
    assert way_on in report_text("run.html")


def done_of(database: Path) -> int:
    with Store(database) as store:
        runs = store.runs()
        return runs[0].n_done if runs else 0


# What a user's own code may do to a run

BROKEN_INFO = """
from agentunit import Suite
from agentunit.metrics.base import MetricInfo, MetricResult

class Mine:
    name = "mine"
    INFO

    def evaluate(self, case, trace, outcome):
        return MetricResult("mine", 1.0)

suite = Suite([{"id": "a", "query": "q"}], lambda query: query, metrics=[Mine()])
"""


@pytest.mark.parametrize(
    ("info", "problem"),
    [
        ("info = property(lambda self: 1 / 0)", "cannot be read: ZeroDivisionError"),
        ("info = property(lambda self: self.nothing)", "cannot be read: AttributeError"),
        ("info = {'name': 'mine'}", "must be a MetricInfo; received dict"),
        ("info = MetricInfo('mine', 'x', 'y', trust={'a': object()})", "cannot be written as JSON"),
    ],
)
def test_an_error_in_a_metrics_info_names_the_metric(invoke, info, problem):
    Path("suite.py").write_text(BROKEN_INFO.replace("INFO", info))
    result = invoke("run", "suite.py")
    assert result.exit_code == 2, result.output
    assert "metric 'mine': its info " + problem in result.stderr
    assert "agent" not in result.stderr.partition("Error:")[2]


def test_failed_cases_are_listed_by_exception_with_their_ids(invoke):
    Path("suite.py").write_text(
        """
from agentunit import Suite

def agent(query):
    if int(query) < 7:
        raise KeyError(f"A-{query}")
    raise ValueError("too many")

cases = [{"id": f"q{n}", "query": str(n)} for n in range(9)]
suite = Suite(cases, agent, metrics=["response_time"])
"""
    )
    result = invoke("run", "suite.py")
    assert result.exit_code == 1
    told = result.stdout
    assert "7 of 9 cases wrong: KeyError: 'A-#'" in told
    assert 'at suite.py:6 in agent: raise KeyError(f"A-{query}")' in told
    assert "2 of 9 cases wrong: ValueError: too many" in told
    assert "at suite.py:7 in agent: raise" in told
    assert "run them again: agentunit run" in told
    as_json = invoke("run", "suite.py", "--json")
    first, second = json.loads(as_json.stdout)["failures"]
    assert first["cases"] == [f"q{n}" for n in range(7)]
    assert (second["error"], second["place"], second["n_records"]) == ("ValueError: too many", "suite.py:7 in agent", 2)
    assert "7 × KeyError: 'A-0'" in as_json.stderr


MISSING_KEY = """
import os
from agentunit import Suite

def ask(query):
    return os.environ["NO_SUCH_KEY_HERE"]

def agent(query):
    return ask(query)

suite = Suite([{"id": f"q{n:02}", "query": str(n)} for n in range(66)], agent, metrics=["response_time"], name="desk")
"""


def test_every_report_says_once_why_all_cases_failed(invoke):
    Path("suite.py").write_text(MISSING_KEY)
    assert invoke("run", "suite.py").exit_code == 1
    shown = invoke("show", "last").stdout
    assert shown.count("KeyError: 'NO_SUCH_KEY_HERE'") == 2, "in the verdict and in the finding"
    for name in ("run.md", "run.html", "junit.xml"):
        assert invoke("export", "last", "--to", name).exit_code == 0
    for text in (shown, *map(report_text, ("run.md", "run.html", "junit.xml"))):
        plain = html.unescape(re.sub("<[^>]*>|`", "", text))
        assert re.search("66 (×|of 66 cases wrong:) KeyError: 'NO_SUCH_KEY_HERE'", plain), plain
        assert re.search(
            r'at suite\.py:6 in ask: +return os\.environ\["NO_SUCH_KEY_HERE"\]', plain.replace("\\", "")
        ), plain
        assert "q00, q01, q02, q03" in plain
        assert re.search(r"agentunit show \S+ q00", plain), plain
    data = json.loads(invoke("show", "last", "--json").stdout)
    assert [len(group["cases"]) for group in data["failures"]] == [66]


def test_annotations_in_github_actions_and_nowhere_else(invoke, monkeypatch):
    Path("suite.py").write_text(MISSING_KEY.replace('["NO_SUCH_KEY_HERE"]', '["100%\\n::set-output name=a::b"]'))
    assert "::error" not in invoke("run", "suite.py").stderr
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    result = invoke("run", "suite.py")
    lines = [each for each in result.stderr.splitlines() if each.startswith("::")]
    assert lines[0].startswith("::error title=the agent failed,file=suite.py,line=6::66 × KeyError: '100%25")
    assert all(line.startswith("::error ") and "::set-output" not in line for line in lines)
    assert "::error" not in result.stdout


NOISY = """
import os
from agentunit import Suite
print("noise of the import")

def agent(query):
    print("noise of the agent")
    os.system("echo noise of a child")
    return query

def cases():
    print("noise of the dataset")
    return [{"id": "a", "query": "q", "expected_output": "q"}]

suite = Suite(cases, agent, metrics=["exact_match"])
"""


def agentunit(*arguments: str, **options):
    command = [sys.executable, "-m", "agentunit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_json_on_stdout_is_json_and_nothing_else(tmp_path):
    (tmp_path / "suite.py").write_text(NOISY)
    ran = agentunit("run", "suite.py", "--json", cwd=tmp_path)
    assert json.loads(ran.stdout)["exit_code"] == ran.returncode == 0, ran.stderr
    again = agentunit("rerun", "last", "a", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["exit_code"] == again.returncode == 0, again.stderr
    for noise in ("import", "dataset", "a child"):
        assert f"noise of {noise if noise == 'a child' else 'the ' + noise}" in again.stderr


MISCHIEF = """
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
from agentunit import Suite

def close_streams(query):
    sys.__stdout__.close()
    os.close(2)
    return query

def leave_threads(query):
    globals()["pool"] = ThreadPoolExecutor()
    pool.submit(time.sleep, 600)
    return query

suite = Suite([{"id": "a", "query": "q", "expected_output": "x"}], AGENT, metrics=["exact_match"],
              gates=["exact_match >= 1"])
"""


@pytest.mark.parametrize("agent", ["close_streams", "leave_threads"])
def test_what_an_agent_leaves_behind_does_not_change_the_exit_code(agent, tmp_path):
    (tmp_path / "suite.py").write_text(MISCHIEF.replace("AGENT", agent))
    ran = agentunit("run", "suite.py", cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "FAIL: exact_match >= 1" in ran.stdout
    with Store(tmp_path / ".agentunit/runs.db") as store:
        assert store.find_run("last").status == "finished"


def test_a_folder_that_an_agent_removes_under_the_run_does_not_cost_the_verdict(tmp_path):
    suite = """
import os
from agentunit import Suite

def agent(query):
    os.makedirs("gone", exist_ok=True)
    os.chdir("gone")
    os.rmdir(os.getcwd())
    return query

suite = Suite([{"id": "a", "query": "q", "expected_output": "q"}], agent, metrics=["exact_match"], isolation="thread")
"""
    (tmp_path / "suite.py").write_text(suite)
    ran = agentunit("run", "suite.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "exact_match" in ran.stdout


def test_an_agent_that_breaks_the_process_it_shares_is_no_failed_gate_and_costs_no_finished_case(tmp_path):
    suite = """
import builtins
from agentunit import Suite

def broken(*arguments):
    raise RuntimeError("patched")

def agent(query):
    if query == "2":
        builtins.isinstance = builtins.len = builtins.open = broken
    return query

cases = [{"id": f"q{n}", "query": str(n), "expected_output": str(n)} for n in range(4)]
suite = Suite(cases, agent, metrics=["exact_match"], isolation="thread", concurrency=1)
"""
    (tmp_path / "suite.py").write_text(suite)
    ran = agentunit("run", "suite.py", cwd=tmp_path)
    assert ran.returncode == 3, ran.stderr
    with Store(tmp_path / ".agentunit/runs.db") as store:
        assert [each.case_id for each in store.records(store.find_run("last").id)][:2] == ["q0", "q1"]


def test_a_full_disk_while_scoring_says_what_is_kept_and_how_to_go_on(invoke, monkeypatch):
    def is_full(*arguments, **options):
        raise StoreError("runs.db cannot be written: database or disk is full")

    monkeypatch.setattr("agentunit.engine.recording.suite_run.score_run", is_full)
    monkeypatch.setattr("agentunit.cli._score_stored.score_run", is_full)
    write_suite(["a", "b"])
    result = invoke("run", "suite.py")
    assert result.exit_code == 3
    assert "disk is full; every case is recorded, the scores so far are kept" in result.stderr
    result = invoke("score", "last", "--metrics", "response_time")
    assert result.exit_code == 3
    assert "disk is full; the scores so far are kept, and the same command continues" in result.stderr


@pytest.mark.parametrize(
    "words",
    [["run", "a\n::error::x"], ["run", "\x1b[2Jx"], ["score", "x\n::error::y", "--jobs", "\x1b[2J"], ["a\n::error::x"]],
)
def test_usage_errors_say_nothing_that_a_terminal_or_a_ci_log_obeys(words, tmp_path):
    ran = agentunit(*words, cwd=tmp_path)
    assert ran.returncode in (2, 3)
    assert "\x1b" not in ran.stderr
    assert not [line for line in ran.stderr.splitlines() if line.startswith("::")]


def test_arguments_that_are_not_utf8_are_told_in_a_line(tmp_path):
    for verb in ("run", "score", "show", "convert", "import", "metrics"):
        ran = agentunit(verb, b"\xff\xfe", cwd=tmp_path)
        assert ran.returncode in (2, 3), ran.stderr
        assert "Error: " in ran.stderr
        assert "AGENTUNIT_TRACEBACK" not in ran.stderr


def test_the_verdict_holds_when_nobody_reads_it(tmp_path):
    (tmp_path / "suite.py").write_text(SUITE.replace("WORDS", "['a', 'b']").replace("query.upper()", "query"))
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "agentunit", "run", "suite.py"]
    ran = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, cwd=tmp_path, timeout=60)
    os.close(write)
    assert ran.returncode == 1, ran.stderr
    with Store(tmp_path / ".agentunit/runs.db") as store:
        assert store.find_run("last").n_done == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_the_verdict_holds_when_it_cannot_be_written(tmp_path):
    (tmp_path / "suite.py").write_text(SUITE.replace("WORDS", "['a', 'b']").replace("query.upper()", "query"))
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "agentunit", "run", "suite.py"]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, timeout=120)
    assert ran.returncode == 1, ran.stderr


def test_an_imported_run_that_is_unfinished_offers_no_suite_of_its_own(invoke):
    write_suite(["a", "b"])
    assert invoke("run", "suite.py").exit_code == 0
    assert invoke("export", "last", "--to", "run.json").exit_code == 0
    Path("run.json").write_text(Path("run.json").read_text().replace('"status":"finished"', '"status":"stopped"', 1))
    assert invoke("runs", "--import", "run.json", "--as", "other").exit_code == 0
    shown = invoke("show", "other").output
    assert "agentunit run SUITE --resume" in shown
    assert "run suite.py --resume" not in shown


def test_run_gate_and_export_compare_by_the_coverage_of_the_suite(invoke):
    write_suite([str(n) for n in range(20)])
    assert invoke("run", "suite.py").exit_code == 0
    assert invoke("export", "last", "--to", "main.json").exit_code == 0
    write_suite([str(n) for n in range(17)])
    Path("suite.py").write_text(Path("suite.py").read_text() + "\nsuite.min_coverage = 0.95\n")
    codes = [invoke("run", "suite.py", "--baseline", "main.json").exit_code]
    codes.append(invoke("show", "last", "--baseline", "main.json", "--gate", "stored").exit_code)
    assert invoke("export", "last", "--to", "report.xml", "--baseline", "main.json").exit_code == 0
    assert codes == [4, 4]
    assert "3 only in the baseline" in invoke("show", "last", "--baseline", "main.json", "--gate", "stored").output
    assert "<error" in Path("report.xml").read_text()


def test_an_imported_run_executes_nothing_of_its_own(invoke):
    write_suite(["a"])
    assert invoke("run", "suite.py").exit_code == 0
    assert invoke("export", "last", "--to", "run.json").exit_code == 0
    Path("evil.py").write_text("open('executed', 'w')\n")
    exported = Path("run.json").read_text()
    Path("run.json").write_text(
        exported.replace("/suite.py", "/evil.py").replace('"settings":{', '"settings":{"foreign":false,', 1)
    )
    assert invoke("runs", "--import", "run.json", "--as", "other").exit_code == 0
    refused = invoke("rerun", "other", "q0")
    assert refused.exit_code == 2
    assert "was imported from a file" in refused.stderr
    assert "--suite" in refused.stderr
    # The mark travels on, and stays after the run was taken up with a suite of the user's own.
    assert invoke("export", "other", "--to", "again.json").exit_code == 0
    assert invoke("runs", "--import", "again.json", "--as", "third").exit_code == 0
    assert invoke("rerun", "third", "q0").exit_code == 2
    assert invoke("rerun", "other", "q0", "--suite", "suite.py").exit_code == 0
    assert invoke("rerun", "other", "q0").exit_code == 2
    assert "evil.py" not in invoke("promote", "third", "q0", "--to", "more.jsonl").stdout
    assert not Path("executed").exists()


def test_an_agent_that_cannot_be_called_is_a_usage_error_of_rerun_too(invoke):
    write_suite(["a"])
    assert invoke("run", "suite.py").exit_code == 0
    Path("suite.py").write_text(Path("suite.py").read_text().replace("def agent(query):", "def agent(query, b, c):"))
    result = invoke("rerun", "last", "q0")
    assert result.exit_code == 2, result.output
    assert "agent: " in result.stderr


def test_an_answer_key_among_the_agents_fields_is_a_usage_error(invoke):
    write_suite(["a"])
    Path("suite.py").write_text(
        Path("suite.py").read_text().replace("agent=agent,", "agent=agent, agent_fields=['regex'],")
    )
    result = invoke("run", "suite.py")
    assert result.exit_code == 2, result.output
    assert "received 'regex': the metric 'regex' grades by it" in result.stderr


def test_a_metric_that_hides_all_metadata_is_named(invoke):
    Path("suite.py").write_text(
        BROKEN_INFO.replace("INFO", "pass").replace('"query": "q"', '"query": "q", "metadata": {"level": 1}')
    )
    result = invoke("run", "suite.py")
    assert result.exit_code == 0, result.output
    assert "receives no metadata of the cases, because mine does not say" in result.stderr


def test_runs_have_names_and_tags_and_are_found_by_them(invoke):
    write_suite(["a"])
    for model in ("small", "large"):
        result = invoke("run", "suite.py", "--name", f"try-{model}", "--tag", f"model={model}", "--tag", "owner=me")
        assert result.exit_code == 0, result.output
    assert invoke("run", "suite.py").exit_code == 0
    listed = json.loads(invoke("runs", "--tag", "model=small", "--json").stdout)
    assert [(run["name"], run["tags"]) for run in listed] == [("try-small", {"model": "small", "owner": "me"})]
    assert listed[0]["agent_version"]
    assert "try-large" not in invoke("runs", "--tag", "owner=me", "--tag", "model=small").stdout
    assert "no run of" in invoke("runs", "--tag", "model=none").stdout
    assert "tags model=large, owner=me" in invoke("show", "try-large").stdout
    for name in ("run.md", "run.html", "junit.xml"):
        assert invoke("export", "try-large", "--to", name).exit_code == 0
        plain = html.unescape(re.sub("<[a-z/][^>]*>", "", report_text(name).replace('value="', ">")))
        assert "model=large, owner=me" in plain, name
    for wrong in (["--tag", "model"], ["--name", "last~2"], ["--name", "x", "--resume", "last"], ["--changed-agent"]):
        assert invoke("run", "suite.py", *wrong).exit_code == 2


def test_resume_after_the_agent_was_edited(invoke):
    write_suite(["a", "boom"])
    assert invoke("run", "suite.py").exit_code != 0
    Path("suite.py").write_text(Path("suite.py").read_text().replace("the agent broke", "another text"))
    result = invoke("run", "suite.py", "--resume", "last", "--retry-failed")
    assert result.exit_code == 3
    assert "--changed-agent" in result.stderr
    result = invoke("run", "suite.py", "--resume", "last", "--retry-failed", "--changed-agent")
    assert "another text" in result.stdout
    assert "(some cases: " in invoke("show", "last").stdout


PRICED = """
import asyncio
from agentunit import Suite

async def agent(query):
    if query == "7":
        await asyncio.sleep(SLEEP)
    return {"output": query, "cost": COST}

cases = [{"id": f"q{n}", "query": str(n)} for n in range(20)]
suite = Suite(cases, agent, metrics=["cost"], concurrency=1)
"""


def test_a_run_stops_at_what_it_may_cost_and_goes_on_from_there(invoke):
    Path("suite.py").write_text(PRICED.replace("COST", "0.5").replace("SLEEP", "0"))
    assert invoke("run", "suite.py", "--max-cost", "nan").exit_code == 2
    result = invoke("run", "suite.py", "--max-cost", "2")
    assert result.exit_code == 130
    assert "stopped: --max-cost is reached ($2.0000 spent): 4 records are kept, 16 are open" in result.stderr
    assert "next: agentunit run suite.py --resume " in result.stderr
    assert "stopped" in invoke("runs").stdout
    # Each call has an allowance of its own; a cap that is reached with the last case has stopped nothing.
    result = invoke("run", "suite.py", "--resume", "last", "--max-cost", "8")
    assert result.exit_code == 0, result.output
    Path("suite.py").write_text(PRICED.replace("COST", "None").replace("SLEEP", "0"))
    assert "no trace states a cost" in invoke("run", "suite.py", "--max-cost", "2").stderr


def test_a_run_stops_at_what_it_may_take(invoke):
    Path("suite.py").write_text(PRICED.replace("COST", "0.5").replace("SLEEP", "3600"))
    result = invoke("run", "suite.py", "--max-time", "0.5s")
    assert result.exit_code == 130
    assert "stopped: --max-time is reached: 7 records are kept, 13 are open" in result.stderr
    for wrong in ("soon", "-1", "0", "nan"):
        assert invoke("run", "suite.py", "--max-time", wrong).exit_code == 2


def test_a_long_table_shows_ten_rows_the_gated_ones_among_them(invoke):
    names = ["exact_match", "contains", "regex", "cost", "token_usage", "tool_success", "task_success"]
    names += ["pii_leakage", "json_schema", "tool_trajectory", "assertions", "response_time"]
    cases = "[{'id': 'a', 'query': 'x', 'expected_output': 'x'}]"
    suite = f"Suite({cases}, lambda query: query, metrics={names}, gates=['response_time <= 60'])"
    Path("suite.py").write_text(f"from agentunit import Suite\nsuite = {suite}\n")

    def rows(*arguments: str) -> list[str]:
        lines = invoke(*arguments).stdout.splitlines()
        start = next(place for place, line in enumerate(lines) if line.startswith("metric "))
        return [line.split()[0] for line in lines[start + 1 :][: len(names)] if line.split()[0] in names]

    # Those that scored nothing are left out, too.
    assert len(rows("run", "suite.py")) == 3
    assert "response_time" in rows("show", "last")
    assert len(rows("show", "last", "--why")) == len(rows("run", "suite.py", "--why")) == len(names)

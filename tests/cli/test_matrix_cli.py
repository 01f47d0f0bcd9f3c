from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from agentunit.adapters.bound_function import BoundFunction
from agentunit.cli._run_work import variants_from
from agentunit.core.case import DatasetCase
from agentunit.core.trace import TraceLog

SUITE = """
import os

from agentunit import Suite

import matrix_agent

cases = [{"id": f"c{n}", "query": str(n), "expected_output": str(n)} for n in range(20)]
suite = Suite(cases, matrix_agent.answer, metrics=["exact_match"], gates=["exact_match >= 0.8"])
"""
AGENT = """
import os

AT_IMPORT = os.environ["AGENTUNIT_SET_MODEL"]


def answer(query, model="none"):
    return query if model == AT_IMPORT != "bad" else "no"
"""


@pytest.fixture
def agentunit(tmp_path: Path):
    (tmp_path / "suite.py").write_text(SUITE)
    (tmp_path / "matrix_agent.py").write_text(AGENT)

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "AGENTUNIT_SET_MODEL"}
        command = [sys.executable, "-m", "agentunit", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return call


def test_each_value_is_a_run_and_all_are_compared(agentunit):
    result = agentunit("run", "suite.py", "--set=model=good,bad,fine", "--json")
    assert result.returncode == 1, result.stderr  # the gate of one run fails
    *runs, compared = map(json.loads, result.stdout.splitlines())
    assert [run["run"]["settings"]["tags"] for run in runs] == [{"model": model} for model in ("good", "bad", "fine")]
    # Each agent got its own value, as a parameter and from the environment at import.
    assert [run["summary"]["metrics"][0]["mean"] for run in runs] == [1.0, 0.0, 1.0]
    assert [each["decision"]["verdict"] for each in compared["comparisons"]] == ["fail", "pass"]
    assert len(agentunit("runs", "--tag", "model=bad", "--json").stdout.splitlines()) == 1


def test_the_table_of_all_runs_is_printed_and_a_worse_variant_is_no_failure(agentunit):
    result = agentunit("run", "suite.py", "--set", "model=good,bad,fine", "--gate", "exact_match >= 0")
    assert result.returncode == 0, result.stderr
    assert "Each against model=good" in result.stdout
    assert "metric       model=good  model=bad        model=fine" in result.stdout


def test_a_run_goes_on_with_its_value(agentunit):
    assert agentunit("run", "suite.py", "--set", "model=good", "--limit", "5").returncode == 0
    assert agentunit("rerun", "last", "c1").returncode == 0
    assert agentunit("run", "suite.py", "--resume", "last").returncode == 0
    assert agentunit("run", "suite.py", "--resume", "last", "--set", "model=bad").returncode == 2


NEVER_DONE = """
import threading

def answer(query, model="none"):
    if query == "3":
        open("waiting", "w").close()
        threading.Event().wait()
    return query
"""


@pytest.mark.skipif(os.name != "posix", reason="the signals of POSIX")
@pytest.mark.parametrize(("name", "to_group"), [("SIGTERM", False), ("SIGHUP", True), ("SIGINT", True)])
def test_the_run_of_a_variant_is_stopped_with_the_command(tmp_path: Path, name, to_group):
    (tmp_path / "suite.py").write_text(SUITE.replace("gates=", "concurrency=1, gates="))
    (tmp_path / "matrix_agent.py").write_text(NEVER_DONE)
    process = subprocess.Popen(
        [sys.executable, "-m", "agentunit", "run", "suite.py", "--set=model=good,bad"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not (tmp_path / "waiting").exists():
            assert process.poll() is None
            time.sleep(0.01)
        (os.killpg if to_group else os.kill)(process.pid, getattr(signal, name))
        # It reads to the end of both streams, which come when the last process that writes to them has ended.
        stdout, stderr = process.communicate(timeout=300)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, stderr
    assert "stopped: 3 records are kept, 17 are open" in stderr
    assert "Traceback" not in stderr
    assert "model=bad" not in stderr
    assert stdout == ""


def test_what_is_wrong_for_every_value_is_said_once(agentunit):
    result = agentunit("run", "nowhere.py", "--set", "model=good,bad")
    assert result.returncode == 2
    assert result.stderr.count("no such file") == 1


def test_every_combination_is_a_variant(invoke):
    assert variants_from(["a=1,2", "b=x"]) == [{"a": "1", "b": "x"}, {"a": "2", "b": "x"}]
    assert variants_from([]) == [{}]
    for wrong in ("model", "model=", "=a", "a b=1"):
        assert invoke("run", "suite.py", "--set", wrong).exit_code == 2
    assert invoke("run", "suite.py", "--set", "a=1", "--set", "a=2").exit_code == 2


def test_a_parameter_of_that_name_gets_the_value(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENTUNIT_SET_MODEL", "large")
    monkeypatch.setenv("AGENTUNIT_SET_QUERY", "no")
    case = DatasetCase("c", "question")
    assert BoundFunction(lambda text, model: (text, model))(case, TraceLog(), None) == ("question", "large")
    assert BoundFunction(lambda query, *, model="x": (query, model))(case, TraceLog(), None) == ("question", "large")
    assert BoundFunction(lambda query: query)(case, TraceLog(), None) == "question"


BROKEN = """
def answer(query, model="none"):
    raise KeyError("OPENAI_API_KEY")
"""


def test_what_is_said_of_a_matrix_is_its_exit_code(agentunit, tmp_path: Path):
    (tmp_path / "matrix_agent.py").write_text(BROKEN)
    result = agentunit("run", "suite.py", "--set", "model=a,b")
    assert result.returncode == 1, result.stderr
    # What was decided of all stands before what is compared.
    last = [line for line in result.stdout.splitlines() if line.startswith("FAIL: model=a")][-1]
    matrix = result.stdout.rpartition("Against the baseline")[2]
    assert last.startswith("FAIL: model=a: 20 wrong (c0, c1, c2, c3 and 16 more: KeyError: 'OPENAI_API_KEY'")
    assert "; exact_match >= 0.8: no value in 20 records: no answer: " in last
    assert "PASS" not in matrix
    as_json = agentunit("run", "suite.py", "--set", "model=a,b", "--json")
    compared = json.loads(as_json.stdout.splitlines()[-1])
    assert (as_json.returncode, compared["exit_code"], compared["decision"]["verdict"]) == (1, 1, "fail")


def test_variants_of_one_name_are_called_by_what_differs(agentunit):
    result = agentunit("run", "suite.py", "--set", "model=good,fine", "--name", "m", "--tag", "team=x")
    assert result.returncode == 0, result.stderr
    assert "Against the baseline model=good → model=fine: 20 cases" in result.stdout
    assert "PASS: model=good: 1 gate met; 20 cases: 20 fine; model=fine: 1 gate met; 20 cases: 20 fine" in result.stdout


def test_a_variable_that_nothing_takes_is_a_usage_error(agentunit, tmp_path: Path):
    (tmp_path / "matrix_agent.py").write_text('def answer(query, style="x"):\n    return query\n')
    result = agentunit("run", "suite.py", "--set", "stile=a,b")
    assert result.returncode == 2
    assert "--set stile: the agent has no parameter 'stile'" in result.stderr
    assert "did you mean 'style'? (--tag stile=a only notes it)" in result.stderr
    assert result.stderr.count("stile=") == 2  # the first value, and the way out; no second run is begun
    assert agentunit("run", "suite.py", "--set", "style=a").returncode == 0


def test_a_variable_that_is_read_from_the_environment_is_taken(agentunit, tmp_path: Path):
    (tmp_path / "matrix_agent.py").write_text("import settings\n\ndef answer(query):\n    return query\n")
    for text in ('import os\nTONE = os.environ["AGENTUNIT_SET_TONE"]', "import os\nPREFIX = 'AGENTUNIT_SET_'"):
        (tmp_path / "settings.py").write_text(text)
        assert agentunit("run", "suite.py", "--set", "tone=a").returncode == 0
    (tmp_path / "settings.py").write_text("")
    assert agentunit("run", "suite.py", "--set", "tone=a").returncode == 2
    (tmp_path / "settings.yaml").write_text("tone: ${AGENTUNIT_SET_TONE}")
    assert agentunit("run", "suite.py", "--set", "tone=a").returncode == 0
